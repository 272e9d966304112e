"""project -> the columns of its nodes, their lineage, what is wrong with them; schemas.lock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mvbuild.api.of_project import Project, graph_of
from mvbuild.api.sessions import catalog_of, observed
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.graph.model import Graph

if TYPE_CHECKING:
    from mvbuild.lineage.lock import Locked
    from mvbuild.lineage.model import Bound
    from mvbuild.lineage.schemas import TableColumns

# What is asked for less than a run is imported where it is used: see refreshes.py.


def bound(project: Project = ".") -> Bound:
    """The columns of every node and their lineage, by schemas.lock and what the project declares. No catalog, no Spark. Nothing is raised
    for what is wrong in a query: that is in `diagnostics`."""
    from mvbuild.lineage.bind import bind
    from mvbuild.lineage.lock import of_lock, read_lock
    from mvbuild.lineage.schemas import NO_SCHEMAS

    graph = graph_of(project)
    tables = read_lock(graph)
    return bind(graph, of_lock(tables, graph) if tables is not None else NO_SCHEMAS, keep=True)


def check_columns(project: Project = ".") -> tuple[Diagnostic, ...]:
    """ProjectError with everything that is certainly wrong with names, types and contracts; the warnings, if nothing is. Queries are looked
    at only where schemas.lock tells what they read, or where a contract is enforced."""
    from mvbuild.lineage import check

    return check.check_columns(graph_of(project))


def lineage(project: Project = ".", *, of: str | None = None) -> tuple[Bound, tuple[Diagnostic, ...]]:
    """The columns of every node and their lineage, by schemas.lock, else by the catalog; a warning where neither is there.

    `of`: a name as the command takes it, to which the answer is narrowed: what it comes from, and what is made of it. Raises ProjectError.
    """
    from mvbuild.lineage.bind import bind
    from mvbuild.lineage.lock import of_lock, read_lock
    from mvbuild.lineage.schemas import of_states
    from mvbuild.lineage.trace import around

    graph = graph_of(project)
    tables = read_lock(graph)
    if tables is not None:
        return bind(graph, of_lock(tables, graph), around(graph, of) if of else None, keep=True), ()
    try:
        world = observed(graph, catalog_of(graph))
    except ProjectError as exc:
        unreachable = [d for d in exc.diagnostics if d.code == "catalog-unreachable"]
        if not unreachable:
            raise
        help = "The columns of its tables are unknown; create a schemas.lock with `mvbuild lock`."
        return bind(graph, only=around(graph, of) if of else None), tuple(replace(d, severity="warning", help=help) for d in unreachable)
    return bind(world.graph, of_states(world.observed.states), around(world.graph, of) if of else None), ()


def lock(project: Project = ".", *, write: bool = True) -> Locked:
    """Compare schemas.lock with the catalog, and write it anew unless `write` is False. One read of the catalog, no Spark."""
    from mvbuild.lineage.lock import Locked, differences, lock_path, locked, missing_tables, to_text
    from mvbuild.lineage.schemas import of_states

    graph = graph_of(project)
    world = observed(graph, catalog_of(graph))
    now, missing = locked(world.graph, of_states(world.observed.states))
    before = _lock_before(graph, needed=not write)
    if write and before != now:
        try:
            lock_path(graph).write_text(to_text(now), encoding="utf-8", newline="\n")
        except OSError as exc:
            raise ProjectError([error("unwritable-target", f"Cannot write {lock_path(graph)}: {exc.strerror or exc}")]) from exc
    warnings = tuple(replace(d, severity="warning") for d in missing_tables(missing, world.graph))
    changes = tuple(differences(before, now)) if before is not None else ()
    return Locked(tables=len(now), differences=changes, is_new=before is None, warnings=warnings)


def _lock_before(graph: Graph, *, needed: bool) -> dict[str, TableColumns] | None:
    """A lock that cannot be read is as good as none where it is written anew."""
    from mvbuild.lineage.lock import read_lock

    try:
        return read_lock(graph)
    except ProjectError:
        if needed:
            raise
        return None
