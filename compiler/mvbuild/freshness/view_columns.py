"""graph with views of the catalog + states -> how each view takes the columns of its query, or why Spark cannot read it.

A view keeps the names and types that its query had when it was created. Iceberg's extension of Spark (`ResolveViews`) gives these to the
first columns of the query, by position, with an implicit lossless cast. If the query has fewer columns, or a column would need another
cast, reading the view is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, ViewNode
from mvbuild.lineage.bind import bind_views
from mvbuild.lineage.schemas import of_schema, of_states
from mvbuild.lineage.statement import BoundQuery, OutputColumn
from mvbuild.lineage.types import parsed
from mvbuild.lineage.upcasts import may_upcast
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import State, ViewState


def by_position(graph: Graph, states: Mapping[TableIdentifier, State]) -> tuple[dict[NodeId, Node], dict[NodeId, str]]:
    """The nodes, and what is wrong with views that cannot be read."""
    nodes, wrong = dict(graph.nodes), dict[NodeId, str]()
    views = [node for node in nodes.values() if isinstance(node, ViewNode)]
    bound = bind_views(graph, of_states(dict(_read(graph, views, states))))
    for node in views:
        state = states[node.identifier]
        if isinstance(state, ViewState):
            problem = _problem(state, bound[node.id])
            nodes[node.id] = node if problem else _taking(node, state, bound[node.id])
            wrong |= {node.id: problem} if problem else {}
    return nodes, wrong


def _read(graph: Graph, views: list[ViewNode], states: Mapping[TableIdentifier, State]) -> Iterator[tuple[TableIdentifier, State]]:
    for id_ in graph.ancestors([view.id for view in views]) | {view.id for view in views}:
        node = graph.nodes[id_]
        identifier = node.storage if isinstance(node, ModelNode) and node.storage else node.identifier
        if identifier in states:
            yield node.identifier, states[identifier]


def _taking(node: ViewNode, view: ViewState, given: BoundQuery) -> ViewNode:
    """If nothing is known about the query, its columns must be those of the view: Spark refuses any other number of them."""
    if not given.complete:
        return node
    casts = tuple(None if column.type == own.type else own.type for column, own in zip(given.columns, of_schema(view.schema), strict=False))
    return replace(node, further=len(given.columns) - len(casts), casts=casts if any(casts) else ())


def _problem(view: ViewState, given: BoundQuery) -> str:
    own = of_schema(view.schema)
    if not given.complete:
        return ""
    if len(given.columns) < len(own):
        return f"it has {len(own)} columns, and its query now gives {len(given.columns)}. Create it again"
    for column, found in zip(own, given.columns, strict=False):
        if not _fits(found, column.type):
            return f"its column {column.name} is of type {column.type}, and its query now gives {found.type} there. Create it again"
    return ""


def _fits(given: OutputColumn, own: str | None) -> bool:
    """Unknown types do not count as a mismatch; Spark reports it then."""
    one, to = (parsed(type_) if type_ else None for type_ in (given.type, own))
    return one is None or to is None or may_upcast(one, to)
