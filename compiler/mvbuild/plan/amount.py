"""Plan -> whether the engine will read so little that its start matters more than its speed."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.freshness.observed import Observed
from mvbuild.graph.model import Graph, NodeId, SeedNode, TableNode
from mvbuild.incremental.inputs import total
from mvbuild.incremental.sizes import LITTLE
from mvbuild.plan.model import Plan

FEW = 40
"""Nodes whose statements a JVM has planned before it would have compiled its own code thoroughly."""


def reads_little(planned: Plan) -> bool:
    """By the base tables below the steps, each in full. False if the size of one of them is not known."""
    nodes = [s.node for s in planned.steps if s.action in ("create", "replace", "refresh", "redefine")]
    if len(nodes) > FEW:
        return False
    sizes = [_bytes(planned.world.graph, planned.world.observed, id) for id in _tables(planned.world.graph, nodes)]
    return sum(size for size in sizes if size is not None) <= LITTLE if None not in sizes else False


def _tables(graph: Graph, nodes: list[NodeId]) -> Iterator[NodeId]:
    """The base tables and seeds below nodes."""
    seen, waiting = set(nodes), list(nodes)
    while waiting:
        for id in graph.nodes[waiting.pop()].reads:
            if id not in seen:
                seen.add(id)
                waiting.append(id)
                if isinstance(graph.nodes[id], TableNode | SeedNode):
                    yield id


def _bytes(graph: Graph, observed: Observed, id: NodeId) -> int | None:
    node = graph.nodes[id]
    if isinstance(node, SeedNode):
        return node.seed.file.stat().st_size
    table = observed.table(node.identifier)
    return total(table, table.current_snapshot_id, "total-files-size") if table is not None else None
