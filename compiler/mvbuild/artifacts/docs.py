"""Graph -> the section `docs` of the manifest: the docs blocks of a project, and the overview of dbt's site."""

from __future__ import annotations

from typing import Any

from mvbuild.graph.model import Graph

_OVERVIEW = "__overview__"


def docs(graph: Graph) -> dict[str, dict[str, Any]]:
    """By id. A block `__overview__` of the project takes the place of mvbuild's, as in dbt's site."""
    project = graph.project.name
    text = f"# {project}\n\nMaterialized views built by mvbuild."
    found = {f"doc.dbt.{_OVERVIEW}": _entry("dbt", _OVERVIEW, "docs/overview.md", text)}
    for block in graph.project.docs.values():
        found[f"doc.{project}.{block.name}"] = _entry(project, block.name, block.span.file.path, block.text)
    return found


def _entry(package: str, name: str, path: str, text: str) -> dict[str, Any]:
    return {
        "unique_id": f"doc.{package}.{name}",
        "name": name,
        "resource_type": "doc",
        "package_name": package,
        "path": path.partition("/")[2] or path,
        "original_file_path": path,
        "block_contents": text,
    }
