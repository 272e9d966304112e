"""text -> tokens -> tree, by sqlglot's Spark dialect."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel

_SPARK = Dialect.get_or_raise("spark")


def has_class(function: str) -> bool:
    """Whether sqlglot reads calls of a function as a class of its own."""
    parser = _SPARK.parser_class
    return function.upper() in parser.FUNCTIONS or function.upper() in parser.FUNCTION_PARSERS


def tokenize(text: str) -> list[Token]:
    """Raises sqlglot's TokenError if a quote or comment is not closed."""
    return list(_SPARK.tokenize(text))


def parse(tokens: Sequence[Token], text: str) -> list[exp.Expr | None]:
    """Raises sqlglot's ParseError at the first unexpected token."""
    return list(_SPARK.parser(error_level=ErrorLevel.IMMEDIATE).parse(list(tokens), text))
