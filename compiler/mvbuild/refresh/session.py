"""Plan + catalog + engine -> RunSession: what the steps of one run share, and how they learn what other steps wrote."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import field
from itertools import count
from threading import Lock
from typing import TypeVar

from mvbuild.dataclass import dataclass
from mvbuild.freshness.leaves import Inputs
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pins import pin
from mvbuild.freshness.reading import load
from mvbuild.graph.model import NodeId
from mvbuild.incremental.table_changes import Changes
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog, CatalogError
from mvbuild.ports.clock import Clock
from mvbuild.ports.commits import TableCommit, ViewCommit
from mvbuild.ports.engine import Engine
from mvbuild.ports.sources import Sources
from mvbuild.ports.states import State, TableState
from mvbuild.refresh.pending_commits import PendingCommits
from mvbuild.refresh.result import Stage
from mvbuild.refresh.run_id import SCRATCH_NAMESPACE, RunId
from mvbuild.refresh.shared_rows import SharedRows
from mvbuild.storage.embedded import with_embedded

W = TypeVar("W")

ScratchKey = tuple[TableIdentifier, str, int, int, bool]
"""Name, UUID, snapshot and current schema of the table that a scratch table shows, and whether under the snapshot's own schema."""


@dataclass(kw_only=True)
class RunSession:
    """Shared by the threads of one run. The world starts as it was observed, and changes only by what this run writes (or what another run
    wrote in its place): so every base table stays pinned to one snapshot for the whole run."""

    catalog: Catalog
    clock: Clock
    run: RunId
    world: World
    start_engine: Callable[[], Engine]
    is_alive: Callable[[int], bool]
    shared_rows: SharedRows = field(default_factory=SharedRows)
    """The rows of changes that were read in this process."""
    sources: Sources | None = None
    """The base tables outside the catalog."""
    on_stage: Callable[[NodeId, Stage], None] = lambda _node, _stage: None
    """Called when a refresh enters a stage."""
    _engine: Engine | None = None
    _engine_lock: Lock = field(default_factory=Lock)
    _world_lock: Lock = field(default_factory=Lock)
    pending: PendingCommits | None = None
    """What is published at the end of the run, in one commit; without it, each step publishes its own result."""
    changes: Changes | None = None
    """What changed in tables since earlier refreshes; without it, every refresh is a full one."""
    shared_scratch: dict[ScratchKey, TableIdentifier] = field(default_factory=dict)
    """Scratch tables taken over from earlier sessions, which remain until the end of the process."""
    _scratch: dict[ScratchKey, TableIdentifier] = field(default_factory=dict)
    _scratch_lock: Lock = field(default_factory=Lock)
    _numbers: count[int] = field(default_factory=count)

    @property
    def engine(self) -> Engine:
        """The engine, started by the first step that needs it."""
        with self._engine_lock:
            if self._engine is None:
                self._engine = self.start_engine()
            return self._engine

    def use(self, engine: Engine | None) -> None:
        """An engine that was started before this session; it is stopped with it."""
        self._engine = engine

    def observe(self, states: Mapping[TableIdentifier, State], gone: Collection[TableIdentifier] = ()) -> None:
        """Take newer states of some names into the world of this run. `gone`: names that no longer exist."""
        with self._world_lock:
            newer = with_embedded(self.world.graph, states)
            self.world = World(graph=self.world.graph, observed=self.world.observed.updated(newer, gone))

    def reload(self, identifiers: Iterable[TableIdentifier]) -> None:
        """Read some names again, because another run has changed them."""
        self.observe(self.load(identifiers))

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        """The current states of names, wherever they are; the world of this run does not change."""
        found = load(self.world.graph, identifiers, self.catalog, self.sources)
        return self.pending.over(found) if self.pending else found

    def publish(self, changes: Sequence[TableCommit | ViewCommit], world: World | None = None, written: TableState | None = None) -> None:
        """Make the changes, at once or at the end of the run; from now on this run sees them. `written`: see `PendingCommits.add`."""
        if self.pending is None:
            self.observe(self.catalog.commit(changes))
        else:
            self.observe(self.pending.add(changes, world or self.world, written))

    @contextmanager
    def staging_area(self, place: AbstractContextManager[W]) -> Iterator[W]:
        """A place to write to, which remains until the end of the run if what is published then needs it."""
        with ExitStack() as stack:
            yield stack.enter_context(place)
            if self.pending is not None:
                self.pending.keep(stack)

    def pins(self, inputs: Inputs) -> dict[Leaf, Pin]:
        """The snapshots that a query reads in this run. Every leaf has one: the plan blocks nodes without one."""
        world = self.world
        found = {leaf: pin(world.graph, world.observed, leaf) for leaf in inputs.leaves}
        return {leaf: p for leaf, p in found.items() if p is not None}

    def new_scratch(self) -> TableIdentifier:
        """A name for a scratch table of this run."""
        self.catalog.ensure_namespace(SCRATCH_NAMESPACE)
        return TableIdentifier(self.catalog.name, SCRATCH_NAMESPACE, self.run.scratch(next(self._numbers)))

    def schema_pin(self, found: Pin, *, own_schema: bool = False) -> TableIdentifier:
        """A scratch table that shows a pinned snapshot under the table's current schema, or its own; one per snapshot and run."""
        key = (found.table.identifier, found.table.uuid, found.snapshot_id, found.table.current_schema_id, own_schema)
        with self._scratch_lock:
            if key in self.shared_scratch:
                return self.shared_scratch[key]
            if key not in self._scratch:
                scratch = self.new_scratch()
                self.catalog.pin_schema(found.table, found.snapshot_id, scratch, own_schema=own_schema)
                self._scratch[key] = scratch
            return self._scratch[key]

    def hand_over(self) -> tuple[TableIdentifier, ...]:
        """Transfer the scratch tables of this session to `kept`: closing the session does not remove them any more."""
        made = dict(self._scratch)
        self.shared_scratch.update(made)
        self._scratch.clear()
        return tuple(made.values())

    def stop_engine(self) -> None:
        """Stop the engine, if it was started: running queries fail."""
        if self._engine is not None:
            self._engine.close()

    def close(self) -> None:
        """Remove the scratch tables and stop the engine. The next run removes what cannot be removed now, as after a crash."""
        for scratch in self._scratch.values():
            with suppress(CatalogError):
                self.catalog.drop_scratch(scratch)
        self._scratch.clear()
        self.stop_engine()
