"""TestNode + pins -> its SQL; engine -> TestResults: the data tests of an MV on data that is not published yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.leaves import Inputs, inputs, is_leaf
from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.graph.definition import parenthesized
from mvbuild.graph.model import Graph, ModelNode, NodeId, TestNode, ViewNode
from mvbuild.lineage.named import misnamed_in_test
from mvbuild.names import quote
from mvbuild.parse.model import ParsedTest
from mvbuild.ports.clock import Clock
from mvbuild.ports.engine import Engine, QueryError
from mvbuild.ports.states import Schema
from mvbuild.refresh.data_test_sql import SQL
from mvbuild.refresh.result import TestResult
from mvbuild.refresh.sql import SchemaPin, pinned_sql, pinned_table


def test_inputs(graph: Graph, test: TestNode) -> Inputs:
    """The leaves and views that a test reads."""
    if isinstance(test.test, ParsedTest):
        return inputs(graph, test.test.query, test.reads)
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
    if isinstance(test.test, ParsedTest):
        return pinned_sql(graph, test.test.query, test.reads, pins, schema_pin).text
    relations = [_relation(graph, id_, pins, schema_pin) for id_ in test.reads]
    where = f" WHERE {test.test.where}" if test.test.where else ""
    tested = f"(SELECT * FROM {relations[0]} AS tested{where})"
    return SQL[test.test.kind](tested, quote(test.test.column), test.test, relations)


def run_audits(engine: Engine, clock: Clock, tests: Sequence[tuple[TestNode, str]], *, now_ms: int) -> tuple[TestResult, ...]:
    """Count the failing rows of all tests: in one job, and one by one only if that job fails."""
    if not tests:
        return ()
    began = clock.monotonic()
    try:
        union = "\nUNION ALL\n".join(f"SELECT {i} AS test, count(*) AS failures FROM ({sql}\n) AS t{i}" for i, (_, sql) in enumerate(tests))
        counted = {row[0]: row[1] for row in engine.rows(union, len(tests)).rows}
        share = (clock.monotonic() - began) / len(tests)
        return tuple(_result(test, sql, counted[i], now_ms, share) for i, (test, sql) in enumerate(tests))
    except QueryError:
        return tuple(_alone(engine, clock, test, sql, now_ms) for test, sql in tests)


def failures(tests: Sequence[TestNode], results: Sequence[TestResult]) -> tuple[Diagnostic, ...]:
    """A diagnostic for each test that prevents its MV from being published."""
    return tuple(
        error("test-failed", f"data test {test.name}: {result.message}", test.span, help=f"See the rows: {_one_line(result.sql)}")
        for test, result in zip(tests, results, strict=True)
        if result.status in ("fail", "error")
    )


def _alone(engine: Engine, clock: Clock, test: TestNode, sql: str, now_ms: int) -> TestResult:
    began = clock.monotonic()
    try:
        count = engine.rows(f"SELECT count(*) AS failures FROM ({sql}\n) AS t", 1).rows[0][0]
    except QueryError as exc:
        seconds = clock.monotonic() - began
        return TestResult(
            id=test.id, name=test.name, status="error", failures=None, message=str(exc), sql=sql, started_ms=now_ms, seconds=seconds
        )
    return _result(test, sql, count, now_ms, clock.monotonic() - began)


def _result(test: TestNode, sql: str, count: int, now_ms: int, seconds: float) -> TestResult:
    bad = "fail" if test.severity == "error" else "warn"
    rows = "1 row violates" if count == 1 else f"{count} rows violate"
    return TestResult(
        id=test.id,
        name=test.name,
        status="pass" if count == 0 else "fail" if bad == "fail" else "warn",
        failures=count,
        message="" if count == 0 else f"{rows} its rule",
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
