"""Spark's types -> their names in Trino, as Trino shows them for an Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.lineage.types import Array, Decimal, Map, Type

_PLAIN: Mapping[str, str] = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "VARBINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP(6) WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP(6)",
}


def trino_type(type_: Type | None) -> str | None:
    """None for an unknown type, or one that Trino does not have."""
    if type_ is None or isinstance(type_, str):
        return _PLAIN.get(type_) if type_ else None
    if isinstance(type_, Decimal):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if isinstance(type_, Array):
        inner = trino_type(type_.element)
        return f"ARRAY({inner})" if inner else None
    if isinstance(type_, Map):
        key, value = trino_type(type_.key), trino_type(type_.value)
        return f"MAP({key}, {value})" if key and value else None
    fields = [(name.replace('"', '""'), trino_type(inner)) for name, inner in type_.fields]
    inside = ", ".join(f'"{name}" {inner}' for name, inner in fields)
    return f"ROW({inside})" if all(inner for _, inner in fields) else None


def kind(type_: Type | None) -> str:
    """The kind of a type in a signature: all decimals are alike, and so are all arrays."""
    if type_ is None:
        return "?"
    return type_ if isinstance(type_, str) else type(type_).__name__.lower()
