"""SQL text -> whether it takes columns of a table without naming them, so that their number and order affect its rows."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from mvbuild.parse.dialect import parse, tokenize

_STAR = re.compile(
    r"(?:select|distinct|all|,|\.|\*/|\n|(?<!count)\()\s*\*(?!/)|\bnatural\b|\btable\b|\bpivot\b",
    re.IGNORECASE,
)
"""Syntax that takes columns without naming them, also after a hint or a comment, as the arguments of a function, and as the groups of
PIVOT. A false match is safe."""


def takes_columns_by_position(sql: str) -> bool:
    """True in doubt."""
    if _STAR.search(sql):
        return True
    try:
        trees = parse(tokenize(sql), sql)
    except (ParseError, TokenError, ValueError):
        return True
    return any(_is_by_position(node) for tree in trees if tree is not None for node in tree.walk())


def _is_by_position(node: exp.Expr) -> bool:
    """A star, including that of a query which begins with FROM; and `t AS u(a, b)`, which renames the columns of a table."""
    if isinstance(node, exp.Star):
        return not isinstance(node.parent, exp.Count)
    if not isinstance(node, exp.TableAlias) or not node.columns:
        return False
    return isinstance(node.parent, exp.Table | exp.Subquery) and isinstance(node.parent.this, exp.Identifier | exp.Table)
