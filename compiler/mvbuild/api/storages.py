"""project, one of its MVs -> its past refreshes; another refresh made current, maintenance, another storage format, or the MV dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mvbuild.api.of_project import Project, graph_of, mv_of, states_of
from mvbuild.api.sessions import OnEvent, catalog_of, explained, ignore_event, observed, open_session
from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.formats.record import StorageFormat
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.readable import require_readable
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, ModelNode
from mvbuild.lifecycle.drop import Dropped
from mvbuild.lifecycle.drop import drop as drop_one
from mvbuild.lifecycle.maintain import Maintained
from mvbuild.lifecycle.maintain import maintain as keep_up
from mvbuild.lifecycle.removed_models import find_named
from mvbuild.lifecycle.rollback import rollback as roll_back
from mvbuild.plan.conversions import conversions
from mvbuild.plan.removed import Removed, refusal
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.recording import described
from mvbuild.refresh.result import RunResult
from mvbuild.refresh.run import run_plan
from mvbuild.selection.select import select as select_nodes
from mvbuild.storage.history import PastRefresh
from mvbuild.storage.history import history as past_refreshes


def history(project: Project, name: str) -> tuple[ModelNode, tuple[PastRefresh, ...]]:
    """The refreshes of an MV that can still be read, oldest first. Does not need Spark."""
    from mvbuild.api.refreshes import as_renamed

    graph = graph_of(project)
    catalog = catalog_of(graph)
    world, _ = as_renamed(observed(graph, catalog), catalog)
    node = mv_of(world.graph, name)
    require_readable(world, node)
    storage = world.observed.table(node.storage)
    past = past_refreshes(storage) if storage is not None else ()
    return node, tuple(replace(p, record=described(world, node, p.record)) for p in past)


def rollback(project: Project, name: str, to: int) -> tuple[ModelNode, Outcome, Freshness]:
    """Make data and record of another refresh current, in one commit. Returns also the MV's new freshness. Does not need Spark."""
    graph = graph_of(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    node = mv_of(world.graph, name)
    require_readable(world, node)
    with open_session(world, catalog, None, ignore_event) as session, explained(graph):
        outcome = roll_back(session, node, to)
        return node, outcome, judge(session.world)[node.id]


def drop(project: Project, name: str, *, confirm: Callable[[Removed], bool] = lambda _: True) -> Dropped | None:
    """Drop an MV or view that mvbuild wrote, with its storage and files. Raises ProjectError (`has-dependents`) if something reads it.
    Returns None if it was not confirmed. Does not need Spark."""
    graph = graph_of(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    with explained(graph):
        item = find_named(world, catalog, name)
        if item.kept_by:
            raise ProjectError([refusal(item)])
        return drop_one(catalog, item) if confirm(item) else None


def maintain(
    project: Project = ".",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    dry_run: bool = False,
    spark: Any = None,
    on_event: OnEvent = ignore_event,
    on_done: Callable[[Maintained], None] = lambda _: None,
) -> tuple[Graph, tuple[Maintained, ...], tuple[Diagnostic, ...]]:
    """Compact, expire and clean up the storage of MVs by their policies. Spark is only started if there is something to compact."""
    graph = graph_of(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    chosen, warnings = select_nodes(world.graph, select, exclude, states_of(world))
    nodes = [n for n in world.graph.views if n.id in chosen]
    with open_session(world, catalog, spark, on_event) as session, explained(graph):
        return world.graph, keep_up(session, nodes, dry_run=dry_run, on_done=on_done), warnings


def migrate(
    project: Project = ".",
    *,
    to: StorageFormat,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    on_event: OnEvent = ignore_event,
) -> RunResult:
    """Convert MVs to another storage format without touching a row. Does not need Spark."""
    graph = graph_of(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    chosen, warnings = select_nodes(world.graph, select, exclude, states_of(world))
    planned = conversions(world, chosen, to)
    with open_session(planned.world, catalog, None, on_event) as session:
        result = run_plan(planned, session, threads=1, fail_fast=False, on_event=on_event)
    return replace(result, diagnostics=(*warnings, *planned.warnings))
