"""Plan, data tests or MVs -> the tables that a command reads, and how many bytes these are, by the sizes of their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from mvbuild.freshness.leaves import inputs, is_leaf, node_inputs
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TableNode, TestNode
from mvbuild.plan.model import Plan
from mvbuild.ports.states import TableState
from mvbuild.project.seeds import SeedRows

_VALUE = 8
"""The size of a value of a seed that has no table yet."""
_NOTHING: Mapping[NodeId, SeedRows] = MappingProxyType({})


def bytes_of(world: World, tables: Iterable[NodeId], loaded: Mapping[NodeId, SeedRows] = _NOTHING) -> int | None:
    """Of all tables, each once; None if the size of one is not known. `loaded`: the rows of the seeds that the command loads."""
    sizes = [sum(map(len, loaded[id].columns)) * _VALUE if id in loaded else _bytes(world, world.graph.nodes[id]) for id in set(tables)]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def read_by_plan(planned: Plan, *, all_tests: bool) -> Iterator[NodeId]:
    """By its refreshes and their data tests. `all_tests`: those that belong to no refresh run too."""
    graph = planned.world.graph
    nodes = (graph.nodes[step.node] for step in planned.changes)
    yield from read_by_mvs(graph, (node for node in nodes if isinstance(node, ModelNode)))
    yield from read_by_tests(graph, graph.tests if all_tests else (test for of in planned.gating.values() for test in of))


def read_by_mvs(graph: Graph, nodes: Iterable[ModelNode]) -> Iterator[NodeId]:
    """Their storage, and what their queries read."""
    for node in nodes:
        yield node.id
        yield from (leaf.node for leaf in node_inputs(graph, node).leaves)


def read_by_tests(graph: Graph, tests: Iterable[TestNode]) -> Iterator[NodeId]:
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
