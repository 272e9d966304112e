"""progress of a run -> events in an outbox, made in a thread of its own; nothing that goes wrong here reaches the run."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.openlineage.events import Event, Events
from mvbuild.openlineage.outbox import Outbox
from mvbuild.ports.clock import Clock
from mvbuild.refresh.result import Finished, RunResult, Started, Tested, TestResult

NAMESPACE = "mvbuild"
"""The namespace of jobs, unless OPENLINEAGE_NAMESPACE says another."""


class Emitter:
    """Called with the progress of one run, from several threads. `world`: the state of the run."""

    def __init__(self, world: Callable[[], World], clock: Clock, env: Mapping[str, str], started_ms: int) -> None:
        self._world, self._clock = world, clock
        graph = world().graph
        self._log = graph.project.target_path / "logs" / "openlineage.log"
        self._made = Events(graph, env.get("OPENLINEAGE_NAMESPACE") or NAMESPACE, started_ms)
        self._queue: SimpleQueue[Callable[[], list[Event]] | None] = SimpleQueue()
        self._others: list[TestResult] = []
        self._begun: set[NodeId] = set()
        self._queue.put(lambda: [self._made.started()])
        self._thread = Thread(target=self._work, name="openlineage", daemon=True)
        self._thread.start()

    def __call__(self, event: Any) -> None:
        """One event of the run."""
        world = self._world()
        if isinstance(event, Started):
            self._begun.add(event.node)
            at_ms = self._clock.now_ms()
            self._queue.put(lambda: [self._made.node_started(world, event.node, at_ms)])
        elif isinstance(event, Finished) and event.result.node in self._begun:
            self._queue.put(lambda: self._finished(world, event))
        elif isinstance(event, Tested):
            self._others.append(event.result)

    def end(self, result: RunResult) -> None:
        """The run has ended; what remains is sent by another process."""
        world, others = self._world(), tuple(self._others)
        # Measured here: to what the run says of itself, the caller adds the time before the first step.
        at_ms = self._clock.now_ms()
        self._queue.put(lambda: [*self._made.tested(world, others), self._made.ended(result, at_ms)])
        self._queue.put(None)
        self._thread.join()

    def fail(self, why: str) -> None:
        """The run could not go on."""
        at_ms = self._clock.now_ms()
        self._queue.put(lambda: [self._made.failed(why, at_ms)])
        self._queue.put(None)
        self._thread.join()

    def _finished(self, world: World, event: Finished) -> list[Event]:
        from mvbuild.lineage.bind import bind
        from mvbuild.lineage.schemas import of_states

        result, bound = event.result, None
        if isinstance(world.graph.nodes[result.node], ModelNode):
            bound = bind(world.graph, of_states(world.observed.states), only=[result.node])
        return [self._made.node_ended(world, result, bound), *self._made.tested(world, result.tests)]

    def _work(self) -> None:
        try:
            outbox = Outbox(self._log)
        except OSError as exc:
            self._report(exc)
            return
        while (make := self._queue.get()) is not None:
            try:
                for event in make():
                    outbox.put(event)
            except Exception as exc:  # noqa: BLE001 - an event that cannot be made must not be missed by the run
                self._report(exc)
        with suppress(OSError):
            outbox.close()

    def _report(self, exc: Exception) -> None:
        with suppress(OSError):
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a", encoding="utf-8") as file:
                file.write("".join(traceback.format_exception(exc)))
