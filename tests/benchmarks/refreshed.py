"""the result of a node -> how it was refreshed, in a few words for a table: its strategy, and the reason of a complete computation."""

from __future__ import annotations

from mvbuild.refresh.result import NodeResult

COMPLETE = ("full", "full-diff")


def how(result: NodeResult) -> str:
    """`merge`, `full (limit)`; `aux` if auxiliary views follow the changes, and the query is computed from them, whatever reads the least."""
    views = result.details.get("auxiliary_views") or ()
    whole = next((one for one in views if one["strategy"] in COMPLETE), None)
    if views:
        return "aux" if whole is None else f"full ({whole['reason']})"
    strategy, reason = result.details.get("strategy") or result.status, result.details.get("reason")
    return f"{strategy} ({reason})" if reason else str(strategy)
