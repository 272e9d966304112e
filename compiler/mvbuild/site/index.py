"""Content -> data/index.js, what every page needs of the whole project; data/search.js, the names of columns."""

from __future__ import annotations

from typing import Any

from mvbuild.graph.model import ModelNode, Node, SeedNode, TableNode
from mvbuild.lineage.trace import label
from mvbuild.names import TableIdentifier
from mvbuild.site.model import Content

KINDS = ("materialized view", "view", "ephemeral model", "seed", "source", "table", "view of the catalog")
"""The kinds of nodes on pages. A row of the index has the kind's position in this tuple."""
_SHORT = 160
"""Characters of a description that lists show."""


def index(content: Content) -> dict[str, Any]:
    """Nodes in topological order, a short row for each: a large project has many."""
    folders: dict[str, int] = {}
    nodes = [_row(content, node, folders) for node in content.graph.nodes.values()]
    project, seen = content.graph.project, content.seen
    return {
        "project": project.name,
        "version": project.version,
        "target": project.target.name,
        "catalog": project.target.catalog_name,
        "branch": project.branch,
        "mvbuild": content.version,
        "at": content.at_ms,
        "unseen": content.unseen or None,
        "unplanned": seen.unplanned or None if seen else None,
        "tests": len(content.graph.tests),
        "kinds": KINDS,
        "folders": list(folders),
        "fields": ["id", "name", "relation", "kind", "folder", "reads", "short", "tags", "state", "refreshed", "why", "action", "problem"],
        "nodes": nodes,
    }


def search(content: Content) -> list[str]:
    """The columns of each node, in the order of the index."""
    return [" ".join(c.name for c in content.bound.known(id)) for id in content.graph.nodes]


def kind(node: Node) -> int:
    """The position of a node's kind in KINDS."""
    if isinstance(node, ModelNode):
        return {"materialized_view": 0, "view": 1, "ephemeral": 2}[node.materialized]
    if isinstance(node, SeedNode):
        return 3
    return 4 if node.source is not None else 5 if isinstance(node, TableNode) else 6


def refreshed_ms(content: Content, id: str) -> int | None:
    """When the last refresh of an MV began."""
    answer = content.seen.freshness.get(id) if content.seen else None
    return answer.record.refresh_start_ms if answer is not None and answer.record is not None else None


def description(node: Node) -> str:
    """The description in YAML."""
    if isinstance(node, ModelNode):
        return node.model.properties.description
    if isinstance(node, SeedNode):
        return node.seed.properties.description
    return node.source.properties.description if node.source else ""


def tags(node: Node) -> tuple[str, ...]:
    if isinstance(node, ModelNode):
        return node.model.config.tags
    if isinstance(node, SeedNode):
        return node.seed.config.tags
    return node.source.tags if node.source else ()


def _row(content: Content, node: Node, folders: dict[str, int]) -> list[Any]:
    seen = content.seen
    answer = seen.freshness.get(node.id) if seen else None
    reasons = [r for r in answer.reasons if r.effect != "fresh"] if answer else []
    step = content.steps.get(node.id)
    return [
        node.id,
        label(node),
        _relation(node),
        kind(node),
        folders.setdefault(_folder(node), len(folders)),
        [content.places[id] for id in dict.fromkeys(node.reads)],
        _shortened(description(node)),
        list(tags(node)),
        answer.state if answer else None,
        refreshed_ms(content, node.id),
        reasons[0].message if reasons else None,
        step.action if step else None,
        node.id in content.graph.blocked,
    ]


def _folder(node: Node) -> str:
    if isinstance(node, ModelNode):
        return "/".join(node.model.folders)
    if isinstance(node, SeedNode):
        return "seeds"
    if node.source is not None:
        return f"sources/{node.source.source}"
    return "/".join(("tables", *_namespace(node.identifier)))


def _namespace(identifier: TableIdentifier) -> tuple[str, ...]:
    return () if identifier.is_path else (identifier.catalog, ".".join(identifier.namespace))


def _relation(node: Node) -> str | None:
    """The name in the catalog; ephemeral models have none."""
    return None if isinstance(node, ModelNode) and node.materialized == "ephemeral" else str(node.identifier)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1].rstrip()}…"
