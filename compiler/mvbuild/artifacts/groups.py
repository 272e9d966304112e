"""Graph -> the groups of manifest.json, and the members of each."""

from __future__ import annotations

from typing import Any

from mvbuild.graph.access import group_of, group_of_test
from mvbuild.graph.model import Graph


def groups(graph: Graph) -> dict[str, dict[str, Any]]:
    """By id."""
    project = graph.project.name
    found = {}
    for group in graph.project.groups.values():
        path = group.span.file.path
        found[f"group.{project}.{group.name}"] = {
            "unique_id": f"group.{project}.{group.name}",
            "name": group.name,
            "resource_type": "group",
            "package_name": project,
            "path": path.partition("/")[2] or path,
            "original_file_path": path,
            "owner": {"email": None, "name": None, **group.owner},
            "description": group.description,
            "config": {"meta": dict(group.meta)},
        }
    return found


def group_map(graph: Graph) -> dict[str, list[str]]:
    """Group -> the ids of its members."""
    found: dict[str, list[str]] = {name: [] for name in graph.project.groups}
    if found:
        members = [(node.id, group_of(node)) for node in graph.nodes.values()]
        for id_, group in (*members, *((test.id, group_of_test(test, graph.nodes)) for test in graph.tests)):
            if group is not None:
                found.setdefault(group, []).append(id_)
    return found
