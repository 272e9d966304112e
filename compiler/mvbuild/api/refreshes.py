"""project -> Plan | Explanation | World | RunResult | Verification: what is stale and why, and its refresh."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mvbuild.api.compilation import write_artifacts
from mvbuild.api.lineage_events import with_lineage
from mvbuild.api.of_project import Project, graph_of, mv_of, states_of
from mvbuild.api.sessions import OnEvent, SystemClock, catalog_of, explained, ignore_event, observed, open_session
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import representation_problems
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, NodeId
from mvbuild.incremental.table_changes import Changes
from mvbuild.names import TableIdentifier
from mvbuild.plan.amount import bytes_of, read_by_mvs, read_by_plan
from mvbuild.plan.build import build_plan
from mvbuild.plan.model import Plan
from mvbuild.plan.removed import Removed
from mvbuild.plan.renames import Found, find_renames, renamed_world
from mvbuild.plan.seeds import seed_rows
from mvbuild.plan.settle import settle
from mvbuild.ports.catalog import Catalog
from mvbuild.refresh.atomic import require_atomic
from mvbuild.refresh.pending_commits import PendingCommits
from mvbuild.refresh.result import RunResult
from mvbuild.refresh.run import run_plan
from mvbuild.selection.select import select as select_nodes
from mvbuild.selection.select import select_all
from mvbuild.storage.names import former_states

if TYPE_CHECKING:
    from mvbuild.plan.explain import Explanation
    from mvbuild.verify.model import Verification

# Imports that only one command needs are where they are used: a run that finds nothing to do would otherwise take twice as long.


def plan(
    project: Project = ".",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    full_refresh: bool = False,
    removed: bool = True,
    catalog: Catalog | None = None,
    spark: Any = None,
) -> Plan:
    """What a run would do and why. Reads the catalog once; does not need Spark. With `removed`, and unless nodes are selected, all views of
    the catalog are read too: they show what remains of models that were removed. `spark`: the session that the run will use, if it is not
    mvbuild's own."""
    graph = graph_of(project)
    catalog = catalog or catalog_of(graph)
    world = observed(graph, catalog, spark, lazily=not full_refresh)
    chosen, warnings = select_nodes(world.graph, select, exclude, states_of(world))
    removed = removed and not (tuple(select) or tuple(exclude))
    planned = plan_nodes(world, catalog, chosen, full_refresh=full_refresh, removed=removed, warnings=warnings)
    settle(planned)
    return planned


def plan_nodes(
    world: World,
    catalog: Catalog,
    chosen: frozenset[NodeId],
    *,
    full_refresh: bool = False,
    removed: bool = False,
    warnings: tuple[Diagnostic, ...] = (),
    wanted: Mapping[NodeId, Reason] = MappingProxyType({}),
) -> Plan:
    """`plan` for callers that have read the catalog, and know the nodes. `wanted`: see `build_plan`."""
    graph = world.graph
    with explained(graph):
        former = former_states(world.graph, world.observed.states, catalog, world.settled)
        found = find_renames(world, former, chosen) if graph.project.branch is None else Found()
        if found.diagnostics:
            raise ProjectError(found.diagnostics)
        removed = removed and graph.project.branch is None
        renamed = [r.view.identifier for r in find_renames(world, former, frozenset(world.graph.nodes)).renames]
        gone = _removed(world, catalog, renamed) if removed else ()
    new = renamed_world(world, found.renames)
    problems = representation_problems(new, chosen)
    if problems:
        raise ProjectError(problems)
    planned = build_plan(new, chosen, full_refresh=full_refresh, warnings=warnings, changes=Changes(catalog.changes), wanted=wanted)
    before = replace(world, observed=world.observed.updated(former))
    return replace(planned, renames=found.renames, before=before, removed=gone)


def _removed(world: World, catalog: Catalog, renamed: Iterable[TableIdentifier]) -> tuple[Removed, ...]:
    from mvbuild.lifecycle.removed_models import find_removed

    return find_removed(world, catalog, renamed)


