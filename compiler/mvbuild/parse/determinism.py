"""SQL text -> the first word that makes the result depend on more than the tables: a clock, the session, a user's function..."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from mvbuild.parse.dialect import tokenize
from mvbuild.parse.user_functions import user_functions

_NONDETERMINISTIC = frozenset(
    "rand randn random randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id input_file_name input_file_block_start "
    "input_file_block_length current_timestamp current_date current_time now curdate localtimestamp unix_timestamp current_user user "
    "session_user current_catalog current_database current_schema current_timezone java_method reflect try_reflect "
    "tablesample ai_query version identifier aes_encrypt".split()
)
_CALLED = frozenset("user version uniform random shuffle reflect uuid now rand unix_timestamp identifier".split())
"""Words that are also likely column names: they only count if a bracket follows."""
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_WITHOUT_ARGUMENTS = frozenset(("unix_timestamp",))
"""With an argument, the value is that of the argument."""
_BARE = frozenset(
    "current_date current_timestamp current_time localtimestamp current_user user session_user current_catalog current_database".split()
)
"""Functions that Spark also calls without brackets, if no column has the name."""
_MAYBE_BARE = re.compile(rf"\b(?:{'|'.join(sorted(_BARE))})\b", re.IGNORECASE)
MOVING = re.compile(r"\s*(?:(?:now|today|tomorrow|yesterday)(?:\s.*)?|T?\d{1,2}:\d.*)", re.IGNORECASE | re.DOTALL)
"""Strings that mean another moment each day, if Spark makes a date or a timestamp of them: a word, which may have a zone, or a time."""
_LITERALS = frozenset(("date", "timestamp", "timestamp_ntz", "timestamp_ltz"))
_OTHER_WORDS = frozenset("now today tomorrow yesterday session using".split())
_MAYBE = re.compile(
    rf"\b(?:{'|'.join(sorted(_NONDETERMINISTIC | _OTHER_WORDS))})\b|['\"]\s*T?\d{{1,2}}:\d",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"\$\{(?:(\w+?):)?\S+?\}", re.ASCII)
"""As Spark finds them before it parses the text as SQL: in strings, names and comments too."""
_PREFIXES = frozenset((None, "spark", "sparkconf", "hivevar", "hiveconf", "env", "system"))
"""Any other reference is left as it is."""


def nondeterministic_word(sql: str, *, strictly: bool = False, substituted: bool = True, columns: Collection[str] | None = None) -> str:
    """Empty if there is none. `strictly`: include words that are only suspicious, where a false match costs little. `substituted`: whether
    Spark replaces `${name}`, which it does unless `spark.sql.variable.substitute` is off. `columns`: the names of the columns that the
    query can read, if they are known: `user` is the function unless one of them has that name.

    >>> nondeterministic_word("SELECT current_date() FROM t"), nondeterministic_word("SELECT day FROM t")
    ('current_date', '')
    """
    found = nondeterministic_tokens(sql, strictly=strictly, substituted=substituted, columns=columns)
    return next((token.text for token in found), "")


def nondeterministic_tokens(
    sql: str, *, strictly: bool = False, substituted: bool = True, columns: Collection[str] | None = None
) -> Iterator[Token]:
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
    bare = _BARE - {name.lower() for name in columns} - set(_aliases(tokens)) if columns is not None else frozenset[str]()
    yield from (token for index, token in enumerate(tokens) if _is_unsteady(tokens, index, strictly, bare))


def may_be_bare(sql: str) -> bool:
    """Whether a word of it may be a function that is called without brackets."""
    return _MAYBE_BARE.search(sql) is not None


def why(token: Token) -> str:
    """Why the value of such a word depends on more than the tables."""
    if token.token_type == TokenType.PARAMETER:
        return f"Spark replaces {token.text} with a setting of the session that reads the query"
    if token.token_type == TokenType.FUNCTION:
        return f"{token.text} is not a built-in function of Spark, so what it reads is unknown"
    if token.text.lower() == "using":
        return "what the script returns may depend on more than the rows it gets"
    return f"{token.text} {'selects different rows' if token.text.lower() == 'tablesample' else 'returns a different value'} each time"


def variables(sql: str) -> Iterator[Token]:
    """References that Spark replaces by a setting of the session, a property of its JVM or an environment variable."""
    if "${" not in sql:
        return
    for found in _VARIABLE.finditer(sql):
        if found[1] in _PREFIXES:
            yield Token(TokenType.PARAMETER, text=found[0], start=found.start(), end=found.end() - 1)


def _aliases(tokens: Sequence[Token]) -> Iterator[str]:
    return (token.text.lower() for before, token in pairwise(tokens) if before.token_type == TokenType.ALIAS)


def _is_unsteady(tokens: Sequence[Token], index: int, strictly: bool, bare: Collection[str]) -> bool:
    """`bare`: names that no column has."""
    token, word = tokens[index], tokens[index].text.lower()
    if token.token_type in _STRINGS:
        typed = index > 0 and tokens[index - 1].text.lower() in _LITERALS
        return MOVING.fullmatch(word) is not None and (strictly or typed)
    if word == "using":
        # SELECT TRANSFORM (...) USING 'script': the one of a join has names.
        return index + 1 < len(tokens) and tokens[index + 1].token_type in _STRINGS
    if word == "session":
        return _is_qualified_variable(tokens, index)
    called = index + 1 < len(tokens) and tokens[index + 1].token_type == TokenType.L_PAREN
    if not called and word in bare:
        return not (index and tokens[index - 1].token_type == TokenType.DOT)
    if word not in _NONDETERMINISTIC or (token.token_type == TokenType.IDENTIFIER and not called):
        return False
    if word == "identifier":
        return called and not _holds_one_string(tokens, index + 2)
    if word == "aes_encrypt":
        return called and _has_random_iv(tokens, index + 2)
    if strictly:
        return called or word not in _CALLED
    if word == "tablesample":
        # With REPEATABLE too: which rows it takes depends on the files, and on how Spark reads them.
        return True
    if not called:
        named = index > 0 and tokens[index - 1].token_type in (TokenType.DOT, TokenType.ALIAS)
        return word not in _CALLED and not named
    empty = index + 2 < len(tokens) and tokens[index + 2].token_type == TokenType.R_PAREN
    return empty or word not in _WITHOUT_ARGUMENTS


def _is_qualified_variable(tokens: Sequence[Token], index: int) -> bool:
    """`system.session.name`."""
    around = [t.text.lower() for t in tokens[max(index - 2, 0) : index + 2]]
    return around[:2] == ["system", "."] and around[-1] == "."


def _has_random_iv(tokens: Sequence[Token], index: int) -> bool:
    """Whether Spark takes a random vector for aes_encrypt(expr, key, mode, padding, iv, aad), whose arguments begin here: the
    mode ECB needs none, and an empty one is none. Spark's own registry calls the function deterministic all the same."""
    arguments: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[index:]:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth < 0 or len(arguments) > 5:
            break
        if depth == 0 and token.token_type == TokenType.COMMA:
            arguments.append([])
        else:
            arguments[-1].append(token)
    if len(arguments) > 2 and [t.text.upper() for t in arguments[2]] == ["ECB"]:
        return False
    vector = arguments[4] if len(arguments) > 4 else []
    is_literal = [t.text.lower() for t in vector[:2]] == ["unhex", "("] or [t.token_type for t in vector] == [TokenType.HEX_STRING]
    return not is_literal or any(not t.text for t in vector)


def _holds_one_string(tokens: Sequence[Token], index: int) -> bool:
    """Whether the argument of IDENTIFIER() is a string: any other expression may read a variable of the session."""
    types = [t.token_type for t in tokens[index : index + 2]]
    return types == [TokenType.STRING, TokenType.R_PAREN]
