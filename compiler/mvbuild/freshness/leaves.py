"""Graph + node -> what a query reads once its views are expanded: Leaves (tables) and child views."""

from __future__ import annotations

from mvbuild.dataclass import dataclass
from mvbuild.freshness.observed import Leaf
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TableNode, ViewNode
from mvbuild.parse.model import Query
from mvbuild.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Leaves and child views below a query, including nested ones, each once, in order of their first use."""

    leaves: tuple[Leaf, ...]
    views: tuple[NodeId, ...]


NONE: frozenset[NodeId] = frozenset()


def inputs(graph: Graph, query: Query, reads: tuple[NodeId, ...], expanded: frozenset[NodeId] = NONE) -> Inputs:
    """What a query reads: through ephemeral models and views, down to base tables and upstream MVs. MVs in `expanded` are treated as views,
    so their query replaces their storage."""
    leaves: dict[Leaf, None] = {}
    views: dict[NodeId, None] = {}
    _collect(graph, query, reads, expanded, leaves, views, set())
    return Inputs(leaves=tuple(leaves), views=tuple(views))


def node_inputs(graph: Graph, node: ModelNode, expanded: frozenset[NodeId] = NONE) -> Inputs:
    """`inputs` of a model's own query."""
    return inputs(graph, node.query, node.reads, expanded)


def is_leaf(node: Node, expanded: frozenset[NodeId] = NONE) -> bool:
    """A table whose stored rows are read."""
    return isinstance(node, SeedNode | TableNode) or (isinstance(node, ModelNode) and node.storage is not None and node.id not in expanded)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPosition:
    """Where a model names what it reads, in a file of the project."""

    span: Span
    through: tuple[NodeId, ...]
    """The views of the catalog between that name and what is read."""


def place_of(graph: Graph, node: Node, target: NodeId) -> ReadPosition | None:
    """The first place at which a model, or something expanded in it, names a node or a view of the catalog that reads it."""
    return _place(graph, node, target, set())


def _place(graph: Graph, node: Node, target: NodeId, seen: set[NodeId]) -> ReadPosition | None:
    if node.id in seen or not isinstance(node, ModelNode | ViewNode):
        return None
    seen.add(node.id)
    for read, id_ in zip(node.query.reads, node.reads, strict=True):
        if id_ == target:
            return ReadPosition(span=read.span, through=())
        below = graph.nodes[id_]
        if is_leaf(below):
            continue
        found = _place(graph, below, target, seen)
        if found is not None:
            return ReadPosition(span=read.span, through=(id_, *found.through)) if isinstance(below, ViewNode) else found
    return None


def _collect(
    graph: Graph,
    query: Query,
    reads: tuple[NodeId, ...],
    expanded: frozenset[NodeId],
    leaves: dict[Leaf, None],
    views: dict[NodeId, None],
    expansions: set[NodeId],
) -> None:
    for read, id_ in zip(query.reads, reads, strict=True):
        node = graph.nodes[id_]
        if is_leaf(node, expanded) or read.travel is not None:
            # A version that the user chose is one of the storage, even if reads of the current MV are expanded.
            leaves[Leaf.of(id_, read.travel)] = None
            continue
        assert isinstance(node, ModelNode | ViewNode)
        if id_ in expansions:
            continue
        expansions.add(id_)
        if isinstance(node, ViewNode) or node.materialized != "ephemeral":
            views[id_] = None
        _collect(graph, node.query, node.reads, expanded, leaves, views, expansions)
