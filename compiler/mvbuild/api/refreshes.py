"""project -> Plan | Explanation | World | Verification: what is stale and why, what a run would do, and whether the rows are right."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mvbuild.api.of_project import Project, graph_of, mv_of, states_of
from mvbuild.api.sessions import OnEvent, catalog_of, explained, ignore_event, observed, open_session
from mvbuild.diagnostics import Diagnostic, ProjectError, error, warning
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, NodeId
from mvbuild.incremental.table_changes import Changes
from mvbuild.names import TableIdentifier
from mvbuild.plan.amount import bytes_of, read_by_mvs
from mvbuild.plan.build import build_plan
from mvbuild.plan.model import OnWork, Plan
from mvbuild.plan.on_branch import branchable
from mvbuild.plan.removed import Removed
from mvbuild.plan.renames import Found, beside_former, find_renames, renamed_world
from mvbuild.plan.settle import settle
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.states import State
from mvbuild.selection.select import select as select_nodes
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
    on_work: OnWork | None = None,
) -> Plan:
    """What a run would do and why. Reads the catalog once; does not need Spark. With `removed`, and unless nodes are selected, all views of
    the catalog are read too: they show what remains of models that were removed. `spark`: the session that the run will use, if it is not
    mvbuild's own. `on_work`: see `build_plan`."""
    graph = graph_of(project)
    catalog = catalog or catalog_of(graph)
    world = observed(graph, catalog, spark, lazily=not full_refresh)
    chosen, warnings = select_nodes(world.graph, select, exclude, states_of(world))
    removed = removed and not (tuple(select) or tuple(exclude))
    planned = plan_nodes(world, catalog, chosen, full_refresh=full_refresh, removed=removed, warnings=warnings, on_work=on_work)
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
    on_work: OnWork | None = None,
) -> Plan:
    """`plan` for callers that have read the catalog, and know the nodes. `wanted` and `on_work`: see `build_plan`."""
    graph = world.graph
    with explained(graph):
        former = former_states(world.graph, world.observed.states, catalog, world.settled)
        found = find_renames(world, former, chosen) if graph.project.branch is None else Found()
        warnings = (*warnings, *_not_renamed(graph, former, chosen))
        removed = removed and graph.project.branch is None
        renamed = [r.view.identifier for r in find_renames(world, former, frozenset(world.graph.nodes)).renames]
        gone = _removed(world, catalog, renamed) if removed else ()
    new = renamed_world(world, found.renames)
    planned = build_plan(
        new,
        chosen,
        full_refresh=full_refresh,
        warnings=warnings,
        changes=Changes(catalog.changes),
        wanted=wanted,
        refused=found.refused,
        on_work=on_work if graph.project.branch is None else None,  # a branch may refuse what the plan has
    )
    before = replace(world, observed=world.observed.updated(former))
    planned = replace(planned, renames=found.renames, before=before, removed=gone)
    return planned if graph.project.branch is None else branchable(planned)


def _not_renamed(graph: Graph, former: Mapping[TableIdentifier, State], chosen: frozenset[NodeId]) -> Iterator[Diagnostic]:
    """A branch renames nothing."""
    for node, view in beside_former(graph, former) if graph.project.branch is not None else ():
        if node.id in chosen:
            message = f"{view.identifier} is not renamed on a branch: '{node.model.name}' is built there as a new model"
            drop = f"`mvbuild branch drop {graph.project.branch}`"
            help = f"It cannot be published: {drop}, run without --branch to rename it, and build it again."
            yield warning("bad-previous-name", message, node.model.config.spans.get("previous_name"), help=help)


def _removed(world: World, catalog: Catalog, renamed: Iterable[TableIdentifier]) -> tuple[Removed, ...]:
    from mvbuild.lifecycle.removed_models import find_removed

    return find_removed(world, catalog, renamed)


def explain(project: Project, name: str) -> Explanation:
    """How an MV is refreshed: its query as a tree, what changed in each table, and the result of every strategy. Does not need Spark."""
    from mvbuild.plan.explain import explain as explain_mv

    graph = graph_of(project)
    catalog = catalog_of(graph)
    world, found = as_renamed(observed(graph, catalog), catalog)
    with explained(graph):
        return explain_mv(world, mv_of(world.graph, name), Changes(catalog.changes), refused=found.refused)


def status(project: Project = ".") -> tuple[World, Mapping[NodeId, Freshness]]:
    """The freshness of every MV. One that the next run renames has the reason `renamed`, and is judged by what it has in the catalog."""
    graph = graph_of(project)
    catalog = catalog_of(graph)
    world, found = as_renamed(observed(graph, catalog, lazily=True), catalog)
    answers = dict(judge(world))
    for rename in (one for one in found.renames if one.node in answers):  # a plain view has no freshness
        former = rename.view.identifier
        reason = Reason(code="renamed", message=f"it is {former} until the next run renames it", effect="fresh", table=former)
        answers[rename.node] = replace(answers[rename.node], reasons=(*answers[rename.node].reasons, reason))
    return world, answers


def as_renamed(world: World, catalog: Catalog) -> tuple[World, Found]:
    """The world after the renames that the next run makes, and those renames. A branch has none."""
    graph = world.graph
    if graph.project.branch is not None:
        return world, Found()
    with explained(graph):
        found = find_renames(world, former_states(graph, world.observed.states, catalog, world.settled), frozenset(graph.nodes))
    return renamed_world(world, found.renames), found


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
        raise ProjectError(
            [error("command-line", "A sample must be above 0 and at most 1", help="0.01 is one in a hundred. See `mvbuild verify --help`.")]
        )
    if not (float_tolerance is None or (math.isfinite(float_tolerance) and float_tolerance >= 0)):
        raise ProjectError([error("command-line", "A tolerance must be a number, not below 0", help="See `mvbuild verify --help`.")])
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
