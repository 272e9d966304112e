"""SQL text -> the first word that makes the result depend on more than the tables: a clock, the session, a user's function..."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from mvbuild.parse.dialect import tokenize
from mvbuild.parse.user_functions import user_functions

_NONDETERMINISTIC = frozenset(
    "rand randn random randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id input_file_name input_file_block_start "
    "input_file_block_length current_timestamp current_date current_time now curdate localtimestamp unix_timestamp current_user user "
    "session_user current_catalog current_database current_schema current_timezone java_method reflect try_reflect "
    "tablesample ai_query version identifier".split()
)
_CALLED = frozenset("user version uniform random shuffle reflect uuid now rand unix_timestamp identifier".split())
"""Words that are also likely column names: they only count if a bracket follows."""
_WITHOUT_ARGUMENTS = frozenset(("unix_timestamp",))
"""With an argument, the value is that of the argument."""
_OF_NOW = frozenset(("now", "today", "tomorrow", "yesterday"))
"""Strings that mean another date each day."""
_LITERALS = frozenset(("date", "timestamp", "timestamp_ntz", "timestamp_ltz"))
_SAMPLE = 12
"""Words of a TABLESAMPLE clause."""
_MAYBE = re.compile(rf"\b(?:{'|'.join(sorted(_NONDETERMINISTIC | _OF_NOW | {'session'}))})\b", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{(?:(\w+?):)?\S+?\}", re.ASCII)
"""As Spark finds them before it parses the text as SQL: in strings, names and comments too."""
_PREFIXES = frozenset((None, "spark", "sparkconf", "hivevar", "hiveconf", "env", "system"))
"""Any other reference is left as it is."""


def nondeterministic_word(sql: str, *, strictly: bool = False, substituted: bool = True) -> str:
    """Empty if there is none. `strictly`: include words that are only suspicious, where a false match costs little. `substituted`: whether
    Spark replaces `${name}`, which it does unless `spark.sql.variable.substitute` is off.

    >>> nondeterministic_word("SELECT current_date() FROM t"), nondeterministic_word("SELECT day FROM t")
    ('current_date', '')
    """
    return next((token.text for token in nondeterministic_tokens(sql, strictly=strictly, substituted=substituted)), "")


def nondeterministic_tokens(sql: str, *, strictly: bool = False, substituted: bool = True) -> Iterator[Token]:
    """All such words, with their offsets."""
    if substituted:
        yield from variables(sql)
    yield from user_functions(sql)
    if not _MAYBE.search(sql):
        return
    try:
        tokens = tokenize(sql)
    except TokenError:
        return
    yield from (token for index, token in enumerate(tokens) if _is_unsteady(tokens, index, strictly))


def why(token: Token) -> str:
    """Why the value of such a word depends on more than the tables."""
    if token.token_type == TokenType.PARAMETER:
        return f"Spark replaces {token.text} with a setting of the session that reads the query"
    if token.token_type == TokenType.FUNCTION:
        return f"{token.text} is not a built-in function of Spark, so what it reads is unknown"
    return f"{token.text} {'takes other rows' if token.text.lower() == 'tablesample' else 'gives another value'} each time"


def variables(sql: str) -> Iterator[Token]:
    """References that Spark replaces by a setting of the session, a property of its JVM or an environment variable."""
    if "${" not in sql:
        return
    for found in _VARIABLE.finditer(sql):
        if found[1] in _PREFIXES:
            yield Token(TokenType.PARAMETER, text=found[0], start=found.start(), end=found.end() - 1)


def _is_unsteady(tokens: Sequence[Token], index: int, strictly: bool) -> bool:
    token, word = tokens[index], tokens[index].text.lower()
    if token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
        typed = index > 0 and tokens[index - 1].text.lower() in _LITERALS
        return word.strip() in _OF_NOW and (strictly or typed)
    if word == "session":
        return _is_qualified_variable(tokens, index)
    if token.token_type == TokenType.IDENTIFIER or word not in _NONDETERMINISTIC:
        return False
    called = index + 1 < len(tokens) and tokens[index + 1].token_type == TokenType.L_PAREN
    if word == "identifier":
        return called and not _holds_one_string(tokens, index + 2)
    if strictly:
        return called or word not in _CALLED
    if word == "tablesample":
        return all(t.text.lower() != "repeatable" for t in tokens[index : index + _SAMPLE])
    if not called:
        named = index > 0 and tokens[index - 1].token_type in (TokenType.DOT, TokenType.ALIAS)
        return word not in _CALLED and not named
    empty = index + 2 < len(tokens) and tokens[index + 2].token_type == TokenType.R_PAREN
    return empty or word not in _WITHOUT_ARGUMENTS


def _is_qualified_variable(tokens: Sequence[Token], index: int) -> bool:
    """`system.session.name`."""
    around = [t.text.lower() for t in tokens[max(index - 2, 0) : index + 2]]
    return around[:2] == ["system", "."] and around[-1] == "."


def _holds_one_string(tokens: Sequence[Token], index: int) -> bool:
    """Whether the argument of IDENTIFIER() is a string: any other expression may read a variable of the session."""
    types = [t.token_type for t in tokens[index : index + 2]]
    return types == [TokenType.STRING, TokenType.R_PAREN]
