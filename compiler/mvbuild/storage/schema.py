"""storage table -> whether its columns are those that its last refresh left.

Iceberg renames, drops and moves columns without making a snapshot: the rows stay the same, but not their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.formats.properties import REFRESH_SCHEMA
from mvbuild.ports.states import Schema, Snapshot, TableState
from mvbuild.storage.schema_difference import difference, paths
from mvbuild.storage.stored import refreshed_snapshot


def schema_property(refreshed: Snapshot) -> dict[str, str]:
    """The property with the schema that a refresh wrote with; empty for a snapshot that does not have it."""
    return {REFRESH_SCHEMA: str(refreshed.schema_id)} if refreshed.schema_id is not None else {}


def repeated_schema_property(storage: TableState) -> dict[str, str]:
    """What a compaction records: its snapshot replaces that of the refresh, and must not hide that others changed the columns."""
    left = _left(storage)
    if left is None:
        return {}
    return {REFRESH_SCHEMA: str(left if changed_by_others(storage) else storage.current_schema_id)}


def stale_schema_property(properties: Mapping[str, str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """The property of an earlier refresh, if none is set now."""
    return (REFRESH_SCHEMA,) if REFRESH_SCHEMA in properties and REFRESH_SCHEMA not in kept else ()


def changed_by_others(storage: TableState) -> tuple[str, ...]:
    """Columns of the storage that differ from what the last refresh left; all of them if that schema no longer exists."""
    left = _left(storage)
    if left is None or left == storage.current_schema_id:
        return ()
    before = storage.schemas.get(left)
    return difference(before, storage.schema).names if before is not None else _names(storage.schema)


def _left(storage: TableState) -> int | None:
    """The schema that the last refresh left: the recorded one or, for a writer that records none, that of its snapshot."""
    text = storage.properties.get(REFRESH_SCHEMA, "")
    if text.isdigit():
        return int(text)
    snapshot = refreshed_snapshot(storage)
    return snapshot.schema_id if snapshot is not None else None


def _names(schema: Schema) -> tuple[str, ...]:
    return tuple(".".join(path) for path in paths(schema))
