"""a model's SQL + the columns of what it reads -> BoundQuery: a pure function, so that its result can be cached."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from mvbuild.dataclass import dataclass
from mvbuild.lineage.binding import Binding, Notes
from mvbuild.lineage.model import Column
from mvbuild.lineage.queries import query as bind_tree
from mvbuild.lineage.scopes import Scope
from mvbuild.lineage.types import parsed, text
from mvbuild.lineage.values import UNKNOWN, Base, Finding, Output, Relation, Value, attributes
from mvbuild.parse.dialect import tokenize
from mvbuild.parse.model import Query
from mvbuild.parse.sql import tree_of

HIDDEN = frozenset(
    ("_file", "_pos", "_partition", "_spec_id", "_deleted", "_row_id", "_last_updated_sequence_number", "_metadata", "_change_type")
)
"""Columns of an Iceberg table that a star does not include."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What is known about a table that a query reads."""

    columns: tuple[Column, ...]
    complete: bool
    spellings: tuple[tuple[str, ...], ...] = ()
    """How its columns can be qualified if it has no alias, in lower case. The first spelling is the one that the user wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """An output column. `place`: offsets in the text of the query."""

    name: str | None
    type: str | None
    place: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """The columns of one query. Bases are columns of its reads."""

    columns: tuple[OutputColumn, ...]
    """The columns that are known: all of them, in order, if `complete`."""
    complete: bool
    values: tuple[frozenset[Base], ...]
    rows: frozenset[Base]
    unsure: frozenset[int]
    findings: tuple[Finding, ...]


def bind_query(query: Query, inputs: Sequence[Input]) -> BoundQuery:
    """Bind a query. `inputs`: one for each of `query.reads`."""
    relation, findings = _bound(query, inputs)
    return BoundQuery(
        columns=tuple(OutputColumn(name=c.name, type=text(c.value.type), place=c.place) for c in relation.columns),
        complete=relation.is_closed,
        values=tuple(c.value.bases for c in relation.columns),
        rows=relation.rows,
        unsure=frozenset(i for i, c in enumerate(relation.columns) if not c.value.sure),
        findings=findings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedQuery:
    """One query, with what was found out about each node of its tree."""

    query: Query
    tree: exp.Expr
    notes: Notes
    relation: Relation
    nodes: tuple[exp.Expr, ...]
    """All nodes as parsed. The references keep each `id` from being reused."""


def typed_query(query: Query, inputs: Sequence[Input]) -> TypedQuery | None:
    """A query with its types. `inputs`: as for `bind_query`. None if a part of the query is not understood."""
    if _has_steps(query):
        return None
    notes = Notes()
    try:
        tree = _ansi(tree_of(query))
        nodes = tuple(tree.walk())
        relation = bind_tree(tree, Scope(), Binding(query=bind_tree, table=_Tables(query, inputs).of, notes=notes))
    except (RecursionError, SqlglotError, ValueError):
        return None
    return TypedQuery(query=query, tree=tree, notes=notes, relation=relation, nodes=nodes)


def _bound(query: Query, inputs: Sequence[Input]) -> tuple[Relation, tuple[Finding, ...]]:
    if _has_steps(query):
        return UNKNOWN, ()
    binding = Binding(query=bind_tree, table=_Tables(query, inputs).of)
    try:
        relation = bind_tree(tree_of(query), Scope(), binding)
    except (RecursionError, SqlglotError, ValueError):
        # Errors of the parser itself, for example for numbers with thousands of digits.
        return UNKNOWN, ()
    return relation, tuple(sorted(binding.findings.values(), key=lambda f: f.start))


def _ansi(tree: exp.Expr) -> exp.Expr:
    """Spark 4 runs in ANSI mode, where CAST fails; sqlglot, which follows older versions, assumes NULL."""
    for cast in list(tree.find_all(exp.TryCast)):
        if not cast.args.get("safe"):
            cast.replace(exp.Cast(this=cast.this, to=cast.args["to"]))
    return tree


def _has_steps(query: Query) -> bool:
    """`FROM t |> ...`: the parser turns the steps into queries without positions, which do not always mean what Spark means."""
    return "|>" in query.sql.text and any(t.token_type == TokenType.PIPE_GT for t in tokenize(query.sql.text))


@dataclass(frozen=True, slots=True)
class _Tables:
    """Tables of the tree -> the reads of the query."""

    query: Query
    inputs: Sequence[Input]

    def of(self, node: exp.Table) -> tuple[Relation, tuple[tuple[str, ...], ...]] | None:
        start = node.parts[0].meta.get("start")
        index = next((i for i, read in enumerate(self.query.reads) if read.start == start), None)
        if index is None:
            return None
        given = self.inputs[index]
        return Relation(tuple(_outputs(index, given)), () if given.complete else (index,), hidden=HIDDEN), given.spellings


def _outputs(index: int, given: Input) -> list[Output]:
    columns = ((c.name, Value(parsed(c.type) if c.type else None, frozenset((Base(index, c.name),))), None) for c in given.columns)
    return list(attributes(columns))
