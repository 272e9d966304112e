"""project -> RunResult: what is stale is refreshed, tested and published, and the artifacts of that are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from mvbuild.api.compilation import write_artifacts, write_results
from mvbuild.api.early_start import planned_beside
from mvbuild.api.interrupted import Ended
from mvbuild.api.lineage_events import with_lineage
from mvbuild.api.of_project import Project, graph_of, states_of
from mvbuild.api.refreshes import plan
from mvbuild.api.sessions import OnEvent, SystemClock, catalog_of, explained, ignore_event, observed, open_session, started_engine
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.graph.model import Graph
from mvbuild.plan.amount import bytes_of, read_by_plan
from mvbuild.plan.model import Plan
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.engine import Engine
from mvbuild.refresh.atomic import require_atomic
from mvbuild.refresh.pending_commits import PendingCommits
from mvbuild.refresh.result import RunResult
from mvbuild.refresh.run import run_plan
from mvbuild.refresh.session import RunSession
from mvbuild.selection.grammar import terms_of
from mvbuild.selection.select import select_all
from mvbuild.selection.unsure import perhaps_selected

# Imports that only some runs need are where they are used: a run that finds nothing to do would otherwise take twice as long.


def run(
    project: Project = ".",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    full_refresh: bool = False,
    fail_fast: bool = False,
    prune: bool = False,
    atomic: bool | None = None,
    all_tests: bool = False,
    threads: int | None = None,
    spark: Any = None,
    ends_process: bool = False,
    on_event: OnEvent = ignore_event,
    arguments: Mapping[str, Any] | None = None,
) -> RunResult:
    """Refresh what is stale. With `spark`, that session is used and left running. With `prune`, what remains of models that the project no
    longer has is dropped afterwards. With `atomic`, everything is published in one commit at the end of the run, or nothing if anything
    failed; None: as the project configures it. With `all_tests`, the selected data tests that belong to no refresh of this run follow. With
    `ends_process`, the process does nothing else, so that Spark is started for what this run reads."""
    clock = SystemClock()
    started_ms, began = clock.now_ms(), clock.monotonic()
    select, exclude = terms_of(select), terms_of(exclude)
    graph = graph_of(project)
    if prune:
        _require_whole(graph, select, exclude)
    catalog = catalog_of(graph)
    together = graph.project.publish == "atomic" if atomic is None else atomic
    if together:
        require_atomic(graph, catalog.atomic)
    ended = Ended(on_event=on_event)
    arguments = {"which": "build" if all_tests else "run", **(arguments or {})}
    begin = _Beginning(ended=ended, arguments=arguments, together=together, all_tests=all_tests, ends_process=ends_process)
    make = partial(plan, graph, select=select, exclude=exclude, full_refresh=full_refresh, removed=False, catalog=catalog, spark=spark)
    planned, engine = planned_beside(make, begin.engine) if ends_process and spark is None else (make(), None)
    try:
        with open_session(planned.world, catalog, spark, on_event, reads=begin(planned), engine=engine) as session:
            session.pending = PendingCommits(catalog=catalog, clock=session.clock) if together else None
            planned = _started(session, planned)

            def work(told: OnEvent) -> RunResult:
                done = run_plan(planned, session, threads=threads or graph.project.target.threads, fail_fast=fail_fast, on_event=told)
                return _tested(planned, session, done, select, exclude, fail_fast=fail_fast, on_event=told) if all_tests else done

            result = with_lineage(session, ended, work)
    except KeyboardInterrupt:
        done = replace(ended.interrupted(planned, together=together), started_ms=started_ms, seconds=clock.monotonic() - began)
        with suppress(ProjectError):  # the interrupt is what the command ends with
            write_artifacts(planned.world.graph, done, arguments=arguments)
        raise
    unsure = tuple(perhaps_selected(graph, (*select, *exclude), {step.node for step in planned.steps}))
    result = _with_notes(planned, result, unsure)
    arguments = {**arguments, "is_unsure": bool(unsure)}
    if prune and result.ok:
        result = _pruned(graph, catalog, result)
    # Include the time before the first step, above all the start of Spark.
    result = replace(result, started_ms=started_ms, seconds=clock.monotonic() - began)
    write_artifacts(planned.world.graph, result, arguments=arguments)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning:
    """What a run does before its first step, and before Spark starts for it."""

    ended: Ended
    arguments: Mapping[str, Any]
    together: bool
    all_tests: bool
    ends_process: bool

    def __call__(self, planned: Plan) -> int | None:
        """Returns how many bytes of tables the process reads, if that is known. If it is killed, `retry` finds all that this run was about
        to do, and not what an earlier one did."""
        graph = planned.world.graph
        if any(step.is_change for step in planned.steps):
            graph.project.contents.complete()
            write_results(graph, self.ended.interrupted(planned, together=self.together), arguments=self.arguments)
        if not self.ends_process or not planned.needs_engine:
            return None
        return bytes_of(planned.world, read_by_plan(planned, all_tests=self.all_tests), planned.rows)

    def engine(self, expected: Plan) -> Engine:
        return started_engine(expected.world.graph, None, self.ended.on_event, reads=self(expected))


def _require_whole(graph: Graph, select: Sequence[str], exclude: Sequence[str]) -> None:
    """What is pruned depends on the whole project."""
    for option, is_given in (("--select or --exclude", select or exclude), ("--branch", graph.project.branch is not None)):
        if is_given:
            raise ProjectError([error("command-line", f"--prune cannot be combined with {option}", help="See `mvbuild run --help`.")])


def _started(session: RunSession, planned: Plan) -> Plan:
    """The plan after renames. If Spark cannot start, nothing is touched."""
    if planned.needs_engine:
        _ = session.engine
    if planned.renames:
        from mvbuild.lifecycle.rename import rename

        planned = rename(session, planned)
    return planned


def _tested(
    planned: Plan,
    session: RunSession,
    done: RunResult,
    select: Iterable[str],
    exclude: Iterable[str],
    *,
    fail_fast: bool,
    on_event: OnEvent,
) -> RunResult:
    """With the selected data tests that no refresh needed."""
    from mvbuild.refresh.testing import with_other_tests

    chosen, _ = select_all(planned.world.graph, select, exclude, states_of(planned.world))
    return with_other_tests(session, done, chosen, fail_fast=fail_fast, on_event=on_event)


def _with_notes(planned: Plan, result: RunResult, unsure: Sequence[Diagnostic]) -> RunResult:
    """With the warnings of the plan and of its nodes, with what may be missing in it, and with what was renamed."""
    renamed = tuple(pair for r in planned.renames for pair in r.names.items())
    unforeseen = (found for one in result.results for found in one.diagnostics if found.severity == "warning")
    return replace(result, diagnostics=(*planned.warnings, *unforeseen, *result.diagnostics, *unsure), renamed=renamed)


def _pruned(graph: Graph, catalog: Catalog, result: RunResult) -> RunResult:
    """The run has just changed the catalog, so it is read again."""
    from mvbuild.lifecycle.drop import drop_all
    from mvbuild.lifecycle.removed_models import find_removed

    world = observed(graph, catalog)
    with explained(graph):
        dropped, diagnostics = drop_all(catalog, find_removed(world, catalog))
    names = tuple(name for d in dropped for name in d.names)
    return replace(result, dropped=names, diagnostics=(*result.diagnostics, *diagnostics))
