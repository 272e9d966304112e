"""World + model -> Diagnostic where the metadata of its own entries cannot be read."""

from __future__ import annotations

from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode, Node


def unreadable(world: World, node: ModelNode) -> Diagnostic | None:
    """`unreadable-metadata`, with the file and what is wrong with it; None if what is there can be read."""
    for identifier in (node.identifier, node.storage):
        found = world.observed.unreadable(identifier)
        if found is not None:
            return error("unreadable-metadata", f"'{node.model.name}': {found.reason}", node.model.file.line_span(1))
    return None


def require_readable(world: World, node: Node) -> None:
    """ProjectError for a model of which that is not so."""
    found = unreadable(world, node) if isinstance(node, ModelNode) else None
    if found is not None:
        raise ProjectError([found])
