"""A condition + the model -> what it bounds from below, and with the maximum of which column of the model's own table; or NotProven."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from mvbuild.dbt.reasons import REASONS
from mvbuild.parse import placeholder

_WRAPPERS = (exp.Cast, exp.TryCast, exp.Date, exp.TsOrDsToDate, exp.DateTrunc, exp.TimestampTrunc, exp.Paren, exp.Timestamp, exp.Trunc)
"""Functions that keep the order of their argument."""
_LOWER: Mapping[type[exp.Expr], bool] = {exp.GT: False, exp.GTE: False, exp.LT: True, exp.LTE: True}
"""Comparison -> whether the bounded side is the right one."""


class NotProven(Exception):
    """`code` is one of the table of reasons."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or REASONS[code].title)
        self.code = code


def lower_bound(condition: exp.Expr, model: str) -> tuple[exp.Expr, str | None]:
    """What is bounded, a column or its day or the like, and the column of the table whose maximum it is compared with."""
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
    """A value that no row of the query decides: literals, clocks, and the maximum of a column of the table itself."""
    compared: set[str] = set()
    for query in list(node.find_all(exp.Query)):
        if isinstance(query, exp.Subquery) or query.find_ancestor(exp.Select) in list(node.find_all(exp.Select)):
            continue
        compared.add(_maximum(query, model))
    inside = {id(c) for query in node.find_all(exp.Select) for c in query.find_all(exp.Column)}
    if any(id(column) not in inside for column in node.find_all(exp.Column)) or len(compared) > 1:
        raise NotProven("guard-not-lower-bound")
    return next(iter(compared), None)


def _maximum(query: exp.Expr, model: str) -> str:
    """The column c of `select max(c) from this`, whatever is done with the maximum."""
    plain = isinstance(query, exp.Select) and not any(
        query.args.get(k) for k in ("where", "joins", "group", "having", "with_", "laterals", "limit", "distinct", "qualify")
    )
    tables = list(query.find_all(exp.Table))
    maxima = list(query.find_all(exp.Max))
    one = len(tables) == len(maxima) == 1 and len(query.expressions) == 1
    if not plain or not one or placeholder.decode(tables[0].name) != ("ref", (model,)):
        raise NotProven("guard-not-lower-bound")
    column = maxima[0].this
    while isinstance(column, _WRAPPERS):
        column = column.this
    if not isinstance(column, exp.Column) or len(list(query.find_all(exp.Column))) != 1 or query.find(exp.Min, exp.Sum):
        raise NotProven("guard-not-lower-bound")
    return str(column.name).lower()
