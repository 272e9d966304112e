"""Query -> Statement: its tree and tokens, and the places of both in the user's file."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

from sqlglot import Token, TokenType, exp

from mvbuild.dataclass import dataclass
from mvbuild.parse import placeholder
from mvbuild.parse.dialect import tokenize
from mvbuild.parse.model import Query, Read
from mvbuild.parse.sql import tree_of
from mvbuild.source import MappedText, Span

_SILENT = re.compile(r"\{\{[-+]?\s*config\s*\(.*?\}\}|\{#.*?#\}", re.DOTALL)
"""Template tags that produce no text and name nothing in the query."""


@dataclass(frozen=True)
class Statement:
    """A query that was parsed before."""

    query: Query

    @property
    def text(self) -> MappedText:
        return self.query.sql

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(tokenize(self.text.text))

    @cached_property
    def tree(self) -> exp.Expr:
        return tree_of(self.query)

    @cached_property
    def is_piped(self) -> bool:
        """`|>`: the parser makes queries from the steps, which do not appear in the text."""
        return any(token.token_type == TokenType.PIPE_GT for token in self.tokens)

    @cached_property
    def reads(self) -> dict[int, int]:
        """Start offset of a table's name -> index of its read."""
        return {read.start: index for index, read in enumerate(self.query.reads)}

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    def read_of(self, table: exp.Expr) -> tuple[int, Read] | None:
        """The read of a table in the tree, with its index; None for a CTE and a function."""
        parts = table.parts if isinstance(table, exp.Table) else ()
        start = parts[0].meta.get("start") if parts else None
        index = self.reads.get(start) if isinstance(start, int) else None
        return (index, self.query.reads[index]) if index is not None else None

    def extent(self, node: exp.Expr) -> tuple[int, int] | None:
        """[start, end) of the nodes with a place below a node."""
        places = [(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta and "end" in n.meta]
        return (min(start for start, _ in places), max(end for _, end in places)) if places else None

    def span(self, start: int, end: int) -> Span:
        """Where a piece of the query was written; for the output of a loop, only its beginning."""
        first, last = self.text.span(start, start + 1), self.text.span(end - 1, end)
        is_whole = first.file is last.file and last.end >= first.end
        return Span(first.file, first.start, last.end) if is_whole else first

    def span_of(self, node: exp.Expr) -> Span:
        """Where a node was written; if that is unknown, the first word of the query."""
        start, end = self.extent(node) or (self.tokens[0].start, self.tokens[0].end + 1)
        return self.span(start, self._closed(start, end))

    def _closed(self, start: int, end: int) -> int:
        """The end, after the parentheses that are open there."""
        first, at = self.index_at(start), self.index_at(end)
        kinds = [token.token_type for token in self.tokens[first:at]]
        depth = kinds.count(TokenType.L_PAREN) - kinds.count(TokenType.R_PAREN)
        while depth > 0 and at < len(self.tokens) and self.tokens[at].token_type == TokenType.R_PAREN:
            end, at, depth = self.tokens[at].end + 1, at + 1, depth - 1
        return end

    def is_named_elsewhere(self, name: str) -> bool:
        """Whether a word occurs in a part of the file that produced no text: a branch that was not taken, a statement of the template."""
        segments = self.text.map.segments
        file = segments[0].origin.file
        if "{%" not in file.text:
            return False
        ends = (*(segment.offset for segment in segments[1:]), len(self.text.text))
        taken = [
            (s.origin.start, s.origin.start + end - s.offset if s.verbatim else s.origin.end) for s, end in zip(segments, ends, strict=True)
        ]
        taken += [match.span() for match in _SILENT.finditer(file.text)]
        words = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", file.text, re.IGNORECASE)
        return any(not any(start <= word.start() < end for start, end in taken) for word in words)

    def index_at(self, offset: int) -> int:
        """The index of the first token at an offset or after it."""
        return bisect_left(self._starts, offset)

    def word_before(self, offset: int, *kinds: TokenType) -> Token | None:
        """The last token of one of the kinds before an offset."""
        for index in range(self.index_at(offset) - 1, -1, -1):
            if self.tokens[index].token_type in kinds:
                return self.tokens[index]
        return None

    def in_file(self, start: int, end: int) -> Span | None:
        """The same piece of the file, if the user wrote it like that: both ends are in the file, with no statement of a template inside."""
        if start >= end or self.text.given(start) is not None or self.text.given(end - 1) is not None:
            return None
        first, last = self.text.span(start, start + 1), self.text.span(end - 1, end)
        if first.file is not last.file or last.end <= first.start:
            return None
        found = Span(first.file, first.start, last.end)
        return None if "{%" in found.text else found


def selects(tree: exp.Expr) -> Iterator[exp.Select]:
    """Every SELECT of a query, except in hints."""
    for node in tree.walk():
        if isinstance(node, exp.Select):
            yield node


def cte_of(table: exp.Expr) -> exp.CTE | None:
    """The common table expression that a name means at its place: the nearest one defined and visible there."""
    if not isinstance(table, exp.Table) or len(table.parts) != 1 or table.args.get("version") or not isinstance(table.this, exp.Identifier):
        return None
    name = table.name.lower()
    child: exp.Expr = table
    parent = table.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            here = next((i for i, cte in enumerate(parent.expressions) if cte is child), 0)
            visible: list[exp.CTE] = parent.expressions[: here + bool(parent.args.get("recursive"))]
        else:
            clause = parent.args.get("with_")
            visible = clause.expressions if isinstance(clause, exp.With) and clause is not child else []
        found = next((cte for cte in reversed(visible) if cte.alias.lower() == name), None)
        if found is not None:
            return found
        child, parent = parent, parent.parent
    return None


def relations(select: exp.Select) -> list[exp.Expr]:
    """The tables, subqueries and similar items of FROM and of its joins, without LATERAL VIEW."""
    start = select.args.get("from_")
    found: list[exp.Expr] = []
    for node in (start.this if start else None, *(join.this for join in select.args.get("joins") or ())):
        if node is not None:
            found.append(node)
            found += (join.this for join in node.args.get("joins") or ())
            if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
                found[-1 - len(node.args.get("joins") or ())] = node.this
                found += (join.this for join in node.this.args.get("joins") or ())
    return found


def name_of(relation: exp.Expr) -> str:
    """The qualifier for columns of a relation, in lower case; empty if there is none."""
    return _plain(relation.alias_or_name)


def qualifier_of(column: exp.Column) -> str:
    """The name of the relation before a column, in lower case; empty if there is none."""
    return _plain(column.table)


def _plain(name: str) -> str:
    """The placeholder of `ref()` or `source()` has the last part of its name."""
    coded = placeholder.decode(name)
    return (coded[1][-1] if coded else name).lower()
