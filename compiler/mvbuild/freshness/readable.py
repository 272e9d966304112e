"""World + model -> Diagnostic if the metadata of its own entries cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.diagnostics import Diagnostic, ProjectError, error, warning
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode, Node


def unreadable(world: World, node: ModelNode) -> Diagnostic | None:
    """`unreadable-metadata`, with the file and what is wrong with it; None if it can be read."""
    for identifier in (node.identifier, node.storage):
        found = world.observed.unreadable(identifier)
        if found is not None:
            return error("unreadable-metadata", f"'{node.model.name}': {found.reason}", node.model.file.line_span(1))
    return None


def flaws(world: World, node: ModelNode) -> Iterator[Diagnostic]:
    """A warning for each rule of its format that the MV's metadata file breaks without an effect on results."""
    storage = world.observed.table(node.storage)
    for problem in storage.mv.problems if storage is not None and storage.mv is not None else ():
        message = f"'{node.model.name}': its metadata file breaks a rule of its format, and is read without what depends on it: {problem}"
        yield warning("flawed-metadata", message, node.model.file.line_span(1))


def require_readable(world: World, node: Node) -> None:
    """Raise ProjectError for a model whose metadata cannot be read."""
    found = unreadable(world, node) if isinstance(node, ModelNode) else None
    if found is not None:
        raise ProjectError([found])
