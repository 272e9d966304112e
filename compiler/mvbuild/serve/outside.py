"""World + catalog -> Met: with the MVs of the catalog that are not models of the project, by their own definition, freshness and policy.

A model that reads such an MV records it as a child view, and is judged accordingly. A reader gets its rows by its policy instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import cast

from mvbuild.dataclass import dataclass
from mvbuild.formats.properties import OWNER
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observe import observe
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import stored_definition
from mvbuild.freshness.rules import judge, judge_one
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, TableNode, ViewNode
from mvbuild.names import STORAGE_SUFFIX, TableIdentifier
from mvbuild.parse.model import ParsedModel
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.sources import SourceLocation, Sources
from mvbuild.ports.states import State, TableState, ViewState
from mvbuild.project.loaded import Properties
from mvbuild.serve.outside_rules import strictly
from mvbuild.source import MappedText, SourceFile
from mvbuild.storage.embedded import with_embedded
from mvbuild.storage.format import is_mv
from mvbuild.storage.names import known_as, storage_name
from mvbuild.storage.policy import policy_of
from mvbuild.storage.stored import stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """What a reader finds. In the graph each MV of the catalog is a model, whose storage may be read."""

    world: World
    freshness: Mapping[NodeId, Freshness]
    views: Mapping[NodeId, ViewNode] = field(default_factory=dict)
    """MVs of the catalog -> their definition."""

    def answered(self, expanded: frozenset[NodeId]) -> World:
        """The world in which MVs that are served by their query are views."""
        graph = self.world.graph
        views = {id: view for id, view in self.views.items() if id in expanded}
        return replace(self.world, graph=replace(graph, nodes={**graph.nodes, **views})) if views else self.world


def meet(world: World, catalog: Catalog, sources: Sources | None) -> Met:
    """Reads the catalog once more if there are such MVs."""
    roots = [n for n in world.graph.nodes.values() if isinstance(n, ViewNode) and _is_mv(world, n)]
    freshness = judge(world)
    if not roots:
        return Met(world=world, freshness=freshness)
    theirs = _observed(world, roots, catalog, sources)
    views = {n.id: n for n in theirs.graph.nodes.values() if isinstance(n, ViewNode) and _is_mv(theirs, n)}
    models = {id: _model(theirs, view) for id, view in views.items()}
    theirs = _with_storages(theirs, models, catalog)
    kept = {id: n for id, n in world.graph.nodes.items() if id not in views}
    nodes: dict[NodeId, Node] = {**theirs.graph.nodes, **kept, **models}
    return Met(
        world=World(graph=replace(world.graph, nodes=nodes), observed=world.observed.updated(theirs.observed.states)),
        freshness={**_judged(theirs, views, models), **freshness},
        views=views,
    )


def _is_mv(world: World, node: ViewNode) -> bool:
    """In either format, with a storage that can be found."""
    view = world.observed.view(node.identifier)
    return view is not None and is_mv(view) and (view.storage is not None or storage_name(view) is not None)


def _observed(world: World, roots: Iterable[ViewNode], catalog: Catalog, sources: Sources | None) -> World:
    """The MVs and everything below them, as the catalog has it, without the project's models; earlier observations do not change."""
    elsewhere = {n.id: n for n in world.graph.nodes.values() if isinstance(n, TableNode) and n.outside}
    tables = {n.id: TableNode(id=n.id, identifier=n.identifier, source=n.source) for n in roots}
    graph = replace(world.graph, nodes={**elsewhere, **tables}, tests=())
    known = _Known(catalog=catalog, states=world.observed.states)
    theirs = cast("Sources", _KnownSources(sources=sources, states=world.observed.states))
    found = observe(graph, cast("Catalog", known), theirs, at_ms=world.observed.at_ms)
    return replace(found, observed=replace(found.observed, session=world.observed.session))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A catalog of which a part was read already. Every MV has its definition as its text, even if that is stored in a property."""

    catalog: Catalog
    states: Mapping[TableIdentifier, State]

    @property
    def name(self) -> str:
        return self.catalog.name

    @property
    def has_views(self) -> bool:
        return self.catalog.has_views

    def list_names(self, namespace: tuple[str, ...]) -> tuple[TableIdentifier, ...]:
        return self.catalog.list_names(namespace)

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        wanted = list(identifiers)
        known = {i: self.states[i] for i in wanted if i in self.states}
        new = [i for i in wanted if i not in known]
        return {i: _defined(state) for i, state in {**known, **(self.catalog.load(new) if new else {})}.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownSources:
    sources: Sources | None
    states: Mapping[TableIdentifier, State]

    def load(self, locations: Iterable[SourceLocation]) -> Mapping[TableIdentifier, State]:
        wanted = list(locations)
        known = {at.identifier: self.states[at.identifier] for at in wanted if at.identifier in self.states}
        new = [at for at in wanted if at.identifier not in known]
        return {**known, **(self.sources.load(new) if new and self.sources is not None else {})}


def _defined(state: State) -> State:
    sql = stored_definition(state) if isinstance(state, ViewState) and is_mv(state) else None
    if sql is None or not isinstance(state, ViewState) or state.representations.get("spark") == sql:
        return state
    return replace(state, representations={**state.representations, "spark": sql})


def _model(world: World, node: ViewNode) -> ModelNode:
    """The MV as if it were a model of a project."""
    view = world.observed.view(node.identifier)
    assert view is not None, "the node was expanded from it"
    name = view.properties.get(OWNER, "").rpartition(".")[2] or node.identifier.name
    beside = node.identifier._replace(name=f"{node.identifier.name}{STORAGE_SUFFIX}")
    text = node.query.sql.text
    return ModelNode(
        id=node.id,
        identifier=node.identifier,
        storage=storage_name(view) or beside,
        model=ParsedModel(
            name=name,
            file=SourceFile(f"view {node.identifier}", text),
            folders=(),
            config=policy_of(view.properties),
            properties=Properties(),
            query=node.query,
        ),
        reads=node.reads,
    )


def _with_storages(world: World, models: Mapping[NodeId, ModelNode], catalog: Catalog) -> World:
    names = [n.storage for n in models.values() if n.storage is not None]
    states = {**world.observed.states, **catalog.load([i for i in names if i not in world.observed.states])}
    graph = replace(world.graph, nodes={**world.graph.nodes, **models})
    return replace(world, observed=replace(world.observed, states=with_embedded(graph, states)))


def _judged(world: World, views: Mapping[NodeId, ViewNode], models: Mapping[NodeId, ModelNode]) -> dict[NodeId, Freshness]:
    """MVs that others read come first."""
    found: dict[NodeId, Freshness] = {}
    for id in world.graph.nodes:
        if id in models:
            own = replace(world, graph=_graph_of(world, models[id], views, models))
            found[id] = strictly(own, models[id], judge_one(own, models[id], found))
    return found


def _graph_of(world: World, node: ModelNode, views: Mapping[NodeId, ViewNode], models: Mapping[NodeId, ModelNode]) -> Graph:
    """The graph that one MV's record implies: another MV was read from its storage, or expanded as a view."""
    storage = world.observed.table(node.storage)
    record = stored(storage).record if storage is not None else None
    read = {
        id: other
        for id, other in models.items()
        if record is not None and (table := world.observed.table(other.storage)) and _has_read(record, table)
    }
    graph = replace(world.graph, nodes={**world.graph.nodes, **views, **read, node.id: node})
    # The catalog's text is the definition, however it writes names.
    graph.definitions[node.id] = MappedText.of(node.model.file)
    return graph


def _has_read(record: RefreshRecord, storage: TableState) -> bool:
    name = known_as(storage)
    return bool(record.of_table(storage.uuid, name.namespace, name.name))


def storage_of(world: World, node: Node) -> TableState | None:
    """The storage of an MV, or the table that a node is."""
    return world.observed.table(node.storage if isinstance(node, ModelNode) else node.identifier)
