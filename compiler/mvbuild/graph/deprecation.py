"""Models with a deprecation date -> warnings, as in dbt: about each read of one, and about one whose date has passed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone

from mvbuild.diagnostics import Diagnostic, warning
from mvbuild.graph.model import ModelNode, Node, NodeId
from mvbuild.parse.model import ParsedModel
from mvbuild.project.loaded import Deprecation


def deprecated(nodes: Mapping[NodeId, Node], now: datetime) -> Iterator[Diagnostic]:
    """The warnings of all models."""
    found = {
        id: (node.model, of) for id, node in nodes.items() if isinstance(node, ModelNode) and (of := node.model.properties.deprecation)
    }
    if not found:
        return
    for model, of in found.values():
        if is_past(of, now):
            message = f"'{model.name}' has passed its deprecation date, {of.date[:10]}"
            yield warning("deprecated-model", message, of.span, help="Remove the model, or its date.")
    for node in nodes.values():
        if not isinstance(node, ModelNode) or len(node.reads) != len(node.query.reads):
            continue
        for read, id_ in zip(node.query.reads, node.reads, strict=True):
            if id_ in found:
                model, of = found[id_]
                when = "is deprecated since" if is_past(of, now) else "will be deprecated on"
                message = f"'{node.model.name}' reads '{model.name}', which {when} {of.date[:10]}"
                yield warning("deprecated-model", message, read.span, help=_instead(model))


def is_past(of: Deprecation, now: datetime) -> bool:
    """A day without a time begins at midnight UTC, as in dbt."""
    date = datetime.fromisoformat(of.date)
    return (date if date.tzinfo else date.replace(tzinfo=timezone.utc)) < now


def _instead(model: ParsedModel) -> str:
    version = model.version
    if version is None or version.is_latest:
        return "Read another model."
    return f"Read version {version.latest}: ref('{version.model}', v={version.latest!r})."
