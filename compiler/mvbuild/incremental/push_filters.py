"""Relation + conditions -> the relation with its filters as far down as inner joins allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.incremental.algebra import Filter, Join, Relation, conjunction, conjuncts, names_in


def filtered(relation: Relation, parts: Sequence[exp.Expr]) -> Relation:
    """A filter, with each condition as far down as inner joins allow: equalities of comma joins become conditions of the joins.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> query = "SELECT id FROM {orders}, {customers} WHERE orders.customer_id = customers.customer_id AND amount > 0"
    >>> formula(shape(query).root)
    'inner join[customer_id = customer_id](filter[amount > 0](orders), customers)'
    """
    left = []
    for part in parts:
        pushed = _pushed(relation, part)
        if pushed is None:
            left.append(part)
        else:
            relation = pushed
    condition = conjunction(left)
    return relation if condition is None else Filter(relation, condition)


def _pushed(relation: Relation, part: exp.Expr) -> Relation | None:
    """None if the condition cannot move down."""
    needed = names_in(part)
    if not needed or not isinstance(relation, Join) or relation.kind == "full":
        return None
    for side, name in ((relation.left, "left"), (relation.right, "right")):
        if needed <= set(side.columns) and (name == "left" or relation.kind == "inner"):
            inner = _pushed(side, part) or filtered_here(side, part)
            return replace(relation, left=inner) if name == "left" else replace(relation, right=inner)
    if relation.kind != "inner":
        return None
    return replace(relation, on=conjunction([*conjuncts(relation.on), part]))


def filtered_here(relation: Relation, part: exp.Expr) -> Relation:
    if isinstance(relation, Filter):
        merged = conjunction([*conjuncts(relation.predicate), part])
        assert merged is not None
        return Filter(relation.child, merged)
    return Filter(relation, part.copy())
