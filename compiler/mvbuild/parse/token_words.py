"""SQL text -> its tokens in a form that is the same for every formatting of one query."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cached_property, lru_cache

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from mvbuild.parse.dialect import tokenize

_DOT, _COMMA, _SELECT = TokenType.DOT, TokenType.COMMA, TokenType.SELECT
_STRINGS = frozenset((TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING))
_EXACT = _STRINGS | {TokenType.NUMBER, TokenType.IDENTIFIER, TokenType.HINT}
_CLAUSES = "FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY LATERAL UNION EXCEPT MINUS INTERSECT"
_LIST_ENDS = frozenset(_CLAUSES.split())
_NO_ENDS = _EXACT | {TokenType.COMMA, TokenType.DOT, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.ALIAS, TokenType.STAR}
"""Tokens that do not start a clause."""
_COLUMN_WORDS = _LIST_ENDS | {"SELECT", "ON"}
_BEFORE_ALIAS = frozenset(
    (
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.END,
    )
)
_NUMERIC = frozenset((TokenType.DOT, TokenType.NUMBER))
_GLUED = _STRINGS | {TokenType.DOT}
_KNOWN = 10_000
"""The words that are remembered: those of a project occur again and again."""
_WORD = re.compile(r"\w+")


class _Stream:
    """The tokens of a query, with their properties computed once."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.texts = [token.text for token in tokens]
        self.types = [token.token_type for token in tokens]
        self.lowers = [text.lower() for text in self.texts]
        self.words = [_is_word(text) for text in self.texts]
        self.depths = _depths(self.types)

    @cached_property
    def calls(self) -> Sequence[str]:
        return _calls(self.types, self.lowers)

    def type_at(self, index: int) -> TokenType | None:
        return self.types[index] if 0 <= index < len(self.types) else None

    def first_word(self, index: int) -> str:
        """The first word of a token, in upper case: `GROUP` of `group by`."""
        words = self.texts[index].upper().split(None, 1)
        return words[0] if words else ""


@lru_cache(_KNOWN)
def _is_word(text: str) -> bool:
    return _WORD.fullmatch(text) is not None


@lru_cache(_KNOWN)
def _folded(raw: str) -> tuple[str, ...] | None:
    """The words of a token in lower case; None if it is one word without upper-case letters, as most tokens of a query are."""
    words = raw.lower().split()
    return tuple(words) if words != [raw] else None


def strict_words(sql: str) -> Sequence[str]:
    """See `fingerprint.fingerprint`."""
    return _words(sql, _StrictlyCased)


def folded_words(sql: str) -> Sequence[str]:
    """See `fingerprint.folded`."""
    return _words(sql, _cased)


def _words(sql: str, keep: Callable[[_Stream], Container[int]]) -> Sequence[str]:
    try:
        tokens = tokenize(sql)
    except TokenError:
        return [sql]
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    stream = _Stream(tokens)
    cased, types = keep(stream), stream.types
    found: list[str] = []
    last_end = -2
    for index, token in enumerate(tokens):
        start, end, kind = token.start, token.end, types[index]
        if start <= last_end:
            # `10L` is three tokens over the same characters.
            continue
        if start == last_end + 1 and index and (kind in _GLUED or types[index - 1] in _NUMERIC) and _is_glue_significant(stream, index):
            # 'a''b' is one quoted text, 'a' 'b' two strings; t.1 is a column, `t .1` is not.
            found.append("\x1e")
        raw = sql[start : end + 1]
        words = _folded(raw) if kind not in _EXACT else None
        if words is None or index in cased:
            found.append(raw)
        else:
            found.extend(words)
        last_end = end
    return found


def _is_glue_significant(stream: _Stream, index: int) -> bool:
    """For a token that is not the first."""
    kind, before = stream.types[index], stream.types[index - 1]
    if kind in _STRINGS:
        return before in _STRINGS or before == TokenType.VAR
    if kind == _DOT:
        return index + 1 < len(stream.texts) and stream.texts[index + 1][:1].isdigit()
    return before in _NUMERIC and stream.texts[index][:1].isdigit()


# Where case counts, strictly


_KEYWORDS = frozenset(
    "select from where group by order sort cluster distribute having limit offset window qualify join left right inner outer full cross "
    "semi anti natural on using union all distinct intersect except minus as and or not in is null like ilike rlike between case when then "
    "else end with recursive over partition rows range preceding following unbounded current row asc desc nulls first last exists "
    "true false interval lateral view values filter within escape div rollup cube sets grouping for of any some table version "
    "system_version timestamp system_time".split()
)
_TYPES = frozenset(
    "boolean tinyint smallint int integer bigint float double string binary date timestamp timestamp_ntz decimal numeric".split()
)
_CASTS = frozenset(("cast", "try_cast"))
_BEFORE = frozenset((TokenType.L_PAREN, TokenType.COMMA))
_AFTER = frozenset((TokenType.R_PAREN, TokenType.COMMA))
_VALUES = frozenset(("null", "true", "false"))


