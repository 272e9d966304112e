"""SQL -> the same with every reference to a CTE replaced by a subquery, in the text itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from mvbuild.dataclass import dataclass
from mvbuild.parse.dialect import parse, tokenize

_LONGEST = 200_000
"""The limit of the text: CTEs that each read the previous one twice grow by powers of two when they are inlined."""


class Unreadable(Exception):
    """A query that is not understood well enough to change parts of it."""


FAILURES = (Unreadable, SqlglotError, RecursionError)
"""The errors of reading and rewriting a query, which then is only the same as an identical one."""


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
        start_of(table.this): table.args.get("alias")
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and not table.args.get("db") and not table.args.get("version")
    }
    inliner = _Inliner(sql=sql, tokens=tokens, references=references)
    text = inliner.block(0, len(tokens), {})
    if inliner.found != sum(1 for _ in tree.find_all(exp.CTE)):
        raise Unreadable
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _CTE:
    """The text of a query, and of its list of columns if it has one."""

    body: str
    columns: str


@dataclass(slots=True, kw_only=True)
class _Inliner:
    """Walks through the tokens of a query. `references`: start of a name that may be a CTE's -> its alias, if it has one."""

    sql: str
    tokens: Sequence[Token]
    references: Mapping[int, exp.TableAlias | None]
    found: int = 0
    behind: dict[int, str] = field(default_factory=dict)
    """Start of an alias -> the column list that its CTE has."""

    def block(self, index: int, end: int, known: Mapping[str, _CTE]) -> str:
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
                out.append(f" ({known[name].body}\n){self._named(index, known[name])}")
            else:
                out.append(self._gap(index) + self._raw(index) + self.behind.pop(token.start, ""))
            index += 1
            if sum(map(len, out)) > _LONGEST:
                raise Unreadable
        return "".join(out)

    def _named(self, index: int, cte: _CTE) -> str:
        """The name of a CTE behind its query, unless the reference has an alias. An alias with columns replaces those of the CTE."""
        alias = self.references[self.tokens[index].start]
        if alias is None:
            return f" AS {self._raw(index)}{cte.columns}"
        if cte.columns and not alias.columns:
            self.behind[start_of(alias.this)] = cte.columns
        return ""

    def _begins_ctes(self, index: int) -> bool:
        # WITH (options) of a table, WITH ROLLUP and WITH ORDINALITY do not start CTEs.
        following = [t.token_type for t in self.tokens[index + 2 : index + 3]]
        return following in ([TokenType.ALIAS], [TokenType.L_PAREN])

    def _ctes(self, index: int, known: Mapping[str, _CTE]) -> tuple[int, Mapping[str, _CTE]]:
        while True:
            name = self.tokens[index].text.lower()
            index, columns = self._columns(index + 1)
            if self._kind(index) == TokenType.ALIAS:
                index += 1
            if self._kind(index) != TokenType.L_PAREN:
                raise Unreadable
            close = self._closing(index)
            self.found += 1
            known = {**known, name: _CTE(body=self.block(index + 1, close, known), columns=columns)}
            index = close + 1
            if self._kind(index) != TokenType.COMMA:
                return index, known
            index += 1

    def _columns(self, index: int) -> tuple[int, str]:
        """The list of `name (a, b) AS (...)`, and the index behind it. A query in brackets may follow the name as well."""
        if self._kind(index) != TokenType.L_PAREN:
            return index, ""
        close = self._closing(index)
        if any(t.token_type in (TokenType.SELECT, TokenType.FROM) for t in self.tokens[index:close]):
            return index, ""
        return close + 1, "".join(self._gap(at) + self._raw(at) for at in range(index, close + 1))

    def _kind(self, index: int) -> TokenType | None:
        return self.tokens[index].token_type if index < len(self.tokens) else None

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
