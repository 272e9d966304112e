"""SQL -> the same with every reference to a CTE replaced by a subquery, in the text itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp

from mvbuild.parse.dialect import parse, tokenize

_LONGEST = 200_000
"""The limit of the text: CTEs that each read the previous one twice grow by powers of two when they are inlined."""


class Unreadable(Exception):
    """A query that is not understood well enough to rename parts of it."""


def parsed(sql: str) -> tuple[list[Token], exp.Expr]:
    tokens = tokenize(sql)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    trees = parse(tokens, sql)
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise Unreadable
    return tokens, trees[0]


def start_of(identifier: exp.Expr) -> int:
    start = identifier.meta.get("start")
    if start is None:
        # The parser made it from a step of a |> query.
        raise Unreadable
    return int(start)


def inlined(sql: str) -> str:
    """Replace every reference to a CTE by a subquery, in the text itself."""
    tokens, tree = parsed(sql)
    if not any(True for _ in tree.find_all(exp.With)):
        return sql
    references = {
        start_of(table.this): not table.alias
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and not table.args.get("db") and not table.args.get("version")
    }
    inliner = _Inliner(sql=sql, tokens=tokens, references=references)
    text = inliner.block(0, len(tokens), {})
    if inliner.found != sum(1 for _ in tree.find_all(exp.CTE)):
        raise Unreadable
    return text


@dataclass(slots=True, kw_only=True)
class _Inliner:
    """Walks through the tokens of a query. `references`: start of a name that may be a CTE's -> whether it lacks an alias."""

    sql: str
    tokens: Sequence[Token]
    references: dict[int, bool]
    found: int = 0

    def block(self, index: int, end: int, known: dict[str, str]) -> str:
        """The text of the tokens. A CTE is known from its definition to the closing bracket."""
        out: list[str] = []
        while index < end:
            token = self.tokens[index]
            name = token.text.lower()
            if token.token_type == TokenType.WITH and self._begins_ctes(index):
                index, known = self._ctes(index + 1, known)
                continue
            if token.token_type == TokenType.L_PAREN:
                close = self._closing(index)
                out.append(f"{self._gap(index)}({self.block(index + 1, close, known)}{self._gap(close)})")
                index = close + 1
                continue
            if token.start in self.references and name in known:
                out.append(f" ({known[name]}\n)" + (f" AS {self._raw(index)}" if self.references[token.start] else ""))
            else:
                out.append(self._gap(index) + self._raw(index))
            index += 1
            if sum(map(len, out)) > _LONGEST:
                raise Unreadable
        return "".join(out)

    def _begins_ctes(self, index: int) -> bool:
        # WITH (options) of a table, WITH ROLLUP and WITH ORDINALITY do not start CTEs.
        following = [t.token_type for t in self.tokens[index + 2 : index + 3]]
        return following in ([TokenType.ALIAS], [TokenType.L_PAREN])

    def _ctes(self, index: int, known: dict[str, str]) -> tuple[int, dict[str, str]]:
        while True:
            name = self.tokens[index].text.lower()
            index += 1
            if self.tokens[index].token_type == TokenType.ALIAS:
                index += 1
            if index >= len(self.tokens) or self.tokens[index].token_type != TokenType.L_PAREN:
                raise Unreadable
            close = self._closing(index)
            following = self.tokens[close + 1 : close + 2]
            if not following or following[0].token_type == TokenType.ALIAS or self._is_column_list(index, close):
                raise Unreadable
            self.found += 1
            known = {**known, name: self.block(index + 1, close, known)}
            index = close + 1
            if index >= len(self.tokens) or self.tokens[index].token_type != TokenType.COMMA:
                return index, known
            index += 1

    def _is_column_list(self, index: int, close: int) -> bool:
        """name (a, b) AS (...): its columns would have to be renamed inside."""
        return all(t.token_type not in (TokenType.SELECT, TokenType.FROM) for t in self.tokens[index:close])

    def _closing(self, index: int) -> int:
        depth = 0
        for at in range(index, len(self.tokens)):
            depth += (self.tokens[at].token_type == TokenType.L_PAREN) - (self.tokens[at].token_type == TokenType.R_PAREN)
            if depth == 0:
                return at
        raise Unreadable

    def _gap(self, index: int) -> str:
        """The text before a token, with a comment reduced to a space: inlined text must not end in one."""
        begin = self.tokens[index - 1].end + 1 if index else 0
        return " " if self.sql[begin : self.tokens[index].start] else ""

    def _raw(self, index: int) -> str:
        token = self.tokens[index]
        # `10L` is three tokens over the same characters.
        if index and self.tokens[index - 1].end >= token.start:
            return ""
        return self.sql[token.start : token.end + 1]
