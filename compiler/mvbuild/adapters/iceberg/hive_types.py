"""type of an Iceberg schema -> what Hive and Glue show for it. Readers of Iceberg tables do not look at it."""

from __future__ import annotations

from typing import Any

ZONED = "timestamp with local time zone"
_NAMES = {
    **{name: name for name in ("boolean", "int", "float", "double", "date", "timestamp", "binary")},
    "long": "bigint",
    "timestamptz": "timestamp",
}


def shown(type_: Any, *, zoned: str = "timestamp") -> str:
    """`zoned` is shown for timestamptz. Types that have no like are strings: a metastore refuses what it does not know."""
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
