"""edits of tables, views, MVs -> new metadata files -> one swap of all their pointers: the only module that changes a catalog of files."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.entries import POINTER_PROPERTIES, Entry, key, read_entries, state
from mvbuild.adapters.iceberg.failures import is_unreachable
from mvbuild.adapters.iceberg.metadata import Raw, parse, serialize
from mvbuild.adapters.iceberg.pointers import Kind, Pointers, Swap, numbered
from mvbuild.adapters.iceberg.retries import Retries, retries
from mvbuild.adapters.iceberg.tables import bounded, metadata_folder, now_ms, renewed
from mvbuild.dataclass import dataclass
from mvbuild.formats import metadata_file
from mvbuild.formats.record import RecordError
from mvbuild.ports.catalog import CatalogError, CommitConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.formats.record import ChildView
    from mvbuild.names import TableIdentifier

_TABLE_FILE = ".metadata.json"
MV_FILE = ".mv.metadata.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The part of an MV's metadata file that is not the view."""

    table: Raw
    refreshes: tuple[Mapping[str, Any], ...]
    current_refresh_id: int
    child_views: tuple[ChildView, ...] = ()
    refresh_start_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """What a name will refer to. The history of `base` continues; if `base` had another name, that name is removed."""

    identifier: TableIdentifier
    kind: Kind
    raw: Raw
    base: Entry | None = None
    storage: Storage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A name to remove."""

    identifier: TableIdentifier
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """`make` receives what the names refer to (missing names are left out), or raises an error that forbids the edit.

    It is called again with fresh metadata if another process was faster, so it must check everything that it relies on.
    """

    reads: tuple[TableIdentifier, ...]
    make: Callable[[Mapping[TableIdentifier, Entry]], Sequence[Put | Gone]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """`files`: locations and contents to write before the swap."""

    entry: Entry | None
    swaps: tuple[Swap, ...]
    files: tuple[tuple[str, bytes], ...] = ()
    dropped: tuple[str, ...] = ()


def table_edit(identifier: TableIdentifier, make: Callable[[Entry | None], Raw]) -> Edit:
    """An edit of one table."""

    def put(found: Mapping[TableIdentifier, Entry]) -> list[Put]:
        base = found.get(identifier)
        return [Put(identifier=identifier, kind="TABLE", raw=make(base), base=base)]

    return Edit(reads=(identifier,), make=put)


def publish(pointers: Pointers, files: Files, edits: Sequence[Edit]) -> tuple[Entry, ...]:
    """Publish all edits or none. After a lost race it tries again, as long as the edits themselves accept the new state."""
    policy, attempts, tried = Retries(), iter(Retries().attempts()), 0
    names: list[str] = []
    while next(attempts, None) is not None:
        prepared, wanted = _prepare(pointers, files, edits)
        if not tried:
            policy = wanted
            attempts = policy.attempts()
            next(attempts)
        tried += 1
        names = [str(p.entry.identifier) for p in prepared if p.entry]
        if _swap(pointers, files, prepared):
            for location in (d for p in prepared for d in _with_storage_files(files, p.dropped)):
                # The commit is valid: an old file that could not be deleted only takes space.
                with suppress(OSError):
                    files.delete(location)
            return tuple(p.entry for p in prepared if p.entry)
    raise CommitConflict(
        f"Other processes changed {', '.join(names)} {tried} times in a row; 'commit.retry.num-retries' and"
        " 'commit.retry.total-timeout-ms' control how long to retry."
    )


def _prepare(pointers: Pointers, files: Files, edits: Sequence[Edit]) -> tuple[list[_Prepared], Retries]:
    names = [identifier for edit in edits for identifier in edit.reads]
    if len({key(name) for name in names}) < len(names):
        raise CatalogError("A commit can change each table or view only once.")
    found = pointers.find(key(name) for name in names)
    present = [name for name in names if key(name) in found]
    entries: dict[TableIdentifier, Entry] = {}
    for name, entry in zip(present, read_entries(files, [(name, *found[key(name)]) for name in present]), strict=True):
        if isinstance(entry, CatalogError):
            raise entry
        state(entry)  # a file that breaks a rule is not built upon
        entries[name] = entry
    outcomes = [outcome for edit in edits for outcome in edit.make(entries)]
    _check_gone(pointers, [outcome for outcome in outcomes if isinstance(outcome, Gone)])
    tables = [o.storage.table if o.storage else o.raw for o in outcomes if isinstance(o, Put)]
    settings = {k: v for raw in tables for k, v in (raw.get("properties") or {}).items()}
    return [_prepared(pointers, outcome) for outcome in outcomes], retries(settings)


def _check_gone(pointers: Pointers, gone: Sequence[Gone]) -> None:
    found = pointers.find(key(one.identifier) for one in gone) if gone else {}
    for one in gone:
        if found.get(key(one.identifier), ("", ""))[0] != one.location:
            raise CommitConflict(f"{one.identifier} was changed or dropped by another process.")


def _prepared(pointers: Pointers, outcome: Put | Gone) -> _Prepared:
    if isinstance(outcome, Gone):
        gone = Swap(key=key(outcome.identifier), kind="TABLE", old=outcome.location, new=None)
        return _Prepared(entry=None, swaps=(gone,))
    if outcome.storage is not None:
        return _prepared_mv(pointers, outcome, outcome.storage)
    raw = outcome.raw
    dropped: tuple[str, ...] = ()
    base = outcome.base if outcome.base and outcome.base.kind == outcome.kind else None
    if outcome.kind == "TABLE" and base is not None:
        raw, dropped = renewed(raw, base.raw, base.location)
    codec = (raw.get("properties") or {}).get("write.metadata.compression-codec", "none").lower() if outcome.kind == "TABLE" else "none"
    suffix = f".gz{_TABLE_FILE}" if codec == "gzip" else _TABLE_FILE
    location = pointers.place(key(outcome.identifier), outcome.kind, metadata_folder(raw), base.location if base else None, suffix)
    entry = Entry(identifier=outcome.identifier, kind=outcome.kind, location=location, raw=raw)
    return _Prepared(entry=entry, swaps=_swaps(outcome, entry), files=((location, serialize(raw, location)),), dropped=dropped)


def _prepared_mv(pointers: Pointers, put: Put, storage: Storage) -> _Prepared:
    """The table-metadata file, the MV metadata file that names it and, in a catalog with views, the view that points to it."""
    base = put.base
    log: list[Raw] = []
    before = 0
    if base is not None and base.mv is not None:
        before = base.mv.raw["last-updated-ms"]
        log = [*(base.mv.raw.get("metadata-log") or []), {"timestamp-ms": before, "metadata-file": base.mv_location}]
    log, dropped = bounded(log, storage.table.get("properties") or {})
    folder, old = metadata_folder(storage.table), base.mv_location if base else None
    table_file = numbered(folder, old, 1, _TABLE_FILE)
    if pointers.has_views:
        mv_file = table_file.removesuffix(_TABLE_FILE) + MV_FILE
    else:
        mv_file = pointers.place(key(put.identifier), "MV", folder, base.location if base else None, MV_FILE)
    view = {**put.raw, "properties": {k: v for k, v in (put.raw.get("properties") or {}).items() if k not in POINTER_PROPERTIES}}
    try:
        mv = metadata_file.compose(
            view=view,
            table=storage.table,
            refreshes=storage.refreshes,
            current_refresh_id=storage.current_refresh_id,
            storage_metadata_location=table_file,
            metadata_log=log,
            now_ms=max(now_ms(), before),
            child_views=storage.child_views,
            refresh_start_ms=storage.refresh_start_ms,
        )
    except RecordError as error:
        raise CatalogError(f"The metadata file of materialized view {put.identifier} would be invalid: {error}.") from None
    written = [(table_file, serialize(metadata_file.table_metadata(mv), table_file)), (mv_file, metadata_file.write(mv))]
    if not pointers.has_views:
        entry = Entry(
            identifier=put.identifier, kind="MV", location=mv_file, raw=metadata_file.view_metadata(mv), mv=mv, mv_location=mv_file
        )
        return _Prepared(entry=entry, swaps=_swaps(put, entry), files=tuple(written), dropped=dropped)
    marks = dict(zip(POINTER_PROPERTIES, (mv_file, mv.uuid), strict=True))
    view = {**view, "properties": {**view["properties"], **marks}}
    location = pointers.place(key(put.identifier), "VIEW", metadata_folder(view), base.location if base else None, _TABLE_FILE)
    entry = Entry(identifier=put.identifier, kind="VIEW", location=location, raw=view, mv=mv, mv_location=mv_file)
    return _Prepared(entry=entry, swaps=_swaps(put, entry), files=(*written, (location, serialize(view, location))), dropped=dropped)


def _swaps(put: Put, entry: Entry) -> tuple[Swap, ...]:
    base = put.base
    moved = Swap(key=key(put.identifier), kind=put.kind, old=None, new=entry.location, raw=entry.raw)
    if base is None:
        return (moved,)
    moved = replace(moved, base=base.raw if base.kind == put.kind else None)
    if base.identifier == put.identifier:
        return (replace(moved, old=base.location),)
    return moved, Swap(key=key(base.identifier), kind=base.kind, old=base.location, new=None)


def _swap(pointers: Pointers, files: Files, prepared: Sequence[_Prepared]) -> bool:
    drafts = {swap.new: pointers.draft(swap.new) for p in prepared for swap in p.swaps if swap.new}
    swaps = [replace(swap, written=drafts.get(swap.new or "")) for p in prepared for swap in p.swaps]
    written = [(drafts.get(location, location), content) for p in prepared for location, content in p.files]
    try:
        for location, content in written:
            files.write(location, content)
    except Exception:
        _discard(files, written)
        raise
    try:
        done = pointers.swap(swaps)
    except Exception as error:
        arrived = _arrived(pointers, files, swaps)
        if all(arrived):
            return True
        # If the swap may still happen, or has happened in part, its files are needed; if that cannot be checked, the request was never
        # sent.
        if not any(arrived) and not is_unreachable(error):
            _discard(files, written)
        raise
    if not done:
        _discard(files, written)
    return done


def _arrived(pointers: Pointers, files: Files, swaps: Sequence[Swap]) -> list[bool]:
    """Which swaps of a commit without an answer were made."""
    found = pointers.find(swap.key for swap in swaps)
    return [_is_made(swap, found.get(swap.key, (None, swap.kind))[0], files) for swap in swaps]


def _is_made(swap: Swap, location: str | None, files: Files) -> bool:
    if location == swap.new or location is None or swap.kind != "TABLE":
        return location == swap.new
    # Another process may have continued from there already.
    with suppress(OSError, ValueError):
        return any(entry["metadata-file"] == swap.new for entry in parse(files.read(location), location).get("metadata-log") or ())
    return False


def _discard(files: Files, written: Sequence[tuple[str, bytes]]) -> None:
    for location, _ in written:
        with suppress(OSError):
            files.delete(location)


def _with_storage_files(files: Files, dropped: Sequence[str]) -> Iterator[str]:
    """The old files. With an MV's metadata file, its table-metadata file is deleted too."""
    for location in dropped:
        if location.endswith(MV_FILE):
            # Also if another writer left broken JSON there: the commit is valid.
            with suppress(OSError, ValueError, LookupError, TypeError):
                yield json.loads(files.read(location))["properties"][metadata_file.STORAGE_LOCATION]
        yield location
