"""A condition + the model -> what it bounds from below, and the column of the model's own table whose maximum is the bound."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
_LOWER: Mapping[type[exp.Expr], bool] = {exp.GT: False, exp.GTE: False, exp.LT: True, exp.LTE: True}
"""Comparison -> whether the bounded side is the right one."""


class NotProven(Exception):
    """`code` is from the table of reasons."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or REASONS[code].title)
        self.code = code


def lower_bound(condition: exp.Expr, model: str) -> tuple[exp.Expr, str | None]:
    """What is bounded (a column, its day or similar), and the column of the table whose maximum is the bound."""
    swapped = _LOWER.get(type(condition))
    if swapped is None:
        raise NotProven("guard-not-lower-bound")
    low, high = (condition.this, condition.expression) if not swapped else (condition.expression, condition.this)
    column: exp.Expr = low
    while isinstance(column, _WRAPPERS):
        column = column.this
    if not isinstance(column, exp.Column) or sum(1 for _ in low.find_all(exp.Column)) != 1:
        raise NotProven("guard-not-lower-bound")
    return low.unnest(), _constant(high, model)


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
    match = _NUMBER.fullmatch(value.name.strip()) if isinstance(value, exp.Literal) else None
    if match is None:
        raise NotProven("guard-not-lower-bound")
    number = float(match[0])
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
