"""Aggregate over a LEFT JOIN -> its input without the rows that have no partner, if these change none of its values.

`SELECT c.id, count(o.id) FROM c LEFT JOIN o ... GROUP BY c.id` has a group for each row of `c`, with a partner or without one. A row
without a partner has NULL in each column of `o`, which count, sum, min and the like skip. So the values of a group change only with the
pairs, which are the rows of an inner join: whether the first partner came or the last one left need not be looked up. Groups come and go
with the rows of `c` alone. Larson and Zhou keep a count of partners for this, "Efficient Maintenance of Materialized Outer-Join Views"
(ICDE 2007); it is not needed where no value is of `c`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.aggregate_arguments import simple
from mvbuild.incremental.algebra import (
    Aggregate,
    Filter,
    Join,
    OneRow,
    Project,
    Relation,
    conjuncts,
    leaves,
    names_in,
    substituted,
    with_part,
)
from mvbuild.incremental.reasons import Refused

_STRICT = (exp.Cast, exp.Neg, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
"""NULL if one of their operands is."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchedRows:
    """The input of an aggregate over a LEFT JOIN."""

    right: frozenset[int]
    """The tables of the right side."""
    pairs: Relation
    """The input with an inner join instead."""
    alone: Relation
    """The input as if the right side had no rows."""


def matched_rows(aggregate: Aggregate) -> MatchedRows | None:
    """None if there is no such join, or if a value or key needs the rows without partner.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> joined = "SELECT country, count(id) AS n FROM {customers} LEFT JOIN {orders} USING (customer_id) GROUP BY country"
    >>> formula(matched_rows(shape(joined).root.child).pairs)
    'inner join[customer_id = customer_id](customers, orders)'
    >>> matched_rows(shape(joined.replace("count(id)", "count(*)")).root.child)
    """
    if not aggregate.keys:
        return None
    try:
        arguments = [simple(item.expression)[1] for item in aggregate.values]
    except Refused:
        return None
    values = [one for one in arguments if one is not None]
    if not values or len(values) < len(arguments) or not all(isinstance(one, exp.Expr) for one in values):
        # A function that sqlglot does not know, such as max_by, has a name in the place of its argument.
        return None
    join = _join(aggregate.child, values, [item.expression for item in aggregate.keys])
    if join is None or not leaves(join.right) or _reads_twice(aggregate.child, join.right):
        return None
    pairs = with_part(aggregate.child, join, replace(join, kind="inner"))
    alone = with_part(aggregate.child, join, replace(join, right=Filter(join.right, exp.false())))
    return MatchedRows(right=leaves(join.right), pairs=pairs, alone=alone)


def _join(relation: Relation, values: Sequence[exp.Expr], others: Sequence[exp.Expr]) -> Join | None:
    """The LEFT JOIN without whose right side the values are NULL, while the other expressions do not read that side."""
    if type(relation) is Project:
        items = {item.name: item.expression for item in relation.items}
        return _join(relation.child, _over(values, items), _over(others, items))
    if type(relation) is Filter:
        return _join(relation.child, values, [*others, relation.predicate])
    if not isinstance(relation, Join):
        return None
    columns = frozenset(relation.right.columns)
    reads = frozenset[str]().union(*(names_in(one) for one in others))
    if relation.kind == "left" and not reads & columns and all(_is_null(one, columns) for one in values):
        return relation
    others = [*others, *conjuncts(relation.on)]
    found = _join(relation.left, values, others) if relation.kind in ("inner", "left", "semi", "anti") else None
    if found is None and relation.kind == "inner":
        found = _join(relation.right, values, others)
    return found


def _reads_twice(relation: Relation, part: Relation) -> bool:
    """Whether the rest of the relation reads a table of the part too: its change also brings and removes rows without a partner."""
    return bool(leaves(part) & leaves(with_part(relation, part, OneRow(part.columns))))


def _over(expressions: Sequence[exp.Expr], items: Mapping[str, exp.Expr]) -> list[exp.Expr]:
    return [substituted(one, items) for one in expressions]


def _is_null(value: exp.Expr, columns: frozenset[str]) -> bool:
    """Whether it is NULL where the columns are."""
    if isinstance(value, exp.Column):
        return value.name in columns
    if isinstance(value, exp.Case):
        if value.this is not None or value.args.get("default") is not None:
            return False
        return all(_is_never_true(one.this, columns) or _is_null(one.args["true"], columns) for one in value.args["ifs"])
    return isinstance(value, _STRICT) and any(_is_null(one, columns) for one in value.iter_expressions())


def _is_never_true(condition: exp.Expr, columns: frozenset[str]) -> bool:
    """Whether it is NULL or false where the columns are NULL. Not the same as NULL: `NULL AND false` is false, which `count` counts."""
    if isinstance(condition, exp.Paren):
        return _is_never_true(condition.this, columns)
    if isinstance(condition, exp.And):
        return any(_is_never_true(one, columns) for one in condition.flatten())
    return _is_null(condition, columns)
