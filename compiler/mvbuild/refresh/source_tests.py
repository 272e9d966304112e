"""Plan + RunSession -> SourceTests: the data tests of the base tables that a plan reads, and the steps that may not read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.freshness.leaves import node_inputs
from mvbuild.graph.model import Graph, NodeId, TableNode, TestNode, ViewNode
from mvbuild.plan.model import Plan
from mvbuild.refresh.result import Tested, TestResult
from mvbuild.refresh.session import RunSession


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTests:
    """`stopped`: a step that reads a base table whose test failed -> what to say of it."""

    results: tuple[TestResult, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    stopped: Mapping[NodeId, str] = field(default_factory=dict)


def run_source_tests(session: RunSession, plan: Plan, on_event: Callable[[Tested], None]) -> SourceTests:
    """Test the base tables that refreshes of the plan read, at the snapshots that they read. A test with `severity: warn` stops nothing."""
    readers = _readers(plan)
    tests = [test for test in _tests_of_sources(plan.world.graph) if not readers.keys().isdisjoint(test.reads)] if readers else []
    if not tests:
        return SourceTests()
    # Imported here because few projects test their sources.
    from mvbuild.refresh.testing import run_tests

    done = run_tests(session, tests, warnings=(), on_event=on_event)
    failed = {result.id for result in done.tests if result.status in ("fail", "error")}
    stopped = {
        step: f"data test {test.name} of its source failed"
        for test in tests
        if test.id in failed
        for read in test.reads
        for step in readers.get(read, ())
    }
    return SourceTests(results=done.tests, diagnostics=done.diagnostics, stopped=stopped)


def _tests_of_sources(graph: Graph) -> Iterator[TestNode]:
    """The tests that read nothing that a run could write."""
    for test in graph.tests:
        if not test.gates and test.reads and all(isinstance(graph.nodes[id], TableNode | ViewNode) for id in test.reads):
            yield test


def _readers(plan: Plan) -> Mapping[NodeId, list[NodeId]]:
    """Base table or view of the catalog -> the steps that compute rows from it, also through views."""
    graph = plan.world.graph
    if next(_tests_of_sources(graph), None) is None:
        return {}
    found: dict[NodeId, list[NodeId]] = {}
    for step in plan.steps:
        if step.action in ("refresh", "redefine"):
            below = node_inputs(graph, graph.model(step.node))
            for id_ in (*(leaf.node for leaf in below.leaves), *below.views):
                found.setdefault(id_, []).append(step.node)
    return found
