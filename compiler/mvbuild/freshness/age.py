"""the changes of tables that an MV's rows do not include, through any depth of MVs -> whether a window allows them.

The record of an MV names the storages of the MVs that it read. These may be old themselves, each within its own window. So the differences
of an MV are its own and those of everything that it was computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from mvbuild.formats import refresh_state
from mvbuild.formats.record import RecordError, RefreshRecord
from mvbuild.freshness.leaves import Inputs, node_inputs
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pins import pin
from mvbuild.freshness.states import recorded_states
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import TableState
from mvbuild.storage.names import known_as
from mvbuild.storage.stored import replaced_since, summary_value, unseen_since

_UNSEEN = ("within-window", "clock-moved", "base-table-changed", "base-table-emptied", "base-table-rolled-back", "snapshot-expired")
"""Codes of the reasons that are unseen changes of a table, or of the clock, which has no table. A compaction is not one."""


def allows(window: timedelta | None, unseen: Iterable[Reason]) -> bool:
    """Whether all differences are within a window. None is the window of an MV that must be exact."""
    limit = None if window is None else window.total_seconds() * 1000
    return all(limit is not None and r.lag_ms is not None and 0 <= r.lag_ms <= limit for r in unseen)


def unseen(world: World, inputs: Inputs, own: Iterable[Reason], upstream: Mapping[NodeId, Freshness]) -> tuple[Reason, ...]:
    """The differences of an MV, given the reasons of its own freshness and the MVs that it reads."""
    found = [r for r in own if r.code in _UNSEEN and (r.recorded is not None or r.table is None)]
    read: dict[TableIdentifier | None, int | None] = {r.table: r.recorded for r in found if r.table is not None}
    for leaf in inputs.leaves:
        above = world.graph.nodes[leaf.node]
        if not isinstance(above, ModelNode) or leaf.travel is not None:
            continue
        snapshot_id, table = read.get(above.storage), world.observed.table(above.storage)
        if snapshot_id is not None and table is not None:
            found += _of_snapshot(world, above, table, snapshot_id, upstream)
        elif leaf.node in upstream:
            found += upstream[leaf.node].unseen
    return tuple(dict.fromkeys(found))


def unseen_of_snapshot(
    world: World, leaf: Leaf, table: TableState, snapshot_id: int, upstream: Mapping[NodeId, Freshness]
) -> tuple[Reason, ...]:
    """The unseen changes of an older snapshot of a table; none if the table is not an MV's."""
    above = world.graph.nodes[leaf.node]
    if not isinstance(above, ModelNode):
        return ()
    return tuple(_of_snapshot(world, above, table, snapshot_id, upstream))


def _of_mv(
    world: World, leaf: Leaf, above: ModelNode, now: Pin, snapshot_id: int, upstream: Mapping[NodeId, Freshness]
) -> Iterable[Reason]:
    if snapshot_id == now.snapshot_id or replaced_since(now.table, snapshot_id):
        # Its record may have moved on since, without a snapshot.
        return upstream[leaf.node].unseen if leaf.node in upstream else ()
    return _of_snapshot(world, above, now.table, snapshot_id, upstream)


def _of_snapshot(
    world: World, mv: ModelNode, storage: TableState, snapshot_id: int, upstream: Mapping[NodeId, Freshness]
) -> Iterator[Reason]:
    record = _record_at(storage, snapshot_id)
    for leaf in node_inputs(world.graph, mv).leaves:
        now = pin(world.graph, world.observed, leaf)
        if now is None or not now.moves or now.ref is not None:
            continue
        states = recorded_states(record, now) if record is not None else ()
        above = world.graph.nodes[leaf.node]
        if not states:
            yield _difference(now.table, snapshot_id, now.snapshot_id, None)
        elif isinstance(above, ModelNode):
            yield from _of_mv(world, leaf, above, now, states[0].snapshot_id, upstream)
        elif states[0].snapshot_id != now.snapshot_id and not replaced_since(now.table, states[0].snapshot_id):
            yield _difference(now.table, states[0].snapshot_id, now.snapshot_id, _lag_ms(now.table, states[0].snapshot_id, now.snapshot_id))


def _record_at(storage: TableState, snapshot_id: int) -> RefreshRecord | None:
    text = summary_value(storage, refresh_state.KEY, storage.snapshots.get(snapshot_id))
    try:
        return refresh_state.decode(text) if text is not None else None
    except RecordError:
        return None


def _lag_ms(table: TableState, before: int, now: int) -> int | None:
    old, new = table.snapshots.get(before), table.snapshots.get(now)
    return new.timestamp_ms - old.timestamp_ms if old and new else None


def _difference(table: TableState, before: int, now: int, lag_ms: int | None) -> Reason:
    return Reason(
        code="base-table-changed",
        message=f"{known_as(table)} has new data",
        effect="stale",
        table=table.identifier,
        recorded=before,
        current=now,
        lag_ms=lag_ms,
        unseen_since_ms=unseen_since(table, before, now),
    )
