"""MV's storage -> the same rows in fewer files: Iceberg's own procedures, only if the snapshot's counts show that it pays off."""

from __future__ import annotations

from mvbuild.dataclass import dataclass
from mvbuild.formats import properties
from mvbuild.freshness.indirect import indirect
from mvbuild.graph.model import ModelNode
from mvbuild.names import TableIdentifier, quote
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.commits import TableCommit, TableLayout
from mvbuild.ports.states import Snapshot, TableState
from mvbuild.refresh.session import RunSession
from mvbuild.storage.auxiliary_views import named_views, views_of_rows
from mvbuild.storage.commits import recorded, summary_of
from mvbuild.storage.history import DEFINITION, current_refresh_id, history
from mvbuild.storage.schema import repeated_schema_property
from mvbuild.storage.stored import replaced_since, stored, summary_value

COMPACTED = "mvbuild.compacted.snapshot-id"
"""Property of the storage: the snapshot that the last compaction made, which is not compacted again."""
_TARGET_SIZE = "write.target-file-size-bytes"
_TARGET_DEFAULT = 512 * 1024 * 1024
_SMALL = 0.75
"""Iceberg rewrites files below this share of the target size."""
_OPTIONS = {"min-input-files": "2", "delete-file-threshold": "1", "remove-dangling-deletes": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The number of data and delete files before and after."""

    before: int
    after: int


def is_needed(storage: TableState) -> bool:
    """Whether there are delete files, or several data files that are small on average."""
    at = storage.current_snapshot
    done = storage.properties.get(COMPACTED, "")
    if at is None or (done.isdigit() and replaced_since(storage, int(done))):
        return False
    count, size = _count(at, "total-data-files"), _count(at, "total-files-size")
    target = storage.properties.get(_TARGET_SIZE, "")
    small = _SMALL * (int(target) if target.isdigit() else _TARGET_DEFAULT)
    return _count(at, "total-delete-files") > 0 or (count > 1 and size < small * count)


def file_count(storage: TableState) -> int:
    """Data and delete files of the current snapshot, by its summary."""
    at = storage.current_snapshot
    return _count(at, "total-data-files") + _count(at, "total-delete-files") if at else 0


def compact(session: RunSession, node: ModelNode, storage: TableState) -> TableState:
    """Compact a storage, and return its new state. Raises CommitConflict if a refresh came first: the refresh remains, and nothing is
    broken."""
    written = _embedded(session, node, storage) if storage.of_view else _in_place(session, node, storage)
    at = written.current_snapshot
    assert at is not None
    if not replaced_since(written, storage.current_snapshot_id or -1):
        raise CommitConflict(f"{storage.identifier} was refreshed while it was compacted")
    return _settled(session, node, written, compacted=written.current_snapshot_id != storage.current_snapshot_id)


def _in_place(session: RunSession, node: ModelNode, storage: TableState) -> TableState:
    compact_table(session, storage.identifier)
    return _now(session, node)


def _embedded(session: RunSession, node: ModelNode, storage: TableState) -> TableState:
    """An embedded storage has no catalog entry for a procedure to work on, so a scratch table replaces it."""
    scratch = session.new_scratch()
    layout = TableLayout(schema=storage.schema, partition_by=storage.partition_by, sort_by=storage.sort_by)
    try:
        session.catalog.stage(storage, layout, scratch)
        compact_table(session, scratch)
        written = session.catalog.load([scratch]).get(scratch)
        if not isinstance(written, TableState):
            raise CommitConflict(f"the scratch table of {node.identifier} was removed while it was written")
        if written.current_snapshot_id == storage.current_snapshot_id:
            return storage
        commit = TableCommit(
            identifier=storage.of_view or storage.identifier,
            of_view=storage.of_view,
            expect_uuid=storage.uuid,
            expect_snapshot_id=storage.current_snapshot_id,
            staged=scratch,
            set_snapshot_id=written.current_snapshot_id,
        )
        session.observe(session.catalog.commit([commit]))
    finally:
        session.catalog.drop_scratch(scratch)
    return _now(session, node)


def _settled(session: RunSession, node: ModelNode, storage: TableState, *, compacted: bool) -> TableState:
    """Record the compaction, and repeat the refresh record on top, so that the snapshots before it can expire."""
    head = storage.current_snapshot_id
    marks = {COMPACTED: str(head)}
    record, past = stored(storage).record, next((p for p in history(storage) if p.is_current), None)
    if not compacted or record is None or past is None:
        commit = TableCommit(
            identifier=storage.of_view or storage.identifier,
            of_view=storage.of_view,
            expect_uuid=storage.uuid,
            expect_snapshot_id=head,
            set_properties=marks,
        )
    else:
        number = current_refresh_id(storage)
        if properties.REFRESH_SNAPSHOT in storage.properties:
            marks |= {properties.REFRESH_SNAPSHOT: str(head), **repeated_schema_property(storage)}
            views = views_of_rows(storage, record)
            marks |= named_views(storage, str(head), record, views) if views else {}
        summary = summary_of(record, number, past.strategy, summary_value(storage, DEFINITION) or "")
        others = indirect(session.world, node, record)
        commit = recorded(node, storage, record, number, indirect=others, set_properties=marks, restate=summary)
    session.observe(session.catalog.commit([commit]))
    return _now(session, node)


def compact_table(session: RunSession, table: TableIdentifier) -> None:
    """Run Iceberg's procedure."""
    options = ", ".join(f"'{key}', '{value}'" for key, value in _OPTIONS.items())
    name = ".".join(quote(part) for part in table.parts[1:]).replace("'", "\\'")
    catalog = quote(table.catalog)
    session.engine.call(f"CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map({options}))")


def _now(session: RunSession, node: ModelNode) -> TableState:
    session.reload([i for i in (node.identifier, node.storage) if i])
    storage = session.world.observed.table(node.storage)
    if storage is None:
        raise CommitConflict(f"{node.identifier} was dropped while it was compacted")
    return storage


def _count(snapshot: Snapshot, key: str) -> int:
    value = snapshot.summary.get(key, "")
    return int(value) if value.isdigit() else 0
