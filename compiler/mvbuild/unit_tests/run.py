"""UnitTests + engine -> TestResults: each is analyzed alone, and the rows of many are computed in one job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.graph.model import Graph
from mvbuild.lineage.types import of_iceberg, text
from mvbuild.names import quote
from mvbuild.ports.clock import Clock
from mvbuild.ports.engine import Engine, QueryError
from mvbuild.project.unit_tests import RowsAsWritten, UnitTest
from mvbuild.refresh.result import TestResult, TestStatus
from mvbuild.unit_tests.difference import Row, difference
from mvbuild.unit_tests.query import ColumnsOf, TestQuery, test_query
from mvbuild.unit_tests.values import compared, problems, rows_sql

_MOST = 100_000
_TOGETHER = 20
"""Tests in one job: planning takes longer than running them."""
FEW_ROWS: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling a query for a few rows takes longer than to interpret it."""
Refresh = Callable[[UnitTest, TestQuery], str]
"""Runs a test as a refresh too. Returns what differs."""


def run_unit_tests(
    engine: Engine,
    clock: Clock,
    graph: Graph,
    tests: Sequence[UnitTest],
    columns: ColumnsOf,
    *,
    threads: int,
    refresh: Refresh,
    on_result: Callable[[TestResult], None],
) -> tuple[tuple[TestResult, ...], tuple[Diagnostic, ...]]:
    """In the order of the tests, with a diagnostic for each test that did not pass."""
    results: list[TestResult] = []
    report: list[Diagnostic] = []
    work = _Work(engine=engine, clock=clock, graph=graph, columns=columns)
    with _for_few_rows(engine), ThreadPoolExecutor(max_workers=max(1, threads), thread_name_prefix="Thread") as pool:
        for some in (tests[at : at + _TOGETHER] for at in range(0, len(tests), _TOGETHER)):
            asked = list(pool.map(work.asked, some))
            for one, (found, message) in zip(asked, work.answered(asked), strict=True):
                result, wrong = found, message
                if one.test.incremental and one.query is not None and result.status == "pass":
                    # One after the other: each is a run of its own.
                    result, wrong = _refreshed(clock, one.test, one.query, result, refresh)
                results.append(result)
                report += wrong
                on_result(result)
    return tuple(results), tuple(report)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A test whose query was analyzed. `sides`: a query for the rows of both sides, as arrays of texts; empty if nothing is expected."""

    test: UnitTest
    query: TestQuery | None
    columns: tuple[str, ...] = ()
    sides: str = ""
    wrong: tuple[Diagnostic, ...] = ()
    seconds: float = 0.0


_Answer = tuple[TestResult, tuple[Diagnostic, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What all tests share."""

    engine: Engine
    clock: Clock
    graph: Graph
    columns: ColumnsOf

    def asked(self, test: UnitTest) -> _Asked:
        began, query = self.clock.monotonic(), None
        try:
            query = test_query(self.graph, test, self.columns)
            names, sides = _sides(self.engine, test, query)
        except (ProjectError, QueryError) as exc:
            return _Asked(test=test, query=query, wrong=_diagnostics(test, exc), seconds=self.clock.monotonic() - began)
        return _Asked(test=test, query=query, columns=names, sides=sides, seconds=self.clock.monotonic() - began)

    def answered(self, asked: Sequence[_Asked]) -> Iterator[_Answer]:
        """All in one job, and one by one only if that job fails."""
        ready = [one for one in asked if not one.wrong]
        began = self.clock.monotonic()
        found: dict[int, tuple[list[Row], list[Row]]] = {id(one): ([], []) for one in ready}
        try:
            union = "\nUNION ALL\n".join(f"SELECT {i} AS test, side, row FROM ({one.sides}\n) AS t{i}" for i, one in enumerate(ready))
            for number, side, row in self.engine.rows(union, _MOST).rows if ready else ():
                found[id(ready[number])][side].append(tuple(row))
        except QueryError:
            yield from (self._alone(one) for one in asked)
            return
        share = (self.clock.monotonic() - began) / max(1, len(ready))
        for one in asked:
            yield self._judged(one, *found[id(one)], share) if not one.wrong else self._error(one, one.wrong, 0.0)

    def _alone(self, one: _Asked) -> _Answer:
        if one.wrong:
            return self._error(one, one.wrong, 0.0)
        began, rows = self.clock.monotonic(), ([], [])  # type: tuple[float, tuple[list[Row], list[Row]]]
        try:
            for side, row in self.engine.rows(one.sides, _MOST).rows:
                rows[side].append(tuple(row))
        except QueryError as exc:
            return self._error(one, _diagnostics(one.test, exc), self.clock.monotonic() - began)
        return self._judged(one, *rows, self.clock.monotonic() - began)

    def _judged(self, one: _Asked, actual: Sequence[Row], expected: Sequence[Row], seconds: float) -> _Answer:
        test = one.test
        different = difference(one.columns, actual, expected) if test.expect else ""
        if not different:
            return self._result(one, "pass", "", seconds, failures=0), ()
        message = f"unit test {test.name} of '{test.model}': the rows differ from those it expects"
        result = self._result(one, "fail", "the rows differ", seconds, failures=1, details=different)
        return result, (error("unit-test-failed", message, test.span),)

    def _error(self, one: _Asked, wrong: tuple[Diagnostic, ...], seconds: float) -> _Answer:
        return self._result(one, "error", wrong[0].message, seconds), wrong

    def _result(
        self, one: _Asked, status: TestStatus, message: str, seconds: float, *, failures: int | None = None, details: str = ""
    ) -> TestResult:
        took = one.seconds + seconds
        return TestResult(
            id=one.test.id(self.graph.project.name),
            name=f"{one.test.model}::{one.test.name}",
            status=status,
            failures=failures,
            message=message,
            details=details,
            sql=one.query.sql if one.query else "",
            started_ms=self.clock.now_ms() - int(1000 * took),
            seconds=took,
        )


