"""The storage + net changes of a query with ORDER BY and LIMIT -> the first rows, and whether these are all of the first ones."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Aggregate, Filter, Item, Limit, Project, Relation, Scalar, Union, Window, column, substituted
from mvbuild.incremental.delta import Cte
from mvbuild.incremental.stored_rows import Stored, paired

MISMATCH = ("first-rows-removed", "some of the first rows were removed, and too few new rows take their places")
_PLUS, _STORED, _MINUS = 0, 1, -1
"""Where a ranked row comes from."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """`plus` and `minus` have no row in common, and the columns of the storage, in order. `order`: over `sorted_by`."""

    stored: Stored
    plus: Cte | None
    minus: Cte | None
    order: tuple[exp.Expr, ...]
    sorted_by: tuple[str, ...]
    """A name for each column of the storage."""
    count: int

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"top_{at}v" for at in range(len(self.stored.columns)))

    def ranked(self) -> Cte:
        """The rows of the storage and those that changed, with their places, and that of the last one in the storage. Of those that changed
        only the first ones matter, which bounds what one task sorts."""
        parts = [self._from(self.stored.scan, self.stored.values, _STORED)]
        for changed, source in ((self.plus, _PLUS), (self.minus, _MINUS)):
            if changed is not None:
                names = changed.ref.columns
                parts.append(self._from(Limit(changed.ref, self._order(names), self._count, None), names, source))
        rows = Union(tuple(parts), parts[0].columns) if len(parts) > 1 else parts[0]
        ranks = exp.Window(this=exp.Rank(), order=exp.Order(expressions=list(self._order(self.columns))))
        number = exp.Window(this=exp.Sum(this=exp.Case(ifs=[exp.If(this=_is(_STORED), true=exp.Literal.number(1))])))
        placed = Window(rows, (Item("place", ranks), Item("stored_rows", number)))
        place = exp.Case(ifs=[exp.If(this=_is(_STORED), true=column("place"))])
        return Cte("ranked", Window(placed, (Item("last_place", exp.Window(this=exp.Max(this=place))),)))

    def rows(self, ranked: Cte) -> Relation:
        """The first rows, in `columns`. What follows the last row of the storage is not known, unless the storage has all rows."""
        candidates: Relation = Filter(ranked.ref, exp.or_(_is(_STORED), exp.and_(_is(_PLUS), self._is_before_the_rest())))
        if self.minus is not None:
            candidates = paired(
                self.stored, (candidates, self.columns, "top_copy"), (self.minus.ref, self.minus.ref.columns, "went_copy"), "anti"
            )
        # Of equal places, those that are stored: fewer rows are written.
        order = (*self._order(self.columns), exp.Ordered(this=column("source"), desc=True, nulls_first=False))
        return Limit(candidates, order, self._count, None)

    def expected(self, gone: Relation, ranked: Cte, rows: Cte) -> Cte:
        """As many rows as `gone`, and more if `rows` are fewer than the query has, or the storage lacks a row that it must have had."""
        both = Scalar(_counted(rows.ref, "found_rows"), _counted(self.stored.scan, "held_rows"), "all_held")
        lacks = exp.and_(
            exp.LT(this=column("found_rows"), expression=self._count), exp.GTE(this=column("all_held"), expression=self._count)
        )
        was_stored = exp.or_(self._has_all(), exp.LT(this=column("place"), expression=column("last_place")))
        removed = Filter(ranked.ref, exp.and_(_is(_MINUS), was_stored))
        stored = self.stored
        missing = paired(stored, (removed, self.columns, "went_copy"), (stored.scan, stored.values, "held_copy"), "anti")
        return Cte("expected", Union((_one(gone), _one(Filter(both, lacks)), _one(missing)), ("one",)))

    @property
    def _count(self) -> exp.Expr:
        return exp.Literal.number(self.count)

    def _from(self, rows: Relation, names: Sequence[str], source: int) -> Relation:
        items = tuple(Item(own, column(name)) for own, name in zip(self.columns, names, strict=True))
        return Project(rows, (*items, Item("source", exp.Literal.number(source))))

    def _order(self, names: Sequence[str]) -> tuple[exp.Expr, ...]:
        own = {name: column(other) for name, other in zip(self.sorted_by, names, strict=True)}
        return tuple(substituted(part, own) for part in self.order)

    def _is_before_the_rest(self) -> exp.Expr:
        return exp.or_(self._has_all(), exp.LTE(this=column("place"), expression=column("last_place")))

    def _has_all(self) -> exp.Expr:
        """A storage with fewer rows than it may have has all of them; without any, there is no sum."""
        number = exp.Coalesce(this=column("stored_rows"), expressions=[exp.Literal.number(0)])
        return exp.LT(this=number, expression=self._count)


def _counted(relation: Relation, name: str) -> Relation:
    return Aggregate(relation, (), (Item(name, exp.Count(this=exp.Star())),))


def _one(relation: Relation) -> Relation:
    return Project(relation, (Item("one", exp.Literal.number(1)),))


def _is(source: int) -> exp.Expr:
    return exp.EQ(this=column("source"), expression=exp.Literal.number(source))
