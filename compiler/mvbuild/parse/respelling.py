"""tokens of Spark SQL -> tokens that sqlglot parses: a few unsupported spellings, replaced by others that read the same tables.

The tree is used to find tables, columns and their types. It is never written as SQL, so clauses without influence on these may be dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from mvbuild.parse.dialect import parse, tokenize

NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_UNUSUAL = re.compile(
    r">>>|(?<!\w)(?:table(?!\w)|system_version(?!\w)|system_time(?!\w)|with(?!\s+[\w`]|\w)|window\s*\(|max\s+recursion|x\s+['\"]|any\s*\)|"
    r"with\s+single)",
    re.IGNORECASE,
)
"""Without these there is nothing to replace. `WITH name` is not such a word."""
_SET_OPERATORS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_SHIFT = 3
"""How many tokens `>>>` is."""


def respelled(tokens: Sequence[Token], text: str) -> Sequence[Token]:
    """The same tokens, with a few spellings replaced by equal ones that sqlglot parses; offsets do not change."""
    if not _UNUSUAL.search(text):
        return tokens
    out: list[Token] = []
    index = 0
    while index < len(tokens):
        replaced, used = _respelled(tokens, index, out[-1] if out else None)
        out += replaced
        index += used
    return out


def trees_of(text: str) -> list[exp.Expr | None]:
    """The trees of a text with these spellings. Raises sqlglot's TokenError or ParseError."""
    return parse(respelled(tokenize(text), text), text)


def parenthesized(tokens: Sequence[Token], index: int) -> int:
    """The index after the parenthesis that opens at `index`; `index` itself if none opens."""
    depth = 0
    for i in range(index, len(tokens)):
        depth += (tokens[i].token_type == TokenType.L_PAREN) - (tokens[i].token_type == TokenType.R_PAREN)
        if depth == 0:
            return i + 1 if i > index else index
    return index


def _respelled(tokens: Sequence[Token], index: int, before: Token | None) -> tuple[Sequence[Token], int]:
    """What replaces the token at `index`, and how many tokens it replaces."""
    token = tokens[index]
    kind, word, after = token.token_type, token.text.upper(), tokens[index + 1 : index + 4]
    kinds, words = [t.token_type for t in after], [t.text.upper() for t in after]
    if kind == TokenType.TABLE and _begins_query(before) and kinds and kinds[0] in NAMES:
        return _select_star(token), 1
    if kind == TokenType.TABLE and _is_table_argument(tokens, index, before):
        # The name follows, with its parenthesis.
        return (_like(token, TokenType.L_PAREN, "("), *_select_star(token)), 2
    if kind == TokenType.R_PAREN and kinds and _opens_table_argument(tokens, index):
        return (token,), _end_of_argument(tokens, index + 1) - index
    if words[:2] == ["AS", "OF"] and word in ("SYSTEM_VERSION", "SYSTEM_TIME"):
        is_version = word == "SYSTEM_VERSION"
        return (_like(token, TokenType.VAR if is_version else TokenType.TIMESTAMPTZ, "VERSION" if is_version else "TIMESTAMP"),), 1
    if kind == TokenType.WITH and kinds[:1] == [TokenType.L_PAREN]:
        return (), parenthesized(tokens, index + 1) - index
    if kind == TokenType.WINDOW and kinds[:1] == [TokenType.L_PAREN]:
        # This is the function; the clause would begin with a name.
        return (_like(token, TokenType.VAR, token.text),), 1
    if kind == TokenType.VAR and word == "MAX" and words[:2] == ["RECURSION", "LEVEL"] and kinds[2:] == [TokenType.NUMBER]:
        return (), 4
    if kind == TokenType.VAR and word == "X" and kinds[:1] == [TokenType.STRING]:
        return (Token(TokenType.HEX_STRING, after[0].text, token.line, token.col, token.start, after[0].end, []),), 2
    if kind in (TokenType.GEOMETRY, TokenType.GEOGRAPHY) and words == ["(", "ANY", ")"]:
        return (token,), 4
    if kind == TokenType.GT and _is_shift(tokens, index):
        return tokens[index : index + 2], _SHIFT
    return (token,), 1


def _begins_query(before: Token | None) -> bool:
    return before is None or before.token_type in (TokenType.L_PAREN, TokenType.R_PAREN, TokenType.FARROW, TokenType.ALL, *_SET_OPERATORS)


def _is_table_argument(tokens: Sequence[Token], index: int, before: Token | None) -> bool:
    """TABLE(name) as the argument of a table function."""
    end = parenthesized(tokens, index + 1)
    inner = tokens[index + 2 : end - 1]
    is_argument = before is not None and before.token_type in (TokenType.L_PAREN, TokenType.COMMA, TokenType.FARROW)
    return is_argument and end > index + 2 and bool(inner) and all(t.token_type in (*NAMES, TokenType.DOT) for t in inner)


def _opens_table_argument(tokens: Sequence[Token], close: int) -> bool:
    """Whether a parenthesis closes TABLE(name), and a clause on partitions or their order follows."""
    following = tokens[close + 1]
    is_single = following.token_type == TokenType.WITH and tokens[close + 2 : close + 3] and tokens[close + 2].text.upper() == "SINGLE"
    clauses = (TokenType.PARTITION_BY, TokenType.DISTRIBUTE_BY, TokenType.ORDER_BY, TokenType.SORT_BY)
    if not (is_single or following.token_type in clauses):
        return False
    at = close - 1
    while at >= 0 and tokens[at].token_type in (*NAMES, TokenType.DOT):
        at -= 1
    return at > 0 and tokens[at].token_type == TokenType.L_PAREN and tokens[at - 1].token_type == TokenType.TABLE


def _end_of_argument(tokens: Sequence[Token], index: int) -> int:
    """The index of the comma or parenthesis that ends an argument; `index` itself if the argument contains a query, which must not be
    skipped."""
    at = index
    while at < len(tokens) and tokens[at].token_type not in (TokenType.COMMA, TokenType.R_PAREN):
        at = max(parenthesized(tokens, at), at + 1)
    return index if any(t.token_type == TokenType.SELECT for t in tokens[index:at]) else at


def _is_shift(tokens: Sequence[Token], index: int) -> bool:
    """`a >>> 1`, if no `array<` is open that `>` would close."""
    three = tokens[index : index + _SHIFT]
    starts = [t.start - at for at, t in enumerate(three) if t.token_type == TokenType.GT]
    if len(starts) < _SHIFT or len(set(starts)) > 1:
        return False
    is_open = 0
    for before, token in pairwise(tokens[:index]):
        if token.token_type == TokenType.LT and before.text.upper() in ("ARRAY", "MAP", "STRUCT"):
            is_open += 1
        elif token.token_type == TokenType.GT and is_open:
            is_open -= 1
    return not is_open


def _select_star(token: Token) -> tuple[Token, ...]:
    return _like(token, TokenType.SELECT, "SELECT"), _like(token, TokenType.STAR, "*"), _like(token, TokenType.FROM, "FROM")


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, [])