class _StrictlyCased:
    """Indexes of all words except keywords where only a keyword is allowed, functions, and the types of casts and literals."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def __contains__(self, index: object) -> bool:
        assert isinstance(index, int)
        return (self._stream.words[index] and _may_be_name(self._stream, index)) or index in self._others

    @cached_property
    def _others(self) -> set[int]:
        stream = self._stream
        if "struct" not in stream.lowers:
            return _stored_names(stream)
        calls, types = stream.calls, stream.types
        # `struct(a End)` names its field without AS.
        ends = (i for i in range(len(types) - 1) if types[i + 1] in _AFTER and calls[i] == "struct" and stream.words[i])
        # After a dot, any word may be a name.
        return _stored_names(stream).union(ends)


def _may_be_name(stream: _Stream, index: int) -> bool:
    word = stream.lowers[index]
    before, after = stream.type_at(index - 1), stream.type_at(index + 1)
    if before == TokenType.DOT:
        return True
    if before == TokenType.ALIAS:
        return not (word in _TYPES and after in (TokenType.R_PAREN, TokenType.L_PAREN) and stream.calls[index] in _CASTS)
    if after == TokenType.L_PAREN or _is_of_literal(stream, index):
        return False
    if before in _BEFORE and (after in _AFTER or after in (TokenType.ALIAS, TokenType.DOT)):
        return word not in _VALUES
    return word not in _KEYWORDS or after == TokenType.DOT


def _is_of_literal(stream: _Stream, index: int) -> bool:
    """DATE '2026-01-01', INTERVAL 1 DAY, EXTRACT(YEAR FROM d)."""
    after, lowers = stream.type_at(index + 1), stream.lowers
    if after == TokenType.STRING:
        return lowers[index] in _TYPES
    first = max(0, index - 2)
    if index and lowers[first] == "interval":
        return True
    return after == TokenType.FROM and lowers[first:index] == ["extract", "("]


def _calls(types: Sequence[TokenType], lowers: Sequence[str]) -> list[str]:
    """For each token the word before the bracket around it, in lower case."""
    around, found = [""], []
    for index, kind in enumerate(types):
        if kind == TokenType.R_PAREN and len(around) > 1:
            around.pop()
        found.append(around[-1])
        if kind == TokenType.L_PAREN:
            around.append(lowers[index - 1] if index else "")
    return found


# Where case counts among names


def _cased(stream: _Stream) -> set[int]:
    """Indexes of unquoted words that keep their case: names that are stored, and fields that may be keys of a map."""
    return _stored_names(stream) | _nested_fields(stream)


def _stored_names(stream: _Stream) -> set[int]:
    """Indexes of the words that name output columns and the fields of structs."""
    lists = list(_select_lists(stream))
    first = _outermost(stream)
    outer = next((bounds for bounds in lists if bounds[0] == first), None)
    stars = outer is None or any(stream.types[i] == TokenType.STAR and _is_projected(stream, i) for i in range(*outer))
    # A star takes its names from the inner queries.
    kept = {i for found in (lists if stars else [outer] if outer else []) for item in _items(stream, found) for i in _names(stream, item)}
    return kept | _struct_fields(stream)


_PROJECTING = frozenset((TokenType.SELECT, TokenType.COMMA, TokenType.DOT, TokenType.DISTINCT, TokenType.ALL, TokenType.HINT))


def _is_projected(stream: _Stream, index: int) -> bool:
    """A star that is a column list, and neither a product nor count(*)."""
    return stream.types[index - 1] in _PROJECTING


_OPENING = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET))
_CLOSING = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET))


def _depths(types: Sequence[TokenType]) -> list[int]:
    depth, depths = 0, []
    for kind in types:
        if kind in _CLOSING:
            depth -= 1
            depths.append(depth)
        else:
            depths.append(depth)
            if kind in _OPENING:
                depth += 1
    return depths


def _base(stream: _Stream, start: int) -> int:
    """The depth just before a token."""
    return stream.depths[start] + (stream.types[start] in _CLOSING)


def _select_lists(stream: _Stream) -> Iterator[tuple[int, int]]:
    """[start, end) of the columns of each SELECT, starting with the index after the word itself."""
    types, depths = stream.types, stream.depths
    for index in (i for i, kind in enumerate(types) if kind == _SELECT):
        depth = depths[index]
        for end in range(index + 1, len(types)):
            if depths[end] < depth or (depths[end] == depth and types[end] not in _NO_ENDS and _ends_list(stream, end)):
                break
        else:
            end = len(types)
        yield index + 1, end


def _ends_list(stream: _Stream, index: int) -> bool:
    """Whether a token at the depth of a list's SELECT starts a clause."""
    if stream.first_word(index) not in _LIST_ENDS:
        return False
    words = stream.texts[index].upper().split()
    is_distinct_from = words == ["FROM"] and stream.types[index - 1] == TokenType.DISTINCT
    is_star_except = words == ["EXCEPT"] and stream.types[index - 1] == TokenType.STAR
    return not is_distinct_from and not is_star_except


