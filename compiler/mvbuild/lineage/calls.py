"""a function's name and its arguments -> the class that sqlglot has for it, which the tables of types know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mvbuild.parse.dialect import has_class, parse, tokenize

_AS_WRITTEN = (exp.Literal, exp.Boolean, exp.Var, exp.Star)
"""Arguments that may decide the type by themselves: a number of digits, a unit."""


def call_of(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr | None:
    """The call with a column `argument_0`, `argument_1`, ... for each argument. None if sqlglot has no class for it. Do not change it.

    >>> call = call_of("max_by", [exp.column("page"), exp.column("seen")])
    >>> type(call).__name__, call.this.name
    ('ArgMax', 'argument_0')
    """
    if not has_class(name):
        return None
    written = (one.sql("spark") if isinstance(one, _AS_WRITTEN) else f"argument_{at}" for at, one in enumerate(arguments))
    return _parsed(f"{name}({', '.join(written)})")


@lru_cache(maxsize=4096)
def _parsed(call: str) -> exp.Expr | None:
    text = f"SELECT {call}"
    try:
        (select,) = parse(tokenize(text), text)
    except (SqlglotError, ValueError):
        return None
    found: exp.Expr | None = select.expressions[0] if isinstance(select, exp.Select) and len(select.expressions) == 1 else None
    return None if isinstance(found, exp.Anonymous) else found
