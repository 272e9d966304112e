"""SQL text + types of columns -> the strings in it that mean another moment each day: `d >= 'today'`, `CAST('10:30' AS TIMESTAMP)`.

Spark replaces such a string where it is cast to a date or a timestamp, also if the cast is implied by what it is compared or combined with
(the optimizer's rule SpecialDatetimeValues). Elsewhere `'today'` is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError, TokenError

from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.types import MOMENTS, Type
from mvbuild.parse.determinism import MOVING
from mvbuild.parse.respelling import trees_of

_MAYBE = re.compile(r"""['"]\s*(?:now|today|tomorrow|yesterday|T?\d{1,2}:\d)""", re.IGNORECASE)
_ORDERED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_COMPARED = (*_ORDERED, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In)
_OF_MOMENTS = (
    exp.Extract,
    exp.TimeStrToTime,
    exp.TimeToStr,
    exp.Hour,
    exp.Minute,
    exp.Second,
    exp.Quarter,
    exp.Dayname,
    exp.Monthname,
    exp.DateTrunc,
    exp.TimestampTrunc,
    exp.TimestampAdd,
    exp.AddMonths,
    exp.MonthsBetween,
    exp.NextDay,
    exp.UnixDate,
    exp.UnixMicros,
    exp.UnixMillis,
    exp.UnixSeconds,
    exp.ConvertTimezone,
)
_OF_MOMENTS_BY_NAME = frozenset(
    """date_part datepart session_window to_timestamp_ltz to_timestamp_ntz try_to_date try_to_timestamp weekday window""".split()
)
"""Functions whose arguments are dates and timestamps, by class or name in sqlglot. A proof asks Spark about each of its functions."""
_TO_TEXT = (exp.Concat, exp.ConcatWs, exp.Format)
_TO_TEXT_BY_NAME = frozenset(("printf",))
"""Functions that make text of dates."""
_DEPTH = 3
"""How often a column may get another name before its type is no longer followed."""


def moving_strings(sql: str, types: Callable[[], Mapping[str, Type | None]]) -> Iterator[str]:
    """`types`: of the columns of the tables, by their names in lower case; called if a string may be such a one.

    >>> list(moving_strings("SELECT a FROM t WHERE d >= 'today' AND s = 'today'", lambda: {"d": "date", "s": "string"}))
    ['today']
    >>> list(moving_strings("SELECT CASE WHEN d > DATE '2026-01-01' THEN 'today' ELSE 'before' END AS label FROM t", lambda: {"d": "date"}))
    []
    """
    if not _MAYBE.search(sql):
        return
    try:
        trees = trees_of(sql)
    except (SqlglotError, TokenError, RecursionError):
        return
    of_tables = types()
    for tree in trees:
        known = _named(tree, of_tables) if tree is not None else {}
        for found in tree.find_all(exp.Literal) if tree is not None else ():
            if found.is_string and MOVING.fullmatch(found.this) and _is_moment(found, known):
                yield found.this


def _named(tree: exp.Expr, types: Mapping[str, Type | None]) -> dict[str, Type | None]:
    """The types of the names in a query, with those that it defines itself."""
    known: dict[str, Type | None] = {one.name: types.get(one.name.lower()) for one in tree.find_all(exp.Column)}
    for _ in range(_DEPTH):
        for alias in tree.find_all(exp.Alias):
            if known.get(alias.alias) is None:
                known[alias.alias] = type_of(alias.this, known)
    return known


def _is_moment(found: exp.Expr, known: Mapping[str, Type | None]) -> bool:
    """Whether the string is combined with a date or a timestamp, or made one."""
    node, above = found, found.parent
    while above is not None:
        case = _case_of(above)
        if case is not None and node.arg_key == "this":
            return case.this is not None and type_of(case.this, known) in MOMENTS
        if case is None and not isinstance(above, exp.Paren) and not _is_constant_text(above, known):
            break
        node, above = above, above.parent
    if above is None or isinstance(above, exp.Query | exp.Alias | exp.Interval):
        return False
    if _takes_moments(above):
        return True
    if isinstance(above, _TO_TEXT) or _name(above) in _TO_TEXT_BY_NAME:
        return False
    if type_of(above, known) in MOMENTS:
        return True
    of_others = [type_of(one, known) for one in above.iter_expressions() if one is not node]
    is_unknown = isinstance(above, _ORDERED) and all(one is None for one in of_others)
    return is_unknown or (isinstance(above, (exp.Func, *_COMPARED)) and any(one in MOMENTS for one in of_others))


def _case_of(node: exp.Expr) -> exp.Case | None:
    """The CASE of which it is a WHEN."""
    return node.parent if isinstance(node, exp.If) and isinstance(node.parent, exp.Case) else None


def _is_constant_text(node: exp.Expr, known: Mapping[str, Type | None]) -> bool:
    """Whether it is text that Spark computes before it looks for such strings: `CAST(lower('TODAY') AS DATE)`."""
    is_function = isinstance(node, exp.Func | exp.Bracket | exp.Collate | exp.DPipe) and not _takes_moments(node)
    return is_function and node.find(exp.Column, exp.Query) is None and type_of(node, known) not in MOMENTS


def _takes_moments(node: exp.Expr) -> bool:
    return isinstance(node, _OF_MOMENTS) or _name(node) in _OF_MOMENTS_BY_NAME


def _name(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""