def explain(project: Project, name: str) -> Explanation:
    """How an MV is refreshed: its query as a tree, what changed in each table, and the result of every strategy. Does not need Spark."""
    from mvbuild.plan.explain import explain as explain_mv

    graph = graph_of(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    with explained(graph):
        found = find_renames(world, former_states(world.graph, world.observed.states, catalog), frozenset(world.graph.nodes))
        if found.diagnostics:
            raise ProjectError(found.diagnostics)
        world = renamed_world(world, found.renames)
        return explain_mv(world, mv_of(world.graph, name), Changes(catalog.changes))


def status(project: Project = ".") -> tuple[World, Mapping[NodeId, Freshness]]:
    """The freshness of every MV."""
    graph = graph_of(project)
    world = observed(graph, catalog_of(graph), lazily=True)
    return world, judge(world)


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
    select, exclude = tuple(select), tuple(exclude)
    if prune and (select or exclude):
        raise ProjectError([error("command-line", "--prune cannot be combined with --select or --exclude")])
    graph = graph_of(project)
    if prune and graph.project.branch is not None:
        raise ProjectError([error("command-line", "--prune cannot be combined with --branch")])
    catalog = catalog_of(graph)
    together = graph.project.publish == "atomic" if atomic is None else atomic
    if together:
        require_atomic(graph, catalog.atomic)
    planned = plan(graph, select=select, exclude=exclude, full_refresh=full_refresh, removed=False, catalog=catalog, spark=spark)
    if graph.project.branch is not None:
        from mvbuild.lifecycle.branches import require_branchable

        require_branchable(planned)
    require_contracts(planned)
    rows = seed_rows(planned)
    reads = None
    if ends_process and planned.needs_engine:
        reads = bytes_of(planned.world, read_by_plan(planned, all_tests=all_tests), rows)
    with open_session(planned.world, catalog, spark, on_event, reads=reads) as session:
        session.pending = PendingCommits(catalog=catalog, clock=session.clock) if together else None
        if planned.needs_engine:
            _ = session.engine  # before any step: if Spark cannot start, nothing is touched
        if planned.renames:
            from mvbuild.lifecycle.rename import rename

            planned = rename(session, planned)

        def work(told: OnEvent) -> RunResult:
            done = run_plan(planned, session, rows, threads=threads or graph.project.target.threads, fail_fast=fail_fast, on_event=told)
            if not all_tests:
                return done
            from mvbuild.refresh.testing import with_other_tests

            chosen, _ = select_all(planned.world.graph, select, exclude, states_of(planned.world))
            return with_other_tests(session, done, chosen, fail_fast=fail_fast, on_event=told)

        result = with_lineage(session, on_event, work)
    renamed = tuple(pair for r in planned.renames for pair in r.names.items())
    result = replace(result, diagnostics=(*planned.warnings, *result.diagnostics), renamed=renamed)
    if prune and result.ok:
        result = _pruned(graph, catalog, result)
    # Include the time before the first step, above all the start of Spark.
    result = replace(result, started_ms=started_ms, seconds=clock.monotonic() - began)
    which = "build" if all_tests else "run"
    write_artifacts(planned.world.graph, result, arguments={"which": which, **(arguments or {})})
    return result


def require_contracts(planned: Plan) -> None:
    """Nothing is touched if a model of the plan does not have the columns of its contract, by the current catalog."""
    graph = planned.world.graph
    contracts = frozenset(graph.contracts)
    enforced = [s.node for s in planned.steps if s.node in contracts]
    if enforced:
        from mvbuild.lineage.bind import bind
        from mvbuild.lineage.schemas import of_states

        found = bind(graph, of_states(planned.world.observed.states), only=enforced)
        broken = [d for d in found.diagnostics if d.code == "broken-contract"]
        if broken:
            raise ProjectError(broken)


def _pruned(graph: Graph, catalog: Catalog, result: RunResult) -> RunResult:
    """The run has just changed the catalog, so it is read again."""
    from mvbuild.lifecycle.drop import drop_all
    from mvbuild.lifecycle.removed_models import find_removed

    world = observed(graph, catalog)
    with explained(graph):
        dropped, diagnostics = drop_all(catalog, find_removed(world, catalog))
    names = tuple(name for d in dropped for name in d.names)
    return replace(result, dropped=names, diagnostics=(*result.diagnostics, *diagnostics))


def verify(
    project: Project = ".",
    names: Iterable[str] = (),
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    sample: float | None = None,
    seed: int | None = None,
    limit: int = 10,
    float_tolerance: float | None = None,
    spark: Any = None,
    ends_process: bool = False,
    on_event: OnEvent = ignore_event,
) -> Verification:
    """Compute MVs again from the snapshots that their last refresh read, and compare the result with their storage. Nothing is written.

    `sample` is a share of the keys, 0.01 for one percent; `seed` chooses which. `float_tolerance` takes precedence over the models. An MV
    that cannot be verified is an error if it is in `names`, otherwise a warning. `ends_process`: see `run`.
    """
    from mvbuild.verify.verify import Check, doubts
    from mvbuild.verify.verify import verify as verify_all

    if not (sample is None or 0 < sample <= 1):
        raise ProjectError([error("command-line", "A sample must be above 0 and at most 1")])
    if not (float_tolerance is None or (math.isfinite(float_tolerance) and float_tolerance >= 0)):
        raise ProjectError([error("command-line", "A tolerance must be a number, not below 0")])
    graph = graph_of(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog, spark)
    named = {mv_of(world.graph, name).id for name in names}
    chosen, warnings = (named, ()) if named else select_nodes(world.graph, select, exclude, states_of(world))
    nodes = [n for n in world.graph.views if n.id in chosen]
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    check = Check(sample=sample, seed=seed, limit=limit, float_tolerance=float_tolerance)
    reads = bytes_of(world, read_by_mvs(world.graph, nodes)) if ends_process else None
    with open_session(world, catalog, spark, on_event, reads=reads) as session, explained(graph):
        found = verify_all(session, nodes, check, on_event)
    return replace(found, diagnostics=(*warnings, *doubts(world.graph, found.results, named=bool(named))))
