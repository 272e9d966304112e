"""expected and actual rows, as texts -> the rows that differ, as a table that shows which values do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

Row = tuple["str | None", ...]
_MOST = 20
"""Rows that are shown."""


def difference(columns: Sequence[str], actual: Sequence[Row], expected: Sequence[Row]) -> str:
    """Empty if both have the same rows, in whatever order."""
    missing, extra = Counter(expected) - Counter(actual), Counter(actual) - Counter(expected)
    lines = list(_lines(list(missing.elements()), list(extra.elements())))
    if not lines:
        return ""
    rows = [("@@", *columns), *lines[:_MOST]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    shown = [" | ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    more = [f"... and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    counts = f"{len(actual)} row{'s' * (len(actual) != 1)}, {len(expected)} expected"
    return "\n".join((f"The rows differ ({counts}):  +++ not expected   --- missing   ~ expected → actual", *shown, *more))


def _lines(missing: list[Row], extra: list[Row]) -> Iterator[tuple[str, ...]]:
    """Rows that are alike in at least half of their columns are one line."""
    for row in missing:
        like = max(extra, key=lambda other: _alike(row, other), default=None)
        if like is not None and 2 * _alike(row, like) >= len(row):
            extra.remove(like)
            yield "~", *(_text(a) if a == b else f"{_text(a)} → {_text(b)}" for a, b in zip(row, like, strict=True))
        else:
            yield "---", *map(_text, row)
    for row in extra:
        yield "+++", *map(_text, row)


def _alike(one: Row, other: Row) -> int:
    return sum(a == b for a, b in zip(one, other, strict=True))


def _text(value: str | None) -> str:
    """With quotes where a text could be taken for something else."""
    if value is None:
        return "NULL"
    return f"'{value}'" if value == "NULL" or value != value.strip() or not value else value.replace("\n", "\\n")
