"""readings of the clock in expressions: from the calls in a text to constants that know their earlier value, and back to earlier versions.

In the tree a reading is a cast of a literal, with its name in a further argument. So whatever evaluates constants knows its value now, and
a version of the tree at the earlier values can be made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

from sqlglot import exp

from mvbuild.incremental.algebra import (
    Aggregate,
    Explode,
    Filter,
    Item,
    Join,
    Likeness,
    Limit,
    Project,
    Relation,
    Sessions,
    Window,
    column,
    conjunction,
    conjuncts,
    names_in,
    walk,
    with_children,
)
from mvbuild.incremental.functions import called, is_scalar
from mvbuild.incremental.reasons import Refused
from mvbuild.parse.clock_reads import DAY, clock_reads, values_at, with_values
from mvbuild.source import MappedText, SourceFile

CALL = "mvbuild_clock"
"""The function that stands for a reading in the text of a query."""
_CALL = re.compile(rf"{CALL}\('[^']*', ('[^']*')\)")
_NAME, _DAYS = "clock", "days"
"""Further arguments of a cast: the name of the reading, and how many days are added to it."""
_FOLDED = (100, 9900)
"""Years of dates that are folded. Python has no others than 1 to 9999, and the reading has other values at other times."""
Values = Mapping[str, str]
"""Name of a reading -> its value."""


def call(name: str, value: str) -> str:
    """A reading in the text of a query."""
    return f"{CALL}('{name}', '{value}')"


def without_calls(sql: str) -> str:
    """A query with the values of its readings: what else it depends on is the same.

    >>> without_calls(f"SELECT {call('current_date', '2026-01-02')} - 1")
    "SELECT '2026-01-02' - 1"
    """
    return _CALL.sub(r"\1", sql)


def with_calls(sql: str) -> str:
    """A query with some value of each reading, where no table shows what it is."""
    names = [read.name for read in clock_reads(sql)]
    return with_values(MappedText.of(SourceFile("sql", sql)), values_at(names, 0, "UTC"), write=call).text


def with_readings(tree: exp.Expr) -> exp.Expr:
    """The tree of a query with constants in place of the calls; days that are added to one are part of it."""
    for found in list(tree.find_all(exp.Anonymous)):
        if found.this == CALL:
            name, value = (part.name for part in found.expressions)
            found.replace(_reading(name, value, 0))
    for reading in list(tree.find_all(exp.Cast)):
        _fold(reading)
    return tree


def _reading(name: str, value: str, days: int) -> exp.Cast:
    is_day = name.startswith(DAY)
    text = (date.fromisoformat(value) + timedelta(days=days)).isoformat() if is_day else value
    to = exp.DataType.build("date" if is_day else "timestamp_ltz", dialect="spark")
    return exp.Cast(this=exp.Literal.string(text), to=to, **{_NAME: name, _DAYS: days})


def _fold(found: exp.Cast) -> None:
    """`current_date - 30` is a date as well, which can be compared with the bounds of files."""
    name = found.args.get(_NAME, "")
    while name.startswith(DAY) and (days := _added_days(found)) is not None and found.parent is not None:
        try:
            text = date.fromisoformat(found.this.name) + timedelta(days=days)
        except OverflowError:
            return
        if not _FOLDED[0] <= text.year <= _FOLDED[1]:
            return
        outer = found.parent
        made = exp.Cast(this=exp.Literal.string(text.isoformat()), to=found.to.copy(), **{_NAME: name, _DAYS: found.args[_DAYS] + days})
        outer.replace(made)
        found = made


def _added_days(found: exp.Cast) -> int | None:
    """How many days the expression around it adds; None if it does something else."""
    outer = found.parent
    if isinstance(outer, exp.Paren):
        return 0
    if isinstance(outer, exp.Add | exp.Sub) and found.arg_key == "this":
        days = _days(outer.expression)
        return days if days is None or isinstance(outer, exp.Add) else -days
    if outer is not None and called(outer) in ("date_add", "date_sub") and len(outer.expressions) == 2 and outer.expressions[0] is found:
        days = _days(outer.expressions[1])
        return days if days is None or called(outer) == "date_add" else -days
    return None


def _days(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Interval):
        unit = node.args.get("unit")
        is_days = isinstance(unit, exp.Var) and unit.name.upper() in ("DAY", "DAYS")
        return int(node.this.name) if is_days and isinstance(node.this, exp.Literal) and node.this.name.isdigit() else None
    return int(node.name) if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() else None


# --- earlier versions -----------------------------------------------------------------------------------------------------------------


def reads(expression: exp.Expr | None, names: Values) -> bool:
    """Whether it has one of these readings."""
    return expression is not None and any(True for _ in _readings(expression, names))


def has_reading(expression: exp.Expr) -> bool:
    return any(node.args.get(_NAME) is not None for node in expression.find_all(exp.Cast))


def _readings(expression: exp.Expr, names: Values) -> Iterator[exp.Cast]:
    return (node for node in expression.find_all(exp.Cast) if node.args.get(_NAME) in names)


def earlier(expression: exp.Expr, values: Values) -> exp.Expr:
    """The expression with these values of its readings."""

    def change(node: exp.Expr) -> exp.Expr:
        is_one = isinstance(node, exp.Cast) and node.args.get(_NAME) in values
        return _reading(node.args[_NAME], values[node.args[_NAME]], node.args[_DAYS]) if is_one else node

    return expression.transform(change)


def expressions_of(relation: Relation) -> Iterator[exp.Expr]:
    """The expressions of one operator."""
    if isinstance(relation, Filter):
        yield relation.predicate
    elif isinstance(relation, Project):
        yield from (item.expression for item in relation.items)
    elif isinstance(relation, Join):
        yield from conjuncts(relation.on)
    elif isinstance(relation, Aggregate | Sessions):
        yield from (item.expression for item in (*relation.keys, *relation.values))
        if isinstance(relation, Sessions):
            yield relation.session.expression
    elif isinstance(relation, Window):
        yield from (item.expression for item in relation.values)
    elif isinstance(relation, Explode):
        yield relation.generator
    elif isinstance(relation, Limit):
        yield from (part for part in (*relation.order, relation.limit, relation.offset) if part is not None)


def reads_here(relation: Relation, names: Values) -> bool:
    """Whether an expression of this operator, not of those below it, has one of these readings."""
    return any(reads(expression, names) for expression in expressions_of(relation))


def reads_below(relation: Relation, names: Values) -> bool:
    """Whether the operator or one below it has one of these readings."""
    return any(reads_here(node, names) for node in walk(relation))


def is_timeless(relation: Relation) -> bool:
    """Whether no expression of these operators reads the clock, at whatever value."""
    return not any(map(_has_reading, walk(relation)))


def reads_at_top(relation: Relation) -> bool:
    """Whether one of the projections and filters at the top reads the clock."""
    while isinstance(relation, Project | Filter):
        if _has_reading(relation):
            return True
        relation = relation.child
    return False


def _has_reading(relation: Relation) -> bool:
    return any(map(has_reading, expressions_of(relation)))


def day_before(relation: Relation) -> dict[str, str]:
    """The values of all readings as they could have been before; empty if there are none."""
    casts = (cast for node in walk(relation) for part in expressions_of(node) for cast in part.find_all(exp.Cast) if _NAME in cast.args)
    return {cast.args[_NAME]: _earlier_value(cast) for cast in casts}


def _earlier_value(reading: exp.Cast) -> str:
    text: str = reading.this.name
    if not reading.args[_NAME].startswith(DAY):
        return text
    return (date.fromisoformat(text) - timedelta(days=reading.args[_DAYS] + 1)).isoformat()


def clock_last(relation: Filter) -> Filter:
    """The filter as two, of which the lower one has no reading; itself if there is nothing for it. A condition that may fail stays behind
    those before it, which may keep out the rows for which it does, as in `d < current_date AND 1 / v > 2`."""
    parts = conjuncts(relation.predicate)
    first = next((at for at, part in enumerate(parts) if has_reading(part)), len(parts))
    lower = [not has_reading(part) and (at < first or _only_compares(part)) for at, part in enumerate(parts)]
    below = conjunction([part for part, is_lower in zip(parts, lower, strict=True) if is_lower])
    above = conjunction([part for part, is_lower in zip(parts, lower, strict=True) if not is_lower])
    return relation if below is None or above is None else Filter(Filter(relation.child, below), above)


_COMPARING = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Predicate, exp.Connector, exp.Not, exp.Paren)


def _only_compares(condition: exp.Expr) -> bool:
    """Whether it has nothing but columns and constants, which are compared."""
    return all(isinstance(node, _COMPARING) for node in condition.walk())


def at_values(relation: Relation, values: Values) -> Relation:
    """The relation with these values of its readings. They are in filters and projections only: see `lifted`."""
    relation = with_children(relation, tuple(at_values(child, values) for child in relation.children))
    if not reads_here(relation, values):
        return relation
    if isinstance(relation, Filter):
        return Filter(relation.child, earlier(relation.predicate, values))
    if not isinstance(relation, Project):
        raise elsewhere()
    return Project(relation.child, tuple(Item(i.name, earlier(i.expression, values)) for i in relation.items))


def elsewhere() -> Refused:
    """A reading that is in another operator than a filter or a projection."""
    return Refused("clock-moved", "the time is read by an operator that is computed again as a whole")


# --- filters and projections ------------------------------------------------------------------------------------------------------------

Fresh = Callable[[exp.Expr], str]
"""A new column for the value of an expression."""


def lifted(relation: Relation, names: Values, fresh: Fresh) -> Relation:
    """The same rows, with these readings in filters and projections only. A reading that cannot be moved there stays where it is."""
    relation = with_children(relation, tuple(lifted(child, names, fresh) for child in relation.children))
    if not reads_here(relation, names):
        return relation
    if isinstance(relation, Join):
        return _lifted_join(relation, names)
    if not isinstance(relation, Aggregate | Window | Explode):
        return relation
    computed: list[Item] = []

    def moved(expression: exp.Expr) -> exp.Expr:
        return _moved(expression, names, fresh, computed)

    if isinstance(relation, Explode):
        relation = replace(relation, generator=moved(relation.generator))
    else:
        values = tuple(Item(item.name, moved(item.expression)) for item in relation.values)
        relation = replace(relation, values=values)
    if isinstance(relation, Aggregate):
        relation = replace(relation, keys=tuple(Item(item.name, moved(item.expression)) for item in relation.keys))
    kept = tuple(Item(name, column(name)) for name in relation.child.columns)
    return _only(replace(relation, child=Project(relation.child, (*kept, *computed))), relation.columns, computed)


def _only(relation: Relation, columns: Sequence[str], computed: Sequence[Item]) -> Relation:
    """A window and a generator pass on the columns below them: without the computed ones."""
    passes = isinstance(relation, Window | Explode) and computed
    return Project(relation, tuple(Item(name, column(name)) for name in columns)) if passes else relation


def _moved(expression: exp.Expr, names: Values, fresh: Fresh, computed: list[Item]) -> exp.Expr:
    """The expression with columns in place of the largest parts of one row that have readings."""
    holder = exp.paren(expression.copy(), copy=False)
    conditions = {id(node): node.expression.this.copy() for node in holder.find_all(exp.Filter)}
    while (found := next(_readings(holder, names), None)) is not None:
        part = _outside_lambdas(found)
        while part.parent is not holder and part.parent is not None and _is_of_row(part.parent):
            part = part.parent
        value = _guarded(part, conditions)
        item = next((one for one in computed if one.expression == value), None)
        if item is None:
            item = Item(fresh(value), value)
            computed.append(item)
        part.replace(column(item.name))
    result: exp.Expr = holder.this
    return result


def _guarded(part: exp.Expr, conditions: Mapping[int, exp.Expr]) -> exp.Expr:
    """The value of a part for the rows that its aggregate takes: `1 / v` has none for the rows that FILTER (WHERE v <> 0) leaves out."""
    around = part.find_ancestor(exp.Filter, exp.Where)
    if not isinstance(around, exp.Filter):
        return part.copy()
    return exp.Case(ifs=[exp.If(this=conditions[id(around)].copy(), true=part.copy())])


def _outside_lambdas(node: exp.Expr) -> exp.Expr:
    """The smallest part around it that has a value for a row: within a lambda function, parameters are not columns."""
    around, at = node, node.parent
    while at is not None:
        if isinstance(at, exp.Lambda) and at.parent is not None:
            around = at.parent
        at = at.parent
    return around


def _is_of_row(node: exp.Expr) -> bool:
    return is_scalar(node) and not isinstance(node, exp.Distinct | exp.Tuple)


def _lifted_join(join: Join, names: Values) -> Relation:
    """Conditions on one side only are filters of that side, where the kind of the join allows it. The conditions before them go along: they
    may keep out rows for which the others fail, as in `v <> 0 AND 1 / v > day(current_date)`."""
    unknown: Likeness = "equal"
    likeness = [*join.likeness, *[unknown] * len(conjuncts(join.on))]
    kept: list[tuple[exp.Expr, Likeness]] = []
    left, right = join.left, join.right
    above: list[exp.Expr] = []

    def after_others(part: exp.Expr, columns: Sequence[str]) -> exp.Expr:
        before = (one for one, _ in kept if names_in(one) <= set(columns) and not _is_between_columns(one))
        return exp.and_(*before, part, copy=True)

    for part, like in zip(conjuncts(join.on), likeness, strict=False):
        own = names_in(part)
        if not reads(part, names):
            kept.append((part, like))
        elif own <= set(right.columns) and join.kind in ("inner", "left", "semi", "anti", "mark"):
            right = Filter(right, after_others(part, right.columns))
        elif own <= set(left.columns) and join.kind in ("inner", "semi"):
            left = Filter(left, after_others(part, left.columns))
        elif join.kind == "inner":
            above.append(after_others(part, join.columns))
        else:
            kept.append((part, like))
    on = conjunction([part for part, _ in kept])
    made = replace(join, left=left, right=right, on=on, likeness=tuple(like for _, like in kept), form="")
    condition = conjunction(above)
    return made if condition is None else Filter(made, condition)


def _is_between_columns(condition: exp.Expr) -> bool:
    """`a = b`, which keeps out no row for which an expression fails."""
    sides = (condition.left.unnest(), condition.right.unnest()) if isinstance(condition, exp.EQ | exp.NullSafeEQ) else ()
    return bool(sides) and all(isinstance(side, exp.Column) for side in sides)


# --- rows that enter and leave ------------------------------------------------------------------------------------------------------------


def differing(relation: Filter, values: Values) -> tuple[tuple[Relation, ...], tuple[Relation, ...]]:
    """The rows below a filter that satisfy it now and did not at these values, and those that did and do not now.

    With the conditions c1, c2 ... that have readings, the terms are: c1 differs; c1 is the same and c2 differs; ... No row is in two terms,
    and each has a range of its own, by which files are skipped.
    """
    now = conjuncts(relation.predicate)  # in their order: one may keep out rows for which the next fails
    before = [earlier(part, values) for part in now]
    moving = [at for at, part in enumerate(now) if reads(part, values)]

    def terms(these: Sequence[exp.Expr], others: Sequence[exp.Expr]) -> tuple[Relation, ...]:
        found = []
        for number, at in enumerate(moving):
            if not _excludes(these[at], others[at]):
                chosen = conjunction([*these, *(others[one] for one in moving[:number]), _not_true(others[at])])
                assert chosen is not None
                found.append(Filter(relation.child, chosen))
        return tuple(found)

    return terms(now, before), terms(before, now)


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _compared(part: exp.Expr) -> tuple[exp.Expr, type[exp.Expr], exp.Cast] | None:
    """A comparison with nothing but a reading: the value, the operator and the reading, in this order."""
    node = part.unnest()
    if not isinstance(node, _COMPARISONS):
        return None
    for one, other, operator in ((node.left, node.right, type(node)), (node.right, node.left, _MIRRORED.get(type(node), type(node)))):
        reading = other.unnest()
        if isinstance(reading, exp.Cast) and _NAME in reading.args and not any(_NAME in c.args for c in one.find_all(exp.Cast)):
            return one, operator, reading
    return None


_MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


def _not_true(part: exp.Expr) -> exp.Expr:
    """That a condition is false or NULL, for rows that satisfy it at other values of its readings: what is compared is not NULL there."""
    if _compared(part) is not None:
        return exp.Not(this=exp.paren(part.copy()))
    is_true = exp.Coalesce(this=exp.paren(part.copy()), expressions=[exp.false()])
    return exp.Not(this=is_true)


def _excludes(these: exp.Expr, other: exp.Expr) -> bool:
    """Whether no row satisfies one condition without the other: `d >= 2026-02-02` and not `d >= 2026-02-01`."""
    one, two = _compared(these), _compared(other)
    if one is None or two is None or not one[2].args[_NAME].startswith(DAY):
        return False
    lower, upper = one[2].this.name, two[2].this.name
    return (one[1] in (exp.GT, exp.GTE) and lower >= upper) or (one[1] in (exp.LT, exp.LTE) and lower <= upper)


def boundary(expressions: Sequence[exp.Expr], values: Values) -> exp.Expr | None:
    """A condition that holds for every row for which one of the expressions can differ at these values; None if there is none that helps to
    skip files."""
    found: dict[exp.Expr, None] = {}
    for expression in expressions:
        for reading in _readings(expression, values):
            node: exp.Expr | None = _outside_lambdas(reading)
            while node is not None and _compared(node) is None:
                node = node.parent
            if node is None:
                return None
            found[node] = None
    differ = []
    for part in found:
        before = earlier(part, values)
        for these, other in ((part, before), (before, part)):
            if not _excludes(these, other):
                differ.append(exp.paren(exp.and_(these.copy(), _not_true(other))))
    return exp.or_(*differ) if differ else exp.false()
