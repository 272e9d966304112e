"""RunSession + UnitTests -> RunResult: unit tests, with the types that the project and the catalog give to columns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from mvbuild.api.unit_refreshes import as_refreshes
from mvbuild.freshness.observed import World
from mvbuild.graph.model import NodeId
from mvbuild.lineage.bind import bind
from mvbuild.lineage.schemas import of_node, of_states
from mvbuild.project.unit_tests import UnitTest
from mvbuild.refresh.result import RunResult, Tested, TestResult
from mvbuild.refresh.session import RunSession
from mvbuild.unit_tests.query import Columns
from mvbuild.unit_tests.run import run_unit_tests


def run_units(session: RunSession, tests: Sequence[UnitTest], *, total: int, on_event: Callable[[Tested], None]) -> RunResult:
    """All in one session of the engine, which is only started if there is a test."""
    clock, graph = session.clock, session.world.graph
    began, started_ms = clock.monotonic(), clock.now_ms()
    if not tests:
        return RunResult(results=(), started_ms=started_ms)
    tested: list[TestResult] = []

    def on_result(result: TestResult) -> None:
        tested.append(result)
        on_event(Tested(result=result, index=len(tested), total=total))

    models = {id for test in tests if (id := f"model.{graph.project.name}.{test.model}") in graph.nodes}
    columns = columns_below(session.world, models)
    with tempfile.TemporaryDirectory(prefix="mvbuild-unit-") as folder:
        results, report = run_unit_tests(
            session.engine,
            clock,
            graph,
            tests,
            columns,
            threads=graph.project.target.threads,
            refresh=as_refreshes(lambda: session.engine, graph, columns, Path(folder)),
            on_result=on_result,
        )
    return RunResult(results=(), tests=results, started_ms=started_ms, seconds=clock.monotonic() - began, diagnostics=report)


def columns_below(world: World, models: set[NodeId]) -> dict[NodeId, Columns]:
    """The columns of what the models read: by their queries, otherwise as the catalog has them."""
    graph, schemas = world.graph, of_states(world.observed.states)
    wanted = models | graph.ancestors(models)
    bound = bind(graph, schemas, wanted)
    found: dict[NodeId, Columns] = {}
    for id_ in wanted:
        node = graph.nodes[id_]
        stored = of_node(node, schemas) or schemas.of(node.identifier)
        types = {column.name.lower(): column.type for column in stored.columns} if stored else {}
        known = bound.columns.get(id_)
        if known is not None:
            found[id_] = Columns(types={c.name: c.type or types.get(c.name.lower()) for c in known}, complete=True)
        elif stored is not None:
            found[id_] = Columns(types={c.name: c.type for c in stored.columns}, complete=stored.complete)
    return found
