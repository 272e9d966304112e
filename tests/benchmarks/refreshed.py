"""the result of a node -> how it was refreshed, in a few words for a table; an MV and its query -> whether the refresh was right."""

from __future__ import annotations

from collections import Counter
from typing import Any

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


def differs(project: Any, name: str, sql: str) -> bool:
    """Whether the storage of an MV and its query have other rows, as bags. The MV's own name is a view, whose text is the query."""
    return counted(project, f"SELECT * FROM lake.main.{name}__storage") != counted(project, sql)


def counted(project: Any, sql: str) -> Counter[str]:
    """The rows of a query; doubles to nine digits."""
    project.spark.sql("USE lake.main")
    return Counter(repr([_shown(value) for value in row]) for row in project.spark.sql(sql).collect())


def _shown(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_shown(one) for one in value]
    return f"{value:.9g}" if isinstance(value, float) else value
