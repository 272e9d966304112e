"""StrategyInput -> Append: added rows below add rows to the result, and none of its rows is removed."""

from __future__ import annotations

from mvbuild.incremental.algebra import projected, union
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import NOTHING, Append, Rewrite, StrategyInput

NAME = "append"


def rewrite(case: StrategyInput) -> Rewrite:
    """For projection, filter, inner join, UNION ALL, and joins of other kinds whose right side did not change.

    >>> from mvbuild.incremental.samples import case, formula
    >>> formula(rewrite(case("SELECT id FROM {orders} WHERE amount > 0")).write.rows)
    'filter[amount > 0](orders.plus)'
    """
    if case.minus:
        raise Refused("rows-removed", "rows were deleted or updated")
    deltas, root = case.deltas(), case.shape.root
    if not deltas.is_linear(root):
        raise Refused("not-linear", "the query has more than projections, filters, inner joins and UNION ALL of what changed")
    parts = [projected(part, root.columns) for part in deltas.of(root).plus]
    return Rewrite(NAME, Append(union(parts)) if parts else NOTHING, outputs=case.shape.outputs)
