"""Case -> Bag: the rows that came and those that went, without any key; the storage gives up as many copies as went."""

from __future__ import annotations

from mvbuild.incremental.algebra import Relation, projected, union
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import Bag, Case, Rewrite

NAME = "bag"


def rewrite(case: Case) -> Rewrite:
    deltas, root = case.deltas(), case.shape.root
    for name in root.columns:
        if case.shape.kinds.get(name) == "uncomparable":
            raise Refused("uncomparable-column", "a column of type map or variant cannot be compared")
    delta = deltas.of(root)

    def all_of(parts: tuple[Relation, ...]) -> Relation | None:
        return union([projected(part, root.columns) for part in parts]) if parts else None

    return Rewrite(NAME, Bag(all_of(delta.plus), all_of(delta.minus)), tuple(deltas.lets), case.shape.outputs)
