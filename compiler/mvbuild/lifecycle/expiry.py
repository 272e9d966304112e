"""storage + policy + who recorded it -> the snapshots that are not needed any more. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from mvbuild.formats import refresh_state
from mvbuild.formats.properties import REFRESH_SNAPSHOT
from mvbuild.freshness.observed import World
from mvbuild.ports.states import TableState
from mvbuild.storage.history import history
from mvbuild.storage.stored import stored


def expirable(storage: TableState, *, before_ms: int, keep: int | Literal["all"], recorded: Iterable[int] = ()) -> frozenset[int]:
    """Snapshots that stopped being current before a time, and that no branch or tag, no refresh of the history and no record names.

    All snapshots between a kept one and the current one remain, so that records can still distinguish compaction from change.
    """
    needed = set(storage.refs.values()) | _of_history(storage, keep) | set(recorded)
    if storage.current_snapshot_id is not None:
        needed.add(storage.current_snapshot_id)
    kept = needed | _chain(storage, set(recorded) | _refreshed(storage))
    ended = _ended(storage)
    return frozenset(id for id, s in storage.snapshots.items() if id not in kept and ended.get(id, s.timestamp_ms) < before_ms)


def before(now_ms: int, age: timedelta) -> int:
    """The time that long ago."""
    return now_ms - int(age.total_seconds() * 1000)


def recorded_of(world: World, storage: TableState) -> frozenset[int]:
    """The snapshots of a storage that MVs of the project have read, by their records."""
    records = [stored(s).record for node in world.graph.views if (s := world.observed.table(node.storage))]
    identifier = storage.identifier
    return frozenset(t.snapshot_id for r in records if r for t in r.of_table(storage.uuid, identifier.namespace, identifier.name))


def _of_history(storage: TableState, keep: int | Literal["all"]) -> set[int]:
    past = [p.snapshot.snapshot_id for p in history(storage)]
    listed = {r.get("sequence-number") for r in storage.mv.refreshes} if storage.mv else set()
    of_file = {id for id, s in storage.snapshots.items() if s.sequence_number in listed}
    if keep == "all":
        return of_file | {id for _, id in storage.snapshot_log} | set(past)
    return of_file | set(past[-keep:])


def _refreshed(storage: TableState) -> set[int]:
    """The newest snapshot with a refresh's state, looking past compactions."""
    at = storage.current_snapshot
    while at is not None and refresh_state.KEY not in at.summary and at.operation == "replace" and at.parent_id is not None:
        at = storage.snapshots.get(at.parent_id)
    text = storage.properties.get(REFRESH_SNAPSHOT, "")
    return ({at.snapshot_id} if at else set()) | ({int(text)} if text.isdigit() else set())


def _chain(storage: TableState, ends: set[int]) -> set[int]:
    """The snapshots from the current one back to the oldest of some."""
    chain: list[int] = []
    farthest = 0
    at = storage.current_snapshot
    while at is not None:
        chain.append(at.snapshot_id)
        if at.snapshot_id in ends or at.parent_id in ends:
            farthest = len(chain)
        at = storage.snapshots.get(at.parent_id) if at.parent_id is not None else None
    return set(chain[:farthest])


def _ended(storage: TableState) -> dict[int, int]:
    """When each snapshot of the log was last replaced."""
    log = storage.snapshot_log
    return {id: log[at + 1][0] for at, (_, id) in enumerate(log[:-1])}
