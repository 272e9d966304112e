"""Parquet files + columns -> whether PyArrow reads in them what Spark does: by the types of their footers.

An allow-list: what Iceberg's own writers make of a type, and what they made of a narrower one before a column was widened. Everything else
Spark reads alone. Files of other writers that `add_files` took in hold timestamps as INT96, which overflow in nanoseconds, numbers without
a sign, or columns without field ids, which one reader finds by their name and another by their place.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.parquet import ColumnSchema, ParquetFile  # type: ignore[import-untyped]
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

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
"""Iceberg's type -> the physical and the logical types that hold it."""
_DECIMALS = ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def are_exact(table: Table, files: Sequence[DataFile], columns: Sequence[str]) -> bool:
    """Whether all of the files are of that kind. Reads their footers."""
    from pyiceberg.utils.concurrent import ExecutorFactory

    schema = table.schema()
    wanted = {field.field_id: str(field.field_type) for field in schema.fields if field.name in columns}

    def of_file(file: DataFile) -> bool:
        from pyarrow.parquet import ParquetFile

        constants = {field.source_id for field in table.specs()[file.spec_id].fields if str(field.transform) == "identity"}
        with table.io.new_input(file.file_path).open() as source:
            return is_exact(ParquetFile(source), wanted, constants)

    return all(ExecutorFactory.get_or_create().map(of_file, files))


def is_exact(file: ParquetFile, wanted: Mapping[int, str], constants: set[int]) -> bool:
    """Of one file. `wanted`: field id -> type. `constants`: columns by whose values it is partitioned; one that it lacks is not NULL."""
    columns: dict[int, ColumnSchema] = {}
    for field, column in _columns(file):
        id_ = (field.metadata or {}).get(_FIELD_ID)
        if id_ is None:
            return False
        columns[int(id_)] = column
    return all(_holds(columns[id_], type_) if id_ in columns else id_ not in constants for id_, type_ in wanted.items())


def _columns(file: ParquetFile) -> Iterator[tuple[pa.Field, ColumnSchema]]:
    """The columns of the file, each with the first of its leaves."""
    at = 0
    for field in file.schema_arrow:
        yield field, file.schema.column(at)
        at += _leaves(field.type)


def _leaves(type_: pa.DataType) -> int:
    return sum(_leaves(type_.field(at).type) for at in range(type_.num_fields)) or 1


def _holds(column: ColumnSchema, type_: str) -> bool:
    """Whether a column of a file holds exactly the values of Iceberg's type. A leaf of what is nested never does."""
    if column.path.count(".") or column.max_repetition_level:
        return False
    logical = json.loads(column.logical_type.to_json())
    decimal = _DECIMAL.fullmatch(type_)
    if decimal is not None:
        fits = logical.get("scale") == int(decimal[2]) and logical.get("precision", 0) <= int(decimal[1])
        return fits and logical["Type"] == "Decimal" and column.physical_type in _DECIMALS
    return (column.physical_type, _name(logical)) in _ENCODINGS.get(type_, ())


def _name(logical: Mapping[str, Any]) -> str:
    """Of a logical type; empty where there is none. What no Iceberg writer makes has a name that nothing knows."""
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
