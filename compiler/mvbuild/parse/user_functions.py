"""SQL text -> the calls in it of functions that are not Spark's own: the text does not show what they read, nor whether they change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError, TokenError

from mvbuild.parse.dialect import parse, tokenize
from mvbuild.parse.spark_functions import FUNCTIONS, ICEBERG_FUNCTIONS, WORDS

_OWN = FUNCTIONS | WORDS
_LAST_WORD = re.compile(r"(\.\s*)?(\w+)\Z")
_LONGEST = 80
"""How much of the text before a bracket is checked. The end of a longer word is not one of Spark's functions."""
_BUILTIN = (("builtin",), ("system", "builtin"))
_NO_NAMES = (TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER, TokenType.HINT)
_NO_CALL = ("AS", "WITH", "RECURSIVE")
"""Words before a name with a list of columns."""


def user_functions(sql: str, *, without: frozenset[str] = frozenset()) -> Iterator[Token]:
    """The last word of each name, with its offsets. `without`: functions that an older Spark does not have."""
    if not without and not _may_call(sql):
        return
    try:
        tokens = tokenize(sql)
    except TokenError:
        return
    calls = [index for index in range(len(tokens) - 1) if _is_call(tokens, index, without)]
    if not calls:
        return
    lists = _column_lists(tokens, sql)
    for token in (tokens[index] for index in calls):
        if token.text.lower() not in lists:
            yield Token(TokenType.FUNCTION, text=token.text, start=token.start, end=token.end)


def _may_call(sql: str) -> bool:
    """Without tokens, because ten thousand queries are checked: whether a word that is not Spark's own, a quoted one, or a comment precedes
    a bracket."""
    for part in sql.split("(")[:-1]:
        text = part.rstrip()
        if text.endswith(("`", "*/")) or "--" in text[text.rfind("\n") + 1 :]:
            return True
        found = _LAST_WORD.search(text, max(len(text) - _LONGEST, 0))
        if found is not None and (found[1] or found[2].lower() not in _OWN):
            return True
    return False


def called_functions(sql: str) -> tuple[str, ...]:
    """Their names as written, with their qualifiers."""
    found: dict[str, None] = {}
    starts = {token.start for token in user_functions(sql)}
    tokens = tokenize(sql) if starts else []
    for index, token in enumerate(tokens):
        if token.start in starts:
            names = (*_qualifiers(tokens, index, sql), sql[token.start : token.end + 1])
            found[".".join(names)] = None
    return tuple(found)


def _is_call(tokens: Sequence[Token], index: int, without: frozenset[str]) -> bool:
    token = tokens[index]
    if tokens[index + 1].token_type != TokenType.L_PAREN or token.token_type in _NO_NAMES:
        return False
    if not re.fullmatch(r"\w+", token.text) and token.token_type != TokenType.IDENTIFIER:
        return False
    if index and tokens[index - 1].text.upper() in _NO_CALL:
        return False
    word = token.text.lower()
    before = tuple(name.lower() for name in _qualifiers(tokens, index))
    if word in without and not before:
        return True
    if before:
        return not (before in _BUILTIN and word in FUNCTIONS) and not (before[-1] == "system" and word in ICEBERG_FUNCTIONS)
    return word not in (FUNCTIONS if token.token_type == TokenType.IDENTIFIER else _OWN)


def _qualifiers(tokens: Sequence[Token], index: int, sql: str = "") -> tuple[str, ...]:
    """The names before a name, each followed by a dot; as written, if the text is given."""
    names: list[str] = []
    while index > 1 and tokens[index - 1].token_type == TokenType.DOT:
        index -= 2
        names.append(sql[tokens[index].start : tokens[index].end + 1] if sql else tokens[index].text)
    return tuple(reversed(names))


def _column_lists(tokens: Sequence[Token], sql: str) -> frozenset[str]:
    """Names with a list of columns: `WITH t(a, b) AS`, `FROM x t(a, b)`. They look like calls."""
    try:
        trees = parse(tokens, sql)
    except (SqlglotError, RecursionError):
        return frozenset()
    aliases = (alias for tree in trees if tree is not None for alias in tree.find_all(exp.TableAlias) if alias.args.get("columns"))
    return frozenset(alias.name.lower() for alias in aliases if alias.name)
