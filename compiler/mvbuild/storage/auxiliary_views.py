"""storage table -> the auxiliary views that its rows were computed from; an auxiliary view -> what it was computed from.

The storage of an MV names, in one property, the snapshot of each auxiliary view. An auxiliary view says in the summary of its own snapshot
what it read. Neither is in a specification, and neither counts for freshness: an auxiliary view that does not fit is computed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.formats.properties import REFRESH_SNAPSHOT
from mvbuild.formats.record import NO_SNAPSHOT, RefreshRecord
from mvbuild.names import AUXILIARY_SUFFIX, STORAGE_SUFFIX, TableIdentifier
from mvbuild.ports.states import TableState
from mvbuild.storage.stored import replaced_since, summary_value

NAMED = "mvbuild.auxiliary-views"
"""Property of a storage table: the auxiliary views of its MV, and the refresh and base snapshots for which their snapshots hold."""
OWNED_BY = "mvbuild.auxiliary-view-of"
"""Property of an auxiliary view: the model that it belongs to."""
COMPUTED = "mvbuild.auxiliary-view"
"""Key of a snapshot's summary of an auxiliary view: what it was computed from, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedView:
    """An auxiliary view at the snapshot from which the rows of an MV were computed."""

    name: TableIdentifier
    uuid: str
    snapshot_id: int
    definition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """What a snapshot of an auxiliary view was computed from. `read`: number of a table of the MV's query -> UUID, ref and snapshot."""

    definition: str
    settings: str
    read: Mapping[int, tuple[str, str | None, int]]


def view_name(storage: TableIdentifier, number: int) -> TableIdentifier:
    """Beside the storage, and named after it, because no other MV has this storage; the number counts from 1.

    >>> str(view_name(TableIdentifier("lake", ("mart",), "daily__storage"), 1))
    'lake.mart.daily__auxiliary_1'
    """
    return TableIdentifier(storage.catalog, storage.namespace, f"{storage.name.removesuffix(STORAGE_SUFFIX)}{AUXILIARY_SUFFIX}{number}")


def possible_views(storage: TableState, near: Iterable[TableIdentifier]) -> dict[TableIdentifier, bool]:
    """Names -> whether the storage lists them: a refresh that was never published left tables that no storage lists. `near`: the names in
    the namespace of the storage."""
    first = view_name(storage.identifier, 1).name.removesuffix("1")
    named = (name for name in near if name.name.startswith(first) and name.name.removeprefix(first).isdecimal())
    return {**dict.fromkeys(named, False), **{one.name: True for one in listed_views(storage)}}


def listed_views(storage: TableState) -> tuple[NamedView, ...]:
    """Every auxiliary view that the storage names, whether its snapshot still holds or not, and those that an earlier definition needed."""
    found = _decoded(storage.properties.get(NAMED))
    return (*_entries(found, "views"), *_entries(found, "unused"))


def views_of_rows(storage: TableState, record: RefreshRecord) -> tuple[NamedView, ...]:
    """Those from which the current rows were computed: not after a rollback, or a refresh without auxiliary views. `record`: that of the
    storage."""
    found = _decoded(storage.properties.get(NAMED))
    refreshed = storage.properties.get(REFRESH_SNAPSHOT)
    is_of_rows = refreshed is not None and found.get("refresh") == refreshed and found.get("read") == _states(record)
    return _entries(found, "views") if is_of_rows else ()


def renamed_views(storage: TableState, names: Mapping[TableIdentifier, TableIdentifier]) -> dict[str, str]:
    """The property when auxiliary views get other names. `names`: old -> new."""
    if not names:
        return {}
    found = dict(_decoded(storage.properties.get(NAMED)))
    for key in ("views", "unused"):
        found[key] = [_entry(replace(one, name=names.get(one.name, one.name))) for one in _entries(found, key)]
    return {NAMED: json.dumps(found)}


