"""entry of an MV in the metadata-file format + TableCommit, ViewCommit, ConvertCommit -> Put: the content of its next files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg import views
from mvbuild.adapters.iceberg.entries import POINTER_PROPERTIES, Entry
from mvbuild.adapters.iceberg.publish import Gone, Put, Storage
from mvbuild.adapters.iceberg.table_commits import committed
from mvbuild.adapters.iceberg.tables import check, current, now_ms
from mvbuild.formats import metadata_file
from mvbuild.formats.metadata_file import MvMetadata
from mvbuild.formats.metadata_rules import NO_REFRESH
from mvbuild.formats.properties import IS_MATERIALIZED, STORAGE_TABLE, view_properties
from mvbuild.formats.record import RecordError
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.adapters.iceberg.table_commits import Restate
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.commits import ConvertCommit, Refresh, TableCommit, ViewCommit

_NO_STORAGE = "{} is not a materialized view in the metadata-file format."


def put(
    identifier: TableIdentifier,
    entry: Entry | None,
    table: TableCommit | None,
    view: ViewCommit | None,
    *,
    base: Callable[[], Raw],
    staged: Raw | None,
    restate: Restate,
) -> Put:
    """Apply the changes. `base`: the table metadata that `Catalog.new_storage` wrote, for an MV that has none yet."""
    storage = _storage(identifier, entry, table, base)
    if table is not None:
        storage = _committed(storage, table, staged, restate)
    raw = _view(identifier, entry, view, str(storage.table["location"]))
    name = (view.rename_to if view else None) or (table.rename_to if table else None) or identifier
    return Put(identifier=name, kind=entry.kind if entry else "VIEW", raw=raw, base=entry, storage=storage)


def table_of(entry: Entry | None, base: Callable[[], Raw]) -> Raw:
    """The table metadata that a commit starts from."""
    return metadata_file.table_metadata(entry.mv) if entry is not None and entry.mv is not None else base()


def converted(change: ConvertCommit, found: Mapping[TableIdentifier, Entry]) -> Sequence[Put | Gone]:
    """Both entries of an MV in the other format."""
    view = found.get(change.view.identifier)
    if view is None or view.location != change.view.metadata_location:
        raise CommitConflict(f"View {change.view.identifier} was changed by another process.")
    other = found.get(change.storage_name)
    if change.to == "metadata-file":
        return _to_file(change, view, other)
    return _to_properties(change, view, other)


def _to_file(change: ConvertCommit, view: Entry, table: Entry | None) -> Sequence[Put | Gone]:
    if view.mv is not None:
        raise CommitConflict(f"{view.identifier} is already in the metadata-file format.")
    if table is None or table.kind != "TABLE":
        raise CommitConflict(f"Storage table {change.storage_name} no longer exists.")
    check(table.raw, change.storage_name, change.storage.uuid, change.storage.current_snapshot_id)
    storage = _with_refresh(Storage(table=_changed(table.raw, change), refreshes=(), current_refresh_id=NO_REFRESH), change.refresh)
    properties = {name: value for name, value in view.raw["properties"].items() if name not in (IS_MATERIALIZED, STORAGE_TABLE)}
    put = Put(identifier=view.identifier, kind="VIEW", raw={**view.raw, "properties": properties}, base=view, storage=storage)
    return put, Gone(identifier=table.identifier, location=table.location)


def _to_properties(change: ConvertCommit, view: Entry, taken: Entry | None) -> Sequence[Put | Gone]:
    if view.mv is None:
        raise CommitConflict(_NO_STORAGE.format(view.identifier))
    if taken is not None:
        raise AlreadyExists(f"{change.storage_name} already exists.")
    table = metadata_file.table_metadata(view.mv)
    check(table, view.identifier, change.storage.uuid, change.storage.current_snapshot_id)
    properties = {name: value for name, value in view.raw["properties"].items() if name not in POINTER_PROPERTIES}
    raw = {**view.raw, "properties": {**properties, **view_properties(change.storage_name)}}
    table = {**_changed(table, change), "last-updated-ms": max(now_ms(), table["last-updated-ms"])}
    return (
        Put(identifier=change.storage_name, kind="TABLE", raw=table),
        Put(identifier=view.identifier, kind="VIEW", raw=raw, base=view),
    )


def _changed(table: Raw, change: ConvertCommit) -> Raw:
    kept = {name: value for name, value in (table.get("properties") or {}).items() if name not in change.remove_properties}
    return {**table, "properties": {**kept, **change.set_properties}}


def _storage(identifier: TableIdentifier, entry: Entry | None, table: TableCommit | None, base: Callable[[], Raw]) -> Storage:
    if entry is not None and entry.mv is not None:
        if table is not None and table.new_storage is not None:
            raise CommitConflict(f"{identifier} was created by another process.")
        return _embedded(identifier, entry.mv)
    if entry is not None and entry.kind == "TABLE":
        raise CommitConflict(f"{identifier} is a table, not a view.")
    if table is None or table.new_storage is None:
        raise CommitConflict(_NO_STORAGE.format(identifier) if entry else f"{identifier} was dropped by another process.")
    return Storage(table=base(), refreshes=(), current_refresh_id=NO_REFRESH)


def _embedded(identifier: TableIdentifier, mv: MvMetadata) -> Storage:
    try:
        record = metadata_file.current_record(mv)
    except RecordError as error:
        raise CatalogError(f"The metadata of materialized view {identifier} is invalid ({error}).") from None
    return Storage(
        table=metadata_file.table_metadata(mv),
        refreshes=mv.refreshes,
        current_refresh_id=mv.raw["current-refresh-id"],
        child_views=record.child_views if record else (),
        refresh_start_ms=record.refresh_start_ms if record else None,
    )


def _committed(storage: Storage, change: TableCommit, staged: Raw | None, restate: Restate) -> Storage:
    table = committed(storage.table, change, staged, restate)
    new = _with_refresh(replace(storage, table=table), change.refresh)
    _check_retained(storage.table, change, new)
    return new


def _with_refresh(storage: Storage, refresh: Refresh | None) -> Storage:
    if refresh is None:
        return storage
    snapshot = current(storage.table)
    number = snapshot.get("sequence-number", 0) if snapshot else None
    try:
        entry = metadata_file.encode_refresh(refresh.record, refresh_id=refresh.refresh_id, sequence_number=number)
    except RecordError as error:
        raise CatalogError(f"The metadata-file format cannot store this refresh: {error}.") from None
    return Storage(
        table=storage.table,
        refreshes=_retained((*_others(storage, refresh), *storage.refreshes), entry, refresh.keep),
        current_refresh_id=refresh.refresh_id,
        child_views=refresh.record.child_views,
        refresh_start_ms=refresh.record.refresh_start_ms,
    )


def _others(storage: Storage, refresh: Refresh) -> Iterator[Mapping[str, Any]]:
    """Entries for the other refreshes whose snapshot exists."""
    numbers = {snapshot.get("sequence-number", 0) for snapshot in storage.table.get("snapshots") or []} - {0}
    for other in refresh.others:
        if other.sequence_number in numbers:
            with suppress(RecordError):
                yield metadata_file.encode_refresh(other.record, refresh_id=other.refresh_id, sequence_number=other.sequence_number)


def _retained(known: Sequence[Mapping[str, Any]], current: Mapping[str, Any], keep: int | None) -> tuple[Mapping[str, Any], ...]:
    """The newest refreshes by their ids, and always the current one, because a rollback makes an older one current. The later of two
    entries for one refresh counts."""
    by_id = {r["refresh-id"]: r for r in known} | {current["refresh-id"]: current}
    others = sorted(id for id in by_id if id != current["refresh-id"])
    if keep is not None:
        others = others[max(0, len(others) - keep + 1) :]
    return tuple(by_id[id] for id in sorted((*others, current["refresh-id"])))


def _check_retained(before: Raw, change: TableCommit, storage: Storage) -> None:
    """A refresh that the file lists must be readable, so its snapshot must not expire."""
    needed = {refresh.get("sequence-number"): refresh["refresh-id"] for refresh in storage.refreshes}
    for snapshot in before.get("snapshots") or []:
        number = snapshot.get("sequence-number", 0)
        if snapshot["snapshot-id"] in change.expire and number in needed:
            raise CatalogError(
                f"Snapshot {snapshot['snapshot-id']} of {change.identifier} cannot expire: refresh {needed[number]} is kept."
            )


def _view(identifier: TableIdentifier, entry: Entry | None, view: ViewCommit | None, location: str) -> Raw:
    if view is None:
        if entry is None:
            raise CatalogError(f"Materialized view {identifier} cannot be created without its definition.")
        return entry.raw
    return view_metadata(entry, view, lambda: location)


def view_metadata(entry: Entry | None, change: ViewCommit, location: Callable[[], str]) -> Raw:
    """The view after a ViewCommit. Raises CommitConflict if it is not the state that the commit is based on."""
    if (entry.location if entry else None) != change.expect_metadata_location:
        how = "dropped" if entry is None else "changed" if change.expect_metadata_location else "created"
        raise CommitConflict(f"View {change.identifier} was {how} by another process.")
    if entry is None:
        return views.new_view(change, location())
    if entry.kind == "TABLE":
        raise CommitConflict(f"{change.identifier} is a table, not a view.")
    return views.changed(entry.raw, change)
