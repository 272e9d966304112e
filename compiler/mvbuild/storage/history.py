"""storage table -> its past refreshes, as far as their snapshots still exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.formats import metadata_file, refresh_state
from mvbuild.formats.properties import REFRESH_SNAPSHOT
from mvbuild.formats.record import RecordError, RefreshRecord
from mvbuild.ports.states import Snapshot, TableState

SETTINGS = "mvbuild.session-settings"
"""Property of a storage table: the number of a refresh, and the settings of the session that computed its rows. Not part of any
specification."""
REFRESH_ID = "mvbuild.refresh-id"
"""Key of a snapshot's summary: the number of the refresh, counted from 1. Not part of any specification."""
STRATEGY = "mvbuild.strategy"
"""Key of a snapshot's summary: the strategy of the refresh."""
DEFINITION = "mvbuild.definition"
"""Key of a snapshot's summary: the fingerprint of the definition whose rows the refresh wrote."""
REASON = "mvbuild.reason"
"""Key of a snapshot's summary: the code of the reason why a refresh was full; see incremental.reasons."""
EXPECTED_BYTES, EXPECTED_ROWS = "mvbuild.expected-bytes", "mvbuild.expected-rows"
"""Keys of a snapshot's summary: what the refresh was expected to read and write, by the sizes of files."""
FULL_BYTES = "mvbuild.full-bytes"
"""Key of a snapshot's summary: what a full refresh was expected to read and write."""
EXPECTED_SECONDS = "mvbuild.expected-seconds"
"""Key of a snapshot's summary: the processor time that the refresh was expected to take, before a correction by earlier refreshes."""
AUXILIARY_VIEWS = "mvbuild.refreshed-from-auxiliary-views"
"""Key of a snapshot's summary: how many auxiliary views the refresh kept, and computed the rows from."""
ROWS_REMOVED = "mvbuild.rows-removed"
"""Key of a snapshot's summary: the rows that an incremental refresh removed, in this snapshot or in earlier ones, which may have expired.
"""
PUBLISHED = "mvbuild.published.snapshot-ids"
"""Property of the storage: published refreshes that are recorded nowhere else. The log loses everything before an expired snapshot, and
after a rollback the undone refreshes are not ancestors of the current one. Not part of any specification."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRefresh:
    """A refresh whose data can still be read."""

    refresh_id: int
    snapshot: Snapshot
    """The newest snapshot with its data: a compaction, or a record that moved on, comes after the refresh itself."""
    at_ms: int
    """When it was published."""
    record: RefreshRecord
    strategy: str
    rows_added: int | None
    rows_removed: int | None
    is_current: bool
    reason: str = ""
    """The code of the reason why it was full."""
    expected_bytes: int | None = None
    expected_rows: int | None = None
    full_bytes: int | None = None
    expected_seconds: float | None = None
    """Of processor time."""
    bytes_written: int | None = None
    """The bytes of files that the refresh added, including delete files."""
    auxiliary_views: int = 0
    """How many auxiliary views it kept, and computed the rows from."""
    seconds: float | None = None
    """From its start to its last write, without tests and the commit."""


def history(storage: TableState) -> tuple[PastRefresh, ...]:
    """Oldest first, without snapshots that were never published (a failed data test) and without those of other writers."""
    found, published, at = _numbered(storage), _published_ids(storage), storage.current_snapshot
    origin = refreshed_at(storage, at).snapshot_id if at else None
    return tuple(_measured(storage, found[number], published, origin) for number in sorted(found))


@dataclass(frozen=True, slots=True)
class _Refresh:
    number: int
    at_ms: int
    snapshot: Snapshot
    first: Snapshot
    """The snapshot of the refresh itself, whose summary has what it did."""
    started_ms: int | None
    record: RefreshRecord
    strategy: str


def _numbered(storage: TableState) -> dict[int, _Refresh]:
    found: dict[int, _Refresh] = {}
    last = 0
    for at_ms, snapshot in _published(storage):
        record = _record(snapshot)
        if record is None:
            continue
        given = snapshot.summary.get(REFRESH_ID, "")
        before = found.get(int(given)) if given.isdigit() else None
        is_restated = snapshot.operation == "replace" and last in found
        number = int(given) if given.isdigit() else last if is_restated else last + 1
        origin = before or (found[last] if is_restated and not given else None)
        found[number] = _Refresh(
            number=number,
            at_ms=origin.at_ms if origin else at_ms,
            snapshot=snapshot,
            first=origin.first if origin else snapshot,
            started_ms=origin.started_ms if origin else record.refresh_start_ms,
            record=record,
            strategy=snapshot.summary.get(STRATEGY) or (origin.strategy if origin else ""),
        )
        last = max(last, number)
    return found


def _measured(storage: TableState, past: _Refresh, published: Collection[int | None], origin: int | None) -> PastRefresh:
    """What the refresh did, and what was expected of it. `origin`: the snapshot whose refresh made the current rows."""
    first, started = past.first, past.started_ms
    made = _written_in(storage, first, published)
    parent = made[-1].parent_id
    is_current = storage.current_snapshot is not None and (
        past.snapshot.snapshot_id == storage.current_snapshot_id or refreshed_at(storage, past.snapshot).snapshot_id == origin
    )
    return PastRefresh(
        refresh_id=past.number,
        snapshot=past.snapshot,
        at_ms=past.at_ms,
        record=_as_listed(storage, past.number, past.snapshot, past.record),
        strategy=past.strategy,
        is_current=is_current,
        rows_added=_count(first, "added-records"),
        rows_removed=rows_removed(made, storage.snapshots.get(parent) if parent is not None else None),
        reason=first.summary.get(REASON, ""),
        expected_bytes=_count(first, EXPECTED_BYTES),
        expected_rows=_count(first, EXPECTED_ROWS),
        full_bytes=_count(first, FULL_BYTES),
        expected_seconds=_seconds(first, EXPECTED_SECONDS),
        bytes_written=bytes_written(made),
        auxiliary_views=_count(first, AUXILIARY_VIEWS) or 0,
        seconds=(first.timestamp_ms - started) / 1000 if started and first.timestamp_ms >= started else None,
    )


def written_in(storage: TableState, last: Snapshot) -> tuple[Snapshot, ...]:
    """The snapshots that one refresh made, with the last one, which has its record, first; the others were never current."""
    return _written_in(storage, last, _published_ids(storage))


def _published_ids(storage: TableState) -> frozenset[int | None]:
    return frozenset({id for _, id in storage.snapshot_log} | {storage.current_snapshot_id})


def _written_in(storage: TableState, last: Snapshot, published: Collection[int | None]) -> tuple[Snapshot, ...]:
    found = [last]
    at = storage.snapshots.get(last.parent_id) if last.parent_id is not None else None
    while at is not None and at.snapshot_id not in published and refresh_state.KEY not in at.summary and at.operation != "replace":
        found.append(at)
        at = storage.snapshots.get(at.parent_id) if at.parent_id is not None else None
    return tuple(found)


def rows_removed(made: Sequence[Snapshot], before: Snapshot | None) -> int | None:
    """Rows removed by the refresh that made these snapshots, last one first. `before`: the snapshot that it started from, if it still
    exists."""
    last, steps = made[0], made[1:]
    removed = _count(last, ROWS_REMOVED)
    if removed is not None:
        return removed
    if last.summary.get(STRATEGY) == _FULL and before is not None and (rows := live_rows(before)) is not None:
        # Not the rows that the last snapshot deleted, which may include rows of an incremental attempt that failed.
        return rows
    if not steps:
        return deleted_rows(last.summary)
    counts = [{key: _count(s, key) or 0 for key in ("deleted-records", "added-records", "added-position-deletes")} for s in steps]
    own = deleted_rows(last.summary) or 0
    return own + sum(max(0, c["deleted-records"] - c["added-records"]) + c["added-position-deletes"] for c in counts)


_FULL = "full"


def deleted_rows(summary: Mapping[str, str]) -> int | None:
    """Rows removed by an overwrite: those of the removed files, without rows that removed deletes had hidden."""
    deleted, hidden = (summary.get(key, "") for key in ("deleted-records", "removed-position-deletes"))
    return max(0, int(deleted) - (int(hidden) if hidden.isdigit() else 0)) if deleted.isdigit() else None


def rows_in_files(snapshot: Snapshot) -> int | None:
    """Never fewer than the table has."""
    return _count(snapshot, "total-records")


def live_rows(snapshot: Snapshot) -> int | None:
    """The rows of a table at a snapshot of mvbuild's: those in files, without those hidden by position deletes. Too few if a compaction
    left deletes of files that are gone, so it is for display and not for decisions."""
    held = rows_in_files(snapshot)
    return None if held is None else max(0, held - (_count(snapshot, "total-position-deletes") or 0))


def bytes_written(snapshots: Iterable[Snapshot]) -> int | None:
    """None if no summary has it."""
    known = [found for s in snapshots if (found := _count(s, "added-files-size")) is not None]
    return sum(known) if known else None


def next_refresh_id(storage: TableState | None) -> int:
    """One more than the highest known id."""
    if storage is None:
        return 1
    listed = [int(r["refresh-id"]) for r in storage.mv.refreshes] if storage.mv else []
    return max([0, *_numbered(storage), *listed, _noted(storage)]) + 1


def current_refresh_id(storage: TableState) -> int:
    """The refresh whose rows are current; the newest known one if nothing records it."""
    if storage.mv and storage.mv.current_refresh:
        return int(storage.mv.current_refresh["refresh-id"])
    at = storage.current_snapshot
    # Of a snapshot with the rows of another one, and of one without a number, only the whole history knows it.
    if at is not None and at.operation != "replace" and _record(at) is not None and (given := at.summary.get(REFRESH_ID, "")).isdigit():
        return int(given)
    known = next((past.refresh_id for past in history(storage) if past.is_current), None)
    return known or (at and _of_expired(storage, at)) or max(1, next_refresh_id(storage) - 1)


def _of_expired(storage: TableState, at: Snapshot) -> int:
    """The refresh whose snapshot has expired after another writer compacted its rows; 0 if it is not known."""
    parent = refreshed_at(storage, at).parent_id
    return _noted(storage) if str(parent) == storage.properties.get(REFRESH_SNAPSHOT) else 0


def _noted(storage: TableState) -> int:
    number = storage.properties.get(SETTINGS, "").partition(" ")[0]
    return int(number) if number.isdigit() else 0


def at_time(storage: TableState, at_ms: int) -> Snapshot | None:
    """The snapshot that was current at a time."""
    before = [id for ms, id in storage.snapshot_log if ms <= at_ms]
    return storage.snapshots.get(before[-1]) if before else None


def refreshed_at(storage: TableState, snapshot: Snapshot) -> Snapshot:
    """The snapshot whose refresh made the rows of this one: back past `replace` snapshots."""
    at = snapshot
    while at.operation == "replace" and at.parent_id is not None and at.parent_id in storage.snapshots:
        at = storage.snapshots[at.parent_id]
    return at


def only_named_in_property(storage: TableState, expiring: Collection[int]) -> tuple[int, ...]:
    """The refreshes of the history that `PUBLISHED` must record when these snapshots expire."""
    last = max((at for at, (_, id) in enumerate(storage.snapshot_log) if id in expiring), default=-1)
    logged = {id for _, id in storage.snapshot_log[last + 1 :]}
    kept = {past.snapshot.snapshot_id for past in history(storage)}
    return tuple(sorted(kept - logged - set(expiring)))


def _published(storage: TableState) -> Iterator[tuple[int, Snapshot]]:
    """(time of publishing, snapshot) of every snapshot that was ever current, in order."""
    times: dict[int, int] = {}
    for ms, id in storage.snapshot_log:
        times.setdefault(id, ms)
    at = storage.current_snapshot
    while at is not None and at.snapshot_id not in times:
        times[at.snapshot_id] = at.timestamp_ms
        at = storage.snapshots.get(at.parent_id) if at.parent_id is not None else None
    for id in _published_snapshots(storage):
        times.setdefault(id, storage.snapshots[id].timestamp_ms)
    known = [storage.snapshots[id] for id in times if id in storage.snapshots]
    for snapshot in sorted(known, key=lambda s: (s.sequence_number, s.timestamp_ms)):
        yield times[snapshot.snapshot_id], snapshot


def _published_snapshots(storage: TableState) -> list[int]:
    """Snapshots that the metadata file lists as refreshes, or that `PUBLISHED` names."""
    listed = {r.get("sequence-number") for r in storage.mv.refreshes} - {None, 0} if storage.mv else set()
    named = set(storage.properties.get(PUBLISHED, "").split(","))
    return [id for id, s in storage.snapshots.items() if s.sequence_number in listed or str(id) in named]


def _as_listed(storage: TableState, number: int, snapshot: Snapshot, record: RefreshRecord) -> RefreshRecord:
    """With the view version and tables in the metadata file, which has the locations of tables outside the catalog."""
    for entry in storage.mv.refreshes if storage.mv else ():
        is_same = REFRESH_ID in snapshot.summary or entry.get("sequence-number") == snapshot.sequence_number
        if entry["refresh-id"] == number and is_same:
            with suppress(RecordError):
                listed = metadata_file.decode_refresh(entry, {})
                return replace(record, view_version_id=listed.view_version_id, base_tables=listed.base_tables)
    return record


def _record(snapshot: Snapshot) -> RefreshRecord | None:
    value = snapshot.summary.get(refresh_state.KEY)
    try:
        return refresh_state.decode(value) if value else None
    except RecordError:
        return None


def _count(snapshot: Snapshot, key: str) -> int | None:
    value = snapshot.summary.get(key, "")
    return int(value) if value.isdigit() else None


def _seconds(snapshot: Snapshot, key: str) -> float | None:
    value = snapshot.summary.get(key, "")
    return float(value) if value.replace(".", "", 1).isdecimal() else None