def _diagnostics(test: UnitTest, exc: ProjectError | QueryError) -> tuple[Diagnostic, ...]:
    if isinstance(exc, ProjectError):
        return exc.diagnostics
    return (error("query-failed", f"unit test {test.name}: {exc}", test.span),)


def _sides(engine: Engine, test: UnitTest, query: TestQuery) -> tuple[tuple[str, ...], str]:
    """The compared columns, and a query for the returned rows (side 0) and the expected ones (side 1)."""
    expect = test.expect
    types = {field["name"]: text(of_iceberg(field["type"])) or "string" for field in engine.prepare(query.sql).schema["fields"]}
    if expect is None:
        return (), f"SELECT 0 AS side, array({compared(list(types.items()))}) AS row FROM ({query.sql}\n) AS actual"
    wrong = problems(expect, types, complete=True, what=f"The result of '{test.model}'")
    named = {name.lower() for name in expect.columns}
    for record, place in zip(expect.records, expect.places, strict=True) if not wrong else ():
        left_out = named - {str(name).lower() for name in record}
        if left_out:
            message = f"An expected row has no value for '{min(left_out)}', which another one has"
            wrong.append(error("bad-unit-test", message, place, help="Write `null` if it must be NULL."))
    if wrong:
        raise ProjectError(wrong)
    if expect.sql is not None:
        named = {field["name"].lower() for field in engine.prepare(expect.sql).schema["fields"]}
    # As in dbt, columns that are not expected are not compared.
    columns = [(name, type_) for name, type_ in types.items() if name.lower() in named or not named]
    shown = f"array({compared(columns)}) AS row"
    expected = _cast(rows_sql(expect, dict(columns)), columns, expect)
    sides = f"SELECT 0 AS side, {shown} FROM ({query.sql}\n) AS actual UNION ALL SELECT 1 AS side, {shown} FROM {expected} AS expected"
    return tuple(name for name, _ in columns), sides


def _cast(sql: str, columns: Sequence[tuple[str, str]], expect: RowsAsWritten) -> str:
    """A query's columns get the types of the result; those of rows have them already."""
    if expect.sql is None:
        return sql
    return f"(SELECT {', '.join(f'CAST({quote(name)} AS {type_}) AS {quote(name)}' for name, type_ in columns)} FROM {sql} AS written)"


def _refreshed(
    clock: Clock, test: UnitTest, query: TestQuery, full: TestResult, refresh: Refresh
) -> tuple[TestResult, tuple[Diagnostic, ...]]:
    began = clock.monotonic()
    try:
        different, wrong = refresh(test, query), ()
    except ProjectError as exc:
        took = full.seconds + clock.monotonic() - began
        return replace(full, status="error", message=exc.diagnostics[0].message, failures=None, seconds=took), exc.diagnostics
    took = full.seconds + clock.monotonic() - began
    if not different:
        return replace(full, seconds=took), wrong
    message = f"unit test {test.name} of '{test.model}': after a refresh the rows differ from those of its query"
    failed = replace(full, status="fail", failures=1, message="the rows differ after a refresh", details=different, seconds=took)
    return failed, (error("unit-test-failed", message, test.span),)


@contextmanager
def _for_few_rows(engine: Engine) -> Iterator[None]:
    """Settings of the session while the tests run."""
    before = {row[0]: row[1] for key in FEW_ROWS for row in engine.call(f"SET {key}").rows}
    for key, value in FEW_ROWS.items():
        engine.call(f"SET {key}={value}")
    try:
        yield
    finally:
        for key in FEW_ROWS:
            engine.call(f"RESET {key}" if before[key] == "<undefined>" else f"SET {key}={before[key]}")
