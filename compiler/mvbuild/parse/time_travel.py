"""tokens after a table's name -> TimeTravel, and the place for an alias."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import Token, TokenType, exp

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.parse.model import TimeTravel
from mvbuild.parse.wall_clock import instant_ms, is_time
from mvbuild.source import MappedText

_VERSION = frozenset(("VERSION", "SYSTEM_VERSION"))
_HELP = "Write the id of a snapshot, a branch or a tag, a time such as '2026-01-31 12:00:00', or whole seconds since 1970."
_DATE = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}\s*", re.ASCII)
_LITERAL_TYPES = frozenset(("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATE"))


def time_travel(
    version: exp.Expr | None, tokens: Sequence[Token], index: int, text: MappedText
) -> tuple[TimeTravel | None, int, Diagnostic | None]:
    """The clause that begins at `index` if the parser found one there, the offset for an alias, and what is wrong."""
    if version is None:
        return None, _tail(tokens, index), None
    words, value = _clause(tokens, index, text.text)
    found = _literal(version, words, tokens, value, text.text)
    if found is None:
        last = tokens[min(value, len(tokens) - 1)]
        span = text.span(tokens[index].start, last.end + 1)
        return None, _tail(tokens, index), error("bad-time-travel", "A version must be written as a literal to be pinned", span, help=_HELP)
    literal, end = found
    if words[-3] not in _VERSION and isinstance(literal, str) and not _is_read(literal, tokens[value].text.upper()):
        span = text.span(tokens[end].start, tokens[end].end + 1)
        message = f"'{literal}' does not mean the same time in every Spark session"
        return None, _tail(tokens, end + 1), error("bad-time-travel", message, span, help=_HELP)
    travel = TimeTravel(
        kind="version" if words[-3] in _VERSION else "timestamp", value=literal, start=tokens[index].start, end=tokens[end].end + 1
    )
    return travel, _tail(tokens, end + 1), None


def _clause(tokens: Sequence[Token], index: int, text: str) -> tuple[list[str], int]:
    """The words up to OF, and the index of the token after it. sqlglot makes one token of FOR VERSION."""
    words: list[str] = []
    while index < len(tokens) and len(words) < 4:
        words += text[tokens[index].start : tokens[index].end + 1].upper().split()
        index += 1
        if words[-1] == "OF":
            break
    return words, index


def _literal(version: exp.Expr, words: list[str], tokens: Sequence[Token], index: int, text: str) -> tuple[str | int, int] | None:
    """The value and the index of its last token, None for a computed value."""
    value = version.expression
    if len(words) < 3 or index >= len(tokens):
        return None
    if isinstance(value, exp.Cast) and isinstance(value.this, exp.Literal) and words[-3] not in _VERSION:
        is_typed = tokens[index].text.upper() in _LITERAL_TYPES and index + 1 < len(tokens)
        if is_typed and tokens[index + 1].token_type == TokenType.STRING:
            return tokens[index + 1].text, index + 1
        return None
    if not isinstance(value, exp.Literal):
        return None
    token = tokens[index]
    if token.token_type == TokenType.STRING:
        # Iceberg takes a string of digits for a snapshot id.
        return (int(token.text) if words[-3] in _VERSION and _is_digits(token.text) else token.text), index
    raw = text[token.start : token.end + 1]
    return (int(raw), index) if _is_digits(raw) else None


def _is_read(text: str, type_: str) -> bool:
    """Whether a string, or a typed literal, is a time that depends only on the session's zone. A DATE loses the time of day, and a
    TIMESTAMP_NTZ its zone."""
    if type_ == "DATE" and not _DATE.fullmatch(text):
        return False
    if type_ == "TIMESTAMP_NTZ" and instant_ms(text, "+01:00") == instant_ms(text, "+02:00"):
        return False
    return is_time(text)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _tail(tokens: Sequence[Token], index: int) -> int:
    """The offset after WITH (options) and TABLESAMPLE (...) REPEATABLE (...), which must come before the alias."""
    for word in ("WITH", "TABLESAMPLE", "REPEATABLE"):
        if index + 1 < len(tokens) and tokens[index].text.upper() == word and tokens[index + 1].token_type == TokenType.L_PAREN:
            index = _after_parentheses(tokens, index + 1)
    return tokens[index - 1].end + 1


def _after_parentheses(tokens: Sequence[Token], index: int) -> int:
    depth = 0
    for i in range(index, len(tokens)):
        depth += (tokens[i].token_type == TokenType.L_PAREN) - (tokens[i].token_type == TokenType.R_PAREN)
        if depth == 0:
            return i + 1
    return len(tokens)
