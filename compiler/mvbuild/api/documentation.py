"""project -> its documentation site and target/catalog.json; current freshness for a site that is served."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvbuild import __version__
from mvbuild.api.compilation import write_artifacts
from mvbuild.api.of_project import Project, graph_of
from mvbuild.api.refreshes import plan, status
from mvbuild.api.sessions import SystemClock, catalog_of, observed
from mvbuild.diagnostics import Diagnostic, ProjectError, warning
from mvbuild.freshness.observed import World
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph
from mvbuild.incremental.table_changes import Changes
from mvbuild.lineage.model import Bound

if TYPE_CHECKING:
    from mvbuild.site.model import Seen, Written

_OF_CATALOG = ("catalog-unreachable", "catalog-error")


def build_docs(project: Project = ".", output: str | Path | None = None) -> tuple[Written, Path, tuple[Diagnostic, ...]]:
    """Write the site, by default into target/site, and target/catalog.json beside the manifest. No Spark.

    If the catalog cannot be read, the site says so and has neither freshness nor history, and catalog.json is not written.
    """
    from mvbuild.site.model import Content
    from mvbuild.site.write import write_site

    graph = graph_of(project)
    folder = Path(output) if output is not None else graph.project.target_path / "site"
    now = SystemClock().now_ms()
    seen, world, unseen = _seen(graph)
    write_artifacts(graph, world=world)
    shown = seen.world.graph if seen else graph
    content = Content(
        graph=shown,
        bound=_bound(shown, seen.world if seen else None),
        seen=seen,
        unseen=unseen.message if unseen else "",
        version=__version__,
        at_ms=now,
    )
    return write_site(content, folder), folder, (unseen,) if unseen else ()


def live_freshness(project: Project = ".") -> Callable[[], dict[str, Any]]:
    """A function that reads the catalog and returns the freshness of every MV, as the pages of a site ask for it."""
    from mvbuild.site.refreshes import live

    graph = graph_of(project)

    def now() -> dict[str, Any]:
        at = SystemClock().now_ms()
        try:
            missing = _not_created(graph)
            return {"at": at, "error": missing.message, "nodes": {}} if missing else live(status(graph)[1], at)
        except ProjectError as exc:
            return {"at": at, "error": exc.diagnostics[0].message, "nodes": {}}

    return now


def _seen(graph: Graph) -> tuple[Seen | None, World | None, Diagnostic | None]:
    """The state of the catalog, the world before a run renames anything, and why the catalog was not read."""
    from mvbuild.site.model import Seen

    missing = _not_created(graph)
    if missing is not None:
        return None, None, missing
    catalog = catalog_of(graph)
    try:
        planned = plan(graph, removed=False, catalog=catalog)
        seen = Seen(world=planned.world, freshness=planned.freshness, plan=planned, changes=Changes(catalog.changes))
        return seen, planned.before or planned.world, None
    except ProjectError as exc:
        first = exc.diagnostics[0]
    if first.code not in _OF_CATALOG:
        # The project cannot be run as it is, but the state of the catalog is known.
        world = observed(graph, catalog)
        return Seen(world=world, freshness=judge(world), plan=None, unplanned=first.message, changes=Changes(catalog.changes)), world, None
    return None, None, replace(first, severity="warning")


def _not_created(graph: Graph) -> Diagnostic | None:
    """The embedded catalog is created by the first run, not by building a site."""
    target = graph.project.target
    database = Path(target.catalog.get("uri", "").removeprefix("sqlite:///"))
    if not target.embedded or database.exists():
        return None
    return warning("catalog-unreachable", "The project's own catalog has not been created yet", help="Build it with `mvbuild run`.")


def _bound(graph: Graph, world: World | None) -> Bound:
    """Like `api.lineage`: from schemas.lock, otherwise from the catalog."""
    from mvbuild.lineage.bind import bind
    from mvbuild.lineage.lock import of_lock, read_lock
    from mvbuild.lineage.schemas import NO_SCHEMAS, of_states

    tables = read_lock(graph)
    if tables is not None:
        return bind(graph, of_lock(tables, graph), keep=True)
    return bind(graph, of_states(world.observed.states) if world is not None else NO_SCHEMAS)
