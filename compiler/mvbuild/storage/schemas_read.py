"""storage table -> the schemas with which its last refresh read the base tables.

Iceberg changes a schema without making a snapshot. The specifications have no place for it, so mvbuild records the schema that each refresh
read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mvbuild.ports.states import TableState

SCHEMA_READ = "mvbuild.base.schema."
"""Prefix of properties of the storage table: UUID of a base table -> the id of its schema that the refresh read."""


def schemas_read(tables: Iterable[TableState]) -> dict[str, str]:
    """The properties for tables that are read with their current schema. Nothing is recorded for two tables with one UUID
    (`register_table`) whose schemas differ."""
    found: dict[str, set[int]] = {}
    for table in tables:
        if table.uuid:
            found.setdefault(table.uuid, set()).add(table.current_schema_id)
    return {SCHEMA_READ + uuid: str(*ids) for uuid, ids in found.items() if len(ids) == 1}


def recorded_schema_id(storage: TableState, table: TableState) -> int | None:
    """The id of the schema with which the last refresh read a table; None if it was not recorded."""
    text = storage.properties.get(SCHEMA_READ + table.uuid, "")
    return int(text) if text.isdigit() else None


def stale_schemas(properties: Mapping[str, str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """Schema properties of earlier refreshes that are not set again."""
    return tuple(k for k in properties if k.startswith(SCHEMA_READ) and k not in kept)
