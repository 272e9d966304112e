"""StrategyInput -> Upsert: min and max of all rows from their old values, although rows were removed.

The source of the rule: Palpanas, Sidle, Cochrane, Pirahesh, Incremental Maintenance for Non-Distributive Aggregate Functions (VLDB 2002).
If only smaller rows were removed, the largest one is still there; if a larger one than those was added, and no stored one is larger,
it is the largest. That is known once the change is computed; otherwise the next one is in the base tables, and the refresh is full.
"""

from __future__ import annotations

from mvbuild.incremental import merged_groups
from mvbuild.incremental.algebra import Aggregate, bottom_of
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import Rewrite, StrategyInput, Upsert

NAME = "min-max"
MAY_FALL_SHORT = "extreme-removed"
"""The row with the smallest or largest value may have been removed."""
refused_by_settings = merged_groups.refused_by_settings


def rewrite(case: StrategyInput) -> Rewrite:
    """For an aggregate without GROUP BY: with it, the groups of the removed rows are computed again.

    >>> from mvbuild.incremental.samples import case
    >>> write = rewrite(case("SELECT max(amount) AS m FROM {orders}", removed=True)).write
    >>> sorted(write.updates)
    ['m']
    """
    bottom = bottom_of(case.shape.root)
    if isinstance(bottom, Aggregate) and bottom.keys:
        raise Refused("no-min-max", "it has GROUP BY")
    made = merged_groups.merged(case, NAME, may_fall_short=True)
    write = made.write
    if not isinstance(write, Upsert) or write.only_if is None:
        raise Refused("no-min-max", "no removed row can affect a min or max")
    return made
