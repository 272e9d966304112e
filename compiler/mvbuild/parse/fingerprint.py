"""SQL text -> hash of its tokens: the same for every formatting of one query, different for different queries.

Case counts in every word that may be a name. Spark compares names without it, but a name can become data: a key of a map, a field of JSON,
a value of UNPIVOT. Only Spark can tell; `folded` says which queries are worth asking it about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from hashlib import sha256

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from mvbuild.parse.dialect import tokenize

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING)
_EXACT = (*_STRINGS, TokenType.NUMBER, TokenType.IDENTIFIER, TokenType.HINT)
_SET_OPERATORS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_CLAUSES = "FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY LATERAL UNION EXCEPT MINUS INTERSECT"
_LIST_ENDS = frozenset(_CLAUSES.split())
_BEFORE_ALIAS = (
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.END,
)


def fingerprint(sql: str) -> str:
    """SHA-256 of the tokens. Comments, blanks, and the case of keywords and functions do not count."""
    return _hash(sql, _strictly_cased)


def folded(sql: str) -> str:
    """The same, but the case of unquoted names does not count either, except that of output columns and of what looks like a field."""
    return _hash(sql, _cased)


def _hash(sql: str, cased: Callable[[Sequence[Token]], Container[int]]) -> str:
    return sha256("\x1f".join(_words(sql, cased)).encode("utf-8", "surrogatepass")).hexdigest()


def _words(sql: str, keep: Callable[[Sequence[Token]], Container[int]]) -> Iterator[str]:
    try:
        tokens = tokenize(sql)
    except TokenError:
        yield sql
        return
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    cased = keep(tokens)
    last_end = -2
    for index, token in enumerate(tokens):
        if token.start <= last_end:
            # `10L` is three tokens over the same characters.
            continue
        raw = sql[token.start : token.end + 1]
        if _is_glue_significant(tokens, index) and token.start == last_end + 1:
            # 'a''b' is one quote, 'a' 'b' two strings; t.1 is a column, `t .1` is not.
            yield "\x1e"
        if token.token_type in _EXACT or index in cased:
            yield raw
        else:
            yield from raw.lower().split()
        last_end = token.end


def _is_glue_significant(tokens: Sequence[Token], index: int) -> bool:
    token, before, after = tokens[index], tokens[index - 1 : index], tokens[index + 1 : index + 2]
    if token.token_type in _STRINGS:
        return bool(before) and (before[0].token_type in _STRINGS or before[0].token_type == TokenType.VAR)
    if token.token_type == TokenType.DOT:
        return bool(after) and after[0].text[:1].isdigit()
    return token.text[:1].isdigit() and bool(before) and before[0].token_type in (TokenType.DOT, TokenType.NUMBER)


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
_BEFORE = (TokenType.L_PAREN, TokenType.COMMA)
_AFTER = (TokenType.R_PAREN, TokenType.COMMA)
_VALUES = frozenset(("null", "true", "false"))


def _strictly_cased(tokens: Sequence[Token]) -> set[int]:
    """Indexes of all words but keywords where only a keyword can stand, functions, and the types of casts and literals."""
    calls = _calls(tokens)
    words = {index for index, token in enumerate(tokens) if _is_word(token) and _may_be_name(tokens, index, calls[index])}
    # `struct(a End)` names its field without AS.
    ends = (i for i, token in enumerate(tokens[1:]) if token.token_type in _AFTER and calls[i] == "struct" and _is_word(tokens[i]))
    return words.union(_cased(tokens), ends)


def _may_be_name(tokens: Sequence[Token], index: int, call: str) -> bool:
    word = tokens[index].text.lower()
    before = tokens[index - 1].token_type if index else None
    after = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    if before == TokenType.DOT:
        return True
    if before == TokenType.ALIAS:
        return not (word in _TYPES and after in (TokenType.R_PAREN, TokenType.L_PAREN) and call in _CASTS)
    if after == TokenType.L_PAREN or _is_of_literal(tokens, index):
        return False
    if before in _BEFORE and (after in _AFTER or after in (TokenType.ALIAS, TokenType.DOT)):
        return word not in _VALUES
    return word not in _KEYWORDS or after == TokenType.DOT


def _is_of_literal(tokens: Sequence[Token], index: int) -> bool:
    """DATE '2026-01-01', INTERVAL 1 DAY, EXTRACT(YEAR FROM d)."""
    after = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    lead = [token.text.lower() for token in tokens[max(0, index - 2) : index]]
    if after == TokenType.STRING:
        return tokens[index].text.lower() in _TYPES
    return lead[:1] == ["interval"] or (lead == ["extract", "("] and after == TokenType.FROM)


def _calls(tokens: Sequence[Token]) -> list[str]:
    """For each token the word before the bracket that it stands in, in small letters."""
    around, found = [""], []
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.R_PAREN and len(around) > 1:
            around.pop()
        found.append(around[-1])
        if token.token_type == TokenType.L_PAREN:
            around.append(tokens[index - 1].text.lower() if index else "")
    return found


# Where case counts among names


def _cased(tokens: Sequence[Token]) -> set[int]:
    """Indexes of unquoted words that keep their case: names that are stored, and fields that may be keys of a map."""
    lists = list(_select_lists(tokens))
    first = _outermost(tokens)
    outer = next((bounds for bounds in lists if bounds[0] == first), None)
    stars = outer is None or any(t.token_type == TokenType.STAR and _is_projected(tokens, i) for i, t in _within(tokens, outer))
    # A star takes its names from the queries inside.
    kept = {i for found in (lists if stars else [outer] if outer else []) for item in _items(tokens, found) for i in _names(tokens, item)}
    return kept | _struct_fields(tokens) | _nested_fields(tokens)


def _within(tokens: Sequence[Token], bounds: tuple[int, int]) -> Iterator[tuple[int, Token]]:
    return ((i, tokens[i]) for i in range(*bounds))


def _is_projected(tokens: Sequence[Token], index: int) -> bool:
    """A star that is a column list, not a product or count(*)."""
    before = tokens[index - 1]
    return before.token_type in (TokenType.SELECT, TokenType.COMMA, TokenType.DOT, TokenType.DISTINCT, TokenType.ALL, TokenType.HINT)


def _depths(tokens: Sequence[Token]) -> list[int]:
    depth, depths = 0, []
    for token in tokens:
        depth -= token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET)
        depths.append(depth)
        depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
    return depths


def _select_lists(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """[start, end) of the columns of each SELECT, beginning with the index after the word itself."""
    depths = _depths(tokens)
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.SELECT:
            end = index + 1
            while end < len(tokens) and depths[end] >= depths[index] and not _ends_list(tokens, end, depths[end] == depths[index]):
                end += 1
            yield index + 1, end


def _ends_list(tokens: Sequence[Token], index: int, same_depth: bool) -> bool:
    words = tokens[index].text.upper().split()
    ends = same_depth and bool(words) and words[0] in _LIST_ENDS and tokens[index].token_type not in _EXACT
    is_distinct_from = words == ["FROM"] and tokens[index - 1].token_type == TokenType.DISTINCT
    is_star_except = words == ["EXCEPT"] and tokens[index - 1].token_type == TokenType.STAR
    return ends and not is_distinct_from and not is_star_except


def _outermost(tokens: Sequence[Token]) -> int | None:
    """The start of the list whose names are the query's: of its first SELECT outside WITH and FROM."""
    depths = _depths(tokens)
    depth = 0
    while depth < len(tokens) and tokens[depth].token_type == TokenType.L_PAREN:
        depth += 1
    return next((i + 1 for i, t in enumerate(tokens) if t.token_type == TokenType.SELECT and depths[i] <= depth), None)


