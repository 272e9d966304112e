"""LIMIT without ORDER BY -> findings."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import TokenType, exp

from mvbuild.graph.model import ModelNode
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Options, Rule
from mvbuild.lint.statement import Statement, cte_of, relations
from mvbuild.source import Span


def check(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    statement = facts.statement(node)
    if statement.is_piped:
        return
    for query in statement.tree.walk():
        if not isinstance(query, (exp.Select, exp.SetOperation, exp.Subquery)):
            continue
        clause = query.args.get("limit") or query.args.get("offset")
        if clause is None or query.args.get("order") or _is_harmless(query, clause):
            continue
        word = _word(clause)
        yield Found(message=f"Without ORDER BY, {word} keeps arbitrary rows", span=_place(statement, clause, word))


def _is_harmless(query: exp.Expr, clause: exp.Expr) -> bool:
    """Whether it does not matter which rows are kept, or their order may come from an inner query."""
    count = clause.args.get("expression") or clause.args.get("count")
    if isinstance(count, exp.Literal) and count.name == "0" and isinstance(clause, (exp.Limit, exp.Fetch)):
        return True
    if not isinstance(count, exp.Expr) or (isinstance(count, (exp.Column, exp.Var)) and count.name.lower() == "all"):
        return True
    return isinstance(_outer(query), exp.Exists) or _has_one_row(query) or _is_ordered_inside(query)


def _outer(query: exp.Expr) -> exp.Expr | None:
    parent = query.parent
    while isinstance(parent, (exp.Subquery, exp.Paren)):
        parent = parent.parent
    return parent


def _has_one_row(query: exp.Expr) -> bool:
    """An aggregate of everything, or no table at all."""
    if not isinstance(query, exp.Select):
        return False
    if query.args.get("group") or query.args.get("laterals"):
        return False
    if query.args.get("from_") is None:
        return not any(isinstance(p.unalias(), exp.UDTF) for p in query.expressions)
    return any(_aggregates(projection) for projection in query.expressions) or all(_is_one_row(r) for r in relations(query))


def _is_one_row(relation: exp.Expr) -> bool:
    cte = cte_of(relation)
    inner = cte.this if cte is not None else relation
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    return _has_one_row(inner)


def _aggregates(projection: exp.Expr) -> bool:
    """Whether it has an aggregate of its own, outside windows and subqueries."""
    for found in projection.find_all(exp.AggFunc):
        parent = found.parent
        while parent is not None and not isinstance(parent, (exp.Window, exp.Query)):
            parent = parent.parent
        if isinstance(parent, exp.Select) and parent is projection.find_ancestor(exp.Select):
            return True
    return False


def _is_ordered_inside(query: exp.Expr) -> bool:
    """A query that only selects from an ordered one, whose order Spark keeps."""
    if isinstance(query, exp.Subquery):
        return bool(query.this.args.get("order"))
    if not isinstance(query, exp.Select) or any(query.args.get(key) for key in ("joins", "group", "distinct", "laterals")):
        return False
    start = query.args.get("from_")
    relation = start.this if start else None
    cte = cte_of(relation) if relation is not None else None
    inner = cte.this if cte is not None else relation
    while isinstance(inner, exp.Subquery) and not inner.args.get("order"):
        inner = inner.this
    return inner is not None and bool(inner.args.get("order"))


def _word(clause: exp.Expr) -> str:
    return "LIMIT" if isinstance(clause, exp.Limit) else "OFFSET" if isinstance(clause, exp.Offset) else "FETCH"


def _place(statement: Statement, clause: exp.Expr, word: str) -> Span:
    extent = statement.extent(clause)
    kind = {"LIMIT": TokenType.LIMIT, "OFFSET": TokenType.OFFSET}.get(word, TokenType.FETCH)
    token = statement.word_before(extent[0], kind) if extent else None
    return statement.span(token.start, token.end + 1) if token else statement.span_of(clause)


RULE = Rule(
    code="limit-without-order",
    level="warning",
    title="LIMIT or OFFSET without ORDER BY keeps arbitrary rows.",
    why=(
        "Each refresh may keep other rows of the same data. Not reported for `LIMIT 0`, in EXISTS, and for a query of one row. "
        "A LIMIT without ORDER BY also prevents most incremental refreshes of an MV."
    ),
    help="Add ORDER BY with columns that identify a row, or leave the limit to the readers of the model.",
    check=check,
    wrong={"models/names.sql": "SELECT name FROM {{ ref('customers') }} LIMIT 10\n"},
    right={"models/names.sql": "SELECT name FROM {{ ref('customers') }} ORDER BY id LIMIT 10\n"},
)
