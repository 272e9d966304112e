"""Spark StructType -> Iceberg schema in its JSON form, or a QueryError with every column that Iceberg cannot store."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from mvbuild.parse.metadata_columns import RESERVED
from mvbuild.ports.engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType

    from mvbuild.ports.states import Schema

UNSTORABLE = "mvbuild.UNSTORABLE_COLUMN"
DUPLICATE = "mvbuild.DUPLICATE_COLUMN"

_PRIMITIVES = {
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "varchar": "string",
    "char": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}


def iceberg_schema(struct: StructType) -> Schema:
    """The schema. Ids are assigned as Iceberg does: the fields of a struct first, then what is nested in each of them."""
    problems = [*_duplicates(struct), *_unstorable(struct)]
    if problems:
        raise QueryError(" ".join(message for _, message in problems), condition=problems[0][0])
    return {**_struct(struct, count(1)), "schema-id": 0}


def _struct(struct: StructType, ids: Iterator[int]) -> dict[str, Any]:
    numbered = [(next(ids), field) for field in struct.fields]
    fields = [{"id": id_, "name": f.name, "required": False, "type": _type(f.dataType, ids)} for id_, f in numbered]
    return {"type": "struct", "fields": fields}


def _type(data_type: DataType, ids: Iterator[int]) -> Any:
    kind = data_type.typeName()
    if kind in _CONTAINERS:
        return _CONTAINERS[kind](data_type, ids)
    return _PRIMITIVES[_name(data_type)]


def _list(array: ArrayType, ids: Iterator[int]) -> dict[str, Any]:
    element_id = next(ids)
    return {"type": "list", "element-id": element_id, "element": _type(array.elementType, ids), "element-required": False}


def _map(mapping: MapType, ids: Iterator[int]) -> dict[str, Any]:
    key_id, value_id = next(ids), next(ids)
    return {
        "type": "map",
        "key-id": key_id,
        "key": _type(mapping.keyType, ids),
        "value-id": value_id,
        "value": _type(mapping.valueType, ids),
        "value-required": False,
    }


def _decimal(decimal: DecimalType, ids: Iterator[int]) -> str:  # noqa: ARG001
    return f"decimal({decimal.precision}, {decimal.scale})"


_CONTAINERS: dict[str, Any] = {"struct": _struct, "array": _list, "map": _map, "decimal": _decimal}


def _name(data_type: DataType) -> str:
    """`varchar(3)` is a varchar. For Iceberg, a string with a collation is not a plain string, but it contains the same text."""
    return data_type.simpleString().split("(")[0].split(" ")[0]


def _unstorable(struct: StructType) -> Iterator[tuple[str, str]]:
    for at, field in enumerate(struct.fields, 1):
        if not field.name:
            yield UNSTORABLE, f"Column {at} has an empty name, which Iceberg cannot store."
        if field.name in RESERVED:
            yield UNSTORABLE, f"Column '{field.name}' has a name that Iceberg reserves, and Spark cannot read a table with it."
        yield from _unstorable_type(field.dataType, field.name)


def _unstorable_type(data_type: DataType, path: str) -> Iterator[tuple[str, str]]:
    kind = data_type.typeName()
    for step, inner in _nested(data_type):
        yield from _unstorable_type(inner, f"{path}.{step}")
    if kind == "struct" and not _nested(data_type):
        yield UNSTORABLE, f"Column '{path}' is a struct without fields, which Iceberg cannot store."
    elif kind not in _CONTAINERS and _name(data_type) not in _PRIMITIVES:
        yield UNSTORABLE, f"Column '{path}' has type {data_type.simpleString()}, which Iceberg cannot store."


def _duplicates(struct: StructType) -> Iterator[tuple[str, str]]:
    """Iceberg finds columns and fields by their paths, whatever the case: it cannot load a table with a column `a.b` beside a field `b` of
    a column `a`."""
    spelled: dict[str, list[str]] = {}
    for path in _paths(struct, ""):
        spelled.setdefault(path.lower(), []).append(path)
    twice = {path for path, found in spelled.items() if len(found) > 1}
    for path, found in spelled.items():
        if path not in twice or any(path.startswith(f"{other}.") for other in twice):
            continue
        names = " or ".join(f"'{name}'" for name in dict.fromkeys(found))
        what = "columns or fields have the path" if "." in path else "columns are named"
        yield DUPLICATE, f"{len(found)} {what} {names}; names must differ in more than case."


def _paths(data_type: Any, prefix: str) -> Iterator[str]:
    for step, inner in _nested(data_type):
        yield f"{prefix}{step}"
        yield from _paths(inner, f"{prefix}{step}.")


def _nested(data_type: Any) -> list[tuple[str, DataType]]:
    """The types inside a type, under Iceberg's names."""
    kind = data_type.typeName()
    if kind == "struct":
        fields: list[StructField] = data_type.fields
        return [(f.name, f.dataType) for f in fields]
    if kind == "array":
        return [("element", data_type.elementType)]
    if kind == "map":
        return [("key", data_type.keyType), ("value", data_type.valueType)]
    return []
