"""names of a graph + the catalog or sources that have them -> their states."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.lazy_states import LazyStates
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, TableNode
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog, Lookup
from mvbuild.ports.sources import SourceError, Sources
from mvbuild.ports.states import State, Unreadable
from mvbuild.storage.embedded import with_embedded


class Reader:
    """Reads the states of nodes as soon as they are added."""

    def __init__(self, graph: Graph, catalog: Catalog, sources: Sources | None) -> None:
        self.graph = graph
        """With everything that was added so far, which says where base tables outside the catalog are."""
        self.states: dict[TableIdentifier, State] = {}
        self._catalog, self._sources = catalog, sources

    @property
    def names(self) -> Collection[TableIdentifier]:
        """The names that exist."""
        return self.states

    def add(self, nodes: Iterable[Node]) -> None:
        self.states.update(load_all(self.graph, identifiers_of(nodes), self._catalog, self._sources))

    def read(self, ids: Iterable[NodeId]) -> None:
        """The states of these nodes are needed now."""


class LazyReader(Reader):
    """Looks names up, and reads only what decides which names there are: views that the graph has as tables."""

    def __init__(self, graph: Graph, catalog: Catalog, sources: Sources | None, tags: Mapping[str, str]) -> None:
        """`tags`: of an earlier command, see `Lookup`."""
        super().__init__(graph, catalog, sources)
        self.stamps: dict[TableIdentifier, str | None] = {}
        self.tags: dict[str, str] = {}
        self._earlier_tags = tags
        self._lookups: list[Lookup] = []
        self._lookup_of: dict[TableIdentifier, Lookup] = {}

    @property
    def names(self) -> Collection[TableIdentifier]:
        return {**self._lookup_of, **self.states}

    def add(self, nodes: Iterable[Node]) -> None:
        nodes = list(nodes)
        outside = self.graph.outside
        self.states.update(load_all(self.graph, [n.identifier for n in nodes if n.identifier in outside], self._catalog, self._sources))
        lookup = self._catalog.look_up((name for name in identifiers_of(nodes) if name not in outside), self._earlier_tags)
        self._lookups.append(lookup)
        self.stamps.update(lookup.stamps)
        self.tags.update(lookup.tags)
        self._lookup_of.update(dict.fromkeys(lookup.stamps, lookup))
        self._read(n.identifier for n in nodes if isinstance(n, TableNode) and n.identifier in lookup.views)

    def read(self, ids: Iterable[NodeId]) -> None:
        nodes = (self.graph.nodes[id] for id in ids if id in self.graph.nodes)
        self._read(identifiers_of(nodes))

    def stamp(self, location: str) -> str | None:
        return self._lookups[0].stamp(location)

    def all_but(self, settled: frozenset[NodeId], graph: Graph) -> LazyStates:
        """The states of all names; those that only settled MVs need are read on request."""
        self.graph = graph
        needed = [id for id, node in graph.nodes.items() if id not in settled and _is_judged(node)]
        self.read([*needed, *graph.ancestors(needed)])
        unread = self._lookup_of.keys() - self.states.keys()
        embedded = {storage for view in unread if (storage := graph.storages.get(view)) is not None and storage not in self.stamps}
        return LazyStates(with_embedded(graph, self.states), frozenset(unread | embedded), partial(self._rest, graph, unread))

    def _read(self, identifiers: Iterable[TableIdentifier]) -> None:
        self.states.update(self._loaded(name for name in identifiers if name not in self.states))

    def _rest(self, graph: Graph, unread: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        return with_embedded(graph, dict(self._loaded(unread)))

    def _loaded(self, identifiers: Iterable[TableIdentifier]) -> Iterator[tuple[TableIdentifier, State]]:
        by_lookup: dict[int, list[TableIdentifier]] = {}
        for name in identifiers:
            if name in self._lookup_of:
                by_lookup.setdefault(self._lookups.index(self._lookup_of[name]), []).append(name)
        for at, names in by_lookup.items():
            yield from self._lookups[at].load(names).items()


def _is_judged(node: Node) -> bool:
    """Whether a run looks at the node itself, and not only at what reads it."""
    is_inlined = isinstance(node, ModelNode) and node.storage is None and node.materialized == "ephemeral"
    return not isinstance(node, TableNode) and not is_inlined


def identifiers_of(nodes: Iterable[Node]) -> list[TableIdentifier]:
    """What nodes are called in the catalog, with the storage tables of MVs."""
    found: dict[TableIdentifier, None] = {}
    for node in nodes:
        if not isinstance(node, ModelNode):
            found[node.identifier] = None
        elif node.storage is not None:
            found[node.identifier] = found[node.storage] = None
        elif node.materialized != "ephemeral":
            found[node.identifier] = None
    return list(found)


def load(graph: Graph, identifiers: Iterable[TableIdentifier], catalog: Catalog, sources: Sources | None) -> dict[TableIdentifier, State]:
    """The states of names, each from the place that the graph gives for it. Raises ProjectError, at its source, for a base table that
    fails."""
    wanted = list(identifiers)
    states = dict(catalog.load(i for i in wanted if i not in graph.outside))
    outside = [graph.outside[i] for i in wanted if i in graph.outside]
    if outside and sources is not None:
        try:
            states.update(sources.load(outside))
        except SourceError as exc:
            raise ProjectError([_unread(graph, exc)]) from exc
    return states


def load_all(graph: Graph, identifiers: list[TableIdentifier], catalog: Catalog, sources: Sources | None) -> dict[TableIdentifier, State]:
    """`load`, with base tables elsewhere one by one if they cannot all be read."""
    try:
        return load(graph, identifiers, catalog, sources)
    except ProjectError:
        states = load(graph, [i for i in identifiers if i not in graph.outside], catalog, None)
    unreachable: dict[str, SourceError] = {}
    for identifier in (i for i in identifiers if i in graph.outside and sources is not None):
        try:
            if identifier.catalog in unreachable:
                raise unreachable[identifier.catalog]
            states.update(sources.load([graph.outside[identifier]]))  # type: ignore[union-attr]
        except SourceError as exc:
            if exc.unreachable and identifier.catalog:
                unreachable[identifier.catalog] = exc
            states[identifier] = Unreadable(identifier=identifier, reason=str(exc), code=exc.code, help=exc.help)
    return states


def _unread(graph: Graph, exc: SourceError) -> Diagnostic:
    declared = (n.source for n in graph.nodes.values() if isinstance(n, TableNode) and n.identifier == exc.identifier)
    source = next((s for s in declared if s), None)
    return error(exc.code, str(exc), source.span if source else None, help=exc.help)