def _items(tokens: Sequence[Token], bounds: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The columns of a list, split at its own commas."""
    depths = _depths(tokens[bounds[0] : bounds[1]])
    start = bounds[0]
    for offset, depth in enumerate(depths):
        if depth == 0 and tokens[bounds[0] + offset].token_type == TokenType.COMMA:
            yield start, bounds[0] + offset
            start = bounds[0] + offset + 1
    yield start, bounds[1]


def _names(tokens: Sequence[Token], item: tuple[int, int]) -> Iterator[int]:
    """The words of a column that make its name: its alias, or everything that Spark derives a name from."""
    start, end = item
    if end <= start:
        return
    depths = _depths(tokens[start:end])
    aliases = [i for i in range(start, end) if tokens[i].token_type == TokenType.ALIAS and depths[i - start] == 0]
    if aliases:
        yield from range(aliases[-1] + 1, end)
        return
    yield end - 1
    is_implicit = end - start > 1 and tokens[end - 2].token_type in _BEFORE_ALIAS and _is_word(tokens[end - 1])
    if not is_implicit and any(token.token_type != TokenType.DOT and not _is_word(token) for token in tokens[start:end]):
        calls = (TokenType.L_PAREN,)
        yield from (
            i
            for i in range(start, end)
            if tokens[i].token_type == TokenType.VAR and not (i + 1 < len(tokens) and tokens[i + 1].token_type in calls)
        )


def _is_word(token: Token) -> bool:
    return re.fullmatch(r"\w+", token.text) is not None


def _struct_fields(tokens: Sequence[Token]) -> set[int]:
    """struct(A, b) makes fields of these names."""
    kept: set[int] = set()
    depths = _depths(tokens)
    for index, token in enumerate(tokens[:-1]):
        if token.text.upper() == "STRUCT" and tokens[index + 1].token_type == TokenType.L_PAREN:
            at = index + 2
            while at < len(tokens) and depths[at] > depths[index + 1]:
                if tokens[at].token_type == TokenType.VAR and tokens[min(at + 1, len(tokens) - 1)].token_type != TokenType.L_PAREN:
                    kept.add(at)
                at += 1
    return kept


def _nested_fields(tokens: Sequence[Token]) -> set[int]:
    """`m.Key` of a map column is another value than `m.key`. What follows table.column or an unknown column keeps its case."""
    relations = _relation_words(tokens)
    kept: set[int] = set()
    index = 0
    while index < len(tokens):
        chain = _chain(tokens, index)
        if len(chain) > 1 and not _names_table(tokens, index):
            known = 0
            while known < len(chain) and tokens[chain[known]].text.lower() in relations:
                known += 1
            kept.update(chain[known + 1 :])
        index = chain[-1] + 1 if chain else index + 1
    return kept


def _chain(tokens: Sequence[Token], index: int) -> list[int]:
    """Indexes of the words of a dotted name that begins here."""
    words = (TokenType.VAR, TokenType.IDENTIFIER)
    if tokens[index].token_type not in words and not (_is_word(tokens[index]) and tokens[index].token_type != TokenType.NUMBER):
        return []
    chain = [index]
    while index + 2 < len(tokens) and tokens[index + 1].token_type == TokenType.DOT and _is_word(tokens[index + 2]):
        index += 2
        chain.append(index)
    return chain


def _names_table(tokens: Sequence[Token], index: int) -> bool:
    return index > 0 and tokens[index - 1].token_type in (TokenType.FROM, TokenType.JOIN, TokenType.TABLE)


def _relation_words(tokens: Sequence[Token]) -> set[str]:
    """Words that may name a table in this query: parts of names after FROM and JOIN, and everything that stands as an alias may."""
    words: set[str] = set()
    depths = _depths(tokens)
    for index in range(1, len(tokens)):
        before = tokens[index - 1].token_type
        if before in (TokenType.FROM, TokenType.JOIN):
            words.update(tokens[i].text.lower() for i in _chain(tokens, index))
        elif before in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN):
            words.add(tokens[index].text.lower())
        elif before == TokenType.COMMA and _is_listed_table(tokens, depths, index):
            words.update(tokens[i].text.lower() for i in _chain(tokens, index))
    return words


def _is_listed_table(tokens: Sequence[Token], depths: Sequence[int], index: int) -> bool:
    """Whether a comma before a name belongs to a FROM list, not to a list of columns."""
    for i in range(index - 1, -1, -1):
        if depths[i] < depths[index]:
            return False
        if depths[i] == depths[index]:
            word = tokens[i].text.upper().split()[:1]
            if tokens[i].token_type == TokenType.FROM:
                return True
            if word and word[0] in (*_LIST_ENDS, "SELECT", "ON"):
                return False
    return False
