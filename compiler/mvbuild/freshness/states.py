"""RefreshRecord + Pin -> the recorded states of a table that may be that of the leaf, the most likely one first."""

from __future__ import annotations

from collections.abc import Iterable

from mvbuild.formats.record import BaseTable, RefreshRecord
from mvbuild.freshness.observed import Pin
from mvbuild.names import TableIdentifier
from mvbuild.storage.names import known_as


def recorded_states(record: RefreshRecord, found: Pin) -> tuple[BaseTable, ...]:
    """The states of the leaf's own branch or tag, if the record distinguishes them: states of another one say nothing about it.

    A table that was registered again, under another name or in another catalog, has the same UUID, so names count too. They do not count
    alone, since a table may be renamed; but if the name was another table's, that one was read in its place, as when two tables swap
    their names. If several names remain that were read at different snapshots, it is unknown which one it was.
    """
    name = known_as(found.table)
    states = _of_name(record.of_table(found.table.uuid, name.namespace, name.name), name)
    below = [t for t in record.base_tables if t.uuid and (t.namespace, t.name) == (name.namespace, name.name)]
    named = {t.uuid for t in [t for t in below if t.catalog in (None, name.catalog)] or below}
    if named and found.table.uuid not in named:
        return ()
    if found.moves:
        states = tuple(t for t in states if t.ref == found.ref) or states
    return () if len({_name(t) for t in states}) > 1 and len({t.snapshot_id for t in states}) > 1 else states


def _of_name(states: tuple[BaseTable, ...], name: TableIdentifier) -> tuple[BaseTable, ...]:
    """The states of the full name; otherwise of the name in any catalog, since a project may call the catalog differently; otherwise those
    without a name."""
    below = tuple(t for t in states if (t.namespace, t.name) == (name.namespace, name.name))
    return tuple(t for t in below if t.catalog in (None, name.catalog)) or below or tuple(t for t in states if not t.name) or states


def _name(table: BaseTable) -> tuple[str | None, tuple[str, ...], str]:
    return table.catalog, table.namespace, table.name


def states_without_reader(record: RefreshRecord, found: Pin, pins: Iterable[Pin]) -> tuple[BaseTable, ...]:
    """The recorded states of a table that none of the pins reads now, and that none is a successor of. They exist if a time in the query
    means another snapshot than before (in another time zone)."""
    same = [p for p in pins if (p.table.uuid, p.table.identifier) == (found.table.uuid, found.table.identifier)]
    moving = {states[0].snapshot_id for p in same if p.moves and (states := recorded_states(record, p))}
    read = moving | {p.snapshot_id for p in same}
    return tuple(state for state in recorded_states(record, found) if state.snapshot_id not in read)
