"""table + two snapshots -> the intervals between compactions, whose changes add up to the change between the two."""

from __future__ import annotations

from mvbuild.ports.states import Snapshot, TableState
from mvbuild.storage.stored import balanced


def stretches(table: TableState, old: int, new: int) -> tuple[tuple[int, int], ...] | None:
    """(from, to) of each interval, oldest first. None if there is no `replace` in between, or `old` is not a known ancestor of `new`."""
    path = _path(table, old, new)
    if path is None or not any(_same_rows(table, snapshot) for snapshot in path):
        return None
    found: list[tuple[int, int]] = []
    start = at = old
    for snapshot in path:
        if _same_rows(table, snapshot):
            if at != start:
                found.append((start, at))
            start = snapshot.snapshot_id
        at = snapshot.snapshot_id
    return (*found, (start, at)) if at != start else tuple(found)


def _path(table: TableState, old: int, new: int) -> list[Snapshot] | None:
    """The snapshots after `old`, up to `new`."""
    found: list[Snapshot] = []
    at = table.snapshots.get(new)
    while at is not None and at.snapshot_id != old:
        found.insert(0, at)
        at = table.snapshots.get(at.parent_id) if at.parent_id is not None else None
    return found if at is not None else None


def _same_rows(table: TableState, snapshot: Snapshot) -> bool:
    parent = table.snapshots.get(snapshot.parent_id) if snapshot.parent_id is not None else None
    return snapshot.operation == "replace" and balanced(snapshot, parent)
