"""a run of mvbuild -> Dagster's events while it goes on: materializations, observations of what is fresh, results of checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from threading import Thread
from typing import Any

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetExecutionContext,
    AssetKey,
    AssetObservation,
    DataVersion,
    MaterializeResult,
)

from mvbuild import api
from mvbuild.api.sessions import Event
from mvbuild.dagster.keys import asset_of_test
from mvbuild.graph.model import Graph, NodeId
from mvbuild.refresh.result import Finished, Message, NodeResult, RunResult, Started, Tested, TestResult


def live(graph: Graph, **arguments: Any) -> Iterator[Event | RunResult]:
    """The events of a run as they happen, and its result at the end. Raises what the run raises."""
    events: SimpleQueue[Event | RunResult | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            events.put(api.run(graph, all_tests=True, on_event=events.put, **arguments))
        except BaseException as exc:  # noqa: BLE001 - it is raised in the thread that reads the events
            events.put(exc)

    Thread(target=run, name="mvbuild", daemon=True).start()
    while True:
        event = events.get()
        if isinstance(event, BaseException):
            raise event
        yield event
        if isinstance(event, RunResult):
            return


class Reporter:
    """Reports one run to Dagster. `failed` says why it failed."""

    def __init__(self, context: AssetExecutionContext, graph: Graph, assets: Mapping[NodeId, AssetKey]) -> None:
        self._context, self._graph, self._assets = context, graph, assets
        self._tests = {test.id: test for test in graph.tests}
        self.failed: list[str] = []

    def of(self, event: Event | RunResult) -> Iterator[MaterializeResult[Any] | AssetCheckResult]:
        if isinstance(event, Message):
            self._context.log.info(event.message)
        elif isinstance(event, Started):
            self._context.log.info(f"{event.index} of {event.total} {event.node}")
        elif isinstance(event, Finished):
            yield from self._node(event.result)
            for test in event.result.tests:
                yield from self._check(test)
        elif isinstance(event, Tested):
            yield from self._check(event.result)
        elif isinstance(event, RunResult):
            self._end(event)

    def _node(self, result: NodeResult) -> Iterator[MaterializeResult[Any]]:
        key = self._assets.get(result.node)
        if result.status in ("error", "skipped"):
            why = [d.message for d in result.diagnostics] or [result.message]
            self._context.log.error(f"{result.node}: {'; '.join(why)}")
            if result.status == "error":
                self.failed += [f"{result.node}: {reason}" for reason in why]
        elif key is not None:
            known = result.status == "reused" and self._context.instance.get_latest_materialization_event(key) is not None
            if known:
                self._context.log_event(AssetObservation(key, metadata=_metadata(result)))
            else:
                snapshot = result.details.get("snapshot_id")
                version = DataVersion(str(snapshot)) if snapshot is not None else None
                yield MaterializeResult(asset_key=key, metadata=_metadata(result), data_version=version)

    def _check(self, test: TestResult) -> Iterator[AssetCheckResult]:
        node = self._tests.get(test.id)
        key = asset_of_test(node, self._assets) if node else None
        chosen = {(check.asset_key, check.name) for check in self._context.selected_asset_check_keys}
        if key is None or (key, test.name) not in chosen or test.status == "skipped":
            if test.status in ("fail", "error"):
                self._context.log.error(f"{test.name}: {test.message}")
            return
        yield AssetCheckResult(
            asset_key=key,
            check_name=test.name,
            passed=test.status == "pass",
            severity=AssetCheckSeverity.WARN if test.status == "warn" else AssetCheckSeverity.ERROR,
            description=test.message or None,
            metadata={"mvbuild/failures": test.failures or 0, "mvbuild/sql": test.sql},
        )

    def _end(self, result: RunResult) -> None:
        for found in result.diagnostics:
            (self._context.log.error if found.severity == "error" else self._context.log.warning)(found.message)
        if not result.ok and not self.failed:
            self.failed = [d.message for d in result.diagnostics if d.severity == "error"] or ["a data test failed"]


def _metadata(result: NodeResult) -> dict[str, Any]:
    found = {
        "mvbuild/status": result.status,
        "mvbuild/reasons": "; ".join(reason.message for reason in result.reasons) or None,
        "mvbuild/strategy": result.details.get("strategy"),
        "mvbuild/strategy_reason": result.details.get("reason"),
        "dagster/row_count": result.details.get("rows"),
        "mvbuild/rows_added": result.details.get("rows_added"),
        "mvbuild/rows_removed": result.details.get("rows_removed"),
        "mvbuild/seconds": round(result.seconds, 3),
    }
    return {key: value for key, value in found.items() if value is not None}
