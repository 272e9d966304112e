"""Plan + rows of seeds -> how many bytes of tables the run reads, by the sizes of their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mvbuild.freshness.leaves import inputs, is_leaf, node_inputs
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TableNode, TestNode
from mvbuild.plan.model import Plan
from mvbuild.ports.states import TableState
from mvbuild.project.seeds import SeedRows

_VALUE = 8
"""The size of a value of a seed that has no table yet."""


def bytes_read(planned: Plan, loaded: Mapping[NodeId, SeedRows], *, all_tests: bool) -> int | None:
    """Of all tables, each once; None if the size of one is not known. `loaded`: the rows of the seeds that the run loads. `all_tests`:
    whether data tests without a refresh run too."""
    sizes = [
        sum(map(len, loaded[id].columns)) * _VALUE if id in loaded else _bytes(planned.world, planned.world.graph.nodes[id])
        for id in set(_read(planned, all_tests=all_tests))
    ]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _read(planned: Plan, *, all_tests: bool) -> Iterator[NodeId]:
    """The tables that the steps and the tests read; a refresh reads the storage of its MV too."""
    graph = planned.world.graph
    for step in planned.changes:
        node = graph.nodes[step.node]
        if isinstance(node, ModelNode):
            yield node.id
            yield from (leaf.node for leaf in node_inputs(graph, node).leaves)
    tests: Iterable[TestNode] = graph.tests if all_tests else (test for of in planned.gating.values() for test in of)
    for test in tests:
        yield from _below(graph, test)


def _below(graph: Graph, test: TestNode) -> Iterator[NodeId]:
    for id in test.reads:
        node = graph.nodes[id]
        if isinstance(node, ModelNode) and not is_leaf(node):
            yield from (leaf.node for leaf in node_inputs(graph, node).leaves)
        else:
            yield id
    if test.query is not None:
        yield from (leaf.node for leaf in inputs(graph, test.query, test.query_reads).leaves)


def _bytes(world: World, node: Node) -> int | None:
    """What this run makes has none yet: an MV is rarely larger than what it reads."""
    if isinstance(node, ModelNode):
        state = world.observed.states.get(node.storage) if node.storage is not None else None
        if state is None:
            return 0
    elif isinstance(node, TableNode | SeedNode):
        state = world.observed.states.get(node.identifier)
    else:
        return None
    if not isinstance(state, TableState):
        return None
    size = state.current_snapshot.summary.get("total-files-size", "") if state.current_snapshot else "0"
    return int(size) if size.isdigit() else None
