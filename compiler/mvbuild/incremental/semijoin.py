"""Join with the groups of an aggregate -> Reduction: what restricts the rows below the aggregate to those that the join needs.

    L JOIN (SELECT k, f(x) FROM R GROUP BY k) ON a = k
    =  L JOIN (SELECT k, f(x) FROM R WHERE k IN (SELECT a FROM S) GROUP BY k) ON a = k

where the part S of L has every value of `a` that L has. A group has all of its rows or none, so those that remain do not change. This is a
semijoin reduction (Bernstein and Chiu, Using Semi-Joins to Solve Relational Queries, JACM 1981). Spark's optimizer does not do it below an
aggregate. It makes few groups of many, which are worth an auxiliary view.

EXISTS and NOT EXISTS ask whether there is a group:

    L SEMI JOIN R ON a = k   =   L SEMI JOIN (SELECT k FROM R GROUP BY k) ON a = k
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from mvbuild.incremental.algebra import (
    Aggregate,
    Equality,
    Filter,
    Item,
    Join,
    Project,
    Relation,
    Scalar,
    Scan,
    column,
    conjuncts,
    walk,
)
from mvbuild.incremental.delta import nondeterministic_part
from mvbuild.lineage.expression_type import Types

_PLAIN = (Scan, Filter, Project, Join)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    groups: Aggregate
    written: Relation
    """The right side of the join down to the groups, as it is in the query: the groups, or the rows that EXISTS looks for."""
    source: Relation
    """S: a part of the left side of the join, with a condition of its own."""
    compared: tuple[tuple[exp.Expr, str, bool], ...]
    """For each equality the value of the rows below the groups, the column of S, and whether NULLs are equal."""


def reduction(join: Relation, types: Types) -> Reduction | None:
    """None if the right side is not an aggregate, or nothing restricts the values on the left.

    >>> from mvbuild.incremental.samples import formula, shape
    >>> per_customer = "(SELECT customer_id, sum(amount) AS s FROM {orders} GROUP BY customer_id)"
    >>> on = "ON o.customer_id = customers.customer_id"
    >>> sql = f"SELECT country, s FROM {{customers}} JOIN {per_customer} AS o {on} WHERE country = 'no'"
    >>> found = shape(sql)
    >>> formula(reduction(found.root.child, found.types).source)
    "filter[country = 'no'](customers)"
    """
    if not isinstance(join, Join) or join.kind not in ("inner", "left", "semi", "anti"):
        return None
    written = _bottom(join.right)
    groups = written if isinstance(written, Aggregate) else _existing(join)
    if groups is None or not groups.keys or not is_plain(groups.child) or nondeterministic_part(groups, types) is not None:
        return None
    values = {item.name: item.expression for item in groups.keys}
    pairs = []
    for one in join.equalities:
        sides = _columns(one)
        own = next((name for name in sides if name in join.left.columns), None)
        key = next((_below(join.right, name) for name in sides if name in join.right.columns), None)
        if own is not None and key in values and one.is_same:
            pairs.append((values[key], own, one.is_null_safe))
    source = _source(join.left, {own: own for _, own, _ in pairs}) if pairs else None
    if source is None or not is_plain(source[0]):
        return None
    part, names = source
    compared = tuple((value, names[own], is_null) for value, own, is_null in pairs)
    return Reduction(groups=groups, written=written, source=part, compared=compared)


def is_plain(relation: Relation) -> bool:
    """Whether it only filters, projects and joins; without the marks of joins, which are for conditions alone."""
    return all(type(node) in _PLAIN and not (isinstance(node, Join) and node.kind == "mark") for node in walk(relation))


def _existing(join: Join) -> Aggregate | None:
    """A group for each key that EXISTS looks for, if it compares nothing but keys."""
    equalities = list(join.equalities)
    keys = [name for one in equalities for name in _columns(one) if name in join.right.columns]
    is_of_keys = len({*keys}) == len(keys) == len(equalities) == len(conjuncts(join.on))
    if join.kind not in ("semi", "anti") or not is_of_keys or not all(one.is_same for one in equalities):
        return None
    return Aggregate(join.right, tuple(Item(name, column(name)) for name in keys), ())


def _bottom(relation: Relation) -> Relation:
    """What is below projections and filters, if that is an aggregate; otherwise the relation."""
    below = relation
    while type(below) in (Project, Filter):
        (below,) = below.children
    return below if isinstance(below, Aggregate) else relation


def _below(relation: Relation, name: str) -> str | None:
    """The column of the aggregate that has the values of a column above it."""
    while type(relation) in (Project, Filter) and isinstance(_bottom(relation), Aggregate):
        if isinstance(relation, Project):
            made = next(item.expression for item in relation.items if item.name == name)
            if not isinstance(made, exp.Column):
                return None
            name = made.name
        (relation,) = relation.children
    return name


def _source(relation: Relation, names: Mapping[str, str]) -> tuple[Relation, Mapping[str, str]] | None:
    """The smallest part with a condition of its own that has all values of these columns, and what the columns are called there."""
    inner = relation
    while isinstance(inner, Filter | Scalar):
        inner = inner.child
        if is_plain(inner) and not is_plain(relation) and set(names.values()) <= set(inner.columns):
            return _source(inner, names)
    if isinstance(inner, Join) and inner.kind in ("inner", "left"):
        sides = inner.children if inner.kind == "inner" else (inner.left,)
        known = [(side, there) for side in sides if (there := _names_on(side, inner, names)) is not None]
        for side, there in known:
            found = _source(side, there)
            if found is not None:
                return found
    return (relation, names) if _is_restricted(relation) else None


def _names_on(side: Relation, join: Join, names: Mapping[str, str]) -> dict[str, str] | None:
    """The columns on one side that have all these values: the columns themselves, or those that an inner join compares with them."""
    found: dict[str, str] = {}
    for own, name in names.items():
        same = [name, *(_partner(one, name) for one in join.equalities if one.is_same and join.kind == "inner")]
        there = next((one for one in same if one in side.columns), None)
        if there is None:
            return None
        found[own] = there
    return found


def _partner(one: Equality, name: str) -> str:
    """What a join compares with a column; an empty text if it is not a column."""
    sides = _columns(one)
    return sides[1 - sides.index(name)] if name in sides else ""


def _columns(one: Equality) -> list[str]:
    """Both sides; an empty text for one that is not a column."""
    return [side.name if isinstance(side, exp.Column) else "" for side in (one.left, one.right)]


def _is_restricted(relation: Relation) -> bool:
    """Whether some rows of its tables are not in it."""
    return any(isinstance(node, Filter) or (isinstance(node, Join) and node.kind in ("semi", "anti")) for node in walk(relation))
