"""World + the nodes of a batch -> RunResult: the same plan and steps as `run`, on an engine that outlives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mvbuild.api.lineage_events import with_lineage
from mvbuild.api.refreshes import plan_nodes
from mvbuild.api.sessions import OnEvent
from mvbuild.dataclass import dataclass
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import World
from mvbuild.graph.model import NodeId
from mvbuild.lifecycle.rename import rename
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.engine import Engine
from mvbuild.refresh.atomic import require_atomic
from mvbuild.refresh.pending_commits import PendingCommits
from mvbuild.refresh.result import RunResult
from mvbuild.refresh.run import run_plan
from mvbuild.refresh.session import RunSession
from mvbuild.watch.warm import WarmEngine

OpenSession = Callable[[World, Catalog, OnEvent], RunSession]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresher:
    """Refreshes batches; safe to use from several threads."""

    catalog: Catalog
    open_session: OpenSession
    """A session of one batch; its `start_engine` is used if no engine is running."""
    warm: WarmEngine
    threads: int

    def refresh(self, world: World, nodes: frozenset[NodeId], wanted: Mapping[NodeId, Reason], on_event: OnEvent) -> RunResult:
        """Refresh what is stale among the nodes. Raises ProjectError or EngineError if that cannot begin."""
        project = world.graph.project
        together = project.publish == "atomic"
        if together:
            require_atomic(world.graph, self.catalog.atomic)
        planned = plan_nodes(world, self.catalog, nodes, wanted=wanted)
        session = self.open_session(planned.world, self.catalog, on_event)
        lent = _Lease(self.warm, session.start_engine)
        session.start_engine = lent.start
        result = None
        try:
            session.pending = PendingCommits(catalog=self.catalog, clock=session.clock) if together else None
            if planned.needs_engine:
                _ = session.engine  # before any step: if Spark cannot start, nothing is touched
            renamed = rename(session, planned)
            result = with_lineage(
                session, on_event, lambda told: run_plan(renamed, session, threads=self.threads, fail_fast=False, on_event=told)
            )
        finally:
            session.close()
            lent.end(is_lost=result is not None and _lost(result))
        return result


@dataclass
class _Lease:
    """The engine of one batch, which may not need one."""

    warm: WarmEngine
    start_engine: Callable[[], Engine]
    is_used: bool = False

    def start(self) -> Engine:
        engine = self.warm.get(self.start_engine)
        self.is_used = True
        return engine

    def end(self, *, is_lost: bool) -> None:
        if self.is_used:
            self.warm.release(is_lost=is_lost)


def _lost(result: RunResult) -> bool:
    return any(d.code == "spark-start" for r in result.results for d in r.diagnostics)
