"""a catalog, or the Spark session that knows it -> a graph without models: what a reader without a project knows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mvbuild.adapters import current_place, session_catalogs
from mvbuild.diagnostics import ProjectError, error
from mvbuild.graph.model import CompileOptions, Graph
from mvbuild.project.loaded import LoadedProject, Properties, SourceTable, SparkSettings, Target
from mvbuild.source import SourceFile, Span

CatalogChoice = str | Mapping[str, str]
"""The name of a catalog that the session or PyIceberg's configuration knows; or PyIceberg's properties, with the `name`."""

_FILE = SourceFile("catalog", "")


def graph_of_catalog(spark: Any, choice: CatalogChoice | None, names: tuple[str, ...]) -> Graph:
    """The graph. `names`: the requested tables, which choose one of several catalogs. Raises ProjectError if there is none."""
    known = session_catalogs(spark)
    if isinstance(choice, Mapping):
        given = {str(key): str(value) for key, value in choice.items()}
        name = given.pop("name", "")
        if not name:
            raise _refused("The catalog has no name", "Add 'name': the name by which Spark knows it.")
        return _graph(name, given, known, ("default",))
    name, namespace = (choice, ("default",)) if choice else _chosen(spark, known, names)
    return _graph(name, known.get(name, {}), known, namespace)


def _chosen(spark: Any, known: Mapping[str, Mapping[str, str]], names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The catalog that a name begins with, otherwise the current one, otherwise the only one."""
    current, namespace = current_place(spark)
    begins = {name.replace("`", "").partition(".")[0].lower() for name in names if name.count(".") > 1}
    named = [name for name in known if name.lower() in begins]
    if len(named) > 1:
        raise _refused(f"The query reads several catalogs: {', '.join(named)}", "Name the catalog whose MVs to resolve: catalog=...")
    if named or current in known:
        found = named[0] if named else current
        return found, namespace if found == current else ("default",)
    if len(known) == 1:
        return next(iter(known)), ("default",)
    if known:
        raise _refused(f"Spark knows several catalogs: {', '.join(known)}", "Write full names, or name the catalog: catalog=...")
    raise _refused(
        "No project found, and the Spark session has no Iceberg catalog that mvbuild can read",
        "Name the project's directory: project=..., or pass PyIceberg's properties of the catalog: catalog={'name': ..., ...}.",
    )


def _refused(message: str, help: str) -> ProjectError:
    return ProjectError([error("no-catalog", message, help=help)])


def _graph(name: str, properties: Mapping[str, str], known: Mapping[str, Mapping[str, str]], namespace: tuple[str, ...]) -> Graph:
    target = Target(
        name="catalog",
        catalog_name=name,
        catalog=properties,
        namespace=namespace,
        spark=SparkSettings(),
        threads=4,
        embedded=False,
    )
    project = LoadedProject(
        root=Path.cwd(),
        name="catalog",
        version=None,
        file=_FILE,
        target=target,
        target_names=(target.name,),
        target_path=Path(tempfile.gettempdir()) / f"mvbuild-without-project-{os.getpid()}",
        vars={},
        models=(),
        seeds=(),
        # Views may read other catalogs of the session.
        sources=tuple(_metastore(other, options) for other, options in known.items() if other.lower() != name.lower()),
        macros=(),
        tests=(),
    )
    return Graph(project=project, nodes={}, tests=(), reading=CompileOptions())


def _metastore(name: str, options: Mapping[str, str]) -> SourceTable:
    return SourceTable(
        source=name,
        name=name,
        catalog=name,
        namespace=(),
        identifier=name,
        options=options,
        properties=Properties(),
        tags=(),
        meta={},
        span=Span(_FILE, 0, 0),
    )
