"""project, another version of it -> Review: what differs, for whom, and what it refreshes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mvbuild.api.columns import bound
from mvbuild.api.of_project import Project, graph_of, states_now
from mvbuild.api.refreshes import plan
from mvbuild.diagnostics import ProjectError, warning
from mvbuild.graph.model import Graph
from mvbuild.plan.model import Plan
from mvbuild.selection.grammar import terms_of
from mvbuild.selection.select import select_all
from mvbuild.versions.model import version_of
from mvbuild.versions.other import opened

if TYPE_CHECKING:
    from mvbuild.review.model import Review


def review(project: Project, against: str, *, select: Iterable[str] = (), exclude: Iterable[str] = ()) -> Review:
    """What differs from another version of the project, of which kind and for whom, and what it refreshes. `against` is a git ref, which is
    compiled without a checkout, or a manifest written by mvbuild. The catalog is read if possible; Spark is not needed."""
    from mvbuild.review.build import build_review
    from mvbuild.review.findings import new_findings
    from mvbuild.review.refreshes import concerned, of_plan, without_plan

    graph = graph_of(project)
    if graph.problems:
        raise ProjectError(graph.problems)
    select, exclude = terms_of(select), terms_of(exclude)
    chosen, warnings = select_all(graph, select, exclude, states_now(graph)) if select or exclude else (None, ())
    now, new = bound(graph), version_of(graph, "the working copy")
    with opened(graph, against) as (old, former):
        before = bound(former) if former is not None else None
        found = build_review(graph, old, new, before, now, selected=chosen)
        found = replace(found, lint=new_findings(found.changes, before, now))
    if old.is_missing:
        message = f"There was no project at '{against}': everything counts as new"
        warnings = (*warnings, warning("bad-state", message, help="Choose a version that has the project, if there is one."))
    ids = concerned(graph, found.changes)
    planned, unknown = _plan_if_known(graph) if ids else (None, "")
    refreshes = of_plan(planned, ids) if planned else without_plan(graph, found.changes, ids)
    return replace(found, refreshes=refreshes, unknown=unknown, warnings=warnings)


def _plan_if_known(graph: Graph) -> tuple[Plan | None, str]:
    """The plan of everything, or the reason why there is none."""
    target = graph.project.target
    database = Path(target.catalog.get("uri", "").removeprefix("sqlite:///"))
    if target.embedded and not database.exists():
        return None, "the project's own catalog has not been created yet"
    try:
        return plan(graph, select=["*"], removed=False), ""
    except ProjectError as exc:
        return None, exc.diagnostics[0].message.rstrip(".")
