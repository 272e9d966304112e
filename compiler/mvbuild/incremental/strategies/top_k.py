"""StrategyInput -> Top: the first rows in an order, from those that are stored and those that changed.

The source of the rule: Yi, Yu, Yang, Xia, Chen, Efficient Maintenance of Materialized Top-k Views (ICDE 2003), for a view without a buffer.
New rows only move others out. If rows of the view are removed and fewer come before its last one, the next rows are in the base tables.
That is known once the change is computed, and the refresh is full.
"""

from __future__ import annotations

from sqlglot import exp

from mvbuild.incremental.algebra import Limit, Project
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import NOTHING, Rewrite, StrategyInput, Top

NAME = "top-k"
MAY_FALL_SHORT = "first-rows-removed"
"""The stored rows and those that changed may be too few."""


def rewrite(case: StrategyInput) -> Rewrite:
    """For a query that ends in ORDER BY with LIMIT, if it selects what it sorts by.

    >>> from mvbuild.incremental.samples import case, formula
    >>> write = rewrite(case("SELECT id, amount FROM {orders} ORDER BY amount DESC, id LIMIT 10")).write
    >>> write.count, formula(write.plus), write.minus
    (10, 'orders.plus', None)
    """
    root, shown = case.shape.root, {name for name, _ in case.shape.outputs}
    limit = root.child if isinstance(root, Project) else root
    if not isinstance(limit, Limit):
        raise Refused("no-limit", "it does not end in ORDER BY with LIMIT")
    # What is computed from the stored columns could have another value: they may be wider than those of the query.
    hidden = next((part for part in limit.order if not (isinstance(part.this, exp.Column) and part.this.name in shown)), None)
    if root is not limit or hidden is not None:
        raise Refused("limit", "it is not sorted by columns of the result alone", hidden or limit.limit)
    count = _count(limit)
    case.require_comparable()
    deltas = case.deltas()
    if not deltas.changes(limit.child):
        return Rewrite(NAME, NOTHING, outputs=case.shape.outputs)
    plus, minus = deltas.of(limit.child).sides(limit.columns)
    return Rewrite(NAME, Top(plus, minus, limit.order, count), tuple(deltas.ctes), case.shape.outputs)


def _count(limit: Limit) -> int:
    """How many rows it keeps. Raises Refused if these are not the first ones in an order."""
    number = limit.limit
    is_plain = isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit()
    if limit.offset is not None or not limit.order or not is_plain:
        raise Refused("limit", "its LIMIT is not a plain number, or comes without ORDER BY or with OFFSET", number or limit.offset)
    assert number is not None
    return int(number.name)
