"""RefreshRecord <-> properties of the view and the storage table, as the property-based specification names them.

Source: the Iceberg materialized view specification based on properties (`iceberg.materialized.view`, `iceberg.base.snapshot.[UUID]`,
`iceberg.view.version`, `iceberg.child.view.version.[UUID]`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import BaseTable, ChildView, Properties, RecordError, RefreshRecord, integer
from mvbuild.names import TableIdentifier

IS_MATERIALIZED = "iceberg.materialized.view"
STORAGE_TABLE = "iceberg.materialized.view.storage.table"
VIEW_VERSION = "iceberg.view.version"
BASE_SNAPSHOT = "iceberg.base.snapshot."
CHILD_VIEW_VERSION = "iceberg.child.view.version."

OWNER = "mvbuild.model"
"""On every view and storage table that mvbuild writes: the model's unique id. Not part of the specification."""

TARGET_NAMESPACE = "mvbuild.target-namespace"
"""On every view that mvbuild writes: the namespace of the target that it was written for. Another target of the same project may have its
own views in the catalog. Not part of the specification."""

REFRESH_SNAPSHOT = "mvbuild.refresh.snapshot-id"
"""The storage snapshot that the record describes. Not part of the specification: it shows whether another writer changed the storage."""
INDIRECT = "mvbuild.record.indirect"
"""UUIDs of tables and views in the record that the query itself does not read. They are there for other readers."""
NO_TABLE = "00000000-0000-0000-0000-000000000000"
"""No table has this UUID: readers that apply only the specification never find a record with it fresh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indirect:
    """What readers that apply only the rules of the specification need in addition to what the query itself reads."""

    tables: Mapping[str, int] = field(default_factory=dict)
    """UUID -> snapshot of the tables that the upstream MVs were computed from."""
    views: Mapping[str, int] = field(default_factory=dict)
    """UUID -> version of the views of the upstream MVs, their child views, and the MV's own view."""
    is_beyond_rules: bool = False
    """The rows can change without a snapshot or version that a property could name, so such readers must never find them fresh."""


DIRECT_ONLY = Indirect()

REFRESH_SCHEMA = "mvbuild.refresh.schema-id"
"""The schema of the storage when the refresh wrote. Not part of the specification: it shows whether another writer changed the columns."""


def view_properties(storage: TableIdentifier) -> dict[str, str]:
    """The properties that mark a view as an MV and point to its storage table (`namespace.name`, in the view's own catalog)."""
    return {IS_MATERIALIZED: "true", STORAGE_TABLE: storage.dotted}


def is_materialized(properties: Properties) -> bool:
    return properties.get(IS_MATERIALIZED, "").lower() == "true"


def encode(record: RefreshRecord, indirect: Indirect = DIRECT_ONLY) -> dict[str, str]:
    """The record as properties of the storage table. For a table read at several snapshots it has the one of `main`, because a property has
    one value.

    Raises RecordError for what properties cannot express: a table without a UUID, and a record of another writer.
    """
    if record.view_version_id is None:
        raise RecordError(VIEW_VERSION, "is unknown: the record was not written by mvbuild")
    unnamed = [".".join((*table.namespace, table.name)) for table in record.base_tables if not table.uuid]
    if unnamed or record.incomplete:
        raise RecordError(BASE_SNAPSHOT + "[UUID]", f"is unknown for some tables: {', '.join(unnamed) or 'some have no name'}")
    properties = {VIEW_VERSION: str(record.view_version_id)}
    for table in record.base_tables:
        properties[BASE_SNAPSHOT + table.uuid] = str(record.of_table(table.uuid)[0].snapshot_id)
    for view in record.child_views:
        properties[CHILD_VIEW_VERSION + view.uuid] = str(view.version_id)
    return {**properties, **_encode_indirect(properties, indirect)}


def _encode_indirect(direct: Properties, indirect: Indirect) -> dict[str, str]:
    tables = {**indirect.tables, **({NO_TABLE: 0} if indirect.is_beyond_rules else {})}
    added = {BASE_SNAPSHOT + uuid: str(value) for uuid, value in tables.items()}
    added |= {CHILD_VIEW_VERSION + uuid: str(value) for uuid, value in indirect.views.items()}
    added = {key: value for key, value in added.items() if key not in direct}
    return {**added, INDIRECT: ",".join(sorted(_uuid(key) for key in added))} if added else {}


def _uuid(key: str) -> str:
    return key.removeprefix(BASE_SNAPSHOT).removeprefix(CHILD_VIEW_VERSION)


def decode(properties: Properties) -> RefreshRecord | None:
    """The record in the properties; None if there is none. Raises RecordError if a value does not follow the specification.

    Omits what the query does not read itself.
    """
    indirect = frozenset(properties.get(INDIRECT, "").split(","))
    tables = _suffixed(properties, BASE_SNAPSHOT, indirect)
    views = _suffixed(properties, CHILD_VIEW_VERSION, indirect)
    if VIEW_VERSION not in properties:
        if tables or views:
            raise RecordError(VIEW_VERSION, "is missing beside the other properties of a refresh")
        return None
    return RefreshRecord(
        view_version_id=integer(VIEW_VERSION, properties[VIEW_VERSION]),
        base_tables=tuple(BaseTable(uuid=uuid, snapshot_id=value) for uuid, value in tables.items()),
        child_views=tuple(ChildView(uuid=uuid, version_id=value) for uuid, value in views.items()),
    )


def stale_keys(properties: Properties, record: RefreshRecord, indirect: Indirect = DIRECT_ONLY) -> tuple[str, ...]:
    """Properties of an earlier refresh that the record does not set again, and that must be removed with it."""
    kept = encode(record, indirect)
    return tuple(k for k in properties if k.startswith((BASE_SNAPSHOT, CHILD_VIEW_VERSION, INDIRECT)) and k not in kept)


def _suffixed(properties: Properties, prefix: str, without: frozenset[str]) -> dict[str, int]:
    return {
        k[len(prefix) :]: integer(k, v) for k, v in sorted(properties.items()) if k.startswith(prefix) and k[len(prefix) :] not in without
    }
