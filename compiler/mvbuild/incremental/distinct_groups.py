"""Aggregate of everything with DISTINCT -> DistinctGroups: the same from the groups of the distinct values, which follow changes.

    count(DISTINCT x), sum(y) over R  =  count(x), sum(s) over (x, sum(y) AS s over R GROUP BY x)

A set of values cannot be updated from its size; a group with each value can. So can the first and the last date or time: days are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from itertools import islice

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.aggregate_arguments import simple
from mvbuild.incremental.algebra import Aggregate, Item, Project, Relation, column
from mvbuild.incremental.averages import average, has_fewer_digits, may_overflow
from mvbuild.incremental.kinds import kind_of
from mvbuild.incremental.reasons import Refused
from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.types import Type, text

_KEYS = ("integer", "decimal", "string", "other")
"""Kinds of values that are equal only if they are the same."""


@dataclass(frozen=True, slots=True)
class DistinctGroups:
    groups: Aggregate
    """One group for each distinct value."""
    types: Mapping[str, Type | None]
    """Of the columns of `groups` and of what is computed from them."""
    totals: tuple[Item, ...]
    """Aggregate functions over the groups."""
    results: tuple[Item, ...]
    """The columns of the original aggregate, from the totals."""

    def over(self, groups: Relation) -> Relation:
        """The original aggregate. `groups`: a relation with the rows of `groups`."""
        return Project(Aggregate(groups, (), self.totals), self.results)


def distinct_groups(aggregate: Aggregate, types: Mapping[str, Type | None]) -> DistinctGroups | None:
    """None if it has keys or no single value to group by, or if a function cannot be computed from its values in the groups exactly as
    Spark computes it.

    >>> from mvbuild.incremental.algebra import walk
    >>> from mvbuild.incremental.samples import formula, shape
    >>> found = shape("SELECT count(DISTINCT customer_id) AS n, count(*) AS orders FROM {orders}")
    >>> aggregate = next(node for node in walk(found.root) if isinstance(node, Aggregate))
    >>> formula(distinct_groups(aggregate, found.types).groups)
    'aggregate[customer_id, COUNT(*)](orders)'
    """
    days = (day for item in aggregate.values if (day := _day(item.expression, types)) is not None)
    values = list(_distinct_values(aggregate)) or list(islice(days, 1))
    if aggregate.keys or len(values) != 1:
        return None
    (value,) = values
    if kind_of(value, types) not in _KEYS:
        return None
    try:
        return _Drafted(aggregate=aggregate, value=value, types=types).made()
    except Refused:
        return None


def by_distinct_value(aggregate: Aggregate) -> tuple[Aggregate, ...]:
    """An aggregate for each value that an aggregate of everything counts without duplicates; the other functions are in the first one."""
    values = [] if aggregate.keys else list(_distinct_values(aggregate))
    if len(values) < 2:
        return (aggregate,)
    places = [values.index(one) if (one := _distinct_value(item.expression)) is not None else 0 for item in aggregate.values]
    by_value = [[item for item, place in zip(aggregate.values, places, strict=True) if place == at] for at in range(len(values))]
    return tuple(replace(aggregate, values=tuple(items)) for items in by_value)


def _distinct_values(aggregate: Aggregate) -> dict[exp.Expr, None]:
    return dict.fromkeys(one for item in aggregate.values if (one := _distinct_value(item.expression)) is not None)


def _distinct_value(expression: exp.Expr) -> exp.Expr | None:
    """x of count(DISTINCT x)."""
    inner = expression.this if isinstance(expression, exp.Count) and not expression.expressions else None
    return inner.expressions[0] if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1 else None


def _day(expression: exp.Expr, types: Mapping[str, Type | None]) -> exp.Expr | None:
    """The day of x in min(x) or max(x), if it is a date or a time: a group may have any key, and rows of a day are near each other."""
    if not isinstance(expression, exp.Min | exp.Max) or expression.expressions:
        return None
    type_ = text(type_of(expression.this, types))
    if type_ in ("timestamp", "timestamp_ntz"):
        return exp.cast(expression.this.copy(), "date", dialect="spark")
    return expression.this if type_ == "date" else None


@dataclass
class _Drafted:
    aggregate: Aggregate
    value: exp.Expr
    types: Mapping[str, Type | None]
    parts: list[Item] = field(default_factory=list)
    totals: list[Item] = field(default_factory=list)
    results: list[Item] = field(default_factory=list)
    known: dict[str, Type | None] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.aggregate.values[0].name}_value"

    def made(self) -> DistinctGroups:
        key = Item(self.key, self.value.copy())
        self.known[key.name] = type_of(self.value, self.types)
        for item in self.aggregate.values:
            if _distinct_value(item.expression) is not None:
                self.totals.append(Item(item.name, exp.Count(this=column(key.name))))
                self.results.append(Item(item.name, column(item.name)))
            else:
                self.results.append(Item(item.name, self._result(item)))
        groups = replace(self.aggregate, keys=(key,), values=tuple(self.parts))
        return DistinctGroups(groups=groups, types=self.known, totals=tuple(self.totals), results=tuple(self.results))

    def _result(self, item: Item) -> exp.Expr:
        """Raises Refused."""
        function, argument = simple(item.expression)
        if isinstance(function, exp.Count):
            return self._count(item.name, argument)
        if argument is None or not isinstance(function, exp.Sum | exp.Avg | exp.Min | exp.Max):
            raise Refused("not-mergeable", "not a function of its values in groups", item.expression)
        kind = kind_of(argument, self.types)
        if isinstance(function, exp.Min | exp.Max):
            if argument == self.value:
                return self._over(item.name, type(function)(this=column(self.key)))
            if kind not in _KEYS:
                raise Refused("not-mergeable", "values may be equal but not identical", item.expression)
            return self._total(item.name, type(function)(this=argument.copy()), type(function))
        if kind not in ("integer", "decimal"):
            raise Refused("float-sum", "sums of floating point numbers depend on the order", item.expression)
        part = exp.Sum(this=argument.copy())
        type_, mean = (text(type_of(one, self.types)) for one in (part, exp.Avg(this=argument.copy())))
        if type_ is None or (kind == "decimal" and may_overflow(type_)):
            # With ANSI off, a group would be NULL and the sum of all groups would not.
            raise Refused("not-mergeable", "the largest precision of a decimal", item.expression)
        # Adding up sums of decimals adds digits again.
        total = exp.cast(self._total(item.name, part, exp.Sum), type_, dialect="spark")
        if isinstance(function, exp.Sum):
            return total
        if mean is None or has_fewer_digits(type_, mean):
            raise Refused("not-mergeable", "an average with more digits than a sum divided by a count", item.expression)
        return average(total, self._count(f"{item.name}_count", argument), mean, kind)

    def _count(self, name: str, argument: exp.Expr | None) -> exp.Expr:
        """Zero if there are no groups."""
        part = exp.Count(this=exp.Star() if argument is None else argument.copy())
        return exp.Coalesce(this=self._total(name, part, exp.Sum), expressions=[exp.Literal.number(0)])

    def _total(self, name: str, part: exp.Expr, combine: type[exp.Expr]) -> exp.Expr:
        each = next((one.name for one in self.parts if one.expression == part), f"{name}_of_each")
        if each not in self.known:
            self.known[each] = type_of(part, self.types)
            self.parts.append(Item(each, part))
        return self._over(name, combine(this=column(each)))

    def _over(self, name: str, total: exp.Expr) -> exp.Expr:
        """A function of the groups."""
        of_all = next((one.name for one in self.totals if one.expression == total), f"{name}_of_all")
        if of_all == f"{name}_of_all":
            self.totals.append(Item(of_all, total))
        return column(of_all)
