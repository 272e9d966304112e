"""nodes -> Diagnostics for time travel on nodes that store no rows, and so have no versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.graph.model import ModelNode, Node, NodeId, ViewNode
from mvbuild.source import Span


def bad_travel(nodes: Mapping[NodeId, Node]) -> Iterator[Diagnostic]:
    """One diagnostic for each time-travel clause on a view or an ephemeral model."""
    for node in nodes.values():
        if isinstance(node, ModelNode | ViewNode):
            yield from bad_travel_of(node, nodes)


def bad_travel_of(node: ModelNode | ViewNode, nodes: Mapping[NodeId, Node]) -> Iterator[Diagnostic]:
    """The diagnostics of one node."""
    for read, id_ in zip(node.query.reads, node.reads, strict=True):
        parent = nodes.get(id_)
        if read.travel is not None and isinstance(parent, ModelNode | ViewNode) and not _is_stored(parent):
            yield no_versions(read.parts[-1], read.span)


def no_versions(name: str, span: Span) -> Diagnostic:
    """The diagnostic for a time-travel clause on a view."""
    message = f"'{name}' is not a table: it has no versions to travel to"
    return error("bad-time-travel", message, span, help="Put the clause on the tables that it reads.")


def _is_stored(node: ModelNode | ViewNode) -> bool:
    return isinstance(node, ModelNode) and (node.storage is not None or not node.model.knows_settings)
