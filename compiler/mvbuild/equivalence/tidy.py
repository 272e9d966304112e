"""tree of a query -> the same query with each clause in one of its equivalent forms. Nothing moves from one SELECT to another.

Only forms that are equal for every row, including NULL and NaN. For example, an OR of comparisons is not an IN, which finds another common
type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

_SYMMETRIC = (exp.EQ, exp.NEQ, exp.NullSafeEQ)
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
_OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}
_NATURAL: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}
CLAUSES = ("where", "having", "qualify")
ALIAS = "t__"
"""The prefix of the canonical names of tables."""


def shown(node: object) -> str:
    """A node as text to compare and sort by: its structure, since there are no parentheses any more. Quotes of names do not count."""
    if isinstance(node, exp.Identifier):
        return str(node.this)
    if isinstance(node, exp.Literal):
        return f"'{node.this}'" if node.is_string else str(node.this)
    if isinstance(node, exp.Connector):
        return f"{type(node).__name__}({','.join(shown(part) for part in node.flatten(unnest=False))})"
    if isinstance(node, exp.Expr):
        inner = ",".join(f"{key}={shown(value)}" for key, value in sorted(node.args.items()) if value not in (None, False, []))
        return f"{type(node).__name__}({inner})"
    return f"[{','.join(map(shown, node))}]" if isinstance(node, (list, tuple)) else str(node)


def readable(node: exp.Expr) -> str:
    """A condition for people, with the names of columns only."""
    copy = _turned_back(node.copy())
    for connector in list(copy.find_all(exp.Connector)):
        if connector is not copy and not isinstance(connector.parent, type(connector)):
            connector.replace(exp.Paren(this=connector.copy()))
    return re.sub(rf"`?{ALIAS}\w+`?\.", "", copy.sql(dialect="spark", comments=False))


def _turned_back(tree: exp.Expr) -> exp.Expr:
    """With the column before the literal, as people write it."""
    for node in reversed(list(tree.walk())):
        new = node
        if type(node) in _NATURAL and isinstance(node.this, (exp.Literal, exp.Neg, exp.Cast)) and not node.this.find(exp.Column):
            new = _NATURAL[type(node)](this=node.expression, expression=node.this)
        elif isinstance(node, exp.Not) and isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            new = exp.Is(this=node.this.this, expression=exp.Not(this=exp.Null()))
        if new is not node and node is tree:
            tree = new
        elif new is not node:
            node.replace(new)
    return tree


def tidy(tree: exp.Expr) -> exp.Expr:
    """From the inside out; changes the tree itself."""
    for node in reversed(list(tree.walk())):
        node.comments = None
        new = _tidied(node)
        if new is not node:
            if node is tree:
                tree = new
            else:
                node.replace(new)
    for select in tree.find_all(exp.Select):
        _joins(select)
        _groups(select)
    _unordered(tree)
    return tree


def conjuncts(clause: exp.Expr | None) -> list[exp.Expr]:
    """The conditions of a WHERE, HAVING or QUALIFY that must all hold."""
    if clause is None:
        return []
    condition = clause.this
    return list(condition.flatten(unnest=False)) if isinstance(condition, exp.And) else [condition]


def conjunction(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Each condition once, in the order of their text."""
    return _chained(exp.And, conditions)


def _chained(operator: type[exp.Connector], conditions: Sequence[exp.Expr]) -> exp.Expr:
    unique = {shown(c): c for c in conditions}
    return _balanced(operator, [unique[text] for text in sorted(unique)])


