"""SQL -> the same with what a scalar subquery computes from its aggregate around it: `(SELECT f(sum(x)) ...)` as `f((SELECT sum(x) ...))`.

An aggregate without GROUP BY returns one row, and the expression around it cannot read the rows below it. So both are the same, but
Spark plans the first one with the value for no rows, and the second one as mvbuild writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from mvbuild.parse.dialect import tokenize

_AGGREGATES = frozenset("avg count max min sum".split())
_OTHER_ROWS = frozenset("CLUSTER DISTRIBUTE EXCEPT GROUP HAVING INTERSECT LIMIT MINUS OFFSET ORDER QUALIFY SORT UNION WINDOW |>".split())
"""Clauses after which an aggregate may return another number of rows, or work on others."""
_OF_CALLS = frozenset("FILTER IGNORE OVER RESPECT WITHIN".split())


def with_lifted_aggregates(sql: str) -> str:
    """The text itself if there is nothing to lift.

    >>> with_lifted_aggregates("SELECT (SELECT coalesce(sum(x), 0) AS s FROM t WHERE t.k = c.k) AS n FROM c")
    'SELECT (coalesce((SELECT sum(x) FROM t WHERE t.k = c.k), 0)) AS n FROM c'
    >>> with_lifted_aggregates("SELECT k, (SELECT count(*) + 1 FROM t GROUP BY k) FROM c")
    'SELECT k, (SELECT count(*) + 1 FROM t GROUP BY k) FROM c'
    """
    try:
        tokens = tokenize(sql)
    except TokenError:
        return sql
    out, at = [], 0
    for start, end, text in _lifted(sql, tokens):
        if start >= at:
            out += [sql[at:start], text]
            at = end
    return "".join([*out, sql[at:]])


def _lifted(sql: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """(start, end, new text) of what is inside the brackets of each subquery that changes."""
    for at, token in enumerate(tokens[:-1]):
        if token.token_type != TokenType.L_PAREN or tokens[at + 1].token_type != TokenType.SELECT:
            continue
        inner = tokens[at + 1 : _closing(tokens, at)]
        top = list(_at_top(inner))
        words = [_word(inner[n]) for n in top]
        if "FROM" not in words or _OTHER_ROWS.intersection(words):
            continue
        start = top[words.index("FROM")]
        value, rest = inner[1:start], inner[start:]
        if len(value) > 2 and value[-2].token_type == TokenType.ALIAS:
            value = value[:-2]
        call = _only_call(value)
        if call is None or len(call) == len(value):
            continue
        whole, aggregate = (sql[part[0].start : part[-1].end + 1] for part in (value, call))
        found = call[0].start - value[0].start
        subquery = f"(SELECT {aggregate} {sql[rest[0].start : rest[-1].end + 1]})"
        yield inner[0].start, inner[-1].end + 1, whole[:found] + subquery + whole[found + len(aggregate) :]


def _only_call(value: Sequence[Token]) -> Sequence[Token] | None:
    """The tokens of the only aggregate; None if there are several, none, or one with clauses or a name that may be something else."""
    found: list[Sequence[Token]] = []
    for at, token in enumerate(value[:-1]):
        if token.token_type == TokenType.COMMA and at in _at_top(value):
            return None
        if token.text.lower() in _AGGREGATES and value[at + 1].token_type == TokenType.L_PAREN:
            end = _closing(value, at + 1)
            if end + 1 < len(value) and _word(value[end + 1]) in _OF_CALLS:
                return None
            found.append(value[at : end + 1])
    others = {"SELECT", "DISTINCT"}.intersection(map(_word, value))
    return found[0] if len(found) == 1 and not others else None


def _at_top(tokens: Sequence[Token]) -> Iterator[int]:
    """The places of tokens outside brackets."""
    depth = 0
    for at, token in enumerate(tokens):
        depth -= token.token_type == TokenType.R_PAREN
        if depth == 0:
            yield at
        depth += token.token_type == TokenType.L_PAREN


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """The place of the bracket that closes one; that of the last token if none does."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[at].token_type, 0)
        if depth == 0:
            return at
    return len(tokens) - 1


def _word(token: Token) -> str:
    return token.text.upper().partition(" ")[0]
