"""what a watcher did -> the text format of Prometheus, and the answer of the health endpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from datetime import timedelta
from threading import Lock
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import NodeId
from mvbuild.ports.clock import Clock

UNHEALTHY_MS = 120_000
"""The watcher is not healthy if a successful poll is overdue by this long."""


@dataclass
class Metrics:
    """Written by the watcher and read by HTTP requests, in several threads."""

    clock: Clock
    is_spark_running: Callable[[], bool] = lambda: False
    _refreshes: Counter[tuple[NodeId, str]] = field(default_factory=Counter)
    _failures: Counter[NodeId] = field(default_factory=Counter)
    _seconds: Counter[NodeId] = field(default_factory=Counter)
    _rows: dict[NodeId, int] = field(default_factory=dict)
    _behind: Mapping[NodeId, int] = field(default_factory=dict)
    _targets: Mapping[NodeId, timedelta] = field(default_factory=dict)
    _mvs: Iterable[NodeId] = ()
    _failing: Collection[NodeId] = frozenset()
    _polls: int = 0
    _poll_seconds: float = 0.0
    _poll_failures: int = 0
    _reload_failures: int = 0
    _polled_ms: int | None = None
    _pause_ms: int = 0
    _lock: Lock = field(default_factory=Lock)

    def polled(self, at_ms: int, seconds: float, pause: float = 0.0) -> None:
        """The next poll is intended after a pause of so many seconds."""
        with self._lock:
            self._polls += 1
            self._pause_ms = round(pause * 1000)
            self._polled_ms, self._poll_seconds = at_ms, seconds

    def poll_failed(self) -> None:
        with self._lock:
            self._poll_failures += 1

    def reload_failed(self) -> None:
        with self._lock:
            self._reload_failures += 1

    def refreshed(self, id: NodeId, strategy: str, seconds: float, rows: int | None) -> None:
        with self._lock:
            self._refreshes[id, strategy] += 1
            self._seconds[id] += seconds  # type: ignore[assignment]
            if rows is not None:
                self._rows[id] = rows

    def failed(self, id: NodeId) -> None:
        with self._lock:
            self._failures[id] += 1

    def failing(self, ids: Collection[NodeId]) -> None:
        with self._lock:
            self._failing = ids

    def lags(self, behind_since_ms: Mapping[NodeId, int], targets: Mapping[NodeId, timedelta], mvs: Iterable[NodeId]) -> None:
        with self._lock:
            self._behind, self._targets, self._mvs = behind_since_ms, targets, mvs

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the catalog was read lately, and what to say about it."""
        with self._lock:
            age = None if self._polled_ms is None else self.clock.now_ms() - self._polled_ms
            ok = age is not None and age <= UNHEALTHY_MS + self._pause_ms
            return ok, {"ok": ok, "seconds_since_poll": None if age is None else age / 1000, "failing": sorted(self._failing)}

    def text(self) -> str:
        """All metrics."""
        with self._lock:
            now = self.clock.now_ms()
            behind = {id: max(0, now - self._behind[id]) / 1000 if id in self._behind else 0.0 for id in self._mvs}
            return "".join(
                (
                    _metric("lag_seconds", "gauge", "Age of the oldest change that an MV has not seen.", _of_mvs(behind)),
                    _metric(
                        "target_lag_seconds",
                        "gauge",
                        "The target lag of an MV that has one.",
                        _of_mvs({id: lag.total_seconds() for id, lag in self._targets.items()}),
                    ),
                    _metric(
                        "refreshes_total",
                        "counter",
                        "Refreshes that were published.",
                        [(_labels(mv=id, strategy=strategy), count) for (id, strategy), count in self._refreshes.items()],
                    ),
                    _metric("refresh_seconds_total", "counter", "Time that refreshes took.", _of_mvs(self._seconds)),
                    _metric("failures_total", "counter", "Refreshes that failed.", _of_mvs(self._failures)),
                    _metric("failing", "gauge", "1 for a node whose last refresh failed.", _of_mvs(dict.fromkeys(self._failing, 1))),
                    _metric("rows", "gauge", "Rows of an MV after its last refresh.", _of_mvs(self._rows)),
                    _metric("polls_total", "counter", "Successful reads of the catalog's metadata.", [("", self._polls)]),
                    _metric("poll_failures_total", "counter", "Failed reads of the catalog's metadata.", [("", self._poll_failures)]),
                    _metric("poll_seconds", "gauge", "Time that the last poll took.", [("", round(self._poll_seconds, 6))]),
                    _metric("last_poll_timestamp_seconds", "gauge", "Time of the last poll.", [("", (self._polled_ms or 0) / 1000)]),
                    _metric("reload_failures_total", "counter", "Edits that did not compile.", [("", self._reload_failures)]),
                    _metric("spark_running", "gauge", "1 while Spark is running.", [("", int(self.is_spark_running()))]),
                )
            )


def _metric(name: str, kind: str, help: str, samples: Iterable[tuple[str, float]]) -> str:
    lines = [f"mvbuild_{name}{labels} {value!r}" for labels, value in samples]
    return "\n".join((f"# HELP mvbuild_{name} {help}", f"# TYPE mvbuild_{name} {kind}", *lines)) + "\n"


def _of_mvs(values: Mapping[NodeId, float]) -> list[tuple[str, float]]:
    return [(_labels(mv=id), value) for id, value in sorted(values.items())]


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
