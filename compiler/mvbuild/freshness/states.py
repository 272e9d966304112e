"""RefreshRecord + Pin -> the states of a table in the record that may be what the leaf was, the most likely one first."""

from __future__ import annotations

from mvbuild.formats.record import BaseTable, RefreshRecord
from mvbuild.freshness.observed import Pin
from mvbuild.freshness.pins import known_as


def recorded_states(record: RefreshRecord, found: Pin) -> tuple[BaseTable, ...]:
    """Of the leaf's own branch or tag where the record tells them apart: what was read of another one says nothing about it. A table that
    was registered again under another name has the same UUID, so that names count too; not alone, since a table may be renamed."""
    name = known_as(found.table)
    states = record.of_table(found.table.uuid, name.namespace, name.name)
    states = tuple(t for t in states if (t.namespace, t.name) == (name.namespace, name.name)) or states
    return (tuple(t for t in states if t.ref == found.ref) or states) if found.moves else states
