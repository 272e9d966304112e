"""A watcher over a catalog and an engine in memory, whose turns, time and threads a test controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from mvbuild.adapters.iceberg.tables import now_ms
from mvbuild.api.sessions import OnEvent
from mvbuild.freshness.observe import observe
from mvbuild.freshness.observed import World
from mvbuild.ports.catalog import Catalog
from mvbuild.refresh.result import RunResult
from mvbuild.refresh.run_id import RunId
from mvbuild.refresh.session import RunSession
from mvbuild.watch.events import Event
from mvbuild.watch.metrics import Metrics
from mvbuild.watch.poll import Poller
from mvbuild.watch.refresh import Refresher
from mvbuild.watch.warm import WarmEngine
from mvbuild.watch.watcher import Opened, Watcher
from unit.worlds import ManualClock, RecordingEngine, Shop, append, compiled, shop

MINUTE = 60_000


@dataclass
class CountedEngine(RecordingEngine):
    """An engine that counts how often it was stopped."""

    closed: int = 0

    def close(self) -> None:
        self.closed += 1


@dataclass(kw_only=True)
class CostlyPoller(Poller):
    of: Watched

    def poll(self) -> World:
        self.of.used += self.of.cost
        return super().poll()


@dataclass
class Watched:
    """A project that is watched. Batches run at once, in the turn that starts them, unless `holds`."""

    shop: Shop
    reload: bool = False
    holds: bool = False
    idle_seconds: float = 600.0
    clock: ManualClock = field(default_factory=lambda: ManualClock(now_ms()))
    events: list[Event] = field(default_factory=list)
    observed: int = 0
    starts: int = 0
    is_edited: bool = False
    held: list[Callable[[], None]] = field(default_factory=list)
    nonce: int = 0
    commits: int = 0
    cost: float = 0.0
    """Of CPU, in seconds, for each poll, and for each look at the files."""
    whole_cost: float = 0.0
    """The same for reading everything, besides."""
    used: float = 0.0

    def __post_init__(self) -> None:
        self.engine = CountedEngine(self.shop.catalog)
        self.warm = WarmEngine(self.clock, self.idle_seconds)
        self.metrics = Metrics(self.clock, lambda: self.warm.is_running)
        self.watcher = Watcher(
            project=self,
            clock=self.clock,
            cpu=lambda: self.used,
            submit=self._submit,
            warm=self.warm,
            on_event=self.events.append,
            metrics=self.metrics,
            reload=self.reload,
        )
        self.watcher.start()

    def edited(self) -> bool:
        self.used += self.cost
        return self.is_edited

    def load(self) -> Opened:
        graph = compiled(self.shop.root)
        self.is_edited = False

        def read() -> World:
            self.observed += 1
            self.used += self.whole_cost
            return observe(graph, self.shop.catalog, at_ms=self.clock.at_ms)

        poller = CostlyPoller(of=self, graph=graph, catalog=self.shop.catalog, sources=None, clock=self.clock, observe=read)
        refresher = Refresher(catalog=self.shop.catalog, open_session=self._session, warm=self.warm, threads=1)
        return Opened(graph=graph, poller=poller, refresher=refresher)

    def _session(self, world: World, catalog: Catalog, on_event: OnEvent) -> RunSession:
        self.nonce += 1
        run = RunId(host="here", pid=1, started_ms=self.clock.at_ms, nonce=f"{self.nonce:06x}")
        return RunSession(
            catalog=catalog,
            clock=self.clock,
            run=run,
            world=world,
            start_engine=self._start,
            is_alive=lambda pid: True,
        )

    def _start(self) -> RecordingEngine:
        self.starts += 1
        return self.engine

    def _submit(self, work: Callable[[], RunResult]) -> Future[RunResult]:
        future: Future[RunResult] = Future()

        def finish() -> None:
            try:
                future.set_result(work())
            except BaseException as exc:  # noqa: BLE001
                future.set_exception(exc)

        if self.holds:
            self.held.append(finish)
        else:
            finish()
        return future

    def release(self) -> None:
        held, self.held = self.held, []
        for finish in held:
            finish()

    def commit(self, table: str) -> None:
        """New rows in a base table, by another writer."""
        self.commits += 1
        append(self.shop.catalog, table, 10 + self.commits)

    def turn(self, *, after_ms: int = 0) -> list[str]:
        """What a turn reports, as `refreshed daily`."""
        self.clock.at_ms += after_ms
        del self.events[:]
        self.watcher.turn()
        return self.said("refreshed", "failed", "recovered", "skipped", "late", "in-time", "reloaded", "reload-failed")

    def said(self, *kinds: str) -> list[str]:
        return [f"{e.kind} {e.name.rpartition('.')[2]}".strip() for e in self.events if e.kind in kinds]


def watched(root: Path, files: Mapping[str, str], **options: object) -> Watched:
    """The project with raw.orders and raw.customers, built by the first turn."""
    made = Watched(shop(root, {"mvbuild.yml": "name: shop\n", **files}), **options)  # type: ignore[arg-type]
    made.turn()
    made.turn()
    return made


def mv(lag: str = "", reads: str = "raw.orders", more: str = "") -> str:
    settings = ", ".join(part for part in (f"target_lag='{lag}'" if lag else "", more) if part)
    return (f"{{{{ config({settings}) }}}}\n" if settings else "") + f"SELECT id FROM {reads}\n"
