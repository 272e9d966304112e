"""tokens of a query -> messages about commas: those that nothing follows, and those that may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.parse.placeholder import shown
from mvbuild.source import MappedText

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_VALUES = (*_NAMES, TokenType.NUMBER, TokenType.STRING)
_CLAUSES = (
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.HAVING,
    TokenType.LIMIT,
    TokenType.UNION,
    TokenType.EXCEPT,
    TokenType.INTERSECT,
)
_ENDS = (TokenType.COMMA, TokenType.R_PAREN, TokenType.GROUP_BY, TokenType.ORDER_BY)
_FOLLOWS = (*_VALUES, TokenType.SELECT, TokenType.ALL, TokenType.L_PAREN)
COMMA = "this comma"
"""Used in messages about commas only."""
_JSON = "Read JSON fields with get_json_object() or variant_get(); quote names with special characters with `backticks`."


def trailing_commas(tokens: Sequence[Token], sql: MappedText, near: Token | None = None) -> Iterator[Diagnostic]:
    """Commas before another one, a clause, a parenthesis or the end; only directly before the token `near`, if one is given. sqlglot
    accepts most of them, Spark does not."""
    last = len(tokens) if near is None else _index(tokens, near)
    for at in range(0 if near is None else max(0, last - 2), last):
        token = tokens[at]
        if token.token_type == TokenType.COMMA and _ends_list(tokens[at + 1 : at + 3]):
            what = f"between {COMMA} and '{shown(tokens[at + 1].text)}'" if at + 1 < len(tokens) else f"after {COMMA}"
            help = "Remove the comma, or write what is missing."
            yield error("sql-syntax", f"There is nothing {what}", sql.span(token.start, token.end + 1), help=help)


def _ends_list(after: Sequence[Token]) -> bool:
    """A word that begins a clause is a name for Spark, unless a value follows it."""
    if not after or after[0].token_type in _ENDS:
        return True
    return after[0].token_type in _CLAUSES and len(after) > 1 and after[1].token_type in _FOLLOWS


def missing_between(tokens: Sequence[Token], token: Token) -> str:
    """The help if a value follows another one: `u.email u.country` looks like an alias until its dot, `a b c` until its end."""
    at = _index(tokens, token)
    if token.text in (":", ".", "[") and any(t.token_type == TokenType.COLON for t in tokens[max(0, at - 2) : at + 1]):
        return _JSON
    at -= token.token_type == TokenType.DOT
    if at < 1 or tokens[at].token_type not in _NAMES or tokens[at - 1].token_type not in (*_VALUES, TokenType.R_PAREN):
        return ""
    if at > 3 and tokens[at - 2].token_type in _CLAUSES and tokens[at - 3].token_type == TokenType.DOT:
        return f"Is a column missing between '{shown(tokens[at - 4].text)}.' and '{tokens[at - 2].text}'?"
    return f"Is a comma or an operator missing between '{shown(tokens[at - 1].text)}' and '{shown(tokens[at].text)}'?"


def _index(tokens: Sequence[Token], token: Token) -> int:
    return next((i for i, t in enumerate(tokens) if t is token), 0)
