"""RefreshRecord + Pin -> the states of a table in the record that may be what the leaf was, the most likely one first."""

from __future__ import annotations

from collections.abc import Iterable

from mvbuild.formats.record import BaseTable, RefreshRecord
from mvbuild.freshness.observed import Pin
from mvbuild.freshness.pins import known_as
from mvbuild.names import TableIdentifier


def recorded_states(record: RefreshRecord, found: Pin) -> tuple[BaseTable, ...]:
    """Of the leaf's own branch or tag where the record tells them apart: what was read of another one says nothing about it.

    A table that was registered again, under another name or in another catalog, has the same UUID, so that names count too; not alone,
    since a table may be renamed. Where several names are left that were read at different snapshots, nothing tells which one it was.
    """
    name = known_as(found.table)
    states = record.of_table(found.table.uuid, name.namespace, name.name)
    states = _of_name(states, name)
    if found.moves:
        states = tuple(t for t in states if t.ref == found.ref) or states
    return () if len({_name(t) for t in states}) > 1 and len({t.snapshot_id for t in states}) > 1 else states


def _of_name(states: tuple[BaseTable, ...], name: TableIdentifier) -> tuple[BaseTable, ...]:
    """Those of the full name; else of the name in whatever catalog, since a project may call it otherwise; else those without a name."""
    below = tuple(t for t in states if (t.namespace, t.name) == (name.namespace, name.name))
    return tuple(t for t in below if t.catalog in (None, name.catalog)) or below or tuple(t for t in states if not t.name) or states


def _name(table: BaseTable) -> tuple[str | None, tuple[str, ...], str]:
    return table.catalog, table.namespace, table.name


def states_without_reader(record: RefreshRecord, found: Pin, pins: Iterable[Pin]) -> tuple[BaseTable, ...]:
    """The recorded states of a table that none of the pins reads now, or reads what came after it: there are some where a time in the query
    means another snapshot than it did (in another time zone)."""
    same = [p for p in pins if (p.table.uuid, p.table.identifier) == (found.table.uuid, found.table.identifier)]
    moving = {states[0].snapshot_id for p in same if p.moves and (states := recorded_states(record, p))}
    read = moving | {p.snapshot_id for p in same}
    return tuple(state for state in recorded_states(record, found) if state.snapshot_id not in read)
