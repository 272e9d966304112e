"""StrategyInput -> Upsert: partial aggregates of the added and removed rows are merged into the groups of the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.aggregate_arguments import never_null, simple, where
from mvbuild.incremental.algebra import (
    Aggregate,
    Expand,
    Filter,
    Item,
    Project,
    Relation,
    column,
    conjunction,
    names_in,
    substituted,
    union,
)
from mvbuild.incremental.averages import average, has_fewer_digits, loses_digits, unless_zero
from mvbuild.incremental.clock import reads
from mvbuild.incremental.delta import Delta, Deltas
from mvbuild.incremental.functions import unwrapped
from mvbuild.incremental.kinds import kind_of
from mvbuild.incremental.matched_rows import matched_rows
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import NOTHING, SOURCE, TARGET, Rewrite, StrategyInput, Upsert
from mvbuild.ports.session import ANSI

_COMPUTED_WITH = (exp.Count, exp.CountIf, exp.Sum, exp.Avg)
"""Spark gives these a type that Iceberg has, so that their stored value is the one that Spark computes with. A smallint it has not."""
WEIGHT = "mvbuild_weight"


def refused_by_settings(settings: Mapping[str, str], types: Iterable[Any]) -> Refused | None:
    if settings.get(ANSI) == "false" and any(str(type_).startswith("decimal") for type_ in types):
        return Refused("not-mergeable", "with ANSI off, a sum of decimals that overflows is NULL, just like a sum of no values")
    return None


def merged(case: StrategyInput, strategy: str, *, may_fall_short: bool = False) -> Rewrite:
    """For GROUP BY, or an aggregate of everything, whose new outputs follow from their old values and the change.

    `may_fall_short`: also where the old value of a min or max may not be enough, which is known only once the change is computed.
    """
    root, names, computed = _outputs(case)
    _require_steady(computed, case.clock)
    deltas = case.deltas()
    aggregate, delta, groups_stay = _change(case, _aggregate(root), deltas)
    values = {item.name: item.expression for item in aggregate.values}
    stored = names
    keys = _stored_keys(case, aggregate, stored)
    if not delta.all:
        return Rewrite(strategy, NOTHING, outputs=case.shape.outputs)
    plan = _Plan(case=case, aggregate=aggregate, stored=stored, has_minus=bool(delta.minus), may_fall_short=may_fall_short)
    outputs = {stored[name]: plan.merged(expression) for name, expression in values.items() if name in stored}
    outputs |= {name: plan.computed(name, expression) for name, expression in computed.items()}
    source = plan.source(delta.plus, delta.minus)
    key_pairs = tuple((stored[name], name) for name in keys)
    inserts: dict[str, exp.Expr] = {stored[name]: exp.column(name, SOURCE, quoted=True) for name in keys}
    inserts |= {name: made.insert for name, made in outputs.items()}
    lives = plan.lives() if aggregate.keys and plan.has_minus and not groups_stay else None
    write = Upsert(
        delta=source,
        keys=key_pairs,
        updates={name: made.update for name, made in outputs.items()},
        inserts=inserts,
        only_if=conjunction([made.only_if for made in outputs.values() if made.only_if is not None]),
        delete_when=exp.EQ(this=exp.paren(lives[0]), expression=exp.Literal.number(0)) if lives else None,
        insert_when=exp.GT(this=lives[1], expression=exp.Literal.number(0)) if lives else None,
    )
    return Rewrite(strategy, write, tuple(deltas.ctes), case.shape.outputs)


def _require_steady(computed: Mapping[str, exp.Expr], clock: Mapping[str, str]) -> None:
    """A time that is read above the groups changes groups of which no row changed."""
    for value in computed.values():
        if reads(value, clock):
            raise Refused("clock-moved", "the time changes groups of which no row changed", value)


def _change(case: StrategyInput, aggregate: Aggregate, deltas: Deltas) -> tuple[Aggregate, Delta, bool]:
    """The aggregate over rows that determine its values, their change, and whether no group disappears with it."""
    found = matched_rows(aggregate) if not case.clock else None
    if found is not None:
        others = replace(case, plus=case.plus - found.right, minus=case.minus - found.right).deltas()
        if others.is_linear(found.alone) and not (alone := others.of(found.alone)).minus:
            pairs = deltas.of(found.pairs)
            return replace(aggregate, child=found.pairs), Delta((*pairs.plus, *alone.plus), pairs.minus), True
    return aggregate, deltas.of(aggregate.child), False


def _outputs(case: StrategyInput) -> tuple[Relation, dict[str, str], dict[str, exp.Expr]]:
    """The relation below projections, how its columns correspond to those of the storage, and the storage columns computed from them."""
    root: Relation = case.shape.root
    names = dict(case.shape.outputs)
    computed: dict[str, exp.Expr] = {}
    while isinstance(root, Project):
        inner: dict[str, str] = {}
        computed = {name: substituted(value, {i.name: i.expression for i in root.items}) for name, value in computed.items()}
        for item in root.items:
            if item.name not in names:
                continue
            if not isinstance(item.expression, exp.Column):
                computed[names[item.name]] = item.expression
            elif item.expression.name in inner:
                raise Refused("not-mergeable", f"duplicate column {names[item.name]}", item.expression)
            else:
                inner[item.expression.name] = names[item.name]
        root, names = root.child, inner
    if computed and not isinstance(root, Aggregate):
        _aggregate(root)
    return root, names, computed


def _aggregate(root: Relation) -> Aggregate:
    if isinstance(root, Filter) and isinstance(root.child, Aggregate):
        raise Refused("having", "HAVING removes groups that later changes may need", root.predicate)
    if not isinstance(root, Aggregate):
        raise Refused("no-aggregate", "the query does not end in an aggregate")
    return root


def _stored_keys(case: StrategyInput, aggregate: Aggregate, stored: Mapping[str, str]) -> tuple[str, ...]:
    """The keys by which a group is found in the storage. The number of a grouping set need not be there if no other key can be NULL: then
    those that are NULL show which set it is."""
    names = tuple(item.name for item in aggregate.keys if item.name in stored)
    missing = [item.name for item in aggregate.keys if item.name not in stored]
    if not missing:
        return names
    expand = aggregate.child
    if not isinstance(expand, Expand) or expand.source is None:
        raise Refused("no-key", "a column of GROUP BY is not among the outputs")
    known = never_null(expand.source, case.shape.required)
    nullable = [key for key in expand.keys if not isinstance(key.expression, exp.Column) or key.expression.name not in known]
    if not names or missing != [expand.number] or nullable:
        raise Refused("no-key", "without grouping_id() among the outputs, it is unknown to which grouping set a row with NULL belongs")
    return names


@dataclass(frozen=True, slots=True)
class _Merged:
    """The new value of a matched row, over `t` and `d`; and that of a new row, over `d`."""

    update: exp.Expr
    insert: exp.Expr
    only_if: exp.Expr | None = None
    """The condition under which the value follows from the old one; None: always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    case: StrategyInput
    aggregate: Aggregate
    stored: Mapping[str, str]
    has_minus: bool
    may_fall_short: bool

    # --- the delta ----------------------------------------------------------------------------------------------------------------

    def source(self, plus: tuple[Relation, ...], minus: tuple[Relation, ...]) -> Relation:
        """Partial aggregates of all terms, one row per group."""
        needed = sorted(frozenset().union(*(names_in(i.expression) for i in (*self.aggregate.keys, *self.aggregate.values))))
        parts = [self._weighted(part, needed, 1) for part in plus] + [self._weighted(part, needed, -1) for part in minus]
        values = tuple(item for v in self.aggregate.values if v.name in self.stored for item in self._partials(v))
        return Aggregate(union(parts), self.aggregate.keys, values)

    def _weighted(self, part: Relation, needed: list[str], weight: int) -> Relation:
        items = [Item(name, column(name)) for name in needed]
        return Project(
            part, (*items, Item(WEIGHT, exp.Literal.number(weight) if weight > 0 else exp.Neg(this=exp.Literal.number(-weight))))
        )

    def _partials(self, value: Item) -> tuple[Item, ...]:
        function, argument = simple(value.expression)
        name = value.name
        if isinstance(function, exp.Avg):
            return ()  # computed from the sum and the count, which are there too
        if isinstance(function, exp.Count):
            return (Item(name, _sum(_counted(argument))),)
        assert argument is not None
        if self.has_minus and isinstance(function, (exp.Sum, *_EXTREMES)):
            sides = (exp.GT, "plus"), (exp.LT, "minus")
            return tuple(Item(f"{name}_{side}", type(function)(this=_when(compare, argument))) for compare, side in sides)
        return (Item(name, type(function)(this=argument.copy())),)

    def computed(self, output: str, expression: exp.Expr) -> _Merged:
        """A value made of counts, sums and averages that are outputs too: their types in the storage are those that Spark computes with."""
        made: dict[str, _Merged] = {}
        values = {item.name: item.expression for item in self.aggregate.values}
        if isinstance(self.aggregate.child, Expand) and names_in(expression) == {self.aggregate.child.number}:
            # grouping(): the same as long as the group exists.
            of_set = exp.column(self.aggregate.child.number, SOURCE, quoted=True)
            first = self._cast(output, substituted(expression, {self.aggregate.child.number: of_set}))
            return _Merged(exp.column(output, TARGET, quoted=True), first)
        for name in sorted(names_in(expression)):
            if name not in self.stored or not isinstance(unwrapped(values.get(name, exp.Null())), _COMPUTED_WITH):
                text = values[name].sql("spark") if name in values else name
                why = f"column {output} is computed from {text}, which is not a count, sum or average among the outputs"
                raise Refused("not-mergeable", why, expression)
            made[name] = self.merged(values[name])
        if not made:
            raise Refused("not-mergeable", f"column {output} is computed from no aggregate", expression)
        return _Merged(
            self._cast(output, substituted(expression, {name: one.update for name, one in made.items()})),
            self._cast(output, substituted(expression, {name: one.insert for name, one in made.items()})),
        )

    # --- the new values -----------------------------------------------------------------------------------------------------------

    def merged(self, expression: exp.Expr) -> _Merged:
        function, argument = simple(expression)
        name = next(v.name for v in self.aggregate.values if v.expression == expression)
        output = self.stored[name]
        t, d = exp.column(output, TARGET, quoted=True), exp.column(name, SOURCE, quoted=True)
        if isinstance(function, exp.Count):
            return _Merged(self._cast(output, exp.Add(this=t, expression=_or_zero(d))), self._cast(output, _or_zero(d)))
        if isinstance(function, exp.Sum):
            return self._sum(expression, argument, output, name)
        if isinstance(function, exp.Avg):
            return self._avg(argument, output)
        combine = _COMBINED.get(type(function))
        if combine is None:
            raise Refused("not-mergeable", f"{expression.sql('spark')} cannot be updated from its old value", expression)
        if not self.has_minus:
            return _Merged(_either(t, d, combine(t, d)), d)
        if not self.may_fall_short or type(function) not in _EXTREMES:
            raise Refused("rows-removed", f"{expression.sql('spark')} cannot follow deletes from its old value", expression)
        plus, minus = (exp.column(f"{name}_{side}", SOURCE, quoted=True) for side in ("plus", "minus"))
        return _Merged(_either(t, plus, combine(t, plus)), plus, _stays(_EXTREMES[type(function)], t, plus, minus))

    def _sum(self, expression: exp.Expr, argument: exp.Expr | None, output: str, name: str) -> _Merged:
        assert argument is not None
        kind = kind_of(argument, self.case.shape.types)
        type_ = self.case.types[output]
        if (type_ in ("float", "double") or kind == "float") and (self.case.float_tolerance is None or self.has_minus):
            # Nothing can be subtracted from NaN or Infinity, and 1e17 absorbs small addends.
            raise Refused("float-sum", f"{expression.sql('spark')} adds floating point numbers", expression)
        if isinstance(type_, str) and type_.startswith("decimal") and loses_digits(type_):
            raise Refused("not-mergeable", f"{expression.sql('spark')} has the largest precision of a decimal", expression)
        t, d = exp.column(output, TARGET, quoted=True), exp.column(name, SOURCE, quoted=True)
        if not self.has_minus:
            return _Merged(_either(t, d, self._cast(output, exp.Add(this=t.copy(), expression=d.copy()))), d)
        counted = self._count_of(argument, expression)
        plus, minus = (exp.column(f"{name}_{side}", SOURCE, quoted=True) for side in ("plus", "minus"))
        change = self._cast(output, exp.Sub(this=_or_zero(plus), expression=_or_zero(minus)))
        updated = self._cast(output, exp.Add(this=_or_zero(t), expression=change))
        return _Merged(unless_zero(counted[0], updated), unless_zero(counted[1], change.copy()))

    def _avg(self, argument: exp.Expr | None, output: str) -> _Merged:
        """From the matching sum and count, as Spark computes it."""
        assert argument is not None
        kind = kind_of(argument, self.case.shape.types)
        if kind not in ("integer", "decimal") and self.case.float_tolerance is None:
            raise Refused("float-sum", f"avg({argument.sql('spark')}) adds floating point numbers", argument)
        total = self._sibling(lambda f, a: isinstance(f, exp.Sum) and a == argument)
        if total is None:
            raise Refused("not-mergeable", f"avg({argument.sql('spark')}) needs sum({argument.sql('spark')}) beside it", argument)
        if has_fewer_digits(self.case.types[self.stored[total[0]]], self.case.types[output]):
            raise Refused("not-mergeable", f"avg({argument.sql('spark')}) has more digits than a sum divided by a count", argument)
        sums = self._sum(total[1], argument, self.stored[total[0]], total[0])
        counts = self._count_of(argument, total[1], code="not-mergeable")
        type_ = self.case.types[output]
        made = [average(s, c, _SQL_TYPES.get(type_, type_), kind) for s, c in zip((sums.update, sums.insert), counts, strict=True)]
        return _Merged(*made)

    def lives(self) -> tuple[exp.Expr, exp.Expr]:
        """The row count of a group after the change, for a matched and for a new row."""
        found = self._sibling(lambda f, a: isinstance(f, exp.Count) and a is None)
        if found is None:
            raise Refused("deletes-need-count", "without count(*), it is unknown when a group is empty")
        output = self.stored[found[0]]
        d = exp.column(found[0], SOURCE, quoted=True)
        return exp.Add(this=exp.column(output, TARGET, quoted=True), expression=d.copy()), d

    def _count_of(self, argument: exp.Expr, node: exp.Expr, code: str = "deletes-need-count") -> tuple[exp.Expr, exp.Expr]:
        """The count of the argument's values after the change, for a matched and for a new row."""
        never_null = isinstance(argument, exp.Column) and argument.name in self.required()
        wanted: list[exp.Expr | None] = [argument, None] if never_null else [argument]
        for one in wanted:
            found = self._sibling(lambda f, a, one=one: isinstance(f, exp.Count) and a == one)  # type: ignore[misc]
            if found is not None:
                d = _or_zero(exp.column(found[0], SOURCE, quoted=True))
                return exp.Add(this=exp.column(self.stored[found[0]], TARGET, quoted=True), expression=d.copy()), d
        text = argument.sql("spark")
        raise Refused(code, f"count({text}) is needed beside {node.sql('spark')} to know when no value is left", node)

    def required(self) -> frozenset[str]:
        """Columns of the aggregate's input that cannot be NULL."""
        return never_null(self.aggregate.child, self.case.shape.required)

    def _sibling(self, wanted: Callable[[exp.Expr, exp.Expr | None], bool]) -> tuple[str, exp.Expr] | None:
        """Another output of the aggregate."""
        for item in self.aggregate.values:
            if item.name in self.stored and wanted(*simple(item.expression)):
                return item.name, item.expression
        return None

    def _cast(self, output: str, value: exp.Expr) -> exp.Expr:
        type_ = self.case.types[output]
        return exp.Cast(this=exp.paren(value), to=exp.DataType.build(_SQL_TYPES.get(type_, type_), dialect="spark"))


