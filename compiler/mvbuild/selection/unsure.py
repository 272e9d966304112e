"""Graph + a selection -> an error if a model that does not compile may belong to it: its parents, tags and settings may be unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.graph.model import Graph, NodeId

_BY_PLACE = ("path:", "file:", "fqn:")
"""What is known of every model."""


def perhaps_selected(graph: Graph, terms: Iterable[str], chosen: Collection[NodeId]) -> Iterator[Diagnostic]:
    """`terms`: the text of --select and --exclude. `chosen`: what they selected."""
    terms = tuple(terms)
    has_edges = any("+" in term or "@" in term for term in terms)
    has_settings = has_edges or any(":" in term and not term.startswith(_BY_PLACE) for term in terms)
    wrong = (node for node in graph.models if node.model.problems and node.id not in chosen)
    lost = [f"'{n.model.name}'" for n in wrong if (has_edges and not n.reads) or (has_settings and not n.model.knows_settings)]
    if lost:
        yield error("not-compiled", f"Models that may belong to the selection do not compile: {', '.join(lost)}")
