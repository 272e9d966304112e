"""storage table -> the record of its last refresh, and whether the data is still that refresh's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.formats import metadata_file, properties, refresh_state, trino
from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, ChildView, RecordError, RefreshRecord
from mvbuild.ports.states import Snapshot, TableState
from mvbuild.storage.history import refreshed_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a storage table records about itself. `record` is None if it was never refreshed or its record cannot be read (`problem`)."""

    record: RefreshRecord | None
    problem: str = ""
    foreign: Snapshot | None = None
    """The newest snapshot that is not of the recorded refresh: another writer changed the data."""


def stored(storage: TableState) -> Stored:
    """The metadata file or the properties first (they are the contract), completed by the `refresh-state` of the snapshot with the data.
    Trino's `dependsOnTables` is used if there is nothing else."""
    try:
        record = metadata_file.current_record(storage.mv) if storage.mv else properties.decode(storage.properties)
        state = _in_summary(storage, refresh_state.KEY, refresh_state.decode)
        if record is None and state is None:
            state = _of_trino(storage)
        foreign = _foreign(storage)
    except RecordError as exc:
        return Stored(record=None, problem=str(exc))
    if storage.current_snapshot is None:
        return Stored(record=None)
    if record is None:
        return Stored(record=state)
    if state is None and foreign is not None:
        return Stored(record=replace(record, refresh_start_ms=record.refresh_start_ms or _started(storage)), foreign=foreign)
    return Stored(record=_completed(record, state) if state else record, foreign=foreign)


def unseen_since(table: TableState, before: int, now: int) -> int | None:
    """The timestamp of the first snapshot between `before` and `now` that is not a compaction. None if there is none, or if it no longer
    exists: after a rollback, or if snapshots in between have expired."""
    at, first = table.snapshots.get(now), None
    while at is not None and at.snapshot_id != before:
        if at.operation != "replace":
            first = at.timestamp_ms
        if at.parent_id is None or at.parent_id == before:
            return first if at.parent_id == before or before == NO_SNAPSHOT else None
        at = table.snapshots.get(at.parent_id)
    return None


def replaced_since(table: TableState, snapshot_id: int) -> bool:
    """Whether there are only `replace` snapshots (compaction: the same rows in other files) between a snapshot and the current one."""
    at = table.current_snapshot
    while at is not None and at.snapshot_id != snapshot_id:
        parent = table.snapshots.get(at.parent_id) if at.parent_id is not None else None
        if at.operation != "replace" or not balanced(at, parent):
            return False
        if at.parent_id == snapshot_id:
            return True
        at = parent
    return at is not None


def balanced(snapshot: Snapshot, parent: Snapshot | None) -> bool:
    """Whether the counts of a `replace` confirm it: as many rows as before, or fewer if delete files were applied."""
    added, deleted = _count(snapshot, "added-records"), _count(snapshot, "deleted-records")
    had_deletes = parent is None or _count(parent, "total-delete-files") > 0
    return added == deleted or (added < deleted and had_deletes)


def _count(snapshot: Snapshot, key: str) -> int:
    value = snapshot.summary.get(key, "0")
    return int(value) if value.isdigit() else 0


def _foreign(storage: TableState) -> Snapshot | None:
    """The snapshot on `main` that is neither the recorded refresh nor a compaction of it."""
    refreshed = _refreshed(storage)
    if refreshed is None or replaced_since(storage, refreshed):
        return None
    at = storage.current_snapshot
    while at is not None and at.operation == "replace" and at.parent_id is not None and at.parent_id in storage.snapshots:
        at = storage.snapshots[at.parent_id]
    return at


def _refreshed(storage: TableState) -> int | None:
    """The snapshot of the recorded refresh."""
    text = storage.properties.get(properties.REFRESH_SNAPSHOT, "")
    if text.lstrip("-").isdigit():
        return int(text)
    number = (storage.mv.current_refresh or {}).get("sequence-number") if storage.mv else None
    if number is not None:
        return next((s.snapshot_id for s in storage.snapshots.values() if s.sequence_number == number), None)
    return _agreeing(storage)


def refreshed_snapshot(storage: TableState) -> Snapshot | None:
    """The snapshot that the recorded refresh wrote; if nothing records it, the newest that is not a compaction."""
    text = storage.properties.get(properties.REFRESH_SNAPSHOT, "")
    if text.isdigit():
        return storage.snapshots.get(int(text))
    at = storage.current_snapshot
    while at is not None and at.operation == "replace" and at.parent_id is not None:
        at = storage.snapshots.get(at.parent_id)
    return at


