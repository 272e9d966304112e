"""SQL text -> tree, in which a function keeps the name that you wrote, unless a rule asks what it is.

sqlglot reads many functions as a class of its own, and writes some of these with another function of Spark, such as `date_add(d, -6)` for
`date_sub(d, 6)`. Spark would not plan that as your query. So most calls are made calls of a function that sqlglot does not know.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType, exp

from mvbuild.incremental.clock import with_readings
from mvbuild.incremental.functions import OTHER_CALLS
from mvbuild.incremental.spark_registry import AGGREGATES, GENERATORS, SCALARS
from mvbuild.parse.dialect import parse, tokenize

_PREFIX = "mvbuild_call_"
_KNOWN = frozenset(
    """count count_if sum avg mean min max bool_and bool_or bit_and bit_or bit_xor
    row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value
    explode explode_outer posexplode posexplode_outer
    coalesce ifnull nvl if nullif greatest least upper ucase lower lcase substring substr trim concat length year month day quarter abs
    round sqrt exp ln log pow power sin cos tan startswith cast try_cast extract position overlay struct named_struct map array""".split()
)
"""Those that a rule asks about, or that have a syntax of their own. sqlglot writes each of them as it was."""
_WORDS = frozenset("and any between case char div ilike in like not or regexp rlike some when".split())
"""Operators and types, which may have a bracket behind them too."""
_BY_NAME = (SCALARS | OTHER_CALLS | AGGREGATES | GENERATORS) - _KNOWN - _WORDS
_WITH_UNIT = frozenset("date_add date_diff dateadd datediff timestampadd timestampdiff".split())
_ARGUMENTS_WITH_UNIT = 3


def parsed(sql: str) -> exp.Expr | None:
    """Raises sqlglot's errors."""
    tokens = tokenize(sql)
    (tree,) = parse([_renamed(tokens, at) for at in range(len(tokens))], sql)
    if tree is None:
        return None
    for node in list(tree.find_all(exp.Anonymous, exp.Identifier)):
        name = node.this
        if isinstance(name, str) and name.startswith(_PREFIX):
            node.set("this", name.removeprefix(_PREFIX))
        if isinstance(node, exp.Anonymous):
            _mark_unit(node)
    return with_readings(tree)


def _renamed(tokens: Sequence[Token], at: int) -> Token:
    """The name of a call gets a prefix, so that sqlglot knows no such function."""
    token = tokens[at]
    name = token.text.lower()
    if token.token_type == TokenType.WINDOW and at + 1 < len(tokens) and tokens[at + 1].token_type in (TokenType.L_PAREN, TokenType.DOT):
        # The function and its column, which sqlglot would read as the WINDOW clause.
        return _prefixed(token)
    if name not in _BY_NAME or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or not _is_called(tokens, at):
        return token
    return _prefixed(token)


def _prefixed(token: Token) -> Token:
    return Token(TokenType.VAR, _PREFIX + token.text.lower(), token.line, token.col, token.start, token.end, token.comments)


def _is_called(tokens: Sequence[Token], at: int) -> bool:
    if at + 2 >= len(tokens) or tokens[at + 1].token_type != TokenType.L_PAREN:
        return False
    if at and tokens[at - 1].token_type == TokenType.DOT:
        return False
    # EXISTS (SELECT ...) and FILTER (WHERE ...) are not functions.
    return tokens[at + 2].token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.WHERE, TokenType.FROM)


def _mark_unit(call: exp.Anonymous) -> None:
    """MINUTE in timestampdiff(MINUTE, a, b) is a unit, not a column."""
    name, arguments = str(call.this).lower(), call.expressions
    if name in _WITH_UNIT and len(arguments) == _ARGUMENTS_WITH_UNIT and isinstance(arguments[0], exp.Column):
        arguments[0].replace(exp.Var(this=arguments[0].name))
