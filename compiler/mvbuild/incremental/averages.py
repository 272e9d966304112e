"""A sum and a count -> the average as Spark computes it, and for which decimals that is the same."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

EXACT_INTEGERS = 2**53
"""Spark averages integers as doubles, which are exact up to this value."""
MAX_PRECISION = 38
"""The digits of decimals in Spark; adding two of them needs one more digit."""
COUNT_DIGITS = 20
"""The digits of the decimal that Spark makes of a bigint."""
KEPT_SCALE = 6
"""If a result would have too many digits, Spark drops fractional digits down to this number."""


def average(total: exp.Expr, counted: exp.Expr, type_: str, kind: str) -> exp.Expr:
    """NULL if nothing was counted. `type_`: of the average, in Spark's spelling; `kind`: of the values, `integer` or `decimal`."""
    value = total.copy()
    if kind == "integer":
        value = exp.Cast(this=exp.paren(value), to=exp.DataType.build("double"))
        too_large = exp.GT(this=exp.Abs(this=value.copy()), expression=exp.Literal.number(EXACT_INTEGERS))
        stop = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string("a sum is too large for an exact average")])
        stopped = exp.Cast(this=stop, to=exp.DataType.build("double"))
        value = exp.Case(ifs=[exp.If(this=too_large, true=stopped)], default=value)
    divided = exp.Div(this=exp.paren(value), expression=exp.paren(counted.copy()), typed=False, safe=False)
    return unless_zero(counted, exp.Cast(this=exp.paren(divided), to=exp.DataType.build(type_, dialect="spark")))


def unless_zero(counted: exp.Expr, value: exp.Expr) -> exp.Expr:
    empty = exp.EQ(this=exp.paren(counted.copy()), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=empty, true=exp.Null())], default=value)


def may_overflow(type_: str) -> bool:
    """Whether a sum of this type can have too many digits: Spark gives other sums ten digits more than their values."""
    return _decimal(type_)[0] >= MAX_PRECISION


def loses_digits(type_: str) -> bool:
    """Whether Spark rounds the sum of two such decimals. `type_`: `decimal(p, s)`."""
    precision, scale = _decimal(type_)
    return precision >= MAX_PRECISION and scale > KEPT_SCALE


def has_fewer_digits(total: Any, mean: Any) -> bool:
    """Whether a sum divided by a count has fewer digits in Spark than the average of the same decimals. Both are types;
    false if they are not decimals."""
    if not (isinstance(total, str) and total.startswith("decimal") and isinstance(mean, str) and mean.startswith("decimal")):
        return False
    precision, scale = _decimal(total)
    wide = precision + COUNT_DIGITS + 1 > MAX_PRECISION
    return wide and max(MAX_PRECISION - (precision - scale), KEPT_SCALE) < _decimal(mean)[1]


def _decimal(type_: str) -> tuple[int, int]:
    precision, scale = (int(part) for part in type_.removeprefix("decimal(").rstrip(")").split(","))
    return precision, scale
