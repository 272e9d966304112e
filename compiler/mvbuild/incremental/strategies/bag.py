"""StrategyInput -> Bag: the rows added and removed, without any key; the storage loses as many copies as were removed."""

from __future__ import annotations

from mvbuild.incremental.rewrite import Bag, Rewrite, StrategyInput

NAME = "bag"


def rewrite(case: StrategyInput) -> Rewrite:
    """For every query whose change can be computed, and whose rows can be compared.

    >>> from mvbuild.incremental.samples import case, formula
    >>> write = rewrite(case("SELECT status FROM {orders} WHERE amount > 0", removed=True)).write
    >>> formula(write.plus), formula(write.minus)
    ('filter[amount > 0](orders.plus)', 'filter[amount > 0](orders.minus)')
    """
    deltas, root = case.deltas(), case.shape.root
    case.require_comparable()
    plus, minus = deltas.of(root).sides(root.columns)
    return Rewrite(NAME, Bag(plus, minus), tuple(deltas.ctes), case.shape.outputs)
