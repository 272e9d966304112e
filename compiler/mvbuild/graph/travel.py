"""nodes -> Diagnostics for time travel on what stores no rows, and so has no versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.graph.model import ModelNode, Node, NodeId, ViewNode


def bad_travel(nodes: Mapping[NodeId, Node]) -> Iterator[Diagnostic]:
    """One diagnostic for each time-travel clause on a view or an ephemeral model."""
    for node in nodes.values():
        if not isinstance(node, ModelNode | ViewNode):
            continue
        for read, id_ in zip(node.query.reads, node.reads, strict=True):
            parent = nodes.get(id_)
            if read.travel is not None and isinstance(parent, ModelNode | ViewNode) and not _is_stored(parent):
                message = f"'{read.parts[-1]}' is no table: it has no versions to travel to"
                yield error("bad-time-travel", message, read.span, help="Put the clause on the tables that it reads.")


def _is_stored(node: ModelNode | ViewNode) -> bool:
    return isinstance(node, ModelNode) and node.storage is not None
