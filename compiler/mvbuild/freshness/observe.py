"""Graph + catalog + sources -> World: one read of them, with the views that mvbuild did not write expanded into the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from mvbuild.diagnostics import CODES, ProjectError
from mvbuild.freshness.observed import Observed, World
from mvbuild.freshness.reading import LazyReader, Reader
from mvbuild.freshness.settled import key_of, recalled, sighting
from mvbuild.freshness.view_names import Catalogs, name_in_view
from mvbuild.graph.broken import lost_names, with_broken
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, TableNode, ViewNode
from mvbuild.graph.order import cycles, topological
from mvbuild.graph.time_travel import bad_travel_of
from mvbuild.names import TableIdentifier
from mvbuild.parse.project import parse_text
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.session import Session, configured_session
from mvbuild.ports.sources import SourceLocation, Sources
from mvbuild.ports.states import State, Unreadable, ViewState
from mvbuild.storage.auxiliary_views import listed_views
from mvbuild.storage.embedded import with_embedded


def observe(
    graph: Graph,
    catalog: Catalog,
    sources: Sources | None = None,
    *,
    at_ms: int,
    session: Session | None = None,
    lazily: bool = False,
) -> World:
    """Load every table and view that the graph names, and what the views of the catalog read in turn. What cannot be read, a base table
    elsewhere or a view that cannot be expanded, is `Unreadable`: that blocks only what reads it.

    `at_ms`: the time now. `session`: of the caller, if it is not mvbuild's own. `lazily`: MVs that an earlier command found settled are not
    read.
    """
    nodes: dict[NodeId, Node] = dict(graph.nodes)
    session = session or configured_session(graph.project.target.spark.config)
    key = key_of(graph, session, has_views=catalog.has_views) if lazily else None
    earlier = recalled(key, graph)
    reader = Reader(graph, catalog, sources) if key is None else LazyReader(graph, catalog, sources, earlier.tags)
    states = reader.states
    reader.add(nodes.values())
    _find_other_case(nodes, reader, catalog)
    has_expanded, catalogs = False, Catalogs.of(graph.project)
    while views := [n for n in nodes.values() if isinstance(n, TableNode) and isinstance(states.get(n.identifier), ViewState)]:
        expansions = [_expand(n, states[n.identifier], nodes, catalogs) for n in views]  # type: ignore[arg-type]
        states.update((e.identifier, e) for e in expansions if isinstance(e, Unreadable))
        added = [node for e in expansions if not isinstance(e, Unreadable) for node in e]
        nodes.update((node.id, node) for node in added)
        reader.graph, exist = replace(graph, nodes=nodes), reader.names
        reader.add([n for n in added if isinstance(n, TableNode) and n.identifier not in exist])
        has_expanded = has_expanded or bool(added)
    if has_expanded:
        # Imported here because few projects read views of others, which need the columns and types of queries.
        from mvbuild.freshness.view_columns import by_position

        _take_back(nodes, states, {})
        expanded = replace(graph, nodes=topological(nodes))
        views_of_catalog = [id for id, node in nodes.items() if isinstance(node, ViewNode)]
        reader.read([*views_of_catalog, *expanded.ancestors(views_of_catalog)])
        nodes, wrong = by_position(expanded, states)
        _take_back(nodes, states, wrong)
    found = replace(graph, nodes=topological(nodes)) if has_expanded else replace(graph, nodes=nodes)
    found = with_broken(found, lost) if (lost := lost_names(found, states)) else found
    observed = Observed(states=states, at_ms=at_ms, has_views=catalog.has_views, session=session)
    if key is None or not isinstance(reader, LazyReader):
        observed = replace(observed, states=with_embedded(found, states))
        return World(graph=found, observed=_with_auxiliary_views(found.views, observed, catalog))
    seen = sighting(key, found, earlier, reader.stamps, reader.tags, reader.stamp)
    observed = replace(observed, states=reader.all_but(seen.settled, found))
    judged = (node for node in found.views if node.id not in seen.settled)
    return World(graph=found, observed=_with_auxiliary_views(judged, observed, catalog), sighting=seen)


def _take_back(nodes: dict[NodeId, Node], states: dict[TableIdentifier, State], known: Mapping[NodeId, str]) -> None:
    """Turn views of the catalog that could not be interpreted back into tables, which cannot be read. `known`: the reasons for some of
    them."""
    wrong = {**known, **{n.id: d.message for n in nodes.values() if isinstance(n, ViewNode) for d in bad_travel_of(n, nodes)}}
    for cycle in cycles(nodes):
        names = " -> ".join(str(nodes[id].identifier) for id in (*cycle, cycle[0]))
        wrong |= dict.fromkeys(cycle, f"it reads itself: {names}")
    views = [(n, wrong[n.id]) for n in nodes.values() if isinstance(n, ViewNode) and n.id in wrong]
    for view, reason in views:
        nodes[view.id] = TableNode(id=view.id, identifier=view.identifier, source=view.source)
        states[view.identifier] = _no_view(view.identifier, f"The view {view.identifier} cannot be read: {reason}")
    if views:
        _take_back(nodes, states, {})


def _with_auxiliary_views(nodes: Iterable[ModelNode], observed: Observed, catalog: Catalog) -> Observed:
    """With the tables with inner results that the storages of these MVs name."""
    storages = (observed.table(node.storage) for node in nodes)
    views = [one.name for storage in storages if storage is not None for one in listed_views(storage)]
    return observed.updated(catalog.load(views)) if views else observed


def _find_other_case(nodes: dict[NodeId, Node], reader: Reader, catalog: Catalog) -> None:
    """A name that differs from a table's only by case means that table: Spark SQL ignores case, catalogs may not."""
    exist = reader.names
    missing = [n for n in nodes.values() if isinstance(n, TableNode) and n.outside is None and n.identifier not in exist]
    if not missing:
        return
    keys = {n.identifier.key for n in missing}
    spellings = {n.identifier.namespace for n in missing} | {i.namespace for i in exist}
    wanted = {tuple(part.lower() for part in n.identifier.namespace) for n in missing}
    near = [ns for ns in sorted(spellings) if tuple(part.lower() for part in ns) in wanted]
    names = {i.key: i for ns in near for i in catalog.list_names(ns) if i.key in keys}
    renamed = [replace(node, identifier=names[node.identifier.key]) for node in missing if node.identifier.key in names]
    nodes.update((node.id, node) for node in renamed)
    if renamed:
        reader.add(renamed)