def _outermost(stream: _Stream) -> int | None:
    """The start of the list with the query's names: that of its first SELECT outside WITH and FROM."""
    types, depths = stream.types, stream.depths
    depth = 0
    while depth < len(types) and types[depth] == TokenType.L_PAREN:
        depth += 1
    return next((i + 1 for i, kind in enumerate(types) if kind == TokenType.SELECT and depths[i] <= depth), None)


def _items(stream: _Stream, bounds: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The columns of a list, split at its own commas."""
    start, end = bounds
    if start < end:
        base = _base(stream, start)
        for index in range(start, end):
            if stream.types[index] == _COMMA and stream.depths[index] == base:
                yield start, index
                start = index + 1
    yield start, end


def _names(stream: _Stream, item: tuple[int, int]) -> Iterator[int]:
    """The words that form a column's name: its alias, or everything from which Spark derives a name."""
    start, end = item
    if end <= start:
        return
    types, words, base = stream.types, stream.words, _base(stream, start)
    alias = next((i for i in range(end - 1, start - 1, -1) if types[i] == TokenType.ALIAS and stream.depths[i] == base), None)
    if alias is not None:
        yield from range(alias + 1, end)
        return
    yield end - 1
    is_implicit = end - start > 1 and types[end - 2] in _BEFORE_ALIAS and words[end - 1]
    if not is_implicit and any(types[i] != TokenType.DOT and not words[i] for i in range(start, end)):
        yield from (i for i in range(start, end) if types[i] == TokenType.VAR and stream.type_at(i + 1) != TokenType.L_PAREN)


def _struct_fields(stream: _Stream) -> set[int]:
    """struct(A, b) makes fields of these names."""
    kept: set[int] = set()
    if "struct" not in stream.lowers:
        return kept
    types, depths = stream.types, stream.depths
    for index in range(len(types) - 1):
        if stream.lowers[index] == "struct" and types[index + 1] == TokenType.L_PAREN:
            at = index + 2
            while at < len(types) and depths[at] > depths[index + 1]:
                if types[at] == TokenType.VAR and types[min(at + 1, len(types) - 1)] != TokenType.L_PAREN:
                    kept.add(at)
                at += 1
    return kept


def _nested_fields(stream: _Stream) -> set[int]:
    """`m.Key` of a map column is another value than `m.key`. Words after table.column or an unknown column keep their case."""
    if TokenType.DOT not in stream.types:
        return set()
    relations = _relation_words(stream)
    kept: set[int] = set()
    index = 0
    while index < len(stream.types):
        chain = _chain(stream, index)
        if len(chain) > 1 and not _names_table(stream, index):
            known = 0
            while known < len(chain) and stream.lowers[chain[known]] in relations:
                known += 1
            kept.update(chain[known + 1 :])
        index = chain[-1] + 1 if chain else index + 1
    return kept


def _chain(stream: _Stream, index: int) -> Sequence[int]:
    """Indexes of the words of a dotted name that begins here."""
    types, words = stream.types, stream.words
    kind = types[index]
    if kind not in (TokenType.VAR, TokenType.IDENTIFIER) and not (words[index] and kind != TokenType.NUMBER):
        return ()
    end = index
    while end + 2 < len(types) and types[end + 1] == TokenType.DOT and words[end + 2]:
        end += 2
    return range(index, end + 1, 2)


_BEFORE_TABLE = frozenset((TokenType.FROM, TokenType.JOIN, TokenType.TABLE))
_BEFORE_NAME = frozenset((TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN))


def _names_table(stream: _Stream, index: int) -> bool:
    return index > 0 and stream.types[index - 1] in _BEFORE_TABLE


def _relation_words(stream: _Stream) -> set[str]:
    """Words that may name a table in this query: parts of names after FROM and JOIN, and everything in the position of an alias."""
    words: set[str] = set()
    types, lowers = stream.types, stream.lowers
    lists: dict[int, bool] = {}
    """Depth -> whether the clause that is open there lists tables."""
    depth = 0
    for index, kind in enumerate(types):
        if stream.depths[index] < depth:
            lists = {d: listing for d, listing in lists.items() if d <= stream.depths[index]}
        depth = stream.depths[index]
        before = types[index - 1] if index else None
        if before in (TokenType.FROM, TokenType.JOIN):
            words.update(lowers[i] for i in _chain(stream, index))
        elif before in _BEFORE_NAME:
            words.add(lowers[index])
        elif before == TokenType.COMMA and lists.get(depth):
            words.update(lowers[i] for i in _chain(stream, index))
        if kind == TokenType.FROM:
            lists[depth] = True
        elif stream.first_word(index) in _COLUMN_WORDS:
            lists[depth] = False
    return words
