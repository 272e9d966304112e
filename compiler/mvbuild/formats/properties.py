"""RefreshRecord <-> properties of the view and the storage table, as the property-based specification names them.

Source: the Iceberg materialized view specification based on properties (`iceberg.materialized.view`, `iceberg.base.snapshot.[UUID]`,
`iceberg.view.version`, `iceberg.child.view.version.[UUID]`).
"""

from __future__ import annotations

from mvbuild.formats.record import BaseTable, ChildView, Properties, RecordError, RefreshRecord, integer
from mvbuild.names import TableIdentifier

IS_MATERIALIZED = "iceberg.materialized.view"
STORAGE_TABLE = "iceberg.materialized.view.storage.table"
VIEW_VERSION = "iceberg.view.version"
BASE_SNAPSHOT = "iceberg.base.snapshot."
CHILD_VIEW_VERSION = "iceberg.child.view.version."

REFRESH_SNAPSHOT = "mvbuild.refresh.snapshot-id"
"""The storage snapshot that the record describes. Not of the specification: it tells when somebody else wrote to the storage."""


def view_properties(storage: TableIdentifier) -> dict[str, str]:
    """What marks a view as an MV and points at its storage table (`namespace.name`, in the view's own catalog)."""
    return {IS_MATERIALIZED: "true", STORAGE_TABLE: storage.dotted}


def is_materialized(properties: Properties) -> bool:
    return properties.get(IS_MATERIALIZED, "").lower() == "true"


def encode(record: RefreshRecord) -> dict[str, str]:
    """The record as properties of the storage table. A table read at several snapshots keeps the one of `main`: a property holds one.

    RecordError for what no property can hold: a table without UUID, and a record that is another writer's.
    """
    if record.view_version_id is None:
        raise RecordError(VIEW_VERSION, "is not known: the record was not written by mvbuild")
    unnamed = [".".join((*table.namespace, table.name)) for table in record.base_tables if not table.uuid]
    if unnamed or record.incomplete:
        raise RecordError(BASE_SNAPSHOT + "[UUID]", f"is not known of every table: {', '.join(unnamed) or 'some have no name'}")
    properties = {VIEW_VERSION: str(record.view_version_id)}
    for table in record.base_tables:
        properties[BASE_SNAPSHOT + table.uuid] = str(record.of_table(table.uuid)[0].snapshot_id)
    for view in record.child_views:
        properties[CHILD_VIEW_VERSION + view.uuid] = str(view.version_id)
    return properties


def decode(properties: Properties) -> RefreshRecord | None:
    """The record that the properties hold; None if there is none. RecordError if a value is not what the specification says."""
    tables = _suffixed(properties, BASE_SNAPSHOT)
    views = _suffixed(properties, CHILD_VIEW_VERSION)
    if VIEW_VERSION not in properties:
        if tables or views:
            raise RecordError(VIEW_VERSION, "is missing beside the other properties of a refresh")
        return None
    return RefreshRecord(
        view_version_id=integer(VIEW_VERSION, properties[VIEW_VERSION]),
        base_tables=tuple(BaseTable(uuid=uuid, snapshot_id=value) for uuid, value in tables.items()),
        child_views=tuple(ChildView(uuid=uuid, version_id=value) for uuid, value in views.items()),
    )


def stale_keys(properties: Properties, record: RefreshRecord) -> tuple[str, ...]:
    """Properties of an earlier refresh that the record does not set again: they must go when it is written."""
    kept = encode(record)
    return tuple(k for k in properties if k.startswith((BASE_SNAPSHOT, CHILD_VIEW_VERSION)) and k not in kept)


def _suffixed(properties: Properties, prefix: str) -> dict[str, int]:
    return {k[len(prefix) :]: integer(k, v) for k, v in sorted(properties.items()) if k.startswith(prefix)}
