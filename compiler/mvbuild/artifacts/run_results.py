"""RunResult -> target/run_results.json in the shape of dbt's run results v6."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from mvbuild.artifacts.timestamps import timestamp
from mvbuild.formats.failed_tests import FailedTests
from mvbuild.freshness.model import Reason
from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph, ModelNode
from mvbuild.refresh.result import NodeResult, RunResult, TestResult

SCHEMA = "https://schemas.getdbt.com/dbt/run-results/v6.json"


def run_results(graph: Graph, result: RunResult, *, arguments: Mapping[str, Any], version: str, invocation_id: str) -> dict[str, Any]:
    """The results as a JSON object. Everything without a dbt equivalent is in `adapter_response`."""
    results = [_node(graph, r) for r in result.results] + [_test(t) for t in result.all_tests]
    return {**_around(result, arguments=arguments, version=version, invocation_id=invocation_id), "results": results}


def run_results_text(
    graph: Graph, result: RunResult, *, arguments: Mapping[str, Any], version: str, invocation_id: str, known: Mapping[str, str]
) -> Iterator[str]:
    """The same as JSON text, in pieces: each result is a line. `known`: see `earlier_results`."""
    around = _around(result, arguments=arguments, version=version, invocation_id=invocation_id)
    yield f'{json.dumps(around, default=str)[:-1]}, "results": ['
    separator = "\n"
    for one in result.results:
        text = known.get(f'{{"unique_id": {json.dumps(one.node)}') if known and _is_plain(one) else None
        yield separator
        yield text or json.dumps(_node(graph, one), default=str)
        separator = ",\n"
    for test in result.all_tests:
        yield f"{separator}{json.dumps(_test(test), default=str)}"
        separator = ",\n"
    yield "\n]}"


@lru_cache(1)
def plain_beginning() -> str:
    """What is between the id and the SQL of a node with which a run had nothing to do: it is the same for all of them."""
    text = json.dumps(_outcome(NodeResult(node="", status="reused", message="")))
    return f'{text.removeprefix("{" + _ID)[:-1]}, "compiled_code": '


_ID = '"unique_id": ""'


def _is_plain(result: NodeResult) -> bool:
    more = result.message or result.reasons or result.diagnostics or result.tests or result.details or result.thread
    return result.status == "reused" and not more and not result.seconds


def _around(result: RunResult, *, arguments: Mapping[str, Any], version: str, invocation_id: str) -> dict[str, Any]:
    return {
        "metadata": {
            "dbt_schema_version": SCHEMA,
            "dbt_version": "2.0.0",
            "generated_at": timestamp(result.started_ms + int(result.seconds * 1000)),
            "invocation_id": invocation_id,
            "env": {"mvbuild_version": version},
        },
        "elapsed_time": result.seconds,
        "args": dict(arguments),
    }


def reason_object(reason: Reason) -> dict[str, Any]:
    """A reason, as plan, status and run results show it to programs."""
    return {
        "code": reason.code,
        "message": reason.message,
        "effect": reason.effect,
        "table": str(reason.table) if reason.table else None,
        "recorded": reason.recorded,
        "current": reason.current,
        "lag_ms": reason.lag_ms,
        "unseen_since_ms": reason.unseen_since_ms,
    }


def failed_object(failed: FailedTests | None) -> dict[str, Any] | None:
    """For an MV whose newest data failed its tests: which tests failed, and when that refresh began (milliseconds)."""
    return {"at_ms": failed.at_ms, "tests": list(failed.tests)} if failed else None


def _node(graph: Graph, result: NodeResult) -> dict[str, Any]:
    node = graph.nodes[result.node]
    return {
        **_outcome(result, is_model=isinstance(node, ModelNode)),
        "compiled_code": definition(graph, node).text if isinstance(node, ModelNode) and node.id not in graph.undefined else None,
        "relation_name": node.identifier.sql,
        "batch_results": None,
    }


def _outcome(result: NodeResult, *, is_model: bool = True) -> dict[str, Any]:
    return {
        "unique_id": result.node,
        # Readers of run results v6 do not know the status `reused`: a fresh node is a success, and `reused` says that nothing was done.
        "status": "success" if result.status == "reused" else result.status,
        "message": result.message or None,
        "failures": None,
        "timing": [_timing("execute", result.started_ms, result.seconds)] if result.seconds else [],
        "thread_id": result.thread or "MainThread",
        "execution_time": result.seconds,
        "adapter_response": {**result.details, "reused": result.status == "reused", "reasons": [reason_object(r) for r in result.reasons]},
        "compiled": is_model,
    }


def _test(result: TestResult) -> dict[str, Any]:
    return {
        "unique_id": result.id,
        "status": result.status,
        "message": "\n\n".join(filter(None, (result.message, result.details))) or None,
        "failures": result.failures,
        "timing": [_timing("execute", result.started_ms, result.seconds)],
        "thread_id": "MainThread",
        "execution_time": result.seconds,
        "adapter_response": {},
        "compiled": True,
        "compiled_code": result.sql,
        "relation_name": None,
        "batch_results": None,
    }


def _timing(name: str, started_ms: int, seconds: float) -> dict[str, str]:
    return {"name": name, "started_at": timestamp(started_ms), "completed_at": timestamp(started_ms + int(seconds * 1000))}
