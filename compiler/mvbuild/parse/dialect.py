"""text -> tokens -> tree, by sqlglot's Spark dialect."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel

_SPARK = Dialect.get_or_raise("spark")
_MATCHES = (TokenType.LIKE, TokenType.ILIKE, TokenType.IS)


def has_class(function: str) -> bool:
    """Whether sqlglot reads calls of a function as a class of its own."""
    parser = _SPARK.parser_class
    return function.upper() in parser.FUNCTIONS or function.upper() in parser.FUNCTION_PARSERS


def tokenize(text: str) -> list[Token]:
    """Raises sqlglot's TokenError if a quote or comment is not closed."""
    return list(_SPARK.tokenize(text))


def parse(tokens: Sequence[Token], text: str) -> list[exp.Expr | None]:
    """Raises sqlglot's ParseError at the first unexpected token."""
    trees = list(_SPARK.parser(error_level=ErrorLevel.IMMEDIATE).parse(list(tokens), text))
    if any(token.token_type in _MATCHES and before.token_type == TokenType.NOT for before, token in pairwise(tokens)):
        return [_with_plain_negations(tree) if tree is not None else None for tree in trees]
    return trees


def _with_plain_negations(tree: exp.Expr) -> exp.Expr:
    """`a NOT LIKE 'x'` as NOT (a LIKE 'x'), as with every other operator: sqlglot notes it in the LIKE itself, where it is easily missed.
    NOT LIKE ANY is not the opposite of LIKE ANY."""
    for found in list(tree.find_all(exp.Like, exp.ILike, exp.Is)):
        if not found.args.get("negate") or isinstance(found.expression, exp.Any | exp.All):
            continue
        found.set("negate", None)
        whole = found.parent if isinstance(found.parent, exp.Escape) else found
        made = exp.Not(this=whole.copy())
        if whole is tree:
            return made
        whole.replace(made)
    return tree
