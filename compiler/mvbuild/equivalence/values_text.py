"""SQL -> the same SQL with each VALUES in FROM written as SELECTs: Spark's plans show the rows of these, and not those of VALUES."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from mvbuild.parse.dialect import tokenize

_BEFORE = (TokenType.FROM, TokenType.JOIN, TokenType.L_PAREN, TokenType.COMMA)


def with_selects_of_values(sql: str) -> str:
    """A text of VALUES that it does not understand stays as it is.

    >>> with_selects_of_values("SELECT * FROM VALUES (1, 'a'), (2, f(3, 4)) AS s(x, y)")
    "SELECT * FROM (SELECT 1 AS col1, 'a' AS col2 UNION ALL SELECT 2 AS col1, f(3, 4) AS col2) AS s(x, y)"
    """
    tokens = tokenize(sql)
    made, done, at = [], 0, 0
    while at < len(tokens):
        follows = at > 0 and tokens[at - 1].token_type in _BEFORE
        rows, end = _rows(tokens, at + 1) if tokens[at].token_type == TokenType.VALUES and follows else ([], at)
        if rows and len({len(row) for row in rows}) == 1:
            selects = (
                "SELECT " + ", ".join(f"{sql[first.start : last.end + 1]} AS col{n}" for n, (first, last) in enumerate(row, 1))
                for row in rows
            )
            made += [sql[done : tokens[at].start], "(", " UNION ALL ".join(selects), ")"]
            done = tokens[end - 1].end + 1
            at = end
        else:
            at += 1
    return "".join([*made, sql[done:]])


def _rows(tokens: Sequence[Token], at: int) -> tuple[list[list[tuple[Token, Token]]], int]:
    """The rows in parentheses from a token on, each value by its first and last token; and where they end."""
    rows: list[list[tuple[Token, Token]]] = []
    while at < len(tokens) and tokens[at].token_type == TokenType.L_PAREN:
        row, depth, first = [], 1, at + 1
        at += 1
        while at < len(tokens) and depth:
            kind = tokens[at].token_type
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
            if depth == 0 or (depth == 1 and kind == TokenType.COMMA):
                if first == at:
                    return [], at
                row.append((tokens[first], tokens[at - 1]))
                first = at + 1
            at += 1
        if depth:
            return [], at
        rows.append(row)
        is_next = at + 1 < len(tokens) and tokens[at].token_type == TokenType.COMMA and tokens[at + 1].token_type == TokenType.L_PAREN
        if not is_next:
            return rows, at
        at += 1
    return rows, at
