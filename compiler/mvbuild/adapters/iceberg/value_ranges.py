"""TableChange + columns -> the range of each one in the rows that were added or removed, by the bounds of their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from struct import error as StructError  # noqa: N812
from typing import TYPE_CHECKING, Any

from mvbuild.ports.changes import Side, TableChange, ValueRange

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile

UNREADABLE = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, NotImplementedError, StructError)
_TYPES = ("int", "long", "date", "string")
"""Types whose bounds mean the same to every writer and reader, in addition to decimals. Floats have values without an order."""


def value_ranges(change: TableChange, side: Side, columns: Iterable[str]) -> dict[str, ValueRange]:
    files = [entry.file for part in change.parts for entry in (part.files.added if side == "plus" else part.files.removed)]
    if side == "minus" or change.may_restore:
        files += [entry.file for part in change.parts for entry in part.files.altered]
    fields = {f["name"]: f for f in change.table.schema["fields"]}
    found = {}
    for name in columns:
        type_ = fields[name]["type"] if name in fields else None
        if not isinstance(type_, str) or not (type_ in _TYPES or type_.startswith("decimal")):
            continue
        try:
            found[name] = range_in(files, fields[name]["id"], type_)
        except UNREADABLE:
            continue  # a file of a writer that stores no bounds
    return found


def range_in(files: Sequence[DataFile], field: int, type_: str) -> ValueRange:
    """The range of a column. Raises one of UNREADABLE if a file has too little information."""
    from pyiceberg.conversions import from_bytes
    from pyiceberg.types import IcebergType

    of: Any = IcebergType.model_validate(type_)
    lows, highs, has_null = [], [], False
    for file in files:
        nulls = (file.null_value_counts or {}).get(field)
        has_null = has_null or nulls != 0
        if nulls is not None and nulls == file.record_count:
            continue
        lows.append(_text(from_bytes(of, file.lower_bounds[field]), type_))
        highs.append(_text(from_bytes(of, file.upper_bounds[field]), type_))
    if not lows:
        return ValueRange(type=type_, low=None, high=None, has_null=has_null)
    return ValueRange(type=type_, low=min(lows), high=max(highs), has_null=has_null)


def _text(value: Any, type_: str) -> Any:
    if type_ == "date":
        from pyiceberg.utils.datetime import days_to_date

        return days_to_date(value)
    # The second one if the bound was cut off there.
    if isinstance(value, str) and not {"\ufffd", "\ufffe"}.isdisjoint(value):
        raise ValueError("bytes that are not valid text, which have another order")
    if isinstance(value, str | Decimal | int):
        return value
    raise TypeError(type(value).__name__)
