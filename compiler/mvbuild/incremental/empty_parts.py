"""Difference + what is known to have no rows -> the same difference without the terms that cannot have rows: a smaller plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from mvbuild.incremental.algebra import Aggregate, Filter, Join, OneRow, Ref, Relation, Scan, SetOperation, Union, renamed, with_children
from mvbuild.incremental.statements import Difference

IsEmpty = Callable[[Scan], bool]


def without_empty_parts(change: Difference, parts: EmptyParts) -> Difference:
    """Statements that are empty remain, as what reads them names them.

    >>> from mvbuild.incremental.samples import case, formula
    >>> from mvbuild.incremental.statements import difference
    >>> from mvbuild.incremental.stored_rows import Stored
    >>> from mvbuild.incremental.strategies import merge
    >>> made = merge.rewrite(case("SELECT customer_id, count(*) AS n FROM {orders} GROUP BY customer_id", removed=True))
    >>> change = difference(made, Stored(types={"customer_id": "long", "n": "long"}))
    >>> formula(change.ctes[0].relation)
    'aggregate[customer_id, SUM(mvbuild_weight)](union(project[customer_id, 1](orders.plus), project[customer_id, -1](orders.minus)))'
    >>> formula(without_empty_parts(change, EmptyParts(lambda scan: scan.version == "plus")).ctes[0].relation)
    'aggregate[customer_id, SUM(mvbuild_weight)](project[customer_id, -1](orders.minus))'
    """
    ctes = []
    for cte in change.ctes:
        ctes.append(replace(cte, relation=parts.without(cte.relation)))
        if parts.has_no_rows(cte.relation):
            parts.names.add(cte.name)
    gone, came = (parts.without(side) if side is not None else None for side in (change.gone, change.came))
    removes = next((cte for cte in ctes if change.removes is not None and cte.name == change.removes.name), None)
    return replace(change, ctes=tuple(ctes), gone=gone, came=came, removes=removes)


class EmptyParts:
    """What cannot have rows, by what is known so far."""

    def __init__(self, is_empty: IsEmpty) -> None:
        self._is_empty = is_empty
        self.names: set[str] = set()
        """Statements without rows."""

    def has_no_rows(self, relation: Relation) -> bool:
        """Whether it cannot have rows; False if that is not known."""
        if isinstance(relation, Scan):
            return self._is_empty(relation)
        if isinstance(relation, Ref):
            return relation.name in self.names
        if isinstance(relation, Filter) and relation.predicate == exp.false():
            return True
        if isinstance(relation, OneRow) or (isinstance(relation, Aggregate) and not relation.keys):
            return False
        empty = [self.has_no_rows(child) for child in relation.children]
        if isinstance(relation, Join):
            return any(empty) if relation.kind in ("inner", "semi") else all(empty) if relation.kind == "full" else empty[0]
        if isinstance(relation, SetOperation):
            return any(empty) if relation.kind == "intersect" else empty[0]
        return all(empty) if isinstance(relation, Union) else empty[0]

    def without(self, relation: Relation) -> Relation:
        """Without the parts of UNION ALL that have no rows, unless all are such."""
        relation = with_children(relation, tuple(map(self.without, relation.children)))
        if not isinstance(relation, Union) or not relation.alike:
            return relation
        kept = tuple(part for part in relation.parts if not self.has_no_rows(part))
        if not kept or len(kept) == len(relation.parts):
            return relation
        if len(kept) > 1:
            return replace(relation, parts=kept)
        return renamed(kept[0], tuple(zip(relation.columns, kept[0].columns, strict=True)))
