"""Parquet files + columns -> whether PyArrow reads the same values as Spark, judged by the types in their footers.

This is an allow-list: what Iceberg's own writers write for a type, and for a narrower type before a column was widened. Only Spark reads
all other files. Files of other writers, added with `add_files`, can contain timestamps as INT96, which overflow in nanoseconds, unsigned
numbers, or columns without field ids, which one reader finds by name and another by position.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.parquet import ColumnSchema, ParquetFile  # type: ignore[import-untyped]

_FIELD_ID = b"PARQUET:field_id"
_INT = {("INT32", ""), ("INT32", "int32")}
_FLOAT = {("FLOAT", "")}
_ENCODINGS: Mapping[str, set[tuple[str, str]]] = {
    "boolean": {("BOOLEAN", "")},
    "int": _INT,
    "long": {("INT64", ""), ("INT64", "int64"), *_INT},
    "float": _FLOAT,
    "double": {("DOUBLE", ""), *_FLOAT},
    "date": {("INT32", "date")},
    "timestamp": {("INT64", "timestamp")},
    "timestamptz": {("INT64", "timestamptz")},
    "string": {("BYTE_ARRAY", "string")},
    "binary": {("BYTE_ARRAY", "")},
}
"""Iceberg's type -> the physical and logical types that store it."""
_DECIMALS = ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


class Inexact(Exception):
    """Only an engine can read the file."""


def exact_columns(file: ParquetFile, wanted: Mapping[int, str], constants: Collection[int]) -> dict[int, str] | None:
    """The names that columns have in one file, without those that it lacks; None if it cannot be read exactly. `wanted`: field id -> type.
    `constants`: columns by whose values it is partitioned; if the file lacks one, its value is not NULL."""
    columns: dict[int, tuple[str, ColumnSchema]] = {}
    for field, column in _columns(file):
        id_ = (field.metadata or {}).get(_FIELD_ID)
        if id_ is None:
            return None
        columns[int(id_)] = field.name, column
    if not all(_holds(columns[id_][1], type_) if id_ in columns else id_ not in constants for id_, type_ in wanted.items()):
        return None
    return {id_: columns[id_][0] for id_ in wanted if id_ in columns}


def _columns(file: ParquetFile) -> Iterator[tuple[pa.Field, ColumnSchema]]:
    """The columns of the file, each with its first leaf."""
    at = 0
    for field in file.schema_arrow:
        yield field, file.schema.column(at)
        at += _leaves(field.type)


def _leaves(type_: pa.DataType) -> int:
    return sum(_leaves(type_.field(at).type) for at in range(type_.num_fields)) or 1


def _holds(column: ColumnSchema, type_: str) -> bool:
    """Whether a column of a file contains exactly the values of Iceberg's type. The leaf of a nested column never does."""
    if column.path.count(".") or column.max_repetition_level:
        return False
    logical = json.loads(column.logical_type.to_json())
    decimal = _DECIMAL.fullmatch(type_)
    if decimal is not None:
        fits = logical.get("scale") == int(decimal[2]) and logical.get("precision", 0) <= int(decimal[1])
        return fits and logical["Type"] == "Decimal" and column.physical_type in _DECIMALS
    return (column.physical_type, _name(logical)) in _ENCODINGS.get(type_, ())


def _name(logical: Mapping[str, Any]) -> str:
    """The name of a logical type; empty if there is none. Types that no Iceberg writer uses get a name that matches nothing."""
    match logical:
        case {"Type": "None"}:
            return ""
        case {"Type": "Int", "bitWidth": width, "isSigned": True}:
            return f"int{width}"
        case {"Type": "Timestamp", "timeUnit": "microseconds", "isAdjustedToUTC": adjusted}:
            return "timestamptz" if adjusted else "timestamp"
        case {"Type": "Date" | "String" as name}:
            return str(name).lower()
    return "other"
