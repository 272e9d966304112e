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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Aggregate, Filter, Item, Join, Project, Relation, Scalar, Scan, column, conjunction, conjuncts, walk
from mvbuild.incremental.alike import likeness
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.restrict import equal_columns, mapped
from mvbuild.incremental.row_order import nondeterministic_part
from mvbuild.lineage.expression_type import Types
from mvbuild.lineage.types import Type

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

    def restricted(self, source: Scan, types: Types) -> tuple[Aggregate, Mapping[str, Type | None]]:
        """The groups of the rows that have one of the keys, and the types of the columns with the keys. `source`: a scan of a view with the
        rows of S. Raises Refused if a key has another type than the rows."""
        sources = dict(source.sources)
        known = {f"{name}_key": types.get(name) for _, name, _ in self.compared}
        keys = Scan(source.leaf, tuple((f"{name}_key", sources[name]) for _, name, _ in self.compared))
        on: list[exp.Expr] = []
        for value, name, is_null_safe in self.compared:
            own = value.copy() if isinstance(value, exp.Column) else exp.paren(value)
            on.append((exp.NullSafeEQ if is_null_safe else exp.EQ)(this=own, expression=column(f"{name}_key")))
        like = tuple(likeness(part, {**types, **known}) for part in on)
        if any(one != "same" for one in like):
            raise Refused("not-mergeable", "the keys are compared after a cast")
        rows = Join(self.groups.child, keys, "semi", conjunction(on), likeness=like)
        return replace(self.groups, child=rows), known


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
    written = _groups_below(join.right) or join.right
    groups = written if isinstance(written, Aggregate) else _existing(join)
    if groups is None or not groups.keys or not is_plain(groups.child) or nondeterministic_part(groups, types) is not None:
        return None
    values = {item.name: item.expression for item in groups.keys}
    pairs = [(values[key], own) for own, theirs in equal_columns(join, same=True) if (key := _below(join.right, theirs)) in values]
    found = _source(join.left, [column(own) for _, own in pairs]) if pairs else None
    if found is None:
        return None
    source, columns = found
    null_safe = {names for one in join.equalities if one.is_null_safe for names in (one.left.name, one.right.name)}
    compared = tuple((value, there.name, own in null_safe) for (value, own), there in zip(pairs, columns, strict=True))
    return Reduction(groups=groups, written=written, source=source, compared=compared)


def is_plain(relation: Relation) -> bool:
    """Whether it only filters, projects and joins; without the marks of joins, which are for conditions alone."""
    return all(type(node) in _PLAIN and not (isinstance(node, Join) and node.kind == "mark") for node in walk(relation))


def _existing(join: Join) -> Aggregate | None:
    """A group for each key that EXISTS looks for, if it compares nothing but keys."""
    keys = [theirs for _, theirs in equal_columns(join, same=True)]
    if join.kind not in ("semi", "anti") or not len({*keys}) == len(keys) == len(conjuncts(join.on)):
        return None
    return Aggregate(join.right, tuple(Item(name, column(name)) for name in keys), ())


def _groups_below(relation: Relation) -> Aggregate | None:
    """The aggregate below projections and filters."""
    while type(relation) in (Project, Filter):
        (relation,) = relation.children
    return relation if isinstance(relation, Aggregate) else None


def _below(relation: Relation, name: str) -> str | None:
    """The column of the aggregate that has the values of a column above it, or the column itself if there is no aggregate."""
    while _groups_below(relation) not in (None, relation):
        if isinstance(relation, Project):
            made = next(item.expression for item in relation.items if item.name == name)
            if not isinstance(made, exp.Column):
                return None
            name = made.name
        (relation,) = relation.children
    return name


def _source(relation: Relation, columns: Sequence[exp.Expr]) -> tuple[Relation, Sequence[exp.Expr]] | None:
    """The smallest part with a condition of its own that has all values of these columns, and the columns there."""
    inner = relation
    while isinstance(inner, Filter | Scalar):
        inner = inner.child
    if isinstance(inner, Join) and inner.kind in ("inner", "left"):
        sides: tuple[Literal["left", "right"], ...] = ("left", "right") if inner.kind == "inner" else ("left",)
        for side in sides:
            there = mapped(columns, inner, side)
            found = _source(inner.left if side == "left" else inner.right, there) if there is not None else None
            if found is not None:
                return found
    if is_plain(relation):
        return (relation, columns) if _is_restricted(relation) else None
    below = relation.child if isinstance(relation, Filter | Scalar) else None
    return _source(below, columns) if below is not None and {one.name for one in columns} <= {*below.columns} else None


def _is_restricted(relation: Relation) -> bool:
    """Whether some rows of its tables are not in it."""
    return any(isinstance(node, Filter) or (isinstance(node, Join) and node.kind in ("semi", "anti")) for node in walk(relation))