def without_views(storage: TableState, gone: Iterable[TableIdentifier]) -> dict[str, str]:
    """The property when auxiliary views were dropped from which no current row was computed."""
    names, found = set(gone), dict(_decoded(storage.properties.get(NAMED)))
    left = {key: [_entry(one) for one in _entries(found, key) if one.name not in names] for key in ("views", "unused")}
    return {NAMED: json.dumps({**found, **left})}


def named_views(storage: TableState, refreshed: str, record: RefreshRecord, views: Iterable[NamedView]) -> dict[str, str]:
    """The property of the storage. `refreshed`: the snapshot with the rows of the refresh. Tables that an earlier definition needed and
    this one does not stay listed, so that they are dropped and renamed with the MV."""
    views = tuple(views)
    names = {one.name for one in views}
    unused = [_entry(one) for one in listed_views(storage) if one.name not in names]
    doubted = sorted(doubted_views(storage) - {one.uuid for one in views})
    found = {"refresh": refreshed, "read": _states(record), "views": [_entry(one) for one in views]}
    return {NAMED: json.dumps({**found, **({"unused": unused} if unused else {}), **({"doubted": doubted} if doubted else {})})}


def doubted_views(storage: TableState) -> frozenset[str]:
    """UUIDs of the auxiliary views that were there when a full refresh was requested of rows that were fresh: whoever asks for that may not
    trust the views either, so that each is computed in full before it is used again."""
    found = _decoded(storage.properties.get(NAMED)).get("doubted", ())
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


def with_doubt(storage: TableState) -> dict[str, str]:
    """The property after such a refresh, which reads base tables alone."""
    listed = listed_views(storage)
    if not listed:
        return {}
    doubted = sorted(doubted_views(storage) | {one.uuid for one in listed})
    return {NAMED: json.dumps({"unused": [_entry(one) for one in listed], "doubted": doubted})}


def moved_views(storage: TableState, before: RefreshRecord | None, record: RefreshRecord) -> dict[str, str]:
    """The property when the record moves on and the rows stay: they are still those of the same auxiliary views."""
    found = views_of_rows(storage, before) if before is not None else ()
    return named_views(storage, storage.properties[REFRESH_SNAPSHOT], record, found) if found else {}


def computed_from(table: TableState) -> Computed | None:
    """None if another writer changed rows or columns, or nothing is recorded."""
    text = summary_value(table, COMPUTED)
    at = table.current_snapshot
    while at is not None and COMPUTED not in at.summary:
        at = table.snapshots.get(at.parent_id) if at.parent_id is not None else None
    if text is None or at is None or at.schema_id != table.current_schema_id or not replaced_since(table, at.snapshot_id):
        return None
    found = _decoded(text)
    try:
        read = {int(leaf): (str(uuid), ref, int(snapshot)) for leaf, (uuid, ref, snapshot) in found["read"].items()}
        return Computed(definition=str(found["definition"]), settings=str(found["settings"]), read=read)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def computed_summary(computed: Computed) -> dict[str, str]:
    """The entry of a snapshot's summary."""
    return {COMPUTED: json.dumps(asdict(computed))}


def _entries(found: Mapping[str, Any], key: str) -> tuple[NamedView, ...]:
    try:
        return tuple(
            NamedView(
                name=TableIdentifier(one["catalog"], tuple(one["namespace"]), one["name"]),
                uuid=str(one["uuid"]),
                snapshot_id=int(one["snapshot-id"]),
                definition=str(one["definition"]),
            )
            for one in found.get(key, ())
        )
    except (KeyError, TypeError, ValueError):
        return ()


def _entry(one: NamedView) -> dict[str, object]:
    return {
        "catalog": one.name.catalog,
        "namespace": list(one.name.namespace),
        "name": one.name.name,
        "uuid": one.uuid,
        "snapshot-id": one.snapshot_id,
        "definition": one.definition,
    }


def _states(record: RefreshRecord) -> list[list[object]]:
    return sorted([t.uuid, t.snapshot_id] for t in record.base_tables if t.snapshot_id != NO_SNAPSHOT)


def _decoded(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
