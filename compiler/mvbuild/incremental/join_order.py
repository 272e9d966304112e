"""Relation of inner joins -> the same rows, with each table after one with which it has a condition.

A query may name its tables in any order: `FROM sales, dates, customers`, with a condition between dates and customers, and one between
customers and sales. From left to right, each sale would be combined with every date. Spark orders the joins of a whole query, but a refresh
also reads parts of it: there, the table with the condition may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvbuild.incremental.algebra import Filter, Join, Relation, conjunction, conjuncts, names_in


def connected(relation: Relation) -> Relation:
    """The joins in the order that Spark chooses: the next table is the first with a condition that reads it and the tables before it.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> tables = "{orders}, (SELECT country AS there FROM {customers}) AS others, {customers}"
    >>> made = shape(f"SELECT id FROM {tables} WHERE orders.customer_id = customers.customer_id AND country = there")
    >>> formula(made.root)
    'inner join[country = country](inner join[customer_id = customer_id](orders, customers), customers)'
    """
    if isinstance(relation, Filter):
        child = connected(relation.child)
        return relation if child is relation.child else Filter(child, relation.predicate)
    tables, conditions = _flat(relation)
    if not frozenset[str]().union(*map(names_in, conditions)) <= set(relation.columns):
        return relation
    made = _joined(tables, conditions)
    return made if _products(made) < _products(relation) else relation


def _flat(relation: Relation) -> tuple[list[Relation], list[exp.Expr]]:
    """The tables of inner joins from left to right, and all conditions."""
    if not isinstance(relation, Join) or relation.kind != "inner":
        return [relation], []
    tables, conditions = _flat(relation.left)
    return [*tables, relation.right], [*conditions, *conjuncts(relation.on)]


def _joined(tables: Sequence[Relation], conditions: Sequence[exp.Expr]) -> Relation:
    made, *waiting = tables
    open_ = list(conditions)
    while waiting:
        table = next((one for one in waiting if any(_connects(part, made, one) for part in open_)), waiting[0])
        waiting = [one for one in waiting if one is not table]
        known = {*made.columns, *table.columns}
        here = [part for part in open_ if names_in(part) <= known]
        open_ = [part for part in open_ if part not in here]
        made = Join(made, table, "inner", conjunction(here))
    return made


def _connects(condition: exp.Expr, left: Relation, right: Relation) -> bool:
    needed, of_left, of_right = names_in(condition), set(left.columns), set(right.columns)
    return needed <= of_left | of_right and not needed <= of_left and not needed <= of_right


def _products(relation: Relation) -> int:
    """Joins without a condition."""
    if not isinstance(relation, Join) or relation.kind != "inner":
        return 0
    return _products(relation.left) + (relation.on is None)