def _no_view(identifier: TableIdentifier, reason: str) -> Unreadable:
    return Unreadable(identifier=identifier, reason=reason, code="unsupported-view", help=CODES["unsupported-view"].help)


def _of_unknown_catalog(view: ViewState, identifier: TableIdentifier) -> Unreadable:
    reason = f"the view {view.identifier} reads {identifier}, and this project does not know how to read the catalog '{identifier.catalog}'"
    help = f"Declare a source with `catalog: {identifier.catalog}` and its `properties:`, or create the view again with other names."
    return Unreadable(identifier=view.identifier, reason=reason, code="unknown-catalog", help=help)


def _expand(node: TableNode, view: ViewState, nodes: Mapping[NodeId, Node], catalogs: Catalogs) -> list[Node] | Unreadable:
    """The view's node with its query, and nodes for tables below it that are not in the graph yet."""
    sql = view.representations.get("spark")
    if sql is None:
        dialects = ", ".join(sorted(view.representations)) or "none"
        return _no_view(node.identifier, f"The view {node.identifier} has no SQL for Spark (its dialects: {dialects})")
    try:
        query = parse_text(f"view {node.identifier}", sql)
    except ProjectError as exc:
        found = exc.diagnostics[0]
        place = " in line {}, column {}".format(*found.span.position) if found.span else ""
        return _no_view(node.identifier, f"The SQL of the view {node.identifier} cannot be read{place}: {found.message}")
    by_key = {n.identifier.key: n.id for n in nodes.values() if not (isinstance(n, ModelNode) and n.materialized == "ephemeral")}
    outside = {key: n.id for n in nodes.values() if isinstance(n, TableNode) and n.outside for key in _spellings(n.outside)}
    added: dict[NodeId, Node] = {}
    reads = []
    for read in query.reads:
        identifier = name_in_view(read, view, catalogs.names)
        id_ = by_key.get(identifier.key) or outside.get(read.parts)
        if id_ is None:
            lies = catalogs.place(identifier)
            if lies is None and identifier.catalog != view.identifier.catalog:
                return _of_unknown_catalog(view, identifier)
            id_ = f"table.{identifier}"
            added[id_] = TableNode(id=id_, identifier=identifier, outside=lies)
        reads.append(id_)
    columns = tuple(f["name"] for f in view.schema["fields"])
    return [
        ViewNode(
            id=node.id,
            identifier=node.identifier,
            query=query,
            columns=columns,
            source=node.source,
            reads=tuple(reads),
        ),
        *added.values(),
    ]


def _spellings(location: SourceLocation) -> Iterator[tuple[str, ...]]:
    """The ways in which a view may name a table at a path."""
    if location.type == "deltalake-filesystem":
        yield from (("delta", location.identifier.name), ("spark_catalog", "delta", location.identifier.name))
