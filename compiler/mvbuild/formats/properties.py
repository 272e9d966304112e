"""RefreshRecord <-> properties of the view and the storage table, as the property-based specification names them.

Source: the Iceberg materialized view specification based on properties (`iceberg.materialized.view`, `iceberg.base.snapshot.[UUID]`,
`iceberg.view.version`, `iceberg.child.view.version.[UUID]`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mvbuild.formats.record import BaseTable, ChildView, Properties, RecordError, RefreshRecord, integer
from mvbuild.names import TableIdentifier

IS_MATERIALIZED = "iceberg.materialized.view"
STORAGE_TABLE = "iceberg.materialized.view.storage.table"
VIEW_VERSION = "iceberg.view.version"
BASE_SNAPSHOT = "iceberg.base.snapshot."
CHILD_VIEW_VERSION = "iceberg.child.view.version."

OWNER = "mvbuild.model"
"""Of every view and storage table that mvbuild writes: the model's unique id. Not of the specification."""

REFRESH_SNAPSHOT = "mvbuild.refresh.snapshot-id"
"""The storage snapshot that the record describes. Not of the specification: it tells when somebody else wrote to the storage."""
INDIRECT = "mvbuild.record.indirect"
"""UUIDs of tables and views in the record that the query itself does not read. They are there for other readers."""
NO_TABLE = "00000000-0000-0000-0000-000000000000"
"""No table has this UUID: a record that names it is fresh to nobody who goes by the specification alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indirect:
    """What readers who apply the rules of the specification, and no others, need beside what the query itself reads."""

    tables: Mapping[str, int] = field(default_factory=dict)
    """UUID -> snapshot: what the upstream MVs were made of."""
    views: Mapping[str, int] = field(default_factory=dict)
    """UUID -> version: the views of the upstream MVs, their child views, and the MV's own view."""
    is_beyond_rules: bool = False
    """The rows can change without any snapshot or version that a property could name: such readers must never take them for fresh."""


DIRECT_ONLY = Indirect()

REFRESH_SCHEMA = "mvbuild.refresh.schema-id"
"""The schema of the storage that the refresh wrote with. Not of the specification: it tells when somebody else changed the columns."""


def view_properties(storage: TableIdentifier) -> dict[str, str]:
    """What marks a view as an MV and points at its storage table (`namespace.name`, in the view's own catalog)."""
    return {IS_MATERIALIZED: "true", STORAGE_TABLE: storage.dotted}


def is_materialized(properties: Properties) -> bool:
    return properties.get(IS_MATERIALIZED, "").lower() == "true"


def encode(record: RefreshRecord, indirect: Indirect = DIRECT_ONLY) -> dict[str, str]:
    """The record as properties of the storage table. A table read at several snapshots keeps the one of `main`: a property holds one.

    RecordError for what no property can hold: a table without UUID, and a record that is another writer's.
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
    """The record that the properties hold; None if there is none. RecordError if a value is not what the specification says.

    What the query does not read itself is left out.
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
    """Properties of an earlier refresh that the record does not set again: they must go when it is written."""
    kept = encode(record, indirect)
    return tuple(k for k in properties if k.startswith((BASE_SNAPSHOT, CHILD_VIEW_VERSION, INDIRECT)) and k not in kept)


def _suffixed(properties: Properties, prefix: str, without: frozenset[str]) -> dict[str, int]:
    return {
        k[len(prefix) :]: integer(k, v) for k, v in sorted(properties.items()) if k.startswith(prefix) and k[len(prefix) :] not in without
    }
