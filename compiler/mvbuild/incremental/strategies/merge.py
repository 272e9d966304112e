"""StrategyInput -> Upsert: the groups of the storage are updated from their old values and the change."""

from __future__ import annotations

from mvbuild.incremental import merged_groups
from mvbuild.incremental.rewrite import Rewrite, StrategyInput

NAME = "merge"
UPDATES_GROUPS = True
"""It computes the new values of a group from its old ones."""
refused_by_settings = merged_groups.refused_by_settings


def rewrite(case: StrategyInput) -> Rewrite:
    """For GROUP BY, or an aggregate of everything, whose new outputs follow from their old values and the change.

    >>> from mvbuild.incremental.samples import case, formula
    >>> write = rewrite(case("SELECT customer_id, count(*) AS n FROM {orders} GROUP BY customer_id")).write
    >>> formula(write.delta)
    'aggregate[customer_id, SUM(mvbuild_weight)](project[customer_id, 1](orders.plus))'
    >>> {name: value.sql() for name, value in write.updates.items()}
    {'n': 'CAST(("t"."n" + COALESCE("d"."count_10", 0)) AS BIGINT)'}
    """
    return merged_groups.merged(case, NAME)
