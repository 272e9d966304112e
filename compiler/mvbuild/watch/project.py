"""project directory and options -> Project: what a watcher loads again when files are edited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from mvbuild.adapters import open_sources
from mvbuild.api.compilation import write_artifacts
from mvbuild.api.sessions import OnEvent, catalog_of, new_session, observed
from mvbuild.dataclass import dataclass
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.clock import Clock
from mvbuild.refresh.session import RunSession
from mvbuild.watch.files import folders_of, stamp_of
from mvbuild.watch.poll import Poller
from mvbuild.watch.refresh import Refresher
from mvbuild.watch.warm import WarmEngine
from mvbuild.watch.watcher import Opened


@dataclass
class WatchedProject:
    """The project on disk. `compile` returns its graph, as the command line asks for it."""

    compile: Callable[[], Graph]
    clock: Clock
    warm: WarmEngine
    threads: int | None = None
    _graph: Graph | None = None
    _folders: tuple[Path, ...] = ()
    _stamp: int = field(default=0)

    def edited(self) -> bool:
        if self._graph is None:
            return True
        try:
            stamp = stamp_of(self._graph, self._folders)
        except OSError:
            # The directory is being replaced, for example by a deployment.
            return False
        found, self._stamp = stamp != self._stamp, stamp
        return found

    def load(self) -> Opened:
        graph = self.compile()
        if self._graph is not None and _session_of(graph) != _session_of(self._graph):
            # Spark knows the settings and the tables outside the catalog that it was started with.
            self.warm.stop()
        catalog = catalog_of(graph)
        self._graph, self._folders = graph, folders_of(graph)
        self._stamp = stamp_of(graph, self._folders)
        write_artifacts(graph)
        poller = Poller(
            graph=graph,
            catalog=catalog,
            sources=open_sources(graph.project.target),
            clock=self.clock,
            observe=lambda: observed(graph, catalog),
        )
        threads = self.threads or graph.project.target.threads
        return Opened(
            graph=graph,
            poller=poller,
            refresher=Refresher(catalog=catalog, open_session=_open_session, warm=self.warm, threads=threads),
        )


def _open_session(world: World, catalog: Catalog, on_event: OnEvent) -> RunSession:
    return new_session(world, catalog, None, on_event, warm=False)


def _session_of(graph: Graph) -> object:
    target = graph.project.target
    return target.name, target.catalog_name, dict(target.catalog), target.spark, dict(graph.outside)
