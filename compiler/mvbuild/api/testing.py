"""project -> RunResult: the unit tests of models, and the data tests of what the catalog has now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mvbuild.api.compilation import write_artifacts
from mvbuild.api.lineage_events import with_lineage
from mvbuild.api.of_project import Project, graph_of, states_of
from mvbuild.api.sessions import OnEvent, SystemClock, catalog_of, ignore_event, observed, open_session
from mvbuild.plan.amount import bytes_of, read_by_tests
from mvbuild.refresh.result import RunResult
from mvbuild.refresh.testing import run_tests
from mvbuild.selection.select import select_all


def test(
    project: Project = ".",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    spark: Any = None,
    ends_process: bool = False,
    on_event: OnEvent = ignore_event,
) -> RunResult:
    """Run the unit tests of the selected models, and the data tests of the selected models, seeds and sources on what the catalog has
    now. `ends_process`: see `run`."""
    from mvbuild.api.unit_testing import run_units

    clock = SystemClock()
    started_ms, began = clock.now_ms(), clock.monotonic()
    graph = graph_of(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog, spark)
    chosen, warnings = select_all(world.graph, select, exclude, states_of(world), units=True)
    tests = [t for t in world.graph.tests if t.id in chosen]
    units = [t for t in graph.unit_tests if t.id(graph.project.name) in chosen]
    reads = bytes_of(world, read_by_tests(world.graph, tests)) if ends_process else None
    with open_session(world, catalog, spark, on_event, reads=reads) as session:

        def work(told: OnEvent) -> RunResult:
            units_result = run_units(session, units, total=len(units) + len(tests), on_event=told)
            return run_tests(session, tests, warnings=warnings, on_event=told, before=units_result)

        result = with_lineage(session, on_event, work)
    # With the time before the first test, above all the start of Spark.
    result = replace(result, started_ms=started_ms, seconds=clock.monotonic() - began)
    write_artifacts(world.graph, result, arguments={"which": "test"})
    return result


test.__test__ = False  # type: ignore[attr-defined]
