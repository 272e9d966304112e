"""Relation + ranges of added or removed rows -> the values of a table that matter; and the relation without tables that have none of them.

Keys of new rows are close together. A table without a file that can have them is not read at all, because Spark drops joins with nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Project,
    Ref,
    Relation,
    Scalar,
    Scan,
    Sessions,
    SetOperation,
    Union,
    Window,
    conjuncts,
    names_in,
    with_children,
)
from mvbuild.incremental.literals import translated
from mvbuild.incremental.restrict import partition_columns
from mvbuild.incremental.sizes import Sizes
from mvbuild.incremental.statements import Difference
from mvbuild.ports.changes import Comparison, ValueRange

_NUMBERS = ("int", "long")
_ORDERED = (*_NUMBERS, "date")
Wanted = Mapping[str, ValueRange]
"""Column -> the range of the values that matter."""


@dataclass
class Ranges:
    """The ranges of one refresh."""

    sizes: Sizes
    ctes: dict[str, Wanted] = field(default_factory=dict)
    """Statement -> the ranges of its columns."""

    def cte(self, name: str, relation: Relation) -> None:
        known = {column: self.of(relation, column) for column in relation.columns}
        self.ctes[name] = {column: found for column, found in known.items() if found is not None}

    def of(self, relation: Relation, column: str) -> ValueRange | None:
        """The ranges of a column's values, if they all come from rows that changed."""
        if isinstance(relation, Scan):
            return self.sizes.range(relation, column)
        if isinstance(relation, Ref):
            return self.ctes[relation.name].get(column)
        if isinstance(relation, Join):
            return self._of_join(relation, column)
        if isinstance(relation, Union | SetOperation):
            return _hull([self.of(part, part.columns[relation.columns.index(column)]) for part in relation.children])
        inner = _source(relation, column)
        return self.of(relation.children[0], inner) if inner else None

    def _of_join(self, join: Join, column: str) -> ValueRange | None:
        if column in join.left.columns:
            return self.of(join.left, column) if join.kind != "full" else None
        found = self.of(join.right, column) if join.kind in ("inner", "left") else None
        return replace(found, has_null=True) if found is not None and join.kind == "left" else found

    def rows_with_keys(self, semi: Join) -> float:
        """At most about how many rows of a table are joined with some keys. Integers are assumed to be spread evenly. All rows may have one
        of the keys if these are texts: how many different ones there are is unknown."""
        scan = semi.left
        assert isinstance(scan, Scan)
        wanted, rows = self.below(semi, {})[0], self.sizes.of(scan).rows
        widths = [found.high - found.low + 1 for found in wanted.values() if found.type in _NUMBERS and found.low is not None]
        of_values = min((self.sizes.rows_that_differ / width for width in widths), default=1.0)
        return rows * min(of_values, self.sizes.share(scan, wanted))

    def below(self, relation: Relation, wanted: Wanted) -> tuple[Wanted, ...]:
        """For each relation that it reads, the range required of it, given the range required of the result."""
        if isinstance(relation, Join):
            return self._sides(relation, wanted)
        if isinstance(relation, Union | SetOperation):
            return tuple(_by_position(relation, part, wanted) for part in relation.children)
        if isinstance(relation, Scalar):
            return {c: r for c, r in wanted.items() if c in relation.child.columns}, {}
        if isinstance(relation, Limit):
            return ({},)
        if isinstance(relation, Filter):
            return ({**self._of_predicate(relation), **wanted},)
        if isinstance(relation, Window):
            wanted = {c: r for c, r in wanted.items() if c in partition_columns(relation)}
        inner = {_source(relation, column): found for column, found in wanted.items()}
        return tuple({column: found for column, found in inner.items() if column is not None} for _ in relation.children)

    def _of_predicate(self, relation: Filter) -> dict[str, ValueRange]:
        """The ranges of columns that a filter compares with constants on both sides: the days that enter or leave, for example."""
        found = {}
        for name in sorted(names_in(relation.predicate)):
            type_ = self._type(relation.child, name)
            if type_ not in _ORDERED:
                continue
            known = [
                one
                for part in conjuncts(relation.predicate)
                for one in translated(part, {name: (name, type_)}, strings=False)
                if isinstance(one, Comparison)
            ]
            lows = [one.value for one in known if one.operator in (">=", ">", "=")]
            highs = [one.value for one in known if one.operator in ("<=", "<", "=")]
            if lows and highs:
                found[name] = ValueRange(type=type_, low=max(lows), high=min(highs), has_null=False)
        return found

    def _type(self, relation: Relation, name: str) -> Any:
        """The type of a column that is read from a table as it is."""
        while not isinstance(relation, Scan):
            if not isinstance(relation, Filter | Project):
                return None
            inner = _source(relation, name)
            if inner is None:
                return None
            relation, name = relation.child, inner
        return self.sizes.type_of(relation, name)

    def _sides(self, join: Join, wanted: Wanted) -> tuple[Wanted, Wanted]:
        left, right = ({c: r for c, r in wanted.items() if c in side.columns} for side in (join.left, join.right))
        if join.kind in ("full", "null-aware-anti"):
            return {}, {}
        if join.kind in ("inner", "semi"):
            left = {**left, **self._of_partner(join, join.right, join.left)}
        return left, {**right, **self._of_partner(join, join.left, join.right)}

    def _of_partner(self, join: Join, known: Relation, other: Relation) -> dict[str, ValueRange]:
        """The ranges of columns of `other` that are equal to columns of `known`: NULL matches nothing."""
        found = {}
        for part in join.equalities:
            if not isinstance(part.left, exp.Column) or not isinstance(part.right, exp.Column):
                continue
            for one, partner in ((part.left.name, part.right.name), (part.right.name, part.left.name)):
                range_ = self.of(known, one) if one in known.columns and partner in other.columns else None
                if range_ is not None and not (part.is_null_safe and range_.has_null):
                    found[partner] = range_
        return found


