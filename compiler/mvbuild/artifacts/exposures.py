"""Graph -> the exposures of manifest.json."""

from __future__ import annotations

from typing import Any

from mvbuild.graph.exposures import exposures_of
from mvbuild.graph.model import ExposureNode, Graph, ModelNode, SeedNode, TableNode


def exposures(graph: Graph) -> dict[str, dict[str, Any]]:
    """By id."""
    return {one.id: _entry(graph, one) for one in exposures_of(graph)}


def _entry(graph: Graph, node: ExposureNode) -> dict[str, Any]:
    exposure, project = node.exposure, graph.project.name
    nodes = [graph.nodes[id] for id in node.reads]
    path = exposure.file.path
    return {
        "unique_id": node.id,
        "name": exposure.name,
        "resource_type": "exposure",
        "package_name": project,
        "path": path.partition("/")[2] or path,
        "original_file_path": path,
        "fqn": [project, exposure.name],
        "type": exposure.type,
        "owner": {"name": exposure.owner.get("name"), "email": exposure.owner.get("email")},
        "label": exposure.label,
        "maturity": exposure.maturity,
        "url": exposure.url,
        "description": exposure.description,
        "tags": list(exposure.tags),
        "meta": dict(exposure.meta),
        "config": {"enabled": True, "tags": list(exposure.tags), "meta": dict(exposure.meta)},
        "depends_on": {"macros": [], "nodes": list(node.reads)},
        "refs": [{"name": _name(n), "package": None, "version": None} for n in nodes if isinstance(n, ModelNode | SeedNode)],
        "sources": [[n.source.source, n.source.name] for n in nodes if isinstance(n, TableNode) and n.source],
        "metrics": [],
        "unrendered_config": {},
        "created_at": 0,
    }


def _name(node: ModelNode | SeedNode) -> str:
    """As in ref(); the versions of a model share it."""
    if isinstance(node, SeedNode):
        return node.seed.name
    return node.model.version.model if node.model.version else node.model.name
