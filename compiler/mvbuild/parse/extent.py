"""SQL text, its tokens -> whether it is too large or too deep for the parser, which would run out of stack or memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import Token, TokenType

MOST_WORDS = 250_000
MOST_TABLES = 1_000
MOST_BRACKETS = 400
LONGEST_CHAIN = 4_000

_WORD = re.compile(r"\w+|[^\w\s]")
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = {
    TokenType.R_PAREN: TokenType.L_PAREN,
    TokenType.R_BRACKET: TokenType.L_BRACKET,
    TokenType.R_BRACE: TokenType.L_BRACE,
    TokenType.END: TokenType.CASE,
}
_LOGICAL = (TokenType.AND, TokenType.OR)
_SETS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_SEPARATORS = (
    *(TokenType.COMMA, TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.JOIN, TokenType.ON, TokenType.HAVING),
    *(TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.VALUES),
)


def has_many_words(text: str) -> bool:
    """Count words and symbols, including those in strings and comments: no real query has that many.

    >>> has_many_words("SELECT 1")
    False
    """
    return len(text) > MOST_WORDS and next((True for n, _ in enumerate(_WORD.finditer(text), 1) if n > MOST_WORDS), False)


def is_too_deep(tokens: Sequence[Token]) -> bool:
    """Brackets within brackets, and what the parser nests without brackets: `a + b + c`, `a or b or c`, `x[1][2]`, `q union q union q`."""
    if len(tokens) <= MOST_BRACKETS:
        return False
    kind: TokenType | None = None
    run = logical = sets = around = 0
    outer: list[tuple[TokenType | None, int, int, int, int]] = []
    for token in tokens:
        found = token.token_type
        run += 1
        if found in _SEPARATORS:
            run = logical = 0
        elif found in _LOGICAL:
            run, logical = 0, logical + 1
        elif found in _SETS:
            run, logical, sets = 0, 0, sets + 1
        depth = around + run + logical + sets
        if depth > LONGEST_CHAIN or len(outer) > MOST_BRACKETS:
            return True
        if found in _OPENING:
            outer.append((kind, run, logical, sets, around))
            kind, around = found, depth
            run = logical = sets = 0
        elif kind is not None and kind == _CLOSING.get(found):
            kind, run, logical, sets, around = outer.pop()
    return False
