"""TestNode + pins -> its SQL; engine -> TestResults: the data tests of an MV on data that is not published yet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.leaves import Inputs, inputs, is_leaf
from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.graph.definition import parenthesized
from mvbuild.graph.model import Graph, ModelNode, NodeId, TestNode, ViewNode
from mvbuild.lineage.named import misnamed_in_test
from mvbuild.names import quote
from mvbuild.ports.engine import QueryError
from mvbuild.ports.states import Schema
from mvbuild.project.counting import ANY, EVERY
from mvbuild.project.loaded import DataTest
from mvbuild.refresh.data_test_sql import SQL
from mvbuild.refresh.result import TestResult
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import SchemaPin, pinned_sql, pinned_table
from mvbuild.refresh.stored_failures import failures_table, store_failures


def test_inputs(graph: Graph, test: TestNode) -> Inputs:
    """The leaves and views that a test reads."""
    if test.query is not None:
        return inputs(graph, test.query, test.query_reads)
    leaves: dict[Leaf, None] = {}
    views: dict[NodeId, None] = {}
    for id_ in test.reads:
        node = graph.nodes[id_]
        if is_leaf(node):
            leaves[Leaf(node=id_)] = None
        else:
            assert isinstance(node, ModelNode | ViewNode)
            below = inputs(graph, node.query, node.reads)
            leaves.update(dict.fromkeys(below.leaves))
            views.update(dict.fromkeys((id_, *below.views)))
    return Inputs(leaves=tuple(leaves), views=tuple(views))


test_inputs.__test__ = False  # type: ignore[attr-defined]


def require_columns(graph: Graph, node: ModelNode, tests: Sequence[TestNode], schema: Schema) -> None:
    """Raise ProjectError for tests of columns that the query does not return, before its rows are computed."""
    names = [field["name"] for field in schema["fields"]]
    wrong = tuple(d for test in tests for d in misnamed_in_test(graph, test, lambda id: names if id == node.id else None))
    if wrong:
        raise ProjectError(wrong)


def audit_sql(graph: Graph, test: TestNode, pins: Mapping[Leaf, Pin], schema_pin: SchemaPin) -> str:
    """A query for the rows that break the test's rule."""
    if test.query is not None:
        return pinned_sql(graph, test.query, test.query_reads, pins, schema_pin).text
    assert isinstance(test.test, DataTest), test.id
    relations = [_relation(graph, id_, pins, schema_pin) for id_ in test.reads]
    where = f" WHERE {test.test.where}" if test.test.where else ""
    tested = f"(SELECT * FROM {relations[0]} AS tested{where})"
    return SQL[test.test.kind](tested, quote(test.test.column), test.test, relations)


def run_audits(session: RunSession, tests: Sequence[tuple[TestNode, str]]) -> tuple[TestResult, ...]:
    """Count the failing rows of all tests: in one job, and one by one only if that job fails."""
    if not tests:
        return ()
    clock, now_ms = session.clock, session.clock.now_ms()
    began = clock.monotonic()
    try:
        counts = [_count(test, store_failures(session, test, sql), i) for i, (test, sql) in enumerate(tests)]
        counted = {row[0]: row[1] for row in session.engine.rows("\nUNION ALL\n".join(counts), len(tests)).rows}
        share = (clock.monotonic() - began) / len(tests)
        return tuple(_result(test, sql, counted[i] or 0, now_ms, share) for i, (test, sql) in enumerate(tests))
    except QueryError:
        return tuple(_alone(session, test, sql, now_ms) for test, sql in tests)


def _count(test: TestNode, sql: str, number: int) -> str:
    """A query for the number of failures of a test."""
    limit, calculated = test.counting.limit, test.counting.fail_calc
    if limit is not None:
        sql = f"SELECT * FROM ({sql}\n) AS found LIMIT {limit}"
    # One type for all tests of the job: a sum of decimals would give the counts another one.
    calculated = calculated if calculated == EVERY else f"CAST({calculated} AS DOUBLE)"
    return f"SELECT {number} AS test, {calculated} AS failures FROM ({sql}\n) AS t{number}"


def failures(graph: Graph, tests: Sequence[TestNode], results: Sequence[TestResult], *, is_kept: bool = True) -> tuple[Diagnostic, ...]:
    """A diagnostic for each test that prevents its MV from being published. `is_kept`: the tested rows can still be read."""
    pairs = zip(tests, results, strict=True)
    return tuple(_failure(graph, test, result, is_kept) for test, result in pairs if result.status in ("fail", "error"))


def _failure(graph: Graph, test: TestNode, result: TestResult, is_kept: bool) -> Diagnostic:
    if result.status == "error":
        if not result.sql:
            return error("not-compiled", result.message, test.span)
        message = f"data test {test.name} failed to run: {result.message}"
        return error("query-failed", message, test.span, help=f"Fix its query: {_one_line(result.sql)}")
    table = failures_table(graph, test)
    if table is not None:
        help = f"See the rows: SELECT * FROM {table.sql}"
    else:
        help = f"See the rows: {_one_line(result.sql)}" if is_kept else "Its rows were not kept: keep them with --store-failures."
    return error("test-failed", f"data test {test.name}: {result.message}", test.span, help=help)


def skipped_test(test: TestNode, reason: str) -> TestResult:
    return TestResult(id=test.id, name=test.name, status="skipped", failures=None, message=reason, sql="")


def unrunnable_test(test: TestNode, reason: str) -> TestResult:
    return TestResult(id=test.id, name=test.name, status="error", failures=None, message=reason, sql="")


def _alone(session: RunSession, test: TestNode, sql: str, now_ms: int) -> TestResult:
    clock = session.clock
    began = clock.monotonic()
    try:
        count = session.engine.rows(_count(test, store_failures(session, test, sql), 0), 1).rows[0][1]
    except QueryError as exc:
        seconds = clock.monotonic() - began
        return TestResult(
            id=test.id, name=test.name, status="error", failures=None, message=str(exc), sql=sql, started_ms=now_ms, seconds=seconds
        )
    return _result(test, sql, count or 0, now_ms, clock.monotonic() - began)


def _result(test: TestNode, sql: str, count: float, now_ms: int, seconds: float) -> TestResult:
    counting, count = test.counting, int(count) if count == int(count) else count
    status = counting.verdict(count, test.severity)
    rows = "1 row violates" if count == 1 else f"{count} rows violate"
    message = f"{rows} its rule" if counting.fail_calc == EVERY else f"{counting.fail_calc} is {count}"
    rule = counting.error_if if status == "fail" else counting.warn_if
    if rule != ANY:
        message += f", which is {'an error' if status == 'fail' else 'a warning'} if {rule.strip()}"
    return TestResult(
        id=test.id,
        name=test.name,
        status=status,
        failures=math.ceil(count),
        message="" if status == "pass" else message,
        sql=sql,
        started_ms=now_ms,
        seconds=seconds,
    )


def _relation(graph: Graph, id_: NodeId, pins: Mapping[Leaf, Pin], schema_pin: SchemaPin) -> str:
    node = graph.nodes[id_]
    if is_leaf(node):
        return pinned_table(pins[Leaf(node=id_)], schema_pin)
    assert isinstance(node, ModelNode | ViewNode)
    return parenthesized(pinned_sql(graph, node.query, node.reads, pins, schema_pin)).text


def _one_line(sql: str) -> str:
    text = " ".join(sql.split())
    return text if len(text) <= 300 else text[:297] + "..."
