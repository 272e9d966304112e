"""Nodes -> a diagnostic for each model that has the name which an auxiliary view of an MV gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.graph.model import ModelNode, Node, NodeId
from mvbuild.names import AUXILIARY_SUFFIX, STORAGE_SUFFIX


def names_of_auxiliary_views(nodes: Mapping[NodeId, Node]) -> Iterator[Diagnostic]:
    """Auxiliary views are named after the storage, with a number."""
    models = [node for node in nodes.values() if isinstance(node, ModelNode) and node.materialized != "ephemeral"]
    suspects = [node for node in models if AUXILIARY_SUFFIX in node.identifier.name.lower()]
    owners = {
        _plain(node.storage.key): node for node in models if suspects and node.storage and node.model.config.auxiliary_views != "never"
    }
    for node in suspects:
        before, _, number = node.identifier.key[-1].rpartition(AUXILIARY_SUFFIX)
        owner = owners.get((*node.identifier.key[:-1], before))
        if owner is not None and number.isdigit():
            message = f"The model '{node.model.name}' has the name of an auxiliary view of '{owner.model.name}', {node.identifier.dotted}"
            span = node.model.config.spans.get("alias") or node.model.file.line_span(1)
            yield error("duplicate-name", message, span, help=f"Rename it, or set auxiliary_views: never for '{owner.model.name}'.")


def _plain(storage: tuple[str, ...]) -> tuple[str, ...]:
    return (*storage[:-1], storage[-1].removesuffix(STORAGE_SUFFIX))
