"""SQL text -> the first word in it whose value is not that of the tables: a clock, a random number, the session's user."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from mvbuild.parse.dialect import tokenize

_UNSTEADY = frozenset(
    "rand randn random randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id input_file_name input_file_block_start "
    "input_file_block_length current_timestamp current_date current_time now curdate localtimestamp unix_timestamp current_user user "
    "session_user current_catalog current_database current_schema current_timezone java_method reflect try_reflect "
    "tablesample ai_query version".split()
)
_CALLED = frozenset("user version uniform random shuffle reflect uuid now rand unix_timestamp".split())
"""Those that are likely names of columns: they count where a bracket follows."""
_WITHOUT_ARGUMENTS = frozenset(("unix_timestamp",))
"""With an argument its value is that of the argument."""
_OF_NOW = frozenset(("now", "today", "tomorrow", "yesterday"))
"""Strings that become another date each day."""
_LITERALS = frozenset(("date", "timestamp", "timestamp_ntz", "timestamp_ltz"))
_SAMPLE = 12
"""Words of a TABLESAMPLE clause."""
_MAYBE = re.compile(rf"\b(?:{'|'.join(sorted(_UNSTEADY | _OF_NOW))})\b", re.IGNORECASE)


def unsteady(sql: str, *, strictly: bool = False) -> str:
    """Empty if there is none. `strictly`: words that are hardly more than suspicious count too, where a doubt costs little."""
    return next((token.text for token in unsteady_tokens(sql, strictly=strictly)), "")


def unsteady_tokens(sql: str, *, strictly: bool = False) -> Iterator[Token]:
    """All such words, with their offsets."""
    if not _MAYBE.search(sql):
        return
    try:
        tokens = tokenize(sql)
    except TokenError:
        return
    yield from (token for index, token in enumerate(tokens) if _is_unsteady(tokens, index, strictly))


def _is_unsteady(tokens: Sequence[Token], index: int, strictly: bool) -> bool:
    token, word = tokens[index], tokens[index].text.lower()
    if token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
        typed = index > 0 and tokens[index - 1].text.lower() in _LITERALS
        return word.strip() in _OF_NOW and (strictly or typed)
    if token.token_type == TokenType.IDENTIFIER or word not in _UNSTEADY:
        return False
    called = index + 1 < len(tokens) and tokens[index + 1].token_type == TokenType.L_PAREN
    if strictly:
        return called or word not in _CALLED
    if word == "tablesample":
        return all(t.text.lower() != "repeatable" for t in tokens[index : index + _SAMPLE])
    if not called:
        named = index > 0 and tokens[index - 1].token_type in (TokenType.DOT, TokenType.ALIAS)
        return word not in _CALLED and not named
    empty = index + 2 < len(tokens) and tokens[index + 2].token_type == TokenType.R_PAREN
    return empty or word not in _WITHOUT_ARGUMENTS
