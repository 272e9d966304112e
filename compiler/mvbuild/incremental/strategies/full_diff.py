"""StrategyInput -> Exchange: everything is computed again, but only differing rows are written, so that MVs above can stay incremental."""

from __future__ import annotations

from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import Exchange, Rewrite, StrategyInput

NAME = "full-diff"
IS_COMPLETE = True
"""It computes the whole query."""
WORTH = 1.5
"""MVs that read this one have little to do if only the rows that differ are written."""


def rewrite(case: StrategyInput) -> Rewrite:
    """For an MV that other MVs read, if its rows can be compared.

    >>> from mvbuild.incremental.samples import case, formula
    >>> formula(rewrite(case("SELECT customer_id, count(*) AS n FROM {orders} GROUP BY customer_id")).write.rows)
    'aggregate[customer_id, COUNT(*)](orders)'
    """
    if not case.has_children:
        raise Refused("no-children", "no other MV reads it")
    case.require_comparable()
    return Rewrite(NAME, Exchange(case.shape.root, None), (), case.shape.outputs)
