"""types of columns -> random rows, the same ones each time: few values, so that they meet in joins and groups, with NULLs and extremes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from random import Random
from typing import Any

from mvbuild.project.unit_tests import RowsAsWritten

_WORDS = ("a", "b", "A", " a ", "ä", "", "x'y", "DE", "FR")
_FIRST = date(2026, 1, 1)


def random_rows(asked: RowsAsWritten, types: Mapping[str, str], seed: str) -> RowsAsWritten:
    """Rows for all columns. A type that is not known here has NULLs only."""
    draw = Random(seed)
    records = tuple({name: _value(draw, type_) for name, type_ in types.items()} for _ in range(asked.random or 0))
    return RowsAsWritten(records=records, columns=tuple(types), span=asked.span, places=(asked.span,) * len(records))


def _value(draw: Random, type_: str) -> Any:
    if draw.random() < 0.1:
        return None
    if type_ in ("tinyint", "smallint", "int", "bigint"):
        return draw.choice((0, 1, 2, 3, 4, 5, -1, 100))
    if type_.startswith("decimal("):
        precision, scale = map(int, type_[8:-1].split(","))
        largest = min(10**precision - 1, 100_000)
        return f"{draw.choice((0, draw.randrange(-largest, largest + 1))) / 10**scale:.{scale}f}"
    if type_ in ("double", "float"):
        return draw.choice((0.0, 0.5, -1.25, 3.0, 100.0))
    if type_ == "boolean":
        return draw.random() < 0.5
    day = _FIRST + timedelta(days=draw.randrange(70))
    if type_ == "date":
        return day
    if type_.startswith("timestamp"):
        return f"{day.isoformat()} {draw.randrange(24):02}:{draw.choice((0, 30, 59)):02}:00"
    return draw.choice(_WORDS) if type_ == "string" else None
