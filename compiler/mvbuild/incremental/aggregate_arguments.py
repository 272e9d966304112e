"""An aggregate function -> its argument; a relation -> its columns that are never NULL: what keeping sums and counts depends on."""

from __future__ import annotations

from sqlglot import exp

from mvbuild.incremental.algebra import Filter, Join, Project, Relation, Scan, conjuncts
from mvbuild.incremental.reasons import Refused


def simple(expression: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """An aggregate function and its argument, None for count(*). FILTER and count_if become an argument that is NULL where the condition
    does not hold."""
    condition = None
    if isinstance(expression, exp.Filter):
        condition, expression = expression.expression.this, expression.this
    if expression.find(exp.Distinct) is not None:
        raise Refused("not-mergeable", f"{expression.sql('spark')}: a set of values cannot be updated from its size", expression)
    if isinstance(expression, exp.CountIf):
        inner: exp.Expr | None = where(expression.this, exp.Literal.number(1))
        expression = exp.Count(this=inner)
    else:
        inner = expression.this
        if isinstance(expression, exp.Count) and (expression.expressions or inner is None):
            raise Refused("not-mergeable", f"{expression.sql('spark')} counts several columns", expression)
        if isinstance(inner, exp.Star) or (isinstance(expression, exp.Count) and isinstance(inner, exp.Literal)):
            inner = None
    if condition is not None:
        if isinstance(inner, str):
            # The name of a function that sqlglot does not know, such as max_by.
            raise Refused("not-mergeable", f"{inner} with FILTER cannot be updated from its value", expression)
        inner = where(condition, inner if inner is not None else exp.Literal.number(1))
    return expression, inner


def never_null(relation: Relation, required: frozenset[str]) -> frozenset[str]:
    """Columns of a relation that come from required columns, or passed IS NOT NULL, and passed no operator that makes NULLs after it."""
    if isinstance(relation, Scan):
        return required & set(relation.columns)
    if isinstance(relation, Project):
        inner = never_null(relation.child, required)
        return frozenset(i.name for i in relation.items if isinstance(i.expression, exp.Column) and i.expression.name in inner)
    if isinstance(relation, Filter):
        return never_null(relation.child, required) | {name for part in conjuncts(relation.predicate) if (name := _tested(part))}
    if isinstance(relation, Join) and relation.kind in ("inner", "semi", "anti", "left"):
        left = never_null(relation.left, required)
        return left | never_null(relation.right, required) if relation.kind == "inner" else left
    return frozenset()


def _tested(part: exp.Expr) -> str:
    """x of `x IS NOT NULL`; empty for another condition."""
    test = part.this.unnest() if isinstance(part, exp.Not) else part
    is_not_null = test is not part and isinstance(test, exp.Is) and isinstance(test.expression, exp.Null)
    return test.this.name if is_not_null and isinstance(test.this, exp.Column) else ""


def where(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
