"""Graph + catalog + sources -> World: one read of them, with the views that mvbuild did not write expanded into the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.embedded import with_embedded
from mvbuild.freshness.observed import Observed, World
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, TableNode, ViewNode
from mvbuild.graph.order import topological
from mvbuild.graph.travel import bad_travel
from mvbuild.names import TableIdentifier
from mvbuild.parse.model import Read
from mvbuild.parse.project import parse_text
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.sources import SourceError, SourceLocation, Sources
from mvbuild.ports.states import State, ViewState

_QUERY_COLUMNS = "spark.query-column-names"
"""Spark's view property: which columns of the query's result the view takes, by name and in order."""


def observe(graph: Graph, catalog: Catalog, sources: Sources | None = None) -> World:
    """Load every table and view that the graph names, and what the views of the catalog read in turn."""
    nodes: dict[NodeId, Node] = dict(graph.nodes)
    states = load(graph, _identifiers(nodes.values()), catalog, sources)
    diagnostics: list[Diagnostic] = []
    _find_other_case(nodes, states, catalog)
    expanded: set[NodeId] = set()
    while True:
        views = [
            n
            for n in nodes.values()
            if isinstance(n, TableNode) and n.id not in expanded and isinstance(states.get(n.identifier), ViewState)
        ]
        if not views:
            break
        expanded |= {n.id for n in views}
        added = [node for n in views for node in _expand(n, states[n.identifier], nodes, diagnostics)]  # type: ignore[arg-type]
        nodes.update((node.id, node) for node in added)
        new = [n.identifier for n in added if isinstance(n, TableNode) and n.identifier not in states]
        states.update(catalog.load(new))
    if not diagnostics:
        diagnostics += bad_travel(nodes)
    if diagnostics:
        raise ProjectError(diagnostics)
    found = replace(graph, nodes=topological(nodes)) if expanded else replace(graph, nodes=nodes)
    return World(graph=found, observed=Observed(states=with_embedded(found, states), has_views=catalog.has_views))


def load(graph: Graph, identifiers: Iterable[TableIdentifier], catalog: Catalog, sources: Sources | None) -> dict[TableIdentifier, State]:
    """The states of names, each from where the graph says that it lies. ProjectError, at its source, for a base table that fails."""
    wanted = list(identifiers)
    states = dict(catalog.load(i for i in wanted if i not in graph.outside))
    outside = [graph.outside[i] for i in wanted if i in graph.outside]
    if outside and sources is not None:
        try:
            states.update(sources.load(outside))
        except SourceError as exc:
            raise ProjectError([_unread(graph, exc)]) from exc
    return states


def _unread(graph: Graph, exc: SourceError) -> Diagnostic:
    declared = (n.source for n in graph.nodes.values() if isinstance(n, TableNode) and n.identifier == exc.identifier)
    source = next((s for s in declared if s), None)
    return error(exc.code, str(exc), source.span if source else None, help=exc.help)


def _identifiers(nodes: Iterable[Node]) -> list[TableIdentifier]:
    found: dict[TableIdentifier, None] = {}
    for node in nodes:
        if isinstance(node, ModelNode) and node.materialized == "ephemeral":
            continue
        found[node.identifier] = None
        if isinstance(node, ModelNode) and node.storage:
            found[node.storage] = None
    return list(found)


def _find_other_case(nodes: dict[NodeId, Node], states: dict[TableIdentifier, State], catalog: Catalog) -> None:
    """A name that differs from a table's only by case means that table: Spark SQL ignores case, catalogs may not."""
    missing = [n for n in nodes.values() if isinstance(n, TableNode) and n.outside is None and n.identifier not in states]
    keys = {n.identifier.key for n in missing}
    spellings = {n.identifier.namespace for n in missing} | {i.namespace for i in states}
    wanted = {tuple(part.lower() for part in n.identifier.namespace) for n in missing}
    near = [ns for ns in sorted(spellings) if tuple(part.lower() for part in ns) in wanted]
    names = {i.key: i for ns in near for i in catalog.list_names(ns) if i.key in keys}
    for node in missing:
        found = names.get(node.identifier.key)
        if found:
            nodes[node.id] = replace(node, identifier=found)
            states.update(catalog.load([found]))


def _expand(node: TableNode, view: ViewState, nodes: Mapping[NodeId, Node], diagnostics: list[Diagnostic]) -> list[Node]:
    """The view's node with its query, and nodes for the tables below it that the graph does not have yet."""
    sql = view.representations.get("spark")
    if sql is None:
        dialects = ", ".join(sorted(view.representations)) or "none"
        diagnostics.append(error("unsupported-view", f"The view {node.identifier} has no SQL for Spark (its dialects: {dialects})"))
        return []
    try:
        query = parse_text(f"view {node.identifier}", sql)
    except ProjectError as exc:
        diagnostics.extend(exc.diagnostics)
        return []
    by_key = {n.identifier.key: n.id for n in nodes.values() if not (isinstance(n, ModelNode) and n.materialized == "ephemeral")}
    outside = {key: n.id for n in nodes.values() if isinstance(n, TableNode) and n.outside for key in _spellings(n.outside)}
    added: dict[NodeId, Node] = {}
    reads = []
    for read in query.reads:
        identifier = name_in_view(read, view)
        id_ = by_key.get(identifier.key) or outside.get(read.parts)
        if id_ is None:
            id_ = f"table.{identifier}"
            added[id_] = TableNode(id=id_, identifier=identifier)
        reads.append(id_)
    columns = tuple(f["name"] for f in view.schema["fields"])
    selected = view.properties.get(_QUERY_COLUMNS)
    names = tuple(selected.split(",")) if selected else None
    return [
        ViewNode(
            id=node.id,
            identifier=node.identifier,
            query=query,
            columns=columns,
            selected=names if names and len(names) == len(columns) else None,
            source=node.source,
            reads=tuple(reads),
        ),
        *added.values(),
    ]


def _spellings(location: SourceLocation) -> Iterator[tuple[str, ...]]:
    """How a view may name a table outside of the catalog."""
    if location.type == "iceberg-metastore":
        yield location.identifier.parts
    elif location.type == "deltalake-filesystem":
        yield from (("delta", location.identifier.name), ("spark_catalog", "delta", location.identifier.name))


def name_in_view(read: Read, view: ViewState) -> TableIdentifier:
    """A name inside a view is completed from the view's own default catalog and namespace."""
    catalog = view.identifier.catalog
    parts = read.parts
    if len(parts) > 2 and parts[0] in (catalog, view.default_catalog):
        parts = parts[1:]
    return TableIdentifier(catalog, parts[:-1] or view.default_namespace, parts[-1])
