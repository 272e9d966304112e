"""Leaf + Observed -> Pin: the snapshot of a table to read."""

from __future__ import annotations

from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.freshness.observed import Leaf, Observed, Pin
from mvbuild.graph.model import Graph, ModelNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.wall_clock import instant_ms
from mvbuild.ports.states import TableState


def leaf_table(graph: Graph, leaf: Leaf) -> TableIdentifier:
    """The table with a leaf's rows: for an MV its storage table."""
    node = graph.nodes[leaf.node]
    if isinstance(node, ModelNode):
        assert node.storage is not None, node.id
        return node.storage
    return node.identifier


def pin(graph: Graph, observed: Observed, leaf: Leaf) -> Pin | None:
    """The snapshot that the leaf means now; None if the table, or the version that the user chose, does not exist."""
    table = observed.table(leaf_table(graph, leaf))
    if table is None:
        return None
    if leaf.travel is None:
        current = table.current_snapshot_id
        return Pin(table=table, snapshot_id=NO_SNAPSHOT if current is None else current, ref=None, moves=True)
    kind, value = leaf.travel
    if kind == "timestamp":
        return _at_time(table, value, observed.session.zone)
    return _at_version(table, value)


def _at_version(table: TableState, value: str | int) -> Pin | None:
    """A snapshot id, or the name of a branch or tag, as Spark reads `VERSION AS OF`."""
    if isinstance(value, str) and value in table.refs:
        ref, is_branch = None if value == "main" else value, value == "main" or value in table.branches
        return Pin(table=table, snapshot_id=table.refs[value], ref=ref, moves=True, is_branch=is_branch)
    if isinstance(value, int) or value.isdigit():
        return Pin(table=table, snapshot_id=int(value), ref=None, moves=False) if int(value) in table.snapshots else None
    return None


def _at_time(table: TableState, value: str | int, zone: str) -> Pin | None:
    """The snapshot that was current at a time: seconds since 1970, or a text, in the session's zone unless it names one."""
    at_ms = value * 1000 if isinstance(value, int) else instant_ms(value, zone)
    found = [id for ms, id in table.snapshot_log if at_ms is not None and ms <= at_ms]
    if not found or found[-1] not in table.snapshots:
        return None
    return Pin(table=table, snapshot_id=found[-1], ref=None, moves=False)
