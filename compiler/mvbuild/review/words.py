"""parts of a Review -> the sentences that text and Markdown share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from mvbuild.incremental.cost import Cost
from mvbuild.review.model import ORDER, TITLES, Break, NodeChange, Refresh, Review, SettingChange

ACTIONS = {
    "load": "load seed",
    "create": "create view",
    "replace": "replace view",
    "refresh": "refresh",
    "redefine": "redefine",
    "alter": "alter",
    "convert": "convert",
    "record": "update record",
    "blocked": "blocked",
    "unknown": "",
}
_NAMED = 5


def title(change: NodeChange) -> str:
    """`filter narrowed`; both for something that was renamed and changed."""
    kinds = [f.kind for f in change.findings if f.kind not in ("formatting", "equal")]
    if change.what == "renamed" and kinds:
        return f"renamed, {TITLES[max(kinds, key=ORDER.index)]}"
    return TITLES[change.kind]


def what(change: NodeChange) -> list[str]:
    """What was changed, one clause each, the most important first."""
    lines = [f"it was called '{change.former}'"] if change.former else []
    ordered = sorted(change.findings, key=lambda f: -ORDER.index(f.kind))
    lines += [f.message for f in ordered]
    lines += [setting(s) for s in change.settings]
    if change.documented:
        lines.append("its descriptions were changed")
    return lines


def setting(change: SettingChange) -> str:
    """`tags: ["daily"] -> ["hourly"]`."""
    return f"{change.name}: {_value(change.old)} -> {_value(change.new)}"


def _value(value: object) -> str:
    return "not set" if value is None else value if isinstance(value, str) else json.dumps(value)


def users(breaks: Sequence[Break]) -> list[str]:
    """The users of what was removed: `daily uses 'status' (models/daily.sql:3:8)`."""
    lines = []
    for one in breaks:
        verb = "uses" if one.certain else "may use"
        lines.append(f"{one.name} {verb} '{one.column}'{f' ({one.span})' if one.span else ''}")
    return lines


def no_reader(change: NodeChange) -> str:
    """The note on a breaking change without a known user in the project."""
    columns = {c for f in change.findings if f.kind == "breaking" for c in f.columns}
    return "nothing in this project is known to use it" if columns and not change.breaks else ""


def names(ids: Iterable[str], review: Review, most: int = _NAMED) -> str:
    """`daily, monthly and 3 more`."""
    known = [review.names.get(id, id) for id in ids]
    more = len(known) - most
    return ", ".join(known[:most]) + (f" and {more} more" if more > 0 else "")


def counted(review: Review) -> str:
    """`breaking 1, filter narrowed 2` for models, seeds and sources; then the rest."""
    counts = Counter(change.kind for change in review.models)
    parts = [f"{TITLES[kind]} {counts[kind]}" for kind in reversed(ORDER) if counts[kind]]
    for what_, number in (("test", len(review.tests)), ("macro", len(review.macros)), ("variable", len(review.vars))):
        parts += [f"{number} {what_}{'s' * (number != 1)}"] if number else []
    return ", ".join(parts)


def how(refresh: Refresh) -> str:
    """`refresh, full` or `load seed`."""
    strategy = refresh.strategy if refresh.action in ("refresh", "redefine") else None
    if refresh.action == "refresh" and strategy is None:
        strategy = "as what it reads changes"
    return ", ".join(part for part in (ACTIONS.get(refresh.action, refresh.action), strategy) if part)


def total(review: Review) -> tuple[Cost, Cost, int]:
    """The known bytes of all refreshes, the bytes if they were full, and how many are unknown."""
    nothing = Cost(bytes=0, rows=0)
    known = [r for r in review.refreshes if r.expected and r.full]
    unknown = sum(r.action == "refresh" and r.expected is None for r in review.refreshes)
    return sum((r.expected for r in known if r.expected), nothing), sum((r.full for r in known if r.full), nothing), unknown
