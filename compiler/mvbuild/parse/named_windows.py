"""SQL text -> the same query with the definitions of WINDOW in the place of their names.

Spark replaces these names before it reads the text of an Iceberg view, so that a view with them cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import Token, TokenType

from mvbuild.parse.dialect import tokenize
from mvbuild.parse.splice import Edit, cut, edited
from mvbuild.source import MappedText

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def without_named_windows(sql: MappedText) -> MappedText:
    """A text stays as it is if a name is defined twice in it, or if a definition is built on another one.

    >>> from mvbuild.source import SourceFile
    >>> text = "SELECT sum(x) OVER w AS s FROM t WINDOW w AS (PARTITION BY k) ORDER BY s"
    >>> without_named_windows(MappedText.of(SourceFile("q.sql", text))).text
    'SELECT sum(x) OVER (PARTITION BY k) AS s FROM t  ORDER BY s'
    """
    tokens = tokenize(sql.text)
    clauses = [found for at in range(len(tokens)) if (found := _clause(tokens, at))]
    definitions = {tokens[name].text.lower(): (first, last) for clause in clauses for name, first, last in clause}
    if len(definitions) < sum(map(len, clauses)) or _are_built_on(tokens, definitions):
        return sql
    edits = list(_removed(sql, tokens, clauses))
    for at, token in enumerate(tokens[:-1]):
        named = definitions.get(tokens[at + 1].text.lower()) if token.token_type == TokenType.OVER else None
        if named is not None:
            name, (first, last) = tokens[at + 1], (tokens[place] for place in named)
            made = cut(sql, first.start, last.end + 1)
            edits.append(Edit(start=name.start, end=name.end + 1, new=made, origin=sql.span(name.start, name.end + 1)))
    return edited(sql, edits)


def _clause(tokens: Sequence[Token], at: int) -> list[tuple[int, int, int]]:
    """The places of each name and of the brackets of its definition, if the token is WINDOW and each definition is in brackets."""
    found: list[tuple[int, int, int]] = []
    is_next = tokens[at].token_type == TokenType.WINDOW
    while is_next:
        # name AS ( ... )
        ahead = [token.token_type for token in tokens[at + 1 : at + 4]]
        last = _end(tokens, at + 3) if ahead[1:] == [TokenType.ALIAS, TokenType.L_PAREN] and ahead[0] in _NAMES else None
        if last is None:
            return []
        found.append((at + 1, at + 3, last))
        at = last + 1
        is_next = at < len(tokens) and tokens[at].token_type == TokenType.COMMA
    return found


def _end(tokens: Sequence[Token], at: int) -> int | None:
    """The place of the bracket that closes the one at a place."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[place].token_type, 0)
        if depth == 0:
            return place
    return None


def _are_built_on(tokens: Sequence[Token], definitions: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a name is the first word in brackets, as in `OVER (w ORDER BY x)`."""
    after = zip(tokens, tokens[1:], tokens[2:], strict=False)
    within = any(
        one.token_type == TokenType.OVER and two.token_type == TokenType.L_PAREN and three.text.lower() in definitions
        for one, two, three in after
    )
    return within or any(tokens[first + 1].text.lower() in definitions for first, _ in definitions.values())


def _removed(sql: MappedText, tokens: Sequence[Token], clauses: Sequence[Sequence[tuple[int, int, int]]]) -> Iterator[Edit]:
    for clause in clauses:
        start, end = tokens[clause[0][0] - 1].start, tokens[clause[-1][2]].end + 1
        yield Edit(start=start, end=end, new="", origin=sql.span(start, end))
