"""Top + the storage -> the first rows of those that are stored and those that changed, and whether they are all of the first ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from mvbuild.incremental.algebra import Aggregate, Filter, Item, Limit, Project, Relation, Scalar, Union, Window, column, substituted
from mvbuild.incremental.delta import Cte
from mvbuild.incremental.rewrite import Top
from mvbuild.incremental.stored_rows import Stored, paired, values_of

MISMATCH = ("first-rows-removed", "rows among the first ones were removed, and the next ones are not stored")


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The statements and relations of a `Top`. `outputs`: as in `Rewrite`."""

    write: Top
    outputs: Sequence[tuple[str, str]]
    stored: Stored

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"top_{at}v" for at in range(len(self.outputs)))

    def minus(self) -> Cte | None:
        return Cte("minus", values_of(self.write.minus, self.outputs, "went")) if self.write.minus is not None else None

    def rows(self, minus: Cte | None) -> Relation:
        """The first rows, in `columns`."""
        candidates = self._before_the_last(self._tagged())
        if minus is not None:
            candidates = paired(self.stored, (candidates, self.columns, "top_copy"), (minus.ref, minus.ref.columns, "went_copy"), "anti")
        # Of equal places, those that are stored: fewer rows are written.
        order = (*self._order(), exp.Ordered(this=column("is_stored"), desc=True, nulls_first=False))
        return Limit(candidates, order, exp.Literal.number(self.write.count), None)

    def _tagged(self) -> Relation:
        """The rows of the storage, and those that come."""

        def tagged(relation: Relation, sources: Iterable[str], tag: int) -> Relation:
            items = tuple(Item(name, column(source)) for name, source in zip(self.columns, sources, strict=True))
            return Project(relation, (*items, Item("is_stored", exp.Literal.number(tag))))

        held, plus = tagged(self.stored.scan, self.stored.values, 1), self.write.plus
        return held if plus is None else Union((held, tagged(plus, (name for name, _ in self.outputs), 0)), held.columns)

    def _before_the_last(self, rows: Relation) -> Relation:
        """Of the rows that come, those that are not after the last one of the storage: what follows that one is not known. If the storage
        has fewer rows than it may have, it has all."""
        if self.write.plus is None:
            return rows
        ranks = exp.Window(this=exp.Rank(), order=exp.Order(expressions=list(self._order())))
        stored_rows = exp.Window(this=exp.Sum(this=column("is_stored")))
        ranked = Window(rows, (Item("place", ranks), Item("stored_rows", stored_rows)))
        place = exp.Case(ifs=[exp.If(this=_equals("is_stored", 1), true=column("place"))])
        last = Window(ranked, (Item("last_place", exp.Window(this=exp.Max(this=place))),))
        is_known = exp.or_(
            _equals("is_stored", 1),
            exp.LT(this=column("stored_rows"), expression=exp.Literal.number(self.write.count)),
            exp.LTE(this=column("place"), expression=column("last_place")),
        )
        return Filter(last, is_known)

    def _order(self) -> tuple[exp.Expr, ...]:
        own = {name: column(other) for (name, _), other in zip(self.outputs, self.columns, strict=True)}
        return tuple(substituted(part, own) for part in self.write.order)

    def expected(self, gone: Relation, rows: Cte) -> Cte:
        """As many rows as `gone`, and one more if `rows` are fewer than the query has."""

        def counted(relation: Relation, name: str) -> Relation:
            return Aggregate(relation, (), (Item(name, exp.Count(this=exp.Star())),))

        both = Scalar(counted(rows.ref, "found_rows"), counted(self.stored.scan, "held_rows"), "all_held")
        count = exp.Literal.number(self.write.count)
        lacks = exp.and_(exp.LT(this=column("found_rows"), expression=count), exp.GTE(this=column("all_held"), expression=count.copy()))
        return Cte("expected", Union((_one(gone), _one(Filter(both, lacks))), ("one",)))


def _one(relation: Relation) -> Relation:
    return Project(relation, (Item("one", exp.Literal.number(1)),))


def _equals(name: str, number: int) -> exp.Expr:
    return exp.EQ(this=column(name), expression=exp.Literal.number(number))
