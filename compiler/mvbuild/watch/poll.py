"""graph + catalog -> World, read again only where something changed; no Spark.

Nothing is read but one stamp for each name, such as the place of its metadata. Base tables outside the catalog have no stamps: their state
is read each time. At intervals everything is read, as `run` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.freshness.clock import next_move_ms
from mvbuild.freshness.observed import World
from mvbuild.freshness.reading import load
from mvbuild.graph.model import Graph, ModelNode
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.clock import Clock
from mvbuild.ports.sources import SourceError, Sources
from mvbuild.ports.states import State, TableState
from mvbuild.storage.embedded import with_embedded

WHOLE_MS = 300_000
"""How often everything is read again, at most: the stamps do not show, for example, a new table whose name differs only by case."""

Read = Literal["stamps", "changes", "everything"]
"""What a poll read: nothing but stamps; what changed since the last one, even if that was everything; everything, because it was time."""

_Stamps = Mapping[TableIdentifier, object]


@dataclass
class Poller:
    """Remembers the last World, and the stamps of what it was made from."""

    graph: Graph
    catalog: Catalog
    sources: Sources | None
    clock: Clock
    observe: Callable[[], World]
    """Reads everything."""
    whole_ms: int = WHOLE_MS
    """How often it is called although no stamp differs."""
    last: Read = "everything"
    """By the last poll."""
    _world: World | None = None
    _names: tuple[TableIdentifier, ...] = ()
    _stamps: _Stamps = field(default_factory=dict)
    _whole_ms: int = 0
    _moves_ms: int | None = None
    """When an MV first reads another value of the clock."""

    def poll(self) -> World:
        """The same object as before if nothing changed."""
        now = self.clock.now_ms()
        if self._world is None or now - self._whole_ms >= self.whole_ms:
            self.last = "everything"
            return self._read_all(now)
        stamps = self._read_stamps(self._names)
        changed = [name for name in self._names if stamps.get(name) != self._stamps.get(name)]
        self.last = "changes" if changed else "stamps"
        if not changed:
            return self._at(now) if self._moves_ms is not None and now >= self._moves_ms else self._world
        if not all(_is_alone(self._world.observed.states.get(name)) and name in stamps for name in changed):
            return self._read_all(now)
        found = load(self._world.graph, changed, self.catalog, self.sources)
        if not all(_is_alone(found.get(name)) for name in changed):
            return self._read_all(now)
        observed = self._world.observed.updated(with_embedded(self._world.graph, found))
        self._world, self._stamps = World(graph=self._world.graph, observed=observed), stamps
        return self._at(now)

    def _at(self, now_ms: int) -> World:
        """The same tables at another time."""
        assert self._world is not None
        self._world = replace(self._world, observed=replace(self._world.observed, at_ms=now_ms))
        self._moves_ms = next_move_ms(self._world)
        return self._world

    def _read_all(self, now_ms: int) -> World:
        names = self._names or names_of(self.graph)
        before = self._read_stamps(names)
        world = self.observe()
        self._names = names_of(world.graph)
        new = [name for name in self._names if name not in set(names)]
        # The stamps are older than the world, so what changes in between is read again.
        self._world, self._whole_ms, self._stamps = world, now_ms, {**before, **self._read_stamps(new)}
        return self._at(now_ms)

    def _read_stamps(self, names: tuple[TableIdentifier, ...] | list[TableIdentifier]) -> _Stamps:
        outside = self.graph.outside if self._world is None else self._world.graph.outside
        found: dict[TableIdentifier, object] = dict(self.catalog.stamps(name for name in names if name not in outside))
        for name in names:
            if name in outside and self.sources is not None:
                try:
                    found.update((id, state.metadata_location) for id, state in self.sources.load([outside[name]]).items())
                except SourceError as exc:
                    found[name] = str(exc)
        return found


def names_of(graph: Graph) -> tuple[TableIdentifier, ...]:
    """Everything that the graph names in the catalog or outside it."""
    found: dict[TableIdentifier, None] = {}
    for node in graph.nodes.values():
        if isinstance(node, ModelNode) and node.materialized == "ephemeral":
            continue
        found[node.identifier] = None
        if isinstance(node, ModelNode) and node.storage is not None:
            found[node.storage] = None
    return tuple(found)


def _is_alone(state: State | None) -> bool:
    """Whether a change of it changes no other name: views lead to other tables, and a name that is missing may be one of them."""
    return isinstance(state, TableState)