def _balanced(operator: type[exp.Connector], conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Balanced, because a tree of thousands of conditions must not be as deep."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return operator(this=_balanced(operator, conditions[:middle]), expression=_balanced(operator, conditions[middle:]))


def _tidied(node: exp.Expr) -> exp.Expr:
    for kinds, rewrite in _REWRITES:
        if isinstance(node, kinds):
            return rewrite(node)
    return node


def _paren(node: exp.Expr) -> exp.Expr:
    assert isinstance(node, exp.Paren)
    inner: exp.Expr = node.this
    return inner


def _branch(node: exp.Expr) -> exp.Expr:
    """`(SELECT ...)` beside UNION, in parentheses that contain nothing else."""
    plain = isinstance(node.this, exp.Select) and not any(node.this.args.get(key) for key in ("order", "limit", "offset", "sort"))
    alone = not any(value for key, value in node.args.items() if key != "this")
    return node.this if plain and alone and isinstance(node.parent, exp.SetOperation) else node


def _connector(node: exp.Expr) -> exp.Expr:
    assert isinstance(node, exp.Connector)
    if isinstance(node.parent, type(node)):
        return node  # the outermost one handles all of them
    return _chained(type(node), list(node.flatten(unnest=False)))


def _symmetric(node: exp.Expr) -> exp.Expr:
    if shown(node.expression) < shown(node.this):
        return type(node)(this=node.expression, expression=node.this)
    return node


def _turned(node: exp.Expr) -> exp.Expr:
    return _TURNED[type(node)](this=node.expression, expression=node.this)


def _between(node: exp.Expr) -> exp.Expr:
    if node.args.get("symmetric"):
        return node
    value, low, high = node.this, node.args["low"], node.args["high"]
    lower, upper = exp.LTE(this=low, expression=value), exp.LTE(this=value.copy(), expression=high)
    return _tidied(exp.And(this=lower, expression=upper))


def _not(node: exp.Expr) -> exp.Expr:
    inner = node.this
    if isinstance(inner, exp.Not):
        return inner.this if isinstance(inner.this, exp.Predicate | exp.Connector) else node
    if type(inner) in _OPPOSITE:
        return _tidied(_OPPOSITE[type(inner)](this=inner.this, expression=inner.expression))
    if isinstance(inner, (exp.And, exp.Or)):
        parts = [_tidied(exp.Not(this=part.copy())) for part in inner.flatten(unnest=False)]
        return _chained(exp.Or if isinstance(inner, exp.And) else exp.And, parts)
    return node


def _in(node: exp.Expr) -> exp.Expr:
    values = node.args.get("expressions")
    if values:
        unique = {shown(v): v for v in values}
        node.set("expressions", [unique[text] for text in sorted(unique)])
    return node


def _if(node: exp.Expr) -> exp.Expr:
    """`IF(a, b, c)` is CASE WHEN a THEN b ELSE c END; an `If` of a CASE stays."""
    if isinstance(node.parent, exp.Case):
        return node
    branch = exp.If(this=node.this, true=node.args["true"])
    default = node.args.get("false")
    return exp.Case(ifs=[branch], default=default) if default is not None else exp.Case(ifs=[branch])


def _count(node: exp.Expr) -> exp.Expr:
    if isinstance(node.this, exp.Literal) and not node.expressions:
        node.set("this", exp.Star())
    return node


_REWRITES: Sequence[tuple[tuple[type[exp.Expr], ...], Callable[[exp.Expr], exp.Expr]]] = (
    ((exp.Paren,), _paren),
    ((exp.Subquery,), _branch),
    ((exp.And, exp.Or), _connector),
    (_SYMMETRIC, _symmetric),
    (tuple(_TURNED), _turned),
    ((exp.Between,), _between),
    ((exp.Not,), _not),
    ((exp.In,), _in),
    ((exp.If,), _if),
    ((exp.Count,), _count),
)


# --- clauses -----------------------------------------------------------------------------------------------------------------------


def _joins(select: exp.Select) -> None:
    """INNER and OUTER are redundant words. If all joins are inner, their conditions belong to WHERE."""
    joins = select.args.get("joins") or []
    for join in joins:
        if join.args.get("kind") in ("OUTER", "INNER"):
            join.set("kind", None)
    for join in joins:
        if is_inner(join) and not join.args.get("on") and not join.args.get("using"):
            join.set("kind", "CROSS")
    if not joins or not all(map(is_inner, joins)) or any(j.args.get("using") for j in joins):
        return
    conditions = conjuncts(select.args.get("where"))
    for join in joins:
        condition = join.args.get("on")
        if condition is not None:
            conditions += conjuncts(exp.Where(this=condition))
            join.set("on", None)
        join.set("kind", "CROSS")
    if conditions:
        select.set("where", exp.Where(this=conjunction(conditions)))


def is_inner(join: exp.Join) -> bool:
    """A join that can only remove rows from the product of both sides."""
    return not join.args.get("side") and not join.args.get("method") and join.args.get("kind") in (None, "", "CROSS", "INNER")


def _groups(select: exp.Select) -> None:
    group = select.args.get("group")
    if group is None or any(value for key, value in group.args.items() if key != "expressions"):
        return
    found: dict[str, exp.Expr] = {}
    for expression in group.expressions:
        one = expression
        if isinstance(one, exp.Literal) and one.is_int and 0 < int(one.name) <= len(select.expressions):
            one = select.expressions[int(one.name) - 1].unalias().copy()
            if isinstance(one, exp.Star) or one.find(exp.AggFunc):
                return
        found[shown(one)] = one
    group.set("expressions", [found[text] for text in sorted(found)])


def _unordered(tree: exp.Expr) -> None:
    """The rows of a result have no order, unless LIMIT uses it."""
    if isinstance(tree, exp.Query) and not tree.args.get("limit") and not tree.args.get("offset"):
        for clause in ("order", "sort", "cluster", "distribute"):
            tree.set(clause, None)
