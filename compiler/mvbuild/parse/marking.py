"""Jinja tree -> the same tree with invisible marks in its output; marked text -> MappedText."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from mvbuild.dataclass import dataclass
from mvbuild.parse.sandbox import COUNTED, HELD, JOINED, MADE
from mvbuild.parse.template_text import TemplateText
from mvbuild.source import MappedText, Segment, SourceMap, Span

# Noncharacters of Unicode, which no text contains.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


_TAGS: dict[type[nodes.Node], str] = {nodes.CallBlock: "call", nodes.FilterBlock: "filter", nodes.For: "for"}


@dataclass(frozen=True, slots=True)
class Piece:
    """What a mark announces. `line` is set for tags without an expression of their own."""

    verbatim: bool
    line: int | None = None
    word: str = ""


class Marker(NodeTransformer):
    """Numbers every piece of output in the order of the file, and marks those that are written directly to the result.

    Text inside macros, set, call and filter blocks is counted but not marked, because a mark would change what comparisons and filters see.
    At the same time it puts loops, comparisons, and everything that creates values without a call under the sandbox's budget.
    """

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.captured = False

    def visit_Output(self, node: nodes.Output) -> nodes.Output:  # noqa: N802
        self.generic_visit(node)
        out: list[nodes.Expr] = []
        for child in node.nodes:
            verbatim = isinstance(child, nodes.TemplateData)
            if not self.captured:
                out.append(self._mark(child.lineno))
            out.append(child)
            self.pieces.append(Piece(verbatim))
        node.nodes = out
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node | list[nodes.Node]:  # noqa: N802
        result = self._capture(node) if node.recursive else self.generic_visit(node)
        node.iter = _filtered(node.iter, COUNTED)
        return result

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), JOINED)

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(node, MADE)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(node, MADE)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(node, MADE) if node.ctx == "load" else node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(node, MADE) if isinstance(node.arg, nodes.Slice) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _held(node.expr)
        for operand in node.ops:
            operand.expr = _held(operand.expr)
        return node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node | list[nodes.Node]:  # noqa: N802
        return self._capture(node)

    def visit_FilterBlock(self, node: nodes.FilterBlock) -> nodes.Node | list[nodes.Node]:  # noqa: N802
        return self._capture(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node | list[nodes.Node]:  # noqa: N802
        return self._capture(node, writes=False)

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node | list[nodes.Node]:  # noqa: N802
        result = self._capture(node, writes=False)
        node.filter = nodes.Filter(node.filter, MADE, [], [], None, None, lineno=node.lineno)
        return result

    def _capture(self, node: nodes.Node, *, writes: bool = True) -> nodes.Node | list[nodes.Node]:
        marked = writes and not self.captured
        before: list[nodes.Node] = []
        if marked:
            before.append(nodes.Output([self._mark(node.lineno)], lineno=node.lineno))
            self.pieces.append(Piece(verbatim=False, line=node.lineno, word=_TAGS.get(type(node), "")))
        outer, self.captured = self.captured, True
        self.generic_visit(node)
        self.captured = outer
        return [*before, node] if before else node

    def _mark(self, line: int) -> nodes.TemplateData:
        return nodes.TemplateData(f"{_OPEN}{len(self.pieces)}{_CLOSE}", lineno=line)


def mapped(marked: str, pieces: Sequence[Piece], text: TemplateText) -> MappedText:
    """Remove the marks from a rendered text and make the map from them."""
    origins = _origins(pieces, text)
    clean: list[str] = []
    segments: list[Segment] = []
    at = 0
    head, *rest = _MARK.split(marked)
    clean.append(head)
    at += len(head)
    for number, body in zip(rest[::2], rest[1::2], strict=True):
        if int(number) < len(pieces):
            if segments and segments[-1].offset == at:
                segments.pop()
            segments.append(Segment(at, origins[int(number)], pieces[int(number)].verbatim))
        clean.append(body)
        at += len(body)
    if not segments or segments[0].offset > 0:
        segments.insert(0, Segment(0, Span(text.file, 0, 0), verbatim=True))
    return MappedText("".join(clean), SourceMap(tuple(segments)))


def _origins(pieces: Sequence[Piece], text: TemplateText) -> list[Span]:
    """The place of each piece: the lexer returns data and expressions in the same order as the parser."""
    data = iter([Span(text.file, x.start, x.end) for x in text.lexemes if x.kind == "data"])
    tags = iter([Span(text.file, tag[0].start, tag[-1].end) for tag in text.tags if tag[0].kind == "variable_begin"])
    return [text.tag(piece.line, piece.word) if piece.line else next(data if piece.verbatim else tags) for piece in pieces]


def _held(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _filtered(node, HELD)


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
