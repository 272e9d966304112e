"""Graph -> the section `unit_tests` of the manifest, in dbt's shape."""

from __future__ import annotations

from typing import Any

from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import Graph
from mvbuild.project.unit_tests import RowsAsWritten, UnitTest
from mvbuild.versions.model import unit_body


def unit_tests(graph: Graph) -> dict[str, Any]:
    """By id. Empty if one of them is wrong: `compile`, `lint` and `test` report that, and no other command needs them."""
    try:
        return {test.id(graph.project.name): _entry(graph, test) for test in graph.unit_tests}
    except (ProjectError, OSError):
        return {}


def _entry(graph: Graph, test: UnitTest) -> dict[str, Any]:
    project = graph.project.name
    overrides = test.overrides
    return {
        "unique_id": test.id(project),
        "name": test.name,
        "resource_type": "unit_test",
        "package_name": project,
        "path": test.file.path.partition("/")[2] or test.file.path,
        "original_file_path": test.file.path,
        "fqn": [project, *test.model.split("."), test.name],
        "model": test.version.model if test.version else test.model,
        "given": [{"input": given.input, **_rows(given.rows)} for given in test.given],
        "expect": _rows(test.expect) if test.expect else {"rows": [], "format": "dict", "fixture": None},
        "description": test.description,
        "overrides": {"macros": dict(overrides.macros), "vars": dict(overrides.vars), "env_vars": dict(overrides.env_vars)},
        "depends_on": {"macros": [], "nodes": [f"model.{project}.{test.model}"]},
        "config": {"tags": list(test.tags), "meta": dict(test.meta), "enabled": True},
        "checksum": unit_body(test),
        "schema": ".".join(graph.project.target.namespace),
        "created_at": 0,
        "versions": None,
        "version": test.version.v if test.version else None,
    }


def _rows(rows: RowsAsWritten) -> dict[str, Any]:
    return {
        "rows": rows.sql if rows.sql is not None else [dict(record) for record in rows.records],
        "format": rows.format,
        "fixture": rows.fixture,
    }
