"""the World that a run planned with + the World now -> whether another run has done its work."""

from __future__ import annotations

from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import Pin, World
from mvbuild.freshness.pins import leaf_table, pin
from mvbuild.freshness.rules import is_ancestor, judge_one
from mvbuild.graph.model import ModelNode
from mvbuild.ports.states import TableState


def is_as_new(planned: World, now: World, node: ModelNode, *, forced: bool) -> bool:
    """Whether an MV is fresh, or read each base table as the run was to read it or later.

    Where others write all the time an MV may never be fresh at the moment that somebody looks; a run that was asked for what there was when
    it began has nothing left to do all the same. `forced`: it was asked for more than that.
    """
    verdict = judge_one(now, node, {})
    if verdict.is_fresh:
        return True
    return not forced and all(reason.effect == "fresh" or _is_later(planned, now, node, reason) for reason in verdict.reasons)


def _is_later(planned: World, now: World, node: ModelNode, reason: Reason) -> bool:
    """Whether a base table has moved on, and only since the record: what it names is what was planned, or came of it."""
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
