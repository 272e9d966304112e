"""model -> its SQL in pieces, as written and as compiled, with the node that each table name in it leads to."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.source import Span

Piece = tuple[str, NodeId | None]
"""A text, and the node that it names. These are pieces instead of offsets, because browsers count characters differently."""
_Place = tuple[str, int, int]


def written(node: ModelNode) -> Iterator[Piece]:
    """The file of a model. A name that comes from a macro is in another file, so it does not become a link."""
    text, at = node.model.file.text, 0
    for (path, start, end), ids in sorted(_places(node).items()):
        if path != node.model.file.path or start < at or start == end:
            continue
        yield text[at:start], None
        # One expression in a loop may name several nodes: it links to the first.
        yield text[start:end], ids[0]
        at = end
    yield text[at:], None


def compiled(graph: Graph, node: ModelNode) -> Iterator[Piece]:
    """The definition as the catalog gets it."""
    sql = definition(graph, node)
    places, segments = _all_places(graph, node), sql.map.segments
    at = 0
    for here, after in zip(segments, (*segments[1:], None), strict=True):
        text = sql.text[here.offset : after.offset if after else None]
        named = None if here.verbatim else _named(graph, text, places.get(_place(here.origin), ()))
        if named is None:
            continue
        length = len(graph.nodes[named].identifier.sql)
        yield sql.text[at : here.offset], None
        yield text[:length], named
        at = here.offset + length
    yield sql.text[at:].rstrip() + "\n", None


def _named(graph: Graph, text: str, ids: tuple[NodeId, ...]) -> NodeId | None:
    """Several nodes may be named in one place, for example in a loop: the one with this text."""
    return next((id for id in ids if text.startswith(graph.nodes[id].identifier.sql)), None)


def _places(node: ModelNode) -> dict[_Place, tuple[NodeId, ...]]:
    found: dict[_Place, tuple[NodeId, ...]] = {}
    for read, id in zip(node.query.reads, node.reads, strict=True):
        place = _place(read.span)
        found[place] = (*found.get(place, ()), id)
    return found


def _all_places(graph: Graph, node: ModelNode) -> dict[_Place, tuple[NodeId, ...]]:
    """Including those of the ephemeral models whose SQL is part of the definition."""
    found = _places(node)
    for id in node.reads:
        parent = graph.nodes[id]
        if isinstance(parent, ModelNode) and parent.materialized == "ephemeral":
            found |= _all_places(graph, parent)
    return found


def _place(span: Span) -> _Place:
    return span.file.path, span.start, span.end
