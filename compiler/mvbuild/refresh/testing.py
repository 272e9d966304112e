"""RunSession + TestNodes -> RunResult: data tests on what the catalog has now, outside any refresh."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import groupby

from mvbuild.diagnostics import Diagnostic
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.freshness.pins import leaf_table
from mvbuild.graph.broken import unrunnable
from mvbuild.graph.model import ModelNode, NodeId, TestNode
from mvbuild.refresh.data_tests import audit_sql, failures, run_audits, skipped_test, test_inputs, unrunnable_test
from mvbuild.refresh.result import RunResult, Tested, TestResult
from mvbuild.refresh.session import RunSession


def run_tests(
    session: RunSession,
    tests: Sequence[TestNode],
    *,
    warnings: tuple[Diagnostic, ...],
    on_event: Callable[[Tested], None],
    before: RunResult | None = None,
) -> RunResult:
    """Each test on the current snapshots, those of one table together. A test of a table that was never built is skipped with that
    reason. `before`: what was tested already."""
    began, started_ms = session.clock.monotonic(), session.clock.now_ms()
    done = before or RunResult(results=(), started_ms=started_ms)
    results: list[TestResult] = []
    total = len(tests) + len(done.tests)
    for _, group in groupby(tests, key=lambda test: test.reads[:1]):
        for result in _run_group(session, tuple(group)):
            results.append(result)
            on_event(Tested(result=result, index=len(done.tests) + len(results), total=total))
    return RunResult(
        results=(),
        tests=(*done.tests, *results),
        started_ms=done.started_ms,
        seconds=done.seconds + session.clock.monotonic() - began,
        diagnostics=(*warnings, *done.diagnostics, *failures(session.world.graph, tests, results)),
    )


def with_other_tests(
    session: RunSession, run: RunResult, chosen: Collection[NodeId], *, fail_fast: bool, on_event: Callable[[Tested], None]
) -> RunResult:
    """The result of a run, and of the chosen data tests that its refreshes did not need. A test of a node that failed or was skipped is
    skipped, and so is every test if the run failed and is to `fail_fast`."""
    done = {test.id for test in run.all_tests}
    names = {r.node: session.world.graph.nodes[r.node].identifier.dotted for r in run.results if r.status in ("error", "skipped")}
    tests = [test for test in session.world.graph.tests if test.id in chosen and test.id not in done]
    skipped: list[TestResult] = []
    ready: list[TestNode] = []
    for test in tests:
        bad = next((names[id] for id in test.reads if id in names), None)
        if bad is not None or (fail_fast and not run.ok):
            skipped.append(skipped_test(test, f"{bad} was not refreshed" if bad else "an earlier node failed (--fail-fast)"))
        else:
            ready.append(test)
    before = RunResult(results=(), tests=tuple(skipped), started_ms=run.started_ms)
    for number, result in enumerate(skipped, 1):
        on_event(Tested(result=result, index=number, total=len(tests)))
    tested = run_tests(session, ready, warnings=(), on_event=on_event, before=before)
    return replace(
        run, tests=(*run.tests, *tested.tests), seconds=run.seconds + tested.seconds, diagnostics=(*run.diagnostics, *tested.diagnostics)
    )


def _run_group(session: RunSession, tests: Sequence[TestNode]) -> list[TestResult]:
    graph, known = session.world.graph, dict[NodeId, TestResult]()
    for test in tests:
        if (why := unrunnable(graph, test)) is not None:
            known[test.id] = unrunnable_test(test, why.message)
        elif reason := _missing(session, test):
            known[test.id] = skipped_test(test, reason)
    ready = [test for test in tests if test.id not in known]
    queries = [(t, audit_sql(graph, t, session.pins(test_inputs(graph, t)), session.schema_pin)) for t in ready]
    known |= {result.id: result for result in run_audits(session, queries)}
    return [known[test.id] for test in tests]


def _missing(session: RunSession, test: TestNode) -> str:
    graph = session.world.graph
    below = test_inputs(session.world.graph, test)
    pins = session.pins(below)
    missing = [leaf_table(session.world.graph, leaf) for leaf in below.leaves if leaf not in pins]
    broken = session.world.observed.unreadable(missing[0]) if missing else None
    if missing:
        return broken.reason if broken else f"{missing[0]} does not exist"
    # Its storage exists already if the tests of its first refresh failed.
    empty = (graph.nodes[leaf.node] for leaf, found in pins.items() if found.snapshot_id == NO_SNAPSHOT)
    never = next((node.identifier for node in empty if isinstance(node, ModelNode)), None)
    return f"{never} was never refreshed" if never else ""
