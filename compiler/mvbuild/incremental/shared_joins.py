"""Rewrite -> the same rewrite, in which terms that are joined with the same tables are first added up: these tables are read once.

Joins, filters and projections are linear: (a JOIN t) UNION ALL (b JOIN t) has the rows of (a UNION ALL b) JOIN t. What distinguishes the
terms, their weights for example, becomes a column below the join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Explode,
    Filter,
    Item,
    Join,
    Project,
    Relation,
    Scalar,
    Union,
    column,
    names_in,
    projected,
    renamed,
    with_children,
)
from mvbuild.incremental.rewrite import Rewrite, map_relations

_Tags = tuple[tuple[Item, ...], ...]
"""For each term the constants that distinguish it, in columns of the same names."""


def with_shared_joins(rewrite: Rewrite) -> Rewrite | None:
    """None if no terms are joined with the same table.

    >>> from mvbuild.incremental.samples import case, formula
    >>> from mvbuild.incremental.strategies import merge
    >>> sql = "SELECT country, count(*) AS n FROM {orders} JOIN {customers} USING (customer_id) GROUP BY country"
    >>> made = merge.rewrite(case(sql, removed=True))
    >>> formula(with_shared_joins(made).write.delta.child)
    'inner join[customer_id = customer_id](union(project[customer_id, 1](orders.plus), project[customer_id, -1](orders.minus)), customers)'
    """
    sharing = _Sharing()
    ctes = tuple(replace(cte, relation=sharing.of(cte.relation)) for cte in rewrite.ctes)
    made = replace(rewrite, ctes=ctes, write=map_relations(rewrite.write, sharing.of))
    return made if sharing.is_found else None


@dataclass
class _Sharing:
    is_found: bool = False

    def of(self, relation: Relation) -> Relation:
        relation = with_children(relation, tuple(map(self.of, relation.children)))
        if not isinstance(relation, Union) or not relation.alike:
            return relation
        made = _added_up(relation)
        self.is_found |= made is not relation
        return made


def _added_up(union: Union) -> Relation:
    """Its parts in groups, each of terms that are joined with the same tables."""
    groups: list[list[Relation]] = []
    for part in union.parts:
        # The columns of UNION ALL correspond by position, and those of terms by name.
        alike = (one for one in groups if one[0].columns == part.columns and _pulled_up([one[0], part], ((), ())) is not None)
        group = next(alike, None)
        if group is None:
            groups.append([part])
        else:
            group.append(part)
    if len(groups) == len(union.parts):
        return union
    made = tuple(_pulled_up(group, ((),) * len(group)) or group[0] for group in groups)
    if len(made) > 1:
        return Union(made, union.columns)
    return renamed(made[0], tuple(zip(union.columns, made[0].columns, strict=True)))


def _pulled_up(terms: Sequence[Relation], tags: _Tags) -> Relation | None:
    """The rows of all terms, with their constants as columns: the operators that they share, over the sum of what is below. None if they do
    not share a join."""
    first = terms[0]
    if any(type(term) is not type(first) for term in terms):
        return None
    if type(first) is Project:
        return _projected(terms, tags)
    if isinstance(first, Join):
        return _join(terms, tags)
    for type_, what in _LINEAR.items():
        if isinstance(first, type_) and _all([getattr(term, what) for term in terms]):
            below = _pulled_up([term.children[0] for term in terms], tags)
            return None if below is None else with_children(first, (below, *first.children[1:]))
    return None


_LINEAR: dict[type[Relation], str] = {Filter: "predicate", Scalar: "subquery", Explode: "generator"}
"""Operators over one relation, and what they have besides it."""


def _all(parts: Sequence[object]) -> bool:
    """Whether they are one object: terms share the operators of the query that they come from."""
    return all(part is parts[0] for part in parts)


def _join(terms: Sequence[Relation], tags: _Tags) -> Relation | None:
    first = terms[0]
    assert isinstance(first, Join)
    # A mark is EXISTS in SELECT, which Spark 4.1 cannot push through UNION ALL: "key not found".
    if first.kind in ("full", "mark") or any((term.on, term.kind, term.mark) != (first.on, first.kind, first.mark) for term in terms):  # type: ignore[union-attr]
        return None
    if _all([term.children[1] for term in terms]):
        at = 0
    elif first.kind == "inner" and _all([term.children[0] for term in terms]):
        at = 1
    else:
        return None
    sides = [term.children[at] for term in terms]
    below = _pulled_up(sides, tags) or _sum(sides, tags)
    if below is None:
        return None
    return with_children(first, (below, first.right) if at == 0 else (first.left, below))


def _projected(terms: Sequence[Relation], tags: _Tags) -> Relation | None:
    """Constants that differ are computed below, where the terms are still apart."""
    items, more = [], [list(own) for own in tags]
    if any(term.columns != terms[0].columns for term in terms):
        return None
    for same in zip(*(term.items for term in terms), strict=True):  # type: ignore[union-attr]
        if all(item.expression == same[0].expression for item in same):
            items.append(same[0])
        elif any(names_in(item.expression) for item in same):
            return None
        else:
            for own, item in zip(more, same, strict=True):
                own.append(item)
            items.append(Item(same[0].name, column(same[0].name)))
    below = _pulled_up([term.children[0] for term in terms], tuple(map(tuple, more)))
    return None if below is None else Project(below, (*items, *(Item(tag.name, column(tag.name)) for tag in tags[0])))


def _sum(terms: Sequence[Relation], tags: _Tags) -> Relation | None:
    """UNION ALL, whose parts may again have joins to share. None if the terms have other columns, or none at all."""
    names = terms[0].columns
    tagged = [tag.name for tag in tags[0]]
    if not (names or tagged) or any(set(term.columns) != set(names) for term in terms) or set(tagged) & set(names):
        return None
    parts = [
        Project(term, (*(Item(name, column(name)) for name in names), *own)) if own else projected(term, names)
        for term, own in zip(terms, tags, strict=True)
    ]
    return _added_up(Union(tuple(parts), (*names, *tagged)))