_SQL_TYPES = {"long": "bigint"}


def _counted(argument: exp.Expr | None) -> exp.Expr:
    """The weight of a row, if it counts."""
    if argument is None:
        return column(WEIGHT)
    there = exp.Not(this=exp.Is(this=exp.paren(argument), expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=there, true=column(WEIGHT))], default=exp.Literal.number(0))


def _when(compare: type[exp.Expr], argument: exp.Expr) -> exp.Expr:
    return where(compare(this=column(WEIGHT), expression=exp.Literal.number(0)), argument)


def _sum(value: exp.Expr) -> exp.Expr:
    return exp.Sum(this=value)


def _or_zero(value: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=value.copy(), expressions=[exp.Literal.number(0)])


def _either(t: exp.Expr, d: exp.Expr, both: exp.Expr) -> exp.Expr:
    """The combined value, or the one that exists."""

    def missing(value: exp.Expr) -> exp.Expr:
        return exp.Is(this=value.copy(), expression=exp.Null())

    return exp.Case(ifs=[exp.If(this=missing(t), true=d.copy()), exp.If(this=missing(d), true=t.copy())], default=both)


def _stays(beyond: type[exp.Expr], t: exp.Expr, plus: exp.Expr, minus: exp.Expr) -> exp.Expr:
    """Whether the extreme is the old one or that of the added rows: one of both is beyond all removed rows. A row on both sides of the
    change need not have been there before, nor be there afterwards."""

    def is_beyond(one: exp.Expr, other: exp.Expr) -> exp.Expr:
        return beyond(this=one.copy(), expression=other.copy())

    def missing(value: exp.Expr) -> exp.Expr:
        return exp.Is(this=value.copy(), expression=exp.Null())

    is_new = exp.and_(is_beyond(plus, minus), exp.or_(missing(t), exp.Not(this=exp.paren(is_beyond(t, plus)))))
    return exp.Coalesce(this=exp.or_(missing(minus), is_beyond(t, minus), is_new), expressions=[exp.false()])


_EXTREMES: Mapping[type, type[exp.Expr]] = {exp.Min: exp.LT, exp.Max: exp.GT}
"""Functions whose value is that of one row, and the comparison of this value with the others."""
_COMBINED: Mapping[type, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    exp.Min: lambda t, d: exp.Least(this=t.copy(), expressions=[d.copy()]),
    exp.Max: lambda t, d: exp.Greatest(this=t.copy(), expressions=[d.copy()]),
    exp.LogicalAnd: lambda t, d: exp.And(this=t.copy(), expression=d.copy()),
    exp.LogicalOr: lambda t, d: exp.Or(this=t.copy(), expression=d.copy()),
    exp.BitwiseAndAgg: lambda t, d: exp.BitwiseAnd(this=t.copy(), expression=d.copy()),
    exp.BitwiseOrAgg: lambda t, d: exp.BitwiseOr(this=t.copy(), expression=d.copy()),
    exp.BitwiseXorAgg: lambda t, d: exp.BitwiseXor(this=t.copy(), expression=d.copy()),
}
