"""The types of an observation: Observed (one read of the catalog), Leaf and Pin (what a model reads, at which snapshot)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.freshness.lazy_states import LazyStates
from mvbuild.freshness.settled import Sighting
from mvbuild.graph.model import Graph, NodeId
from mvbuild.names import TableIdentifier
from mvbuild.parse.model import TimeTravel
from mvbuild.ports.session import Session, configured_session
from mvbuild.ports.states import State, TableState, Unreadable, ViewState


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The tables and views of the project as the catalog had them at one time."""

    states: Mapping[TableIdentifier, State]
    at_ms: int
    """The instant that whatever reads the clock reads, in milliseconds since 1970."""
    has_views: bool = True
    """Whether the catalog has views; without views, MVs are in the metadata-file format."""
    session: Session = field(default_factory=lambda: configured_session({}))
    """What is known of the Spark session that reads, or will read, the tables."""

    def table(self, identifier: TableIdentifier | None) -> TableState | None:
        state = self.states.get(identifier) if identifier else None
        return state if isinstance(state, TableState) else None

    def view(self, identifier: TableIdentifier | None) -> ViewState | None:
        state = self.states.get(identifier) if identifier else None
        return state if isinstance(state, ViewState) else None

    def unreadable(self, identifier: TableIdentifier | None) -> Unreadable | None:
        state = self.states.get(identifier) if identifier else None
        return state if isinstance(state, Unreadable) else None

    def updated(self, states: Mapping[TableIdentifier, State], gone: Collection[TableIdentifier] = ()) -> Observed:
        """The same observation with newer states of some names, and without those that no longer exist."""
        if isinstance(self.states, LazyStates):
            return replace(self, states=self.states.updated(states, gone))
        return replace(self, states={name: state for name, state in {**self.states, **states}.items() if name not in gone})


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A table below a model after views are expanded: a base table, or an upstream MV (whose storage is read)."""

    node: NodeId
    travel: tuple[str, str | int] | None = None
    """("version", id or name) or ("timestamp", literal) if the user chose a version."""

    @staticmethod
    def of(node: NodeId, travel: TimeTravel | None) -> Leaf:
        return Leaf(node=node, travel=(travel.kind, travel.value) if travel else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The snapshot of a leaf that a run reads."""

    table: TableState
    snapshot_id: int
    """NO_SNAPSHOT for a table without one."""
    ref: str | None
    """Branch or tag, None for `main`."""
    moves: bool
    """False for a version that can never change: a snapshot id that the user wrote."""
    is_branch: bool = False
    """A branch that the user named, which Spark reads under the table's current schema; it reads a tag or snapshot id under its own."""

    @property
    def follows_schema(self) -> bool:
        """Whether the leaf is read under the current schema of its table."""
        return self.moves and (self.ref is None or self.is_branch)

    @property
    def schema_id(self) -> int:
        """The schema with which the leaf is read."""
        snapshot = self.table.snapshots.get(self.snapshot_id)
        own = snapshot.schema_id if snapshot is not None and not self.follows_schema else None
        return self.table.current_schema_id if own is None else own

    @property
    def is_empty(self) -> bool:
        return self.snapshot_id == NO_SNAPSHOT


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A graph whose catalog views are expanded, and the observation of it."""

    graph: Graph
    observed: Observed
    sighting: Sighting | None = None
    """What was seen before anything was read, if an earlier command may have found the same."""

    @property
    def settled(self) -> frozenset[NodeId]:
        """MVs that are known to be fresh, and for which a run has nothing to do: their states were not read."""
        return self.sighting.settled if self.sighting is not None else frozenset()