def without_empty(change: Difference, sizes: Sizes) -> Difference:
    """Replace tables that have no value of the required range by nothing."""
    ranges = Ranges(sizes)
    ctes = []
    for cte in change.ctes:
        ctes.append(replace(cte, relation=_without_empty(cte.relation, ranges, {})))
        ranges.cte(cte.name, cte.relation)
    gone, came = (_without_empty(side, ranges, {}) if side is not None else None for side in (change.gone, change.came))
    return replace(change, ctes=tuple(ctes), gone=gone, came=came)


def _without_empty(relation: Relation, ranges: Ranges, wanted: Wanted) -> Relation:
    if isinstance(relation, Scan):
        return Filter(relation, exp.false()) if ranges.sizes.share(relation, wanted) == 0 else relation
    below = ranges.below(relation, wanted)
    return with_children(relation, tuple(_without_empty(child, ranges, of) for child, of in zip(relation.children, below, strict=True)))


def _source(relation: Relation, column: str) -> str | None:
    """The column of the relation below that has its values."""
    if isinstance(relation, Project | Aggregate | Sessions):
        items = relation.items if isinstance(relation, Project) else relation.keys
        found = next((item.expression for item in items if item.name == column), None)
        return found.name if isinstance(found, exp.Column) else None
    return column if relation.children and column in relation.children[0].columns else None


def _by_position(relation: Union | SetOperation, part: Relation, wanted: Wanted) -> Wanted:
    return {part.columns[relation.columns.index(column)]: found for column, found in wanted.items()}


def _hull(ranges: Sequence[ValueRange | None]) -> ValueRange | None:
    known = [r for r in ranges if r is not None]
    if not known or len(known) < len(ranges) or len({r.type for r in known}) > 1:
        return None
    lows, highs = [r.low for r in known if r.low is not None], [r.high for r in known if r.low is not None]
    low, high = (min(lows), max(highs)) if lows else (None, None)
    return ValueRange(type=known[0].type, low=low, high=high, has_null=any(r.has_null for r in known))
