"""what a run did -> OpenLineage run events as JSON. Facets have neither producer nor schema: the sender adds those of its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any
from uuid import uuid4

from mvbuild import __version__
from mvbuild.diagnostics import Diagnostic
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode, TestNode
from mvbuild.lineage.model import Bound
from mvbuild.openlineage.datasets import Dataset, column_lineage, dataset, parents
from mvbuild.project.loaded import DataTest
from mvbuild.refresh.result import NodeResult, RunResult, TestResult

Event = dict[str, Any]


class Events:
    """The events of one run of a project."""

    def __init__(self, graph: Graph, namespace: str, started_ms: int) -> None:
        self._graph, self._namespace, self._started_ms = graph, namespace, started_ms
        self._run_id = graph.project.invocation.id
        self._job = f"{graph.project.name}.run"
        self._runs: dict[NodeId, str] = {}
        self._tests = {test.id: test for test in graph.tests}

    def started(self) -> Event:
        """The run has begun."""
        return self._event("START", self._started_ms, self._run_id, self._job, {}, self._kind("RUN"))

    def ended(self, result: RunResult, at_ms: int) -> Event:
        """The run has ended."""
        errors = [d for d in result.diagnostics if d.severity == "error"]
        failed = [r.node for r in result.results if r.status == "error"]
        why = "; ".join([*(d.message for d in errors), *(f"{node} failed" for node in failed)]) or "a data test failed"
        return self.failed(why, at_ms) if not result.ok else self._event("COMPLETE", at_ms, self._run_id, self._job, {}, self._kind("RUN"))

    def failed(self, why: str, at_ms: int) -> Event:
        """The run has failed."""
        return self._event("FAIL", at_ms, self._run_id, self._job, {"errorMessage": _error(why)}, self._kind("RUN"))

    def node_started(self, world: World, id_: NodeId, at_ms: int) -> Event:
        """A node is being refreshed, created or loaded."""
        self._runs[id_] = str(uuid4())
        inputs = [dataset(world, read) for read in parents(world, id_)]
        return self._of_node("START", at_ms, id_, self._parent(), inputs, [dataset(world, id_)])

    def node_ended(self, world: World, result: NodeResult, bound: Bound | None) -> Event:
        """It has ended."""
        inputs = [dataset(world, read) for read in parents(world, result.node)]
        output = dataset(world, result.node)
        lineage = column_lineage(world, bound, result.node) if bound is not None else None
        if lineage:
            output["facets"]["columnLineage"] = lineage
        output["outputFacets"] = _written(result)
        facets = {**self._parent(), "mvbuild": _refresh(result)}
        if result.status == "error":
            facets["errorMessage"] = _error(_why(result.diagnostics, result.message))
        kind = "COMPLETE" if result.status in ("success", "reused") else "FAIL" if result.status == "error" else "ABORT"
        at_ms = result.started_ms + int(result.seconds * 1000)
        return self._of_node(kind, at_ms, result.node, facets, inputs, [output], sql=result.sql)

    def tested(self, world: World, results: Sequence[TestResult]) -> list[Event]:
        """The tests of a run or of a node: for each tested table a job of its own."""
        by_table: dict[NodeId, list[tuple[TestNode, TestResult]]] = {}
        for result in results:
            test = self._tests.get(result.id)
            if test is not None and test.reads and result.status != "skipped":
                by_table.setdefault(test.gates[-1] if test.gates else test.reads[0], []).append((test, result))
        return [event for id, pairs in by_table.items() for event in self._test_events(world, id, pairs)]

    def _test_events(self, world: World, id_: NodeId, pairs: Sequence[tuple[TestNode, TestResult]]) -> list[Event]:
        tested = dataset(world, id_)
        tested["inputFacets"] = {"dataQualityAssertions": {"assertions": [_assertion(test, result) for test, result in pairs]}}
        failed = [result for test, result in pairs if result.status in ("fail", "error")]
        facets = self._parent()
        if failed:
            facets["errorMessage"] = _error("; ".join(f"{result.name}: {result.message}" for result in failed))
        started = min(result.started_ms for _, result in pairs)
        ended = max(result.started_ms + int(result.seconds * 1000) for _, result in pairs)
        run, job, kind = str(uuid4()), f"{self._name(id_)}.test", self._kind("TEST")
        end = self._event("FAIL" if failed else "COMPLETE", ended, run, job, facets, kind, [tested])
        return [self._event("START", started, run, job, self._parent(), kind, [dataset(world, id_)]), end]

    def _of_node(
        self,
        kind: str,
        at_ms: int,
        id_: NodeId,
        facets: Mapping[str, Any],
        inputs: Sequence[Dataset],
        outputs: Sequence[Dataset],
        sql: str | None = None,
    ) -> Event:
        node = self._graph.nodes[id_]
        is_mv = isinstance(node, ModelNode) and node.storage is not None
        job = self._kind("SEED" if isinstance(node, SeedNode) else "MATERIALIZED_VIEW" if is_mv else "VIEW")
        text = sql or (node.model.file.text if isinstance(node, ModelNode) else None)
        if text:
            job["sql"] = {"query": text, "dialect": "spark"}
        engine = {"processing_engine": {"name": "mvbuild", "version": __version__}}
        return self._event(kind, at_ms, self._runs[id_], self._name(id_), {**engine, **facets}, job, inputs, outputs)

    def _event(
        self,
        kind: str,
        at_ms: int,
        run_id: str,
        job: str,
        run_facets: Mapping[str, Any],
        job_facets: Mapping[str, Any],
        inputs: Sequence[Dataset] = (),
        outputs: Sequence[Dataset] = (),
    ) -> Event:
        return {
            "eventType": kind,
            "eventTime": datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc).isoformat(timespec="milliseconds"),
            "run": {"runId": run_id, "facets": run_facets},
            "job": {"namespace": self._namespace, "name": job, "facets": job_facets},
            "inputs": list(inputs),
            "outputs": list(outputs),
        }

    def _name(self, id_: NodeId) -> str:
        return f"{self._graph.project.name}.{self._graph.nodes[id_].identifier.dotted}"

    def _parent(self) -> dict[str, Any]:
        return {"parent": {"run": {"runId": self._run_id}, "job": {"namespace": self._namespace, "name": self._job}}}

    def _kind(self, kind: str) -> dict[str, Any]:
        return {"jobType": {"processingType": "BATCH", "integration": "MVBUILD", "jobType": kind}}


def _written(result: NodeResult) -> dict[str, Any]:
    """The rows and bytes of the snapshot that was written."""
    rows, size = result.details.get("rows_added"), result.details.get("bytes_written")
    rows = result.details.get("rows") if rows is None else rows
    found = {key: value for key, value in (("rowCount", rows), ("size", size)) if value is not None}
    return {"outputStatistics": found} if found else {}


_OF_REFRESH = {
    "strategy": "strategy",
    "reason": "strategyReason",
    "reason_message": "strategyReasonMessage",
    "rows": "rows",
    "rows_added": "rowsAdded",
    "rows_removed": "rowsRemoved",
    "changed_rows": "changedRows",
    "bytes_written": "bytesWritten",
    "expected_seconds": "expectedSeconds",
    "snapshot_id": "snapshotId",
    "base_snapshots": "baseSnapshots",
}
"""Key of `NodeResult.details` -> field of the facet `mvbuild`."""


def _refresh(result: NodeResult) -> dict[str, Any]:
    """The facet `mvbuild`: why a node was refreshed, and how."""
    found = {field: result.details[key] for key, field in _OF_REFRESH.items() if result.details.get(key) is not None}
    reasons = [{"code": r.code, "message": r.message, "table": str(r.table) if r.table else None} for r in result.reasons]
    return {"status": result.status, "seconds": round(result.seconds, 3), "reasons": reasons, **found}


def _assertion(test: TestNode, result: TestResult) -> dict[str, Any]:
    generic = test.test if isinstance(test.test, DataTest) else None
    found = {
        "assertion": generic.kind if generic else "custom_sql",
        "success": result.status == "pass",
        "column": (generic.column or None) if generic else None,
        "severity": test.severity,
        "name": test.name,
        "actual": None if result.failures is None else str(result.failures),
        "content": result.sql or None,
        "contentType": "sql" if result.sql else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _error(message: str) -> dict[str, Any]:
    return {"message": message, "programmingLanguage": "SQL"}


def _why(diagnostics: Sequence[Diagnostic], message: str) -> str:
    return "; ".join(d.message for d in diagnostics if d.severity == "error") or message
