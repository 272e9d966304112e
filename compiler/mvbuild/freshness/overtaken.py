"""the World that a run planned with + the World now -> whether another run has done its work."""

from __future__ import annotations

from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import Pin, World
from mvbuild.freshness.pins import leaf_table, pin
from mvbuild.freshness.rules import judge_one
from mvbuild.freshness.rules_of_inputs import is_ancestor
from mvbuild.graph.model import ModelNode
from mvbuild.ports.states import TableState


def is_as_new(planned: World, now: World, node: ModelNode, *, forced: bool) -> bool:
    """Whether an MV is fresh, or read each base table at the planned snapshot or a later one.

    If others write all the time, an MV may never be fresh when it is checked. A run still has nothing left to do if the state at its start
    is included. `forced`: the run has to do more than that.
    """
    verdict = judge_one(now, node, {})
    if verdict.is_fresh:
        return True
    return not forced and all(reason.effect == "fresh" or _is_later(planned, now, node, reason) for reason in verdict.reasons)


def _is_later(planned: World, now: World, node: ModelNode, reason: Reason) -> bool:
    """Whether a base table has changed, but only since the record: what the record names was planned, or is newer."""
    if reason.code != "base-table-changed" or reason.table is None or reason.recorded is None:
        return False
    table = now.observed.table(reason.table)
    leaves = (leaf for leaf in node_inputs(planned.graph, node).leaves if leaf_table(planned.graph, leaf) == reason.table)
    pins = [pin(planned.graph, planned.observed, leaf) for leaf in leaves]
    if table is None or not pins:
        return False
    return all(p and p.table.uuid == table.uuid and _covers(p, reason.recorded, table) for p in pins)


def _covers(planned: Pin, read: int, table: TableState) -> bool:
    is_current = planned.moves and planned.ref is None
    return is_current and (planned.snapshot_id in (read, NO_SNAPSHOT) or is_ancestor(table, planned.snapshot_id, read))
