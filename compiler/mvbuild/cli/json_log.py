"""Events of a run -> JSON lines on stdout, in the shape of dbt's structured logs: what dagster-dbt and Cosmos read while a run goes on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import PurePosixPath
from threading import Lock, current_thread
from typing import TYPE_CHECKING, Any, Literal

import click

from mvbuild import __version__
from mvbuild.cli.totals import counts, done, moved, saved
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode
from mvbuild.refresh.result import Finished, Message, NodeResult, RunResult, Started, Tested, TestResult
from mvbuild.verify.model import Checked, Verification

if TYPE_CHECKING:
    from mvbuild.api.sessions import Event
    from mvbuild.diagnostics import Diagnostic

Level = Literal["debug", "info", "warn", "error"]

_CODES = {
    "MainReportVersion": "A001",
    "LogTestResult": "Q007",
    "LogStartLine": "Q011",
    "LogModelResult": "Q012",
    "LogSeedResult": "Q016",
    "NodeStart": "Q024",
    "NodeFinished": "Q025",
    "SkippingDetails": "Q034",
    "CommandCompleted": "Q039",
    "MainEncounteredError": "Z002",
    "RunResultWarning": "Z021",
    "RunResultFailure": "Z022",
    "StatsLine": "Z023",
    "RunResultError": "Z024",
    "Note": "Z050",
}
"""The codes that dbt gives to these events."""
_VERIFIED = {"same": "pass", "different": "fail", "unverifiable": "skipped", "error": "error"}
_LEVELS: Mapping[str, Level] = {"error": "error", "fail": "error", "warn": "warn"}


def write_event(
    name: str, message: str, data: Mapping[str, Any], *, level: Level = "info", invocation_id: str = "", err: bool = False
) -> None:
    """Write one line. `data` gets the message too, as in dbt."""
    info = {
        "name": name,
        "code": _CODES[name],
        "msg": message,
        "level": level,
        "ts": _time(time.time_ns() // 1_000_000),
        "invocation_id": invocation_id,
        "pid": os.getpid(),
        "thread": current_thread().name,
        "category": "",
        "extra": {},
    }
    click.echo(json.dumps({"info": info, "data": {"msg": message, **data}}, default=str), err=err)


class JsonLog:
    """Prints the lines of one command. Each node has `NodeStart`, `LogStartLine`, one of `LogModelResult`, `LogSeedResult` and
    `LogTestResult`, and `NodeFinished`; one that failed or warned has the reason before its result.

    `together`: what succeeds is published in one commit at the end of the run, and only then reported as a success.
    """

    def __init__(self, graph: Graph, *, together: bool = False) -> None:
        self._graph = graph
        self._together = together
        self._held: list[Finished] = []
        self._lock = Lock()
        self._invocation = graph.project.invocation.id
        self._write("MainReportVersion", f"Running with mvbuild={__version__}", {"version": f"={__version__}"})

    def __enter__(self) -> JsonLog:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was opened."""

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, Message):
                self._write("Note", event.message, {})
            elif isinstance(event, Started):
                self._started(event)
            elif isinstance(event, Tested):
                self._tested(event.result, index=event.index, total=event.total)
            elif isinstance(event, Checked):
                self._checked(event)
            elif isinstance(event, Finished):
                if self._together and event.result.status == "success":
                    self._held.append(event)
                else:
                    self._finished(event)

    def renamed(self, result: RunResult) -> None:
        """What the run renamed and dropped."""
        for line in moved(result):
            self._write("Note", line, {})

    def completed(self, result: RunResult) -> None:
        """The end of the command: its summary, and whether it succeeded."""
        published = {one.node: one for one in result.results}
        for event in self._held:
            self._finished(replace(event, result=published[event.result.node]))
        if line := saved(result):
            self._write("Note", line, {})
        self._write("StatsLine", done(result), {"stats": counts(result)})
        data = {"success": result.ok, "elapsed": result.seconds, "completed_at": _time(result.started_ms + int(result.seconds * 1000))}
        self._write("CommandCompleted", f"Completed in {result.seconds:.2f} seconds", data, level="debug")

    def verified(self, found: Verification, total: str) -> None:
        """The end of `verify`. `total`: its last line."""
        self._write("StatsLine", total, {"sample": found.sample, "seed": found.seed})
        data = {"success": found.ok, "elapsed": found.seconds}
        self._write("CommandCompleted", f"Completed in {found.seconds:.2f} seconds", data, level="debug")

    def _write(self, name: str, message: str, data: Mapping[str, Any], *, level: Level = "info") -> None:
        write_event(name, message, data, level=level, invocation_id=self._invocation)

    def _started(self, event: Started) -> None:
        # The run takes the time of a node from the same clock, some microseconds later.
        info = self._info(event.node, "started", time.time_ns() // 1_000_000, None)
        name = self._graph.nodes[event.node].identifier.dotted
        self._write("NodeStart", f"Began running node {event.node}", {"node_info": info}, level="debug")
        counted = {"index": event.index, "total": event.total}
        self._write("LogStartLine", f"{event.index} of {event.total} START {name}", {"description": name, **counted, "node_info": info})

    def _finished(self, event: Finished) -> None:
        result = event.result
        status = "success" if result.status == "reused" else result.status
        info = self._info(result.node, status, result.started_ms, result.seconds)
        name = self._graph.nodes[result.node].identifier.dotted
        for found in result.diagnostics:
            if found.severity == "error":
                self._write("RunResultError", found.message, {"node_info": info}, level="error")
        if result.status == "skipped":
            skipped = {"resource_type": info["resource_type"], "node_name": info["node_name"], "node_info": info}
            self._write("SkippingDetails", f"{name} is skipped: {result.message}", skipped)
        kind = "LogSeedResult" if info["resource_type"] == "seed" else "LogModelResult"
        message = f"{event.index} of {event.total} {result.status.upper()} {name}{f' ({result.message})' if result.message else ''}"
        counted = {"index": event.index, "total": event.total, "status": status, "execution_time": result.seconds}
        self._write(kind, message, {"description": name, **counted, "node_info": info}, level=_LEVELS.get(status, "info"))
        self._node_finished(info, status, result.message, result.seconds, _response(result))
        for test in result.tests:
            self._tested(test, index=event.index, total=event.total)

    def _checked(self, event: Checked) -> None:
        """An MV that was verified is like a test of it, whose failures are the rows that differ."""
        one, number = event.result, event.result.missing + event.result.extra
        status = _VERIFIED[one.status]
        info = self._info(one.node, status, 0, None)
        why = "; ".join(reason.message for reason in (*((one.reason,) if one.reason else ()), *one.notes))
        name = self._graph.nodes[one.node].identifier.dotted
        counted = {"index": event.index, "num_models": event.total, "num_failures": number, "execution_time": one.seconds}
        found = {"name": name, "status": status, "only_in_storage": one.extra, "only_in_query": one.missing, "reason": why}
        message = f"{status.upper()} {name}{f' ({why})' if why else ''}"
        self._write("LogTestResult", message, {**found, **counted, "node_info": info}, level=_LEVELS.get(status, "info"))
        self._node_finished(info, status, why, one.seconds, {}, failures=number)

    def _tested(self, test: TestResult, *, index: int, total: int) -> None:
        info = self._of_test(test)
        level = _LEVELS.get(test.status, "info")
        if level != "info":
            name = "RunResultWarning" if level == "warn" else "RunResultFailure" if test.status == "fail" else "RunResultError"
            self._write(name, f"{test.name}: {test.message}", {"node_info": info}, level=level)
        found = f" {test.failures}" if test.failures else ""
        counted = {"index": index, "num_models": total, "num_failures": test.failures, "execution_time": test.seconds}
        data = {"name": test.name, "status": test.status, **counted, "node_info": info}
        self._write("LogTestResult", f"{test.status.upper()}{found} {test.name}", data, level=level)
        self._node_finished(info, test.status, test.message, test.seconds, {}, failures=test.failures)

    def _node_finished(
        self,
        info: Mapping[str, Any],
        status: str,
        message: str,
        seconds: float,
        response: Mapping[str, Any],
        *,
        failures: int | None = None,
    ) -> None:
        result = {"status": status, "message": message, "execution_time": seconds, "adapter_response": response}
        data = {"node_info": info, "run_result": result, "status": status, "execution_time": seconds, "num_failures": failures}
        self._write("NodeFinished", f"Finished running node {info['unique_id']}", data, level="debug")

    def _info(self, id_: NodeId, status: str, started_ms: int, seconds: float | None) -> dict[str, Any]:
        node = self._graph.nodes[id_]
        if isinstance(node, ModelNode):
            name, path, materialized = node.model.name, node.model.file.path, node.materialized
        else:
            assert isinstance(node, SeedNode), id_
            name, path, materialized = node.seed.name, node.seed.path, "seed"
        relation = {
            "database": node.identifier.catalog,
            "schema": ".".join(node.identifier.namespace),
            "alias": node.identifier.name,
            "relation_name": node.identifier.sql,
        }
        # As in dbt, without the folder that the project configures.
        within = PurePosixPath(*PurePosixPath(path).parts[1:])
        of_node = _info(id_, name, id_.partition(".")[0], materialized, str(within), status, started_ms, seconds)
        return {**of_node, "node_relation": relation}

    def _of_test(self, test: TestResult) -> dict[str, Any]:
        kind = test.id.partition(".")[0]
        return _info(test.id, test.name, kind, kind, f"{test.name}.sql", test.status, test.started_ms, test.seconds)


def write_diagnostics(diagnostics: Iterable[Diagnostic], *, err: bool) -> None:
    """Diagnostics that belong to no node, one event each."""
    from mvbuild.diagnostics.render import to_text

    for one in diagnostics:
        is_error = one.severity == "error"
        level: Level = "error" if is_error else "warn" if one.severity == "warning" else "info"
        write_event("MainEncounteredError" if is_error else "Note", to_text([one]), {"code": one.code}, level=level, err=err)


def _info(
    id_: str, name: str, kind: str, materialized: str, path: str, status: str, started_ms: int, seconds: float | None
) -> dict[str, Any]:
    return {
        "unique_id": id_,
        "node_name": name,
        "resource_type": kind,
        "materialized": materialized,
        "node_path": path,
        "node_status": status,
        "node_started_at": _time(started_ms) if started_ms else "",
        "node_finished_at": _time(started_ms + int(seconds * 1000)) if started_ms and seconds is not None else "",
        "meta": {},
    }


def _response(result: NodeResult) -> dict[str, Any]:
    """What run_results.json says of the node, too."""
    return {**result.details, "reused": result.status == "reused", "reasons": [reason.message for reason in result.reasons]}


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, tz=timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
