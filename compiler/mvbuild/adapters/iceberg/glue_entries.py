"""Swap -> the TableInput of Glue that shows it, as Iceberg's GlueCatalog writes tables; views are written in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.hive_types import shown
from mvbuild.adapters.iceberg.metadata import Raw, current_schema, current_version, schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mvbuild.adapters.iceberg.pointers import Kind, Swap

LOCATION = "metadata_location"
TYPE = "table_type"
_PREVIOUS = "previous_metadata_location"
_TYPES: dict[str, Kind] = {"iceberg": "TABLE", "iceberg-view": "VIEW"}
_KEPT = ("Owner", "Retention", "PartitionKeys", "ViewOriginalText", "ViewExpandedText", "TableType", "Parameters", "StorageDescriptor")
_PLACES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_DESCRIPTION, _COMMENT, _VIEW_TEXT = 2048, 255, 409_600
"""The longest values that Glue accepts."""


def pointer(table: Mapping[str, Any] | None) -> tuple[str, Kind] | None:
    """Metadata location and kind; None for entries that are not Iceberg's."""
    parameters = (table or {}).get("Parameters") or {}
    kind = _TYPES.get(parameters.get(TYPE, "").lower())
    location = parameters.get(LOCATION)
    return (location, kind) if kind and location else None


def same(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The current content of an entry, in the form in which it is sent back."""
    kept = {key: table[key] for key in (*_KEPT, "Description") if table.get(key) is not None}
    return {**kept, "Name": name}


def retired(table: Mapping[str, Any]) -> dict[str, Any]:
    """An entry without a pointer, which no engine recognizes as an Iceberg table any more."""
    found = same(table, table["Name"])
    return {**found, "Parameters": {k: v for k, v in (found.get("Parameters") or {}).items() if k not in (TYPE, LOCATION)}}


def changed(table: Mapping[str, Any], swap: Swap) -> dict[str, Any]:
    """The new entry. `table` is the current entry, empty for a new one; what other writers store there remains."""
    assert swap.raw is not None
    assert swap.new is not None
    raw, is_view = swap.raw, swap.kind == "VIEW"
    before = (table.get("Parameters") or {}).get(LOCATION)
    properties = raw.get("properties") or {}
    gone = ((swap.base or {}).get("properties") or {}).keys() - properties.keys()
    found = same(table, swap.key[1]) | {"TableType": "VIRTUAL_VIEW" if is_view else "EXTERNAL_TABLE"}
    found["Parameters"] = {
        # PyIceberg shows the table's properties here as well.
        **{key: properties.get(key, value) for key, value in (table.get("Parameters") or {}).items() if key not in gone},
        TYPE: "ICEBERG-VIEW" if is_view else "ICEBERG",
        LOCATION: swap.new,
        **({_PREVIOUS: before} if before else {}),
    }
    found["StorageDescriptor"] = _storage(raw, is_view=is_view, comments=_comments(table))
    description = properties.get("comment")
    if description:
        found["Description"] = description[:_DESCRIPTION]
    if is_view:
        text = (_sql(raw) or "")[:_VIEW_TEXT]
        found |= {"ViewOriginalText": text, "ViewExpandedText": text}
    return found


def _storage(raw: Raw, *, is_view: bool, comments: Mapping[str, str]) -> dict[str, Any]:
    properties = raw.get("properties") or {}
    places = sorted({properties[key] for key in _PLACES if key in properties})
    columns = list(_columns(raw, current_version(raw)["schema-id"] if is_view else current_schema(raw)["schema-id"], comments))
    return {"Location": raw["location"], "Columns": columns, **({"AdditionalLocations": places} if places else {})}


def _columns(raw: Raw, current_id: int, comments: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The columns of the current schema, then further ones of older schemas."""
    names: set[str] = set()
    for schema in sorted(schemas(raw), key=lambda schema: schema["schema-id"] != current_id):
        for field in schema["fields"]:
            if field["name"] in names:
                continue
            names.add(field["name"])
            comment = (field.get("doc") or comments.get(field["name"], ""))[:_COMMENT]
            yield {
                "Name": field["name"],
                "Type": shown(field["type"]),
                "Parameters": {
                    "iceberg.field.id": str(field["id"]),
                    "iceberg.field.optional": str(not field.get("required", False)).lower(),
                    "iceberg.field.current": str(schema["schema-id"] == current_id).lower(),
                },
                **({"Comment": comment} if comment else {}),
            }


def _comments(table: Mapping[str, Any]) -> dict[str, str]:
    columns = (table.get("StorageDescriptor") or {}).get("Columns") or []
    return {column["Name"]: column["Comment"] for column in reversed(columns) if column.get("Comment")}


def _sql(raw: Raw) -> str | None:
    return next((r["sql"] for r in current_version(raw)["representations"] if r.get("type") == "sql"), None)
