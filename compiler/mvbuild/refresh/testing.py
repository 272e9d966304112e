"""RunSession + TestNodes -> RunResult: data tests on what the catalog has now, outside any refresh."""

from __future__ import annotations

from collections.abc import Sequence

from mvbuild.diagnostics import Diagnostic
from mvbuild.freshness.pins import leaf_table
from mvbuild.graph.model import TestNode
from mvbuild.refresh.audits import audit_sql, failures, run_audits, test_inputs
from mvbuild.refresh.result import RunResult, TestResult
from mvbuild.refresh.session import RunSession


def run_tests(session: RunSession, tests: Sequence[TestNode], *, warnings: tuple[Diagnostic, ...] = ()) -> RunResult:
    """Each test on the current snapshots; a test of something that was never built is skipped with that reason."""
    began, started_ms = session.clock.monotonic(), session.clock.now_ms()
    ready: list[tuple[TestNode, str]] = []
    results: dict[str, TestResult] = {}
    for test in tests:
        below = test_inputs(session.world.graph, test)
        pins = session.pins(below)
        missing = [leaf_table(session.world.graph, leaf) for leaf in below.leaves if leaf not in pins]
        if missing:
            message = f"{missing[0]} does not exist"
            results[test.id] = TestResult(id=test.id, name=test.name, status="skipped", failures=None, message=message, sql="")
        else:
            ready.append((test, audit_sql(session.world.graph, test, pins, session.schema_pin)))
    done = run_audits(session.engine, session.clock, ready, now_ms=started_ms) if ready else ()
    results.update((r.id, r) for r in done)
    return RunResult(
        results=(),
        tests=tuple(results[t.id] for t in tests),
        started_ms=started_ms,
        seconds=session.clock.monotonic() - began,
        diagnostics=(*warnings, *failures([t for t, _ in ready], done)),
    )
