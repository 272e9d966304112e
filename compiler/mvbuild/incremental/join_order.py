"""Relation of inner joins -> the same rows, with its tables in another order.

A query may name its tables in any order: `FROM sales, dates, customers`, with a condition between dates and customers, and one between
customers and sales. From left to right, each sale would be combined with every date. Spark orders the joins of a whole query, but a refresh
also reads parts of it: there, the table with the condition may be missing.

The change of `customers JOIN orders JOIN lines` has a term for each table that changed, and each reads the customers. As
`(orders JOIN lines) JOIN customers`, it is the change of the orders with their lines that is joined with them, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from sqlglot import exp

from mvbuild.incremental.algebra import Filter, Join, Likeness, Relation, conjunction, conjuncts, names_in, projected


class _Condition(NamedTuple):
    part: exp.Expr
    likeness: Likeness
    at: int
    """The number of the table whose join has it."""


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
    if not frozenset[str]().union(*(names_in(one.part) for one in conditions)) <= set(relation.columns):
        return relation
    made = _joined(_connected(tables, conditions), conditions)
    return made if _products(made) < _products(relation) else relation


def changed_first(join: Join, changes: Callable[[Relation], bool]) -> Relation:
    """The same join, with the tables that changed before the others where this cannot make an intermediate result larger.

    A changed table moves if all of its conditions are with other changed tables, so that each row finds as many partners as in the query. A
    table that the query names before the first changed one moves behind them if it is the only one: of several, one could lose its
    conditions.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> others = "(SELECT id AS other_id FROM {orders}) AS others"
    >>> made = shape(f"SELECT id, country FROM {{customers}} JOIN {{orders}} USING (customer_id) JOIN {others} ON id = other_id").root.child
    >>> formula(made)
    'inner join[id = id](inner join[customer_id = customer_id](customers, orders), orders)'
    >>> formula(changed_first(made, lambda table: "orders" in formula(table)))
    'inner join[customer_id = customer_id](inner join[id = id](orders, orders), customers)'
    """
    tables, conditions = _flat(join)
    first, *later = [at for at, table in enumerate(tables) if changes(table)] or [0]
    core, known = [first], set(tables[first].columns)
    for at in later:
        own = [one.part for one in conditions if one.at == at]
        if own and all(names_in(part) <= known | set(tables[at].columns) for part in own):
            core.append(at)
            known |= set(tables[at].columns)
    before = list(range(first)) if first > 1 else []
    order = [*before, *core, *(at for at in range(len(tables)) if at not in (*before, *core))]
    if len(core) == 1 or order == sorted(order):
        return join
    made = _joined([tables[at] for at in order], conditions)
    return projected(made, join.columns) if _products(made) <= _products(join) else join


def _flat(relation: Relation) -> tuple[list[Relation], list[_Condition]]:
    """The tables of inner joins from left to right, and all conditions."""
    if not isinstance(relation, Join) or relation.kind != "inner":
        return [relation], []
    tables, conditions = _flat(relation.left)
    # `Join.equalities` treats a part without a likeness as `equal`.
    pairs = zip_longest(conjuncts(relation.on), relation.likeness)
    own = [_Condition(part, like or "equal", len(tables)) for part, like in pairs if part is not None]
    return [*tables, relation.right], [*conditions, *own]


def _connected(tables: Sequence[Relation], conditions: Sequence[_Condition]) -> list[Relation]:
    made, *waiting = tables
    order, known = [made], set(made.columns)
    while waiting:
        table = next((one for one in waiting if any(_connects(c.part, known, set(one.columns)) for c in conditions)), waiting[0])
        waiting = [one for one in waiting if one is not table]
        order.append(table)
        known |= set(table.columns)
    return order


def _joined(tables: Sequence[Relation], conditions: Sequence[_Condition]) -> Relation:
    """From left to right, each condition as soon as its columns are there."""
    made, *waiting = tables
    open_ = list(conditions)
    for table in waiting:
        known = {*made.columns, *table.columns}
        here = [one for one in open_ if names_in(one.part) <= known]
        open_ = [one for one in open_ if one not in here]
        made = Join(made, table, "inner", conjunction([one.part for one in here]), likeness=tuple(one.likeness for one in here))
    return made


def _connects(condition: exp.Expr, left: set[str], right: set[str]) -> bool:
    needed = names_in(condition)
    return needed <= left | right and not needed <= left and not needed <= right


def _products(relation: Relation) -> int:
    """Joins without a condition."""
    if not isinstance(relation, Join) or relation.kind != "inner":
        return 0
    return _products(relation.left) + (relation.on is None)