def _agreeing(storage: TableState) -> int | None:
    """Another writer's properties do not name the snapshot that they describe: it is the newest with a `refresh-state`, if that agrees with
    them. A `refresh-state` that disagrees is of an earlier refresh, by a writer that wrote both."""
    record = properties.decode(storage.properties) if storage.mv is None else None
    at = storage.current_snapshot
    while record is not None and at is not None:
        if refresh_state.KEY in at.summary:
            state = refresh_state.decode(at.summary[refresh_state.KEY])
            agrees = _states(state) == _states(record) and state.view_version_id == record.view_version_id
            return at.snapshot_id if agrees else None
        at = storage.snapshots.get(at.parent_id) if at.parent_id is not None else None
    return None


def disagreeing(storage: TableState) -> bool:
    """Whether the properties and the newest `refresh-state` record different refreshes, so that one of them does not describe the current
    rows."""
    if storage.mv is not None or properties.REFRESH_SNAPSHOT in storage.properties:
        return False
    return properties.decode(storage.properties) is not None and _agreeing(storage) is None and _has_state(storage)


def _has_state(storage: TableState) -> bool:
    at = storage.current_snapshot
    while at is not None and refresh_state.KEY not in at.summary:
        at = storage.snapshots.get(at.parent_id) if at.parent_id is not None else None
    return at is not None


def _states(record: RefreshRecord) -> set[tuple[str, int]]:
    return {(t.uuid, t.snapshot_id) for t in record.base_tables if t.snapshot_id != NO_SNAPSHOT}


def _started(storage: TableState) -> int | None:
    """When the recorded refresh began, even if another writer has changed the data since."""
    refreshed = _refreshed(storage)
    snapshot = storage.snapshots.get(refreshed) if refreshed is not None else None
    text = summary_value(storage, refresh_state.KEY, snapshot) if snapshot else None
    try:
        return refresh_state.decode(text).refresh_start_ms if text else None
    except RecordError:
        return None


def _in_summary(storage: TableState, key: str, decode: Callable[[str], RefreshRecord]) -> RefreshRecord | None:
    found = summary_value(storage, key)
    return None if found is None else decode(found)


def summary_value(storage: TableState, key: str, at: Snapshot | None = None) -> str | None:
    """Look back past maintenance (`replace`) for the newest snapshot with the key, starting at the current one or another."""
    at = at or storage.current_snapshot
    while at is not None:
        if key in at.summary:
            return at.summary[key]
        if at.operation != "replace" or at.parent_id is None:
            return None
        at = storage.snapshots.get(at.parent_id)
    return None


def _of_trino(storage: TableState) -> RefreshRecord | None:
    """Trino records table functions and nondeterministic functions in flags of their own."""
    found = _in_summary(storage, trino.KEY, trino.decode)
    current = storage.current_snapshot
    at = refreshed_at(storage, current) if current else None
    flagged = at is not None and any(at.summary.get(k, "").lower() == "true" for k in _BEYOND_TABLES)
    return replace(found, incomplete=True) if found and flagged else found


_BEYOND_TABLES = ("dependsOnTableFunctions", "dependsOnNonDeterministicFunctions")


def _completed(record: RefreshRecord, state: RefreshRecord) -> RefreshRecord:
    """Names and refs for what the properties record by UUID only, and the further snapshots of tables that were read more than once, in the
    order in which they were read, which properties do not keep."""
    if any(not t.uuid for t in record.base_tables):
        return record
    tables = [one for table in record.base_tables for one in _named(table, state)]
    views = [one for view in record.child_views for one in _named_views(view, state)]
    uuids = [*(t.uuid for t in state.base_tables), *(v.uuid for v in state.child_views)]
    order = {uuid: at for at, uuid in reversed(list(enumerate(uuids)))}
    tables.sort(key=lambda t: order.get(t.uuid, len(order)))
    views.sort(key=lambda v: order.get(v.uuid, len(order)))
    started = state.refresh_start_ms if record.refresh_start_ms is None else record.refresh_start_ms
    return replace(record, base_tables=tuple(tables), child_views=tuple(views), refresh_start_ms=started)


def _named(table: BaseTable, state: RefreshRecord) -> list[BaseTable]:
    """A property has the snapshot of the first state of its UUID, which may have moved on since; other states are as they were then."""
    of_table = state.of_table(table.uuid)
    if table.name or not of_table:
        return [table]
    before = of_table[0]
    same = (t for t in of_table if (_place(t), t.ref, t.snapshot_id) == (_place(before), before.ref, table.snapshot_id))
    now = next(same, None) or replace(before, snapshot_id=table.snapshot_id)
    gone = before if before.ref is None else now
    return [now, *(t for t in of_table if t not in (now, gone))]


def _named_views(view: ChildView, state: RefreshRecord) -> list[ChildView]:
    """A property has one version, which may have moved on since. If a view was read under two names, only the state has both."""
    of_view = [v for v in state.child_views if v.uuid == view.uuid]
    return of_view if len(of_view) > 1 else [replace(v, version_id=view.version_id) for v in of_view or [view]]


def _place(table: BaseTable) -> tuple[str | None, tuple[str, ...], str]:
    return table.catalog, table.namespace, table.name
