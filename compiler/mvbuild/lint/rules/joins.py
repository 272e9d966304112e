"""Joins that pair every row with every row -> findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import TokenType, exp

from mvbuild.graph.model import ModelNode
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Found, Options, Rule
from mvbuild.lint.statement import Statement, cte_of, name_of, qualifier_of, selects
from mvbuild.source import Span

_LEADS = (
    TokenType.JOIN,
    TokenType.CROSS,
    TokenType.INNER,
    TokenType.LEFT,
    TokenType.RIGHT,
    TokenType.FULL,
    TokenType.OUTER,
    TokenType.COMMA,
)


def check(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    statement = facts.statement(node)
    if statement.is_piped:
        return
    for select in selects(statement.tree):
        for join in _joins(select):
            if _is_unconditional(join) and not _is_small(join.this) and not _is_linked(join, select):
                start = select.args.get("from_")
                if start is None or (_first_of(join, select) and _is_small(start.this)):
                    continue
                yield Found(message=_message(join), span=_place(statement, join))


def _joins(select: exp.Select) -> Iterator[exp.Join]:
    """The joins of this SELECT, including those in parentheses of FROM."""
    for join in select.find_all(exp.Join):
        if join.find_ancestor(exp.Select) is select:
            yield join


def _is_unconditional(join: exp.Join) -> bool:
    if join.args.get("using") or join.args.get("method") or join.kind in ("SEMI", "ANTI"):
        return False
    on = join.args.get("on")
    return on is None or not on.find(exp.Column, exp.Query)


def _first_of(join: exp.Join, select: exp.Select) -> bool:
    joins: list[exp.Expr] = select.args.get("joins") or []
    return bool(joins) and joins[0] is join


def _is_small(relation: exp.Expr) -> bool:
    """At most a few rows, or rows that are made from those before them."""
    cte = cte_of(relation)
    if cte is not None:
        return not _is_recursive(cte) and _has_one_row(cte.this)
    if isinstance(relation, exp.Subquery):
        return _has_one_row(relation.this)
    if isinstance(relation, exp.Table):
        return not isinstance(relation.this, exp.Identifier)
    return True


def _is_recursive(cte: exp.CTE) -> bool:
    return bool(cte.parent and cte.parent.args.get("recursive"))


def _has_one_row(query: exp.Expr) -> bool:
    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.Values):
        return True
    limit = query.args.get("limit")
    if isinstance(limit, exp.Limit) and limit.expression.name == "1":
        return True
    if isinstance(query, exp.SetOperation):
        # A list of values: SELECT 1 UNION ALL SELECT 2.
        return not any(query.find_all(exp.Table)) and not query.find(exp.UDTF)
    if not isinstance(query, exp.Select) or query.args.get("group"):
        return False
    if query.args.get("from_") is None:
        return True
    values = [p.unalias() for p in query.expressions]
    return bool(values) and any(v.find(exp.AggFunc) and not v.find(exp.Window, exp.Query) for v in values)


# Whether a condition elsewhere links it


def _is_linked(join: exp.Join, select: exp.Select) -> bool:
    """Whether a condition may name a column of the relation together with one of another; in doubt it does."""
    name = name_of(join.this)
    return any(_may_link(condition, name) for condition in _conditions(join, select))


def _conditions(join: exp.Join, select: exp.Select) -> Iterator[exp.Expr]:
    for key in ("where", "having", "qualify"):
        clause = select.args.get(key)
        if clause is not None:
            yield from _conjuncts(clause.this)
    for other in _joins(select):
        if other is not join and other.args.get("on"):
            yield from _conjuncts(other.args["on"])


def _conjuncts(condition: exp.Expr) -> Iterable[exp.Expr]:
    condition = condition.unnest()
    return condition.flatten() if isinstance(condition, exp.And) else (condition,)


def _may_link(condition: exp.Expr, name: str) -> bool:
    names = [qualifier_of(column) for column in condition.find_all(exp.Column)]
    if len(names) < 2:
        return False
    own = sum(n == name for n in names)
    return "" in names or (0 < own < len(names)) or not name


def _message(join: exp.Join) -> str:
    if join.args.get("on") is not None:
        return "This condition is the same for all rows: the join pairs every row with every row"
    if join.kind == "CROSS":
        return "No condition links this: it pairs every row with every row"
    return "This join has no condition: it pairs every row with every row"


def _place(statement: Statement, join: exp.Join) -> Span:
    """From the joining keyword to the name of what is joined."""
    parts = join.this.parts if isinstance(join.this, exp.Table) else [join.this.args["alias"].this] if join.this.args.get("alias") else []
    extents = [e for part in parts if (e := statement.extent(part))]
    if not extents:
        return statement.span_of(join)
    start, end = min(s for s, _ in extents), max(e for _, e in extents)
    if not isinstance(join.this, exp.Table):
        return statement.span(start, end)
    index = statement.index_at(start)
    while index > 0 and statement.tokens[index - 1].token_type in _LEADS:
        index -= 1
    first = statement.tokens[index]
    return statement.span(start, end) if first.token_type == TokenType.COMMA else statement.span(first.start, end)


RULE = Rule(
    code="cross-join",
    level="warning",
    title="A join without a condition pairs every row with every row.",
    why=(
        "Usually a condition was forgotten. Not reported if WHERE, or the ON of another join, links the two, if one of them has "
        "one row (an aggregate of everything) or is a list of values, and for LATERAL and functions that generate rows."
    ),
    help="Add ON or USING; if you want every pair, say so: `-- mvbuild: allow(cross-join) every day for every shop`.",
    check=check,
    wrong={"models/pairs.sql": "SELECT c.name, o.amount FROM {{ ref('customers') }} AS c, {{ ref('orders') }} AS o\n"},
    right={
        "models/pairs.sql": (
            "SELECT c.name, o.amount\nFROM {{ ref('customers') }} AS c\nJOIN {{ ref('orders') }} AS o ON o.customer_id = c.id\n"
        )
    },
)
