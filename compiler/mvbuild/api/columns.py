"""project -> the columns of its nodes, their lineage, errors in them; schemas.lock."""

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

# Imports for questions smaller than a run are where they are used: see refreshes.py.


def bound(project: Project = ".") -> Bound:
    """The columns of every node and their lineage, from schemas.lock and the declarations of the project. Needs no catalog and no Spark.
    Errors in queries are not raised: they are in `diagnostics`."""
    from mvbuild.lineage.bind import bind
    from mvbuild.lineage.lock import of_lock, read_lock
    from mvbuild.lineage.schemas import NO_SCHEMAS

    graph = graph_of(project)
    tables = read_lock(graph)
    return bind(graph, of_lock(tables, graph) if tables is not None else NO_SCHEMAS, keep=True)


def check_columns(project: Project = ".") -> tuple[Diagnostic, ...]:
    """Raise ProjectError with every definite error in names, types and contracts; without errors, return the warnings. Only queries whose
    tables are in schemas.lock, or that have an enforced contract, are checked."""
    from mvbuild.lineage import check

    return check.check_columns(graph_of(project))


def lineage(project: Project = ".", *, of: str | None = None) -> tuple[Bound, tuple[Diagnostic, ...]]:
    """The columns of every node and their lineage, from schemas.lock, otherwise from the catalog; a warning if neither is available.

    `of`: a name as the command accepts it, to which the result is restricted: its inputs, and what is made of it. Raises ProjectError.
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
    """Compare schemas.lock with the catalog, and write it unless `write` is False. Reads the catalog once; does not need Spark."""
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
            raise ProjectError([error("unwritable-file", f"Cannot write to {lock_path(graph)}: {exc.strerror or exc}")]) from exc
    warnings = tuple(replace(d, severity="warning") for d in missing_tables(missing, world.graph))
    changes = tuple(differences(before, now)) if before is not None else ()
    return Locked(tables=len(now), differences=changes, is_new=before is None, warnings=warnings)


def _lock_before(graph: Graph, *, needed: bool) -> dict[str, TableColumns] | None:
    """A lock that cannot be read is ignored if it will be rewritten."""
    from mvbuild.lineage.lock import read_lock

    try:
        return read_lock(graph)
    except ProjectError:
        if needed:
            raise
        return None
