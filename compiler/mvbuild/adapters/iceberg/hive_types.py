"""type of an Iceberg schema -> the type that Hive and Glue show. Readers of Iceberg tables ignore it."""

from __future__ import annotations

from typing import Any

ZONED = "timestamp with local time zone"
_NAMES = {
    **{name: name for name in ("boolean", "int", "float", "double", "date", "timestamp", "binary")},
    "long": "bigint",
    "timestamptz": "timestamp",
}


def shown(type_: Any, *, zoned: str = "timestamp") -> str:
    """The Hive type. `zoned` is the type for timestamptz. Types without an equivalent are strings, because a metastore refuses unknown
    types."""
    if isinstance(type_, dict):
        return _nested(type_, zoned)
    if type_.startswith("decimal"):
        return str(type_).replace(" ", "")
    if type_.startswith("fixed"):
        return "binary"
    return zoned if type_ == "timestamptz" else _NAMES.get(type_, "string")


def _nested(type_: dict[str, Any], zoned: str) -> str:
    if type_["type"] == "list":
        return f"array<{shown(type_['element'], zoned=zoned)}>"
    if type_["type"] == "map":
        return f"map<{shown(type_['key'], zoned=zoned)},{shown(type_['value'], zoned=zoned)}>"
    fields = (f"{field['name']}:{shown(field['type'], zoned=zoned)}" for field in type_["fields"])
    return f"struct<{','.join(fields)}>"
