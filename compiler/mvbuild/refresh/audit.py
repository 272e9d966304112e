"""Staged + data tests -> Audited: the new rows satisfy the tests. AuditFailed otherwise, and nothing is published."""

from __future__ import annotations

from collections.abc import Sequence

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError, error
from mvbuild.freshness.observed import Pin
from mvbuild.freshness.pins import leaf_table, pin
from mvbuild.graph.broken import unrunnable
from mvbuild.graph.model import TestNode
from mvbuild.ports.states import TableState
from mvbuild.refresh.data_tests import audit_sql, failures, run_audits, test_inputs
from mvbuild.refresh.outcome import AuditFailed
from mvbuild.refresh.pinned import Pinned
from mvbuild.refresh.result import TestResult
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.stage import Staged


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A refresh whose rows may be published."""

    staged: Staged
    tests: tuple[TestResult, ...]


def audit(session: RunSession, staged: Staged, tests: Sequence[TestNode]) -> Audited:
    """Run the tests on the rows that were written. Raises AuditFailed if one fails."""
    prepared = staged.prepared
    results = _results(session, prepared.pinned, staged.written, staged.snapshot.snapshot_id, tests, prepared.sql)
    return Audited(staged=staged, tests=results)


def audit_current(session: RunSession, pinned: Pinned, tests: Sequence[TestNode]) -> tuple[TestResult, ...]:
    """Run the tests on rows that do not change: other tables that the tests read may have changed."""
    storage = pinned.storage
    assert storage is not None, pinned.node.id
    if not tests or storage.current_snapshot_id is None:
        return ()
    return _results(session, pinned, storage, storage.current_snapshot_id, tests, "")


def _results(
    session: RunSession, pinned: Pinned, table: TableState, snapshot_id: int, tests: Sequence[TestNode], sql: str
) -> tuple[TestResult, ...]:
    node, graph = pinned.node, pinned.world.graph
    audited = Pin(table=table, snapshot_id=snapshot_id, ref=None, moves=True)
    queries = []
    for test in tests:
        if (wrong := unrunnable(graph, test)) is not None:
            raise ProjectError([wrong])
        leaves = test_inputs(graph, test).leaves
        pins = {leaf: audited if leaf.node == node.id else pin(graph, session.world.observed, leaf) for leaf in leaves}
        missing = [leaf_table(graph, leaf) for leaf, p in pins.items() if p is None]
        if missing:
            raise ProjectError([error("missing-table", f"data test {test.name} reads {missing[0]}, which does not exist", test.span)])
        queries.append((test, audit_sql(graph, test, {leaf: p for leaf, p in pins.items() if p}, session.schema_pin)))
    if queries:
        session.on_stage(node.id, "testing")
    results = run_audits(session, queries)
    # A scratch table is dropped with the refresh.
    failed = failures(graph, tests, results, is_kept=table.identifier == node.storage)
    if failed:
        raise AuditFailed(ProjectError(failed), results, sql)
    return results
