"""a project -> iterations of a loop: reload edits, poll the catalog, start the batches that are due, note what ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import field
from datetime import timedelta
from threading import Event as Flag
from threading import Lock
from typing import Protocol

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import pending_seeds, pending_views
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, NodeId
from mvbuild.graph.target_lags import target_lags
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.clock import Clock
from mvbuild.ports.engine import EngineError
from mvbuild.project.setting_values import written
from mvbuild.refresh.result import Event as RunEvent
from mvbuild.refresh.result import Finished, Message, NodeResult, RunResult, Started
from mvbuild.verify.model import Checked
from mvbuild.watch.due import Due, batches, find_due
from mvbuild.watch.events import Event, Kind
from mvbuild.watch.metrics import Metrics
from mvbuild.watch.pace import Pace
from mvbuild.watch.poll import Poller
from mvbuild.watch.refresh import Refresher
from mvbuild.watch.retries import Facts, Retries, facts_of
from mvbuild.watch.warm import WarmEngine

RELOAD_SECONDS = 2.0
"""How often the files of the project are looked at."""
LONGEST_PAUSE = 30.0
"""Seconds between polls while the catalog cannot be reached, and between looks at what is running."""
_COLD_MS = 15_000
"""The time for which a refresh waits if Spark has to start first."""


class Stopped(KeyboardInterrupt):
    """The watcher was asked to stop: a batch begins no further node."""


class Project(Protocol):
    """Where a graph comes from, and what reads and refreshes it."""

    def edited(self) -> bool:
        """Whether files were edited since the last `load`."""

    def load(self) -> Opened:
        """Compile the project. Raises ProjectError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """One version of a project, ready to be polled and refreshed."""

    graph: Graph
    poller: Poller
    refresher: Refresher


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Nodes that are being refreshed together."""

    nodes: frozenset[NodeId]
    opened: Opened
    behind_since_ms: Mapping[NodeId, int]
    """An MV of it -> since when it was behind as the batch began."""
    known: Mapping[NodeId, Facts]
    """An MV of it -> what was known of it then."""


Submit = Callable[[Callable[[], RunResult]], "Future[RunResult]"]


@dataclass(kw_only=True)
class Watcher:
    """`turn` is called by one thread. Only `stop` and what reports events may be called by others."""

    project: Project
    clock: Clock
    cpu: Callable[[], float]
    """Seconds of CPU time that this process has used."""
    submit: Submit
    """Runs a function in another thread."""
    warm: WarmEngine
    on_event: Callable[[Event], None]
    metrics: Metrics
    interval: float = 1.0
    reload: bool = True
    stopping: Flag = field(default_factory=Flag)
    retries: Retries = field(default_factory=Retries)
    opened: Opened | None = None
    running: dict[Future[RunResult], Batch] = field(default_factory=dict)
    late: set[NodeId] = field(default_factory=set)
    poll_failures: int = 0
    _reloaded: float = 0.0
    _pace: Pace = field(init=False)
    _seen: tuple[World, Mapping[NodeId, Freshness]] | None = None
    _reporting: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._pace = Pace(interval=self.interval)

    def start(self) -> None:
        """Compile the project. Raises ProjectError."""
        self.opened = self.project.load()
        self._reloaded = self.clock.monotonic()
        mvs = sum(1 for _ in self.opened.graph.views)
        self.report("started", f"watching {mvs} materialized view{'s' * (mvs != 1)}")

    def turn(self) -> float:
        """Do what is due. Returns how many seconds to wait before the next turn."""
        self._collect()
        cost = self._reload()
        before, began = self.cpu(), self.clock.monotonic()
        try:
            due, world = self._look()
        except (ProjectError, CatalogError) as exc:
            return self._unreachable(exc)
        if self.poll_failures:
            self.report("poll-recovered", "the catalog can be read again")
        self.poll_failures = 0
        seconds = self.clock.monotonic() - began
        self._report_lags(world, due)
        if not self.running:
            self._keep_pace(cost + self.cpu() - before)
        self.metrics.polled(self.clock.now_ms(), seconds, self._pace.pause)
        started = self._start(world, due)
        if not self.running and not started and self.warm.stop_if_idle():
            self.report("spark", "Spark was stopped: it was not used")
        wait = self._pace.pause
        if due.next_ms is not None:
            wait = min(wait, max(0.05, (due.next_ms - self.clock.now_ms()) / 1000))
        return wait

    def stop(self) -> None:
        """Begin nothing more. Queries that are running fail; commits that are being made are completed."""
        self.stopping.set()
        self.warm.stop()

    def end(self) -> None:
        """Wait for the batches after `stop`."""
        for future in list(self.running):
            future.exception()
        self._collect()
        self.warm.stop()
        self.report("stopped", "the watcher has stopped")

    # --- what is due ---------------------------------------------------------------------------------------------------------------

    def _keep_pace(self, cost: float) -> None:
        assert self.opened is not None
        poller = self.opened.poller
        self._pace.looked(poller.last, cost)
        poller.whole_ms = self._pace.whole_ms

    def _look(self) -> tuple[Due, World]:
        assert self.opened is not None
        world = self.opened.poller.poll()
        if self._seen is None or self._seen[0] is not world:
            self._seen = (world, judge(world))
        freshness, now = self._seen[1], self.clock.now_ms()
        self.retries.see(freshness, now)
        if self.retries.failures:
            self._heal(world, freshness)
        reserve = round(self.interval * 1000) + (0 if self.warm.is_running else _COLD_MS)
        return find_due(world, freshness, self.retries.waiting, now, reserve), world

    def _heal(self, world: World, freshness: Mapping[NodeId, Freshness]) -> None:
        stale = {id for id, found in freshness.items() if not found.is_fresh or found.unseen}
        for id in self.retries.healed(stale | pending_seeds(world) | pending_views(world)):
            if id in world.graph.nodes:
                self.report("recovered", "it had failed, and nothing is left to do", world.graph, id)
        self.metrics.failing(frozenset(self.retries.failures))

    def _start(self, world: World, due: Due) -> int:
        """Start the batches that do not touch what is running."""
        busy = frozenset(id for batch in self.running.values() for id in batch.nodes)
        opened, count = self.opened, 0
        assert opened is not None
        freshness = self._seen[1] if self._seen is not None else {}
        known = busy & world.graph.nodes.keys()
        for nodes in batches(world.graph, due.nodes | known):
            if nodes & busy or self.stopping.is_set():
                continue
            wanted = {id: reason for id, reason in due.wanted.items() if id in nodes}
            behind = {id: since for id, since in due.behind_since_ms.items() if id in nodes}
            known_of = {id: facts_of(freshness[id]) for id in nodes if id in freshness}
            batch = Batch(nodes=nodes, opened=opened, behind_since_ms=behind, known=known_of)
            self.running[self.submit(self._work(world, batch, wanted))] = batch
            count += 1
        return count

    def _work(self, world: World, batch: Batch, wanted: Mapping[NodeId, Reason]) -> Callable[[], RunResult]:
        begun: set[NodeId] = set()
        return lambda: batch.opened.refresher.refresh(world, batch.nodes, wanted, lambda event: self._progress(world, event, begun))

    def _progress(self, world: World, event: RunEvent | Checked, begun: set[NodeId]) -> None:
        if isinstance(event, Message):
            self.report("spark", event.message)
        elif isinstance(event, Started):
            if self.stopping.is_set():
                raise Stopped
            begun.add(event.node)
            self.report("refreshing", "", world.graph, event.node)
        elif isinstance(event, Finished) and event.result.status == "success":
            self._succeeded(world.graph, event.result)
        elif isinstance(event, Finished) and event.result.status == "reused" and event.result.node in begun:
            self.report("refreshed", event.result.message, world.graph, event.result.node, {"seconds": round(event.result.seconds, 3)})

    # --- what ended ----------------------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        for future in [f for f in self.running if f.done()]:
            batch = self.running.pop(future)
            graph, now = batch.opened.graph, self.clock.now_ms()
            failure = future.exception()
            if isinstance(failure, Stopped):
                continue
            if failure is not None:
                for id in batch.nodes:
                    self._failed(graph, id, _message(failure))
                continue
            result, lags = future.result(), target_lags(graph)
            for found in result.diagnostics:
                self.report("warning", found.message)
            for one in result.results:
                if one.status == "error":
                    self._failed(graph, one.node, one.message)
                elif one.status == "success":
                    ended = one.started_ms + round(one.seconds * 1000)
                    self._report_late(graph, one.node, lags.get(one.node), batch.behind_since_ms.get(one.node), ended)
                    if self.retries.succeeded(one.node, now):
                        self.report("recovered", "refreshed after it had failed", graph, one.node)
                elif one.status == "reused":
                    self.retries.quiet(one.node, now, batch.known.get(one.node))
                elif one.status == "skipped":
                    self.retries.quiet(one.node, now)
                    if not self.stopping.is_set():
                        self.report("skipped", one.message, graph, one.node)
        # Also if the catalog cannot be read next.
        self.metrics.failing(frozenset(self.retries.failures))

    def _succeeded(self, graph: Graph, result: NodeResult) -> None:
        rows, strategy = result.details.get("rows"), result.details.get("strategy")
        self.metrics.refreshed(result.node, strategy or "", result.seconds, rows)
        data = {
            "seconds": round(result.seconds, 3),
            "rows": rows,
            "strategy": strategy,
            "reasons": [r.code for r in result.reasons],
            "snapshot_id": result.details.get("snapshot_id"),
        }
        self.report("refreshed", result.message, graph, result.node, {k: v for k, v in data.items() if v is not None})

    def _failed(self, graph: Graph, id: NodeId, message: str) -> None:
        if self.stopping.is_set():
            # The query was ended by the stop, and says nothing of the MV.
            return
        wait = self.retries.failed(id, self.clock.now_ms())
        self.metrics.failed(id)
        self.report("failed", message, graph, id, {"retry_after_seconds": wait // 1000, "failures": self.retries.failures[id]})

    def _report_lags(self, world: World, due: Due) -> None:
        now, lags = self.clock.now_ms(), target_lags(world.graph)
        self.metrics.lags(due.behind_since_ms, {id: lag for id, lag in lags.items() if lag is not None}, tuple(lags))
        for id, lag in lags.items():
            if not self._report_late(world.graph, id, lag, due.behind_since_ms.get(id), now) and id in self.late:
                self.late.discard(id)
                self.report("in-time", "it is within its target lag again", world.graph, id)

    def _report_late(self, graph: Graph, id: NodeId, lag: timedelta | None, since_ms: int | None, until_ms: int) -> bool:
        """Whether an MV that was behind from one time to another missed its target lag. It is reported once until it is in time again; also
        if it was late for less than the time between two looks."""
        if lag is None or since_ms is None or until_ms - since_ms <= lag.total_seconds() * 1000:
            return False
        if id not in self.late:
            self.late.add(id)
            behind = (until_ms - since_ms) // 1000
            message = f"it is {behind} s behind, and its target lag is {written(lag)}"
            self.report("late", message, graph, id, {"behind_seconds": behind})
        return True

    # --- the project and the catalog -----------------------------------------------------------------------------------------------

    def _reload(self) -> float:
        """Returns what looking for edits took of CPU."""
        now, before = self.clock.monotonic(), self.cpu()
        if not self.reload or now - self._reloaded < RELOAD_SECONDS:
            return 0.0
        self._reloaded = now
        edited = self.project.edited()
        cost = self.cpu() - before
        if edited:
            self._take_up()
        return cost

    def _take_up(self) -> None:
        try:
            self.opened = self.project.load()
        except ProjectError as exc:
            self.metrics.reload_failed()
            self.report("reload-failed", f"{_message(exc)} (the last version that compiled is still watched)")
            return
        self._seen = None
        self.retries.forget()
        self.late &= self.opened.graph.nodes.keys()
        self.report("reloaded", "the files of the project were edited")

    def _unreachable(self, exc: Exception) -> float:
        self.poll_failures += 1
        self.metrics.poll_failed()
        if self.poll_failures == 1:
            self.report("poll-failed", _message(exc))
        return float(min(LONGEST_PAUSE, self.interval * 2 ** min(self.poll_failures, 10)))

    def report(
        self, kind: Kind, message: str, graph: Graph | None = None, node: NodeId | None = None, data: Mapping[str, object] | None = None
    ) -> None:
        found = graph.nodes.get(node) if graph is not None and node is not None else None
        name = found.identifier.dotted if found is not None else ""
        with self._reporting:
            self.on_event(Event(kind=kind, at_ms=self.clock.now_ms(), message=message, node=node, name=name, data=data or {}))


def _message(exc: BaseException) -> str:
    """What went wrong, in one line. The type of an unexpected error is part of it."""
    if isinstance(exc, ProjectError):
        found = exc.diagnostics[0]
        return f"{found.message} ({found.span.file.path})" if found.span else found.message
    return str(exc) if isinstance(exc, (CatalogError, EngineError)) else f"{type(exc).__name__}: {exc}"
