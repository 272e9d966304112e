"""table metadata JSON -> metadata JSON of a scratch table, which shares the files but not the future of the table.

A scratch table must never cause a file of its base table to be deleted: it has its own UUID, an empty metadata log, and `gc.enabled=false`,
so that Spark refuses to purge it.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.layout import fitted, with_layout
from mvbuild.adapters.iceberg.metadata import schemas
from mvbuild.adapters.iceberg.tables import check, now_ms
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import TableState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.names import TableIdentifier

FOLDER = "mvbuild_scratch"
_MARK = "mvbuild.scratch"
_BASE = "mvbuild.scratch.base"
_FILES = "mvbuild.scratch.files"
"""Property: the manifests and manifest lists that were written for the scratch table, one per line."""
_LAYOUT_KEYS = ("current-schema-id", "default-spec-id", "default-sort-order-id")
_OWN_FILES = ("statistics", "partition-statistics")
_FORGOTTEN = ("write.metadata.delete-after-commit.enabled", "write.metadata.previous-versions-max")


def staged(raw: Raw, table: TableState, layout: TableLayout, location: str | None = None) -> Raw:
    """A copy with all snapshots, only the branch `main`, and `layout` as the current one. Its metadata is at `location`, its data at the
    table's location."""
    check(raw, table.identifier, table.uuid, table.current_snapshot_id)
    copy = _copy(raw)
    copy["refs"] = {name: ref for name, ref in (raw.get("refs") or {}).items() if name == "main"}
    copy["properties"][_BASE] = _base(raw)
    if location is not None:
        copy["properties"].setdefault("write.data.path", f"{raw['location'].rstrip('/')}/data")
        copy["properties"].pop("write.metadata.path", None)
        copy["location"] = location
    return with_layout(copy, layout)


def check_base(raw: Raw, scratch: Raw, identifier: TableIdentifier) -> None:
    """Raise CommitConflict if the table's layout is not the one that `scratch` was staged from."""
    if scratch["properties"].get(_BASE) != _base(raw):
        raise CommitConflict(f"The layout of table {identifier} was changed by another process.")


def pinned(raw: Raw, table: TableState, snapshot_id: int, location: str, *, own_schema: bool = False) -> Raw:
    """A copy whose only snapshot is read with the current schema, or with its own; without a snapshot for NO_SNAPSHOT."""
    found = next((s for s in raw.get("snapshots") or [] if s["snapshot-id"] == snapshot_id), None)
    copy = _copy(raw)
    properties = {key: value for key, value in copy["properties"].items() if not key.startswith("write.")}
    # The paths of data files are absolute; the location only determines where the scratch table's own metadata is.
    copy |= {"location": location, "properties": properties}
    if snapshot_id == NO_SNAPSHOT:
        return {**copy, "snapshots": [], "current-snapshot-id": -1, "snapshot-log": [], "refs": {}}
    if found is None:
        raise CatalogError(f"Table {table.identifier} has no snapshot {snapshot_id}.")
    schema_id = table.current_schema_id
    if own_schema and found.get("schema-id") is not None:
        schema_id = found["schema-id"]
        copy = fitted({**copy, "schemas": schemas(copy), "current-schema-id": schema_id})
    return {
        **copy,
        "snapshots": [{**found, "schema-id": schema_id}],
        "current-snapshot-id": snapshot_id,
        "snapshot-log": [{"timestamp-ms": found["timestamp-ms"], "snapshot-id": snapshot_id}],
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
    }


def with_files(raw: Raw, files: Sequence[str]) -> Raw:
    """Record files that are deleted with the scratch table."""
    return {**raw, "properties": {**raw["properties"], _FILES: "\n".join(files)}}


def is_scratch(raw: Raw) -> bool:
    return (raw.get("properties") or {}).get(_MARK) == "true"


def own_files(raw: Raw, location: str) -> tuple[str, ...]:
    """The metadata files that were written for the scratch table."""
    written = (raw.get("properties") or {}).get(_FILES, "").splitlines()
    return (location, *(entry["metadata-file"] for entry in raw.get("metadata-log") or ()), *written)


def _copy(raw: Raw) -> Raw:
    kept = {key: value for key, value in raw.items() if key not in _OWN_FILES}
    properties = {key: value for key, value in (raw.get("properties") or {}).items() if key not in _FORGOTTEN}
    marked = {**properties, _MARK: "true", "gc.enabled": "false"}
    return {**kept, "table-uuid": str(uuid.uuid4()), "metadata-log": [], "last-updated-ms": now_ms(), "properties": marked}


def _base(raw: Raw) -> str:
    return " ".join(str(raw.get(key, 0)) for key in _LAYOUT_KEYS)
