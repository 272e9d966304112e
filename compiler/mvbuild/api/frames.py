"""project, a name or a query -> rows, or a DataFrame, with each MV in it read by its policy."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mvbuild.api.of_catalog import CatalogChoice, graph_of_catalog
from mvbuild.api.of_project import Project, graph_of
from mvbuild.api.sessions import OnEvent, catalog_of, explained, ignore_event, new_session, observed, open_session
from mvbuild.graph.model import Graph
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog, CatalogError, CommitConflict
from mvbuild.project.project_file import has_project
from mvbuild.refresh.session import RunSession, ScratchKey
from mvbuild.serve import frames
from mvbuild.serve.as_of import AsOf
from mvbuild.serve.lookup import with_name
from mvbuild.serve.rows import Shown, choose_rows


def show(
    project: Project, name: str, *, limit: int = 10, as_of: AsOf | None = None, spark: Any = None, on_event: OnEvent = ignore_event
) -> Shown:
    """Rows of a model, and where they come from: each MV's storage if its policy allows it, otherwise its query on the current tables.

    `as_of` returns the rows that an MV had at a time, or after the refresh of that number; that does not need Spark.
    """
    graph = with_name(graph_of(project), name)
    catalog = catalog_of(graph)
    world = observed(graph, catalog, spark)
    with open_session(world, catalog, spark, on_event) as session:
        return choose_rows(session, name, limit, as_of)


def read(spark: Any, name: str, *, project: Project | None = None, catalog: CatalogChoice | None = None, as_of: AsOf | None = None) -> Any:
    """A DataFrame with all rows of a model, seed or source, or of any view or table of the catalog. Each MV in it is read by its policy,
    see `served`.

    Without a project, the catalog shows what the MVs are: `catalog` names it, or has PyIceberg's properties of it and its `name`; otherwise
    it is one of the session's. `as_of` returns the rows that an MV had at a time, or after the refresh of that number.
    """
    graph, ask = frames.named(_graph(spark, project, catalog, (name,)), name, as_of)
    return _framed(graph, spark, ask)


def sql(spark: Any, text: str, *, project: Project | None = None, catalog: CatalogChoice | None = None) -> Any:
    """A DataFrame of a query whose tables are named as in the project or in the catalog. Each MV in it is read by its policy."""
    graph, ask = frames.asked(_graph(spark, project, catalog, frames.names_in(text)), text)
    return _framed(graph, spark, ask)


def _graph(spark: Any, project: Project | None, catalog: CatalogChoice | None, names: tuple[str, ...]) -> Graph:
    """The graph of the given project, otherwise of the one in the environment or the current directory, otherwise of a catalog alone."""
    if project is not None and catalog is not None:
        raise ValueError("Pass a project or a catalog, not both: a project names its own catalog.")
    directory = os.environ.get("MVBUILD_PROJECT_DIR")
    if catalog is None and (project is not None or directory or has_project(Path())):
        return graph_of(project if project is not None else directory or ".")
    return graph_of_catalog(spark, catalog, names)


def _framed(graph: Graph, spark: Any, ask: frames.Ask) -> Any:
    """The DataFrame, on one observation of the catalog. If a snapshot expires in the meantime, the catalog is read again."""
    catalog = catalog_of(graph)
    for attempt in range(1, _LOOKS + 1):
        session = new_session(observed(graph, catalog, spark), catalog, spark, ignore_event)
        session.shared_scratch = _SHARED_SCRATCH.setdefault(catalog.name, {})
        try:
            with explained(graph, conflicts=attempt == _LOOKS):
                found = frames.frame(session, ask)
        except CommitConflict:
            session.close()
        except BaseException:
            session.close()
            raise
        else:
            _keep(session)
            return found
    raise AssertionError("the last look returns or raises")


_LOOKS = 3
_SHARED_SCRATCH: dict[str, dict[ScratchKey, TableIdentifier]] = {}
"""Catalog -> the scratch tables that DataFrames of this process read."""


def _keep(session: RunSession) -> None:
    """Spark opens a table when rows are fetched, so what a DataFrame reads must exist as long as the DataFrame may: until the process
    ends."""
    made = session.hand_over()
    if made:
        atexit.register(_drop, session.catalog, made)


def _drop(catalog: Catalog, scratch: Iterable[TableIdentifier]) -> None:
    with suppress(CatalogError, OSError):
        for identifier in scratch:
            catalog.drop_scratch(identifier)
