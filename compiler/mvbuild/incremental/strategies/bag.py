"""StrategyInput -> Bag: the rows added and removed, without any key; the storage loses as many copies as were removed."""

from __future__ import annotations

from mvbuild.incremental.algebra import Relation, projected, union
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
    delta = deltas.of(root)

    def all_of(parts: tuple[Relation, ...]) -> Relation | None:
        return union([projected(part, root.columns) for part in parts]) if parts else None

    return Rewrite(NAME, Bag(all_of(delta.plus), all_of(delta.minus)), tuple(deltas.ctes), case.shape.outputs)
