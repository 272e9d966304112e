"""A condition + the model -> what it bounds from below, and the column of the model's own table whose maximum is the bound."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from sqlglot import exp

from mvbuild.dbt.reasons import REASONS
from mvbuild.parse import placeholder
from mvbuild.parse.determinism import nondeterministic_word

_WRAPPERS = (exp.Cast, exp.TryCast, exp.Date, exp.TsOrDsToDate, exp.DateTrunc, exp.TimestampTrunc, exp.Paren, exp.Timestamp, exp.Trunc)
"""Functions that preserve the order of their first argument."""
_BACK = (exp.Sub, exp.DateSub, exp.TimestampSub, exp.DatetimeSub)
_ON = (exp.Add, exp.DateAdd, exp.TimestampAdd, exp.TsOrDsAdd, exp.AddMonths)
"""Functions that move their first argument backward, or forward."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_LONGEST = timedelta(days=366)
_UNITS: Mapping[str, timedelta] = {
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(days=7),
    "MONTH": timedelta(days=31),
    "QUARTER": timedelta(days=92),
    "YEAR": _LONGEST,
}
"""The longest that each may be."""
_MIRRORED: Mapping[type[exp.Expr], type[exp.Binary]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_LOWER: Mapping[type[exp.Expr], bool] = {exp.GT: False, exp.GTE: False, exp.LT: True, exp.LTE: True}
"""Comparison -> whether the bounded side is the right one."""


class NotProven(Exception):
    """`code` is from the table of reasons."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or REASONS[code].title)
        self.code = code


def lower_bound(condition: exp.Expr, model: str) -> tuple[exp.Expr, str | None]:
    """What is bounded (a column, its day or similar), and the column of the table whose maximum is the bound."""
    low, high = _sides(condition)
    column: exp.Expr = low
    while isinstance(column, _WRAPPERS):
        column = column.this
    if not isinstance(column, exp.Column) or sum(1 for _ in low.find_all(exp.Column)) != 1:
        raise NotProven("guard-not-lower-bound")
    return low.unnest(), _constant(high, model)


def upper_bound(condition: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """What a condition bounds from above by a constant time, and whether it leaves out that time itself; None for any other condition."""
    mirrored = _MIRRORED.get(type(condition))
    if mirrored is None:
        return None
    flipped = mirrored(this=condition.this.copy(), expression=condition.expression.copy())
    try:
        bounded, compared = lower_bound(flipped, "")
    except NotProven:
        return None
    is_time = compared is None and _earliest(_sides(flipped)[1], datetime.max, of_run=True) is not None
    return (bounded, isinstance(condition, (exp.LT, exp.GT))) if is_time else None


def is_passed(start: exp.Expr, bound: exp.Expr, now: datetime, *, of_run: bool) -> bool:
    """Whether a lower bound is above a constant lower bound of the same value, now and ever after. It is the clock, or a variable `of_run`,
    whose values only grow."""
    (low, constant), (other, moving) = _sides(start), _sides(bound)
    begins, earliest = _instant(constant), _earliest(moving, now.astimezone(timezone.utc).replace(tzinfo=None), of_run=of_run)
    return low.unnest() == other.unnest() and begins is not None and earliest is not None and begins <= earliest


def _sides(condition: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """The lower and the upper side of a comparison."""
    swapped = _LOWER.get(type(condition))
    if swapped is None:
        raise NotProven("guard-not-lower-bound")
    return (condition.expression, condition.this) if swapped else (condition.this, condition.expression)


def _instant(node: exp.Expr) -> datetime | None:
    """The time that a constant names: `'2020-01-01'`, `date '2020-01-01'`, `to_timestamp('2020-01-01 10:00:00')`."""
    while isinstance(node, (exp.Cast, exp.Date, exp.TsOrDsToDate, exp.Timestamp, exp.Paren)):
        node = node.this
    if not isinstance(node, exp.Literal) or not node.is_string or "-" not in node.name:
        return None
    try:
        found = datetime.fromisoformat(node.name)
    except ValueError:
        return None
    return found.astimezone(timezone.utc).replace(tzinfo=None) if found.tzinfo else found


def _earliest(node: exp.Expr, now: datetime, *, of_run: bool) -> datetime | None:
    """The earliest value that a bound can have from now on; None if it is not the clock or such a variable with constant steps."""
    if isinstance(node, (exp.CurrentDate, exp.CurrentTimestamp)) or (isinstance(node, exp.Anonymous) and node.name.lower() == "now"):
        # A day for time zones.
        return now - timedelta(days=1)
    if isinstance(node, exp.Literal):
        return _instant(node) if of_run else None
    if isinstance(node, _WRAPPERS):
        inner = _earliest(node.this, now, of_run=of_run)
        unit = str(node.args.get("unit") or "day").strip("'\"").upper()
        return inner - _UNITS.get(unit, _LONGEST) if inner is not None else None
    if isinstance(node, (*_BACK, *_ON)):
        inner, step = _earliest(node.this, now, of_run=of_run), _length(node.expression, str(node.args.get("unit") or "day"))
        return inner - step if inner is not None and step is not None else None
    return None


def _length(step: exp.Expr, unit: str) -> timedelta | None:
    """The length of a literal number or interval, whatever its sign."""
    if isinstance(step, exp.Interval):
        return _length(step.this, str(step.args.get("unit") or "")) if step.this else None
    if isinstance(step, (exp.Neg, exp.Paren)):
        return _length(step.this, unit)
    if isinstance(step, exp.Mul):
        factors = [part for part in (step.this, step.expression) if _number(part) not in (1, -1)]
        return _length(factors[0], unit) if len(factors) == 1 else None
    longest, number = _UNITS.get(unit.strip("'\"").upper().removesuffix("S")), _number(step)
    return longest * abs(number) if longest is not None and number is not None else None


def _number(node: exp.Expr) -> float | None:
    if isinstance(node, (exp.Neg, exp.Paren)):
        inner = _number(node.this)
        return -inner if inner is not None and isinstance(node, exp.Neg) else inner
    match = _NUMBER.fullmatch(node.name.strip()) if isinstance(node, exp.Literal) else None
    return float(match[0]) if match else None


def _constant(node: exp.Expr, model: str) -> str | None:
    """The column whose maximum in the model's table is never less than `node`; None for literals and clocks, which no row of the query
    affects."""
    found = _at_most(node, model)
    inside = {id(c) for query in node.find_all(exp.Select) for c in query.find_all(exp.Column)}
    if any(id(column) not in inside for column in node.find_all(exp.Column)):
        raise NotProven("guard-not-lower-bound")
    return found


def _at_most(node: exp.Expr, model: str) -> str | None:
    """Follow only steps that never increase a value: a guard `ts > max(ts) + 7 days` would omit rows forever."""
    if isinstance(node, exp.Coalesce):
        found = [_at_most(part, model) for part in (node.this, *node.expressions)]
        if len({*found} - {None}) > 1:
            raise NotProven("guard-not-lower-bound")
        return next((name for name in found if name), None)
    if isinstance(node, _BACK) and _sign(node.expression) >= 0:
        return _at_most(node.this, model)
    if isinstance(node, _ON) and _sign(node.expression) <= 0:
        return _at_most(node.this, model)
    if isinstance(node, exp.Subquery):
        return _at_most(_value_of(node.unnest(), model), model)
    if isinstance(node, _WRAPPERS):
        return _at_most(node.this, model)
    if isinstance(node, exp.Max):
        return _column_of(node)
    if isinstance(node, (exp.CurrentDate, exp.CurrentTimestamp)):
        return None
    if node.find(exp.Query, exp.Max, exp.Column) or nondeterministic_word(node.sql("spark")).lower() not in ("", node.name.lower()):
        raise NotProven("guard-not-lower-bound")
    return None


def _sign(step: exp.Expr) -> int:
    """1, 0 or -1 for a literal number or interval. Raises NotProven for anything else."""
    value = step.this if isinstance(step, exp.Interval) else step
    if isinstance(value, (exp.Neg, exp.Paren)):
        return -_sign(value.this) if isinstance(value, exp.Neg) else _sign(value.this)
    if isinstance(value, exp.Mul):
        return _sign(value.this) * _sign(value.expression)
    if isinstance(value, exp.Add) and (sign := _sign(value.this)) == _sign(value.expression):
        return sign
    number = _number(value)
    if number is None:
        raise NotProven("guard-not-lower-bound")
    return (number > 0) - (number < 0)


def _value_of(query: exp.Expr, model: str) -> exp.Expr:
    """The expression of `select expression from this`, a query with one row over all rows of the model's own table."""
    whole = isinstance(query, exp.Select) and not any(
        query.args.get(k) for k in ("where", "joins", "group", "having", "with_", "laterals", "limit", "distinct", "qualify")
    )
    tables = list(query.find_all(exp.Table))
    if not whole or len(tables) != 1 or len(query.expressions) != 1 or placeholder.decode(tables[0].name) != ("ref", (model,)):
        raise NotProven("guard-not-lower-bound")
    value: exp.Expr = query.expressions[0].unalias()
    if not value.find(exp.Max):
        raise NotProven("guard-not-lower-bound")
    return value


def _column_of(maximum: exp.Max) -> str:
    column = maximum.this
    while isinstance(column, _WRAPPERS):
        column = column.this
    if not isinstance(column, exp.Column):
        raise NotProven("guard-not-lower-bound")
    return str(column.name).lower()
