"""sqlglot tree + tokens -> Reads: every place where a query reads a table, with exact offsets in its text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, error
from mvbuild.parse import placeholder
from mvbuild.parse.dialect import tokenize
from mvbuild.parse.model import Read
from mvbuild.parse.time_travel import time_travel
from mvbuild.source import MappedText

_DOT, _HINT, _PIPE = TokenType.DOT, TokenType.HINT, TokenType.PIPE_GT
_LITERALS = frozenset((TokenType.STRING, TokenType.NUMBER))
BACKTICKS = "Quote the name with `backticks`, or rename the table to a plain name."


@dataclass(slots=True, kw_only=True)
class _Relation:
    """A name that can qualify columns of one SELECT; `qualifiers` is None unless it is a table read without an alias."""

    spellings: tuple[tuple[str, ...], ...]
    exact: bool
    qualifiers: set[tuple[int, int]] | None = None

    def matched(self, chain: tuple[str, ...]) -> int:
        """How many leading parts of a column's path name this relation."""
        for length in range(len(chain) - 1, 0, -1):
            if any(self._names(spelling, chain[:length]) for spelling in self.spellings):
                return length
        return 0

    def _names(self, spelling: tuple[str, ...], parts: tuple[str, ...]) -> bool:
        return spelling == parts if self.exact else spelling[-len(parts) :] == parts


@dataclass(slots=True, kw_only=True)
class _Found:
    """What one traversal of the tree found."""

    text: MappedText
    tokens: Sequence[Token]
    kinds: Sequence[TokenType]
    """The types of the tokens."""
    at: dict[int, int]
    """Start offset -> index of the first token there."""
    reads: dict[int, Read] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)
    """Start offsets of all relation names, including CTEs and functions."""
    scopes: dict[int, list[_Relation]] = field(default_factory=lambda: defaultdict(list))
    """id of a SELECT -> its relations."""
    unaliased: dict[int, _Relation] = field(default_factory=dict)
    """Start offset of a read -> its relation."""
    problems: list[Diagnostic] = field(default_factory=list)

    def problem(self, code: str, message: str, start: int, end: int, *, help: str = "") -> None:
        self.problems.append(error(code, message, self.text.span(start, end), help=help))


def find_reads(nodes: Iterable[exp.Expr], tokens: Sequence[Token], text: MappedText) -> tuple[tuple[Read, ...], tuple[Diagnostic, ...]]:
    """The tables that a query reads, in the order of the text.

    `nodes`: its tree from the top, without the content of hints. Offsets of `tokens` are offsets of `text`.
    """
    count, kinds = len(tokens), [token.token_type for token in tokens]
    at = dict(zip([token.start for token in reversed(tokens)], range(count - 1, -1, -1), strict=True))
    found = _Found(text=text, tokens=tokens, kinds=kinds, at=at)
    columns: list[exp.Column] = []
    for node in nodes:
        if isinstance(node, exp.Column):
            columns.append(node)
        elif isinstance(node, exp.Table) and not isinstance(node.parent, exp.Hint):
            _table(node, found)
        elif isinstance(node, exp.TableAlias) and not isinstance(node.parent, (exp.Table, exp.CTE)):
            _alias(node, found)
    for node in columns:
        _column(node, found)
    _hints(found)
    _account(found)
    reads = tuple(_finished(found.reads[start], found) for start in sorted(found.reads))
    return reads, tuple(found.problems)


def _finished(read: Read, found: _Found) -> Read:
    relation = found.unaliased.get(read.start)
    qualifiers = tuple(sorted(relation.qualifiers or ())) if relation else ()
    return Read(
        kind=read.kind,
        parts=read.parts,
        start=read.start,
        end=read.end,
        span=read.span,
        alias=read.alias,
        travel=read.travel,
        qualifiers=qualifiers,
        tail=read.tail,
        wrap=read.wrap,
    )


# Tables


def _table(node: exp.Table, found: _Found) -> None:
    alias = _alias_of(node, found)
    if isinstance(node.this, exp.Func) or (isinstance(node.this, exp.Dot) and any(isinstance(p, exp.Func) for p in node.parts)):
        _table_function(node, alias, found)
        return
    parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
    if not parts or len(parts) != len(node.parts):
        start, end = _extent(node, found)
        found.problem("sql-syntax", "Expected a table name here", start, end, help="Write the table's name as it is in the catalog.")
        return
    names = tuple(part.name for part in parts)
    is_cte = len(parts) == 1 and not node.args.get("version") and _is_cte(node, names[0])
    offsets = _name_offsets(parts, found)
    if offsets is None:
        # The parser gives the steps of a |> query table names of its own.
        if not is_cte:
            _unreliable(parts, found)
        return
    start, end = offsets
    found.known.add(start)
    if is_cte:
        _relate(node, _Relation(spellings=(((alias or names[0]).lower(),),), exact=True), found)
        return
    _read(node, names, start, end, alias, found)


def _read(node: exp.Table, names: tuple[str, ...], start: int, end: int, alias: str | None, found: _Found) -> None:
    if start in found.reads:
        return
    coded = placeholder.decode(names[0]) if len(names) == 1 else None
    version = node.args.get("version")
    travel, tail, problem = time_travel(version, found.tokens, found.at[start] + 2 * len(names) - 1, found.text)
    if problem:
        found.problems.append(problem)
    found.reads[start] = Read(
        kind=coded[0] if coded else "name",
        parts=coded[1] if coded else names,
        start=start,
        end=end,
        span=found.text.span(start, end),
        alias=alias,
        travel=travel,
        qualifiers=(),
        tail=tail,
        wrap=_wrap(found.tokens, found.at[start]),
    )
    if alias:
        relation = _Relation(spellings=((alias.lower(),),), exact=True)
    else:
        spellings = (_lower(names), _lower(coded[1])) if coded else (_lower(names),)
        relation = found.unaliased[start] = _Relation(spellings=spellings, exact=False, qualifiers=set())
    _relate(node, relation, found)


def _wrap(tokens: Sequence[Token], index: int) -> tuple[int, str, str] | None:
    """`TABLE t` becomes `SELECT * FROM t`; as the argument of a table function it needs parentheses."""
    before = [token.token_type for token in tokens[max(index - 3, 0) : index]]
    if before[-2:] == [TokenType.TABLE, TokenType.L_PAREN]:
        return tokens[index].start, "SELECT * FROM ", ""
    if before[-1:] != [TokenType.TABLE]:
        return None
    is_argument = before[-2:-1] == [TokenType.FARROW] or before[:2] in (
        [TokenType.VAR, TokenType.L_PAREN],
        [TokenType.IDENTIFIER, TokenType.L_PAREN],
    )
    around = ("TABLE (SELECT * FROM ", ")") if is_argument else ("SELECT * FROM ", "")
    return (tokens[index - 1].start, *around)


def _table_function(node: exp.Table, alias: str | None, found: _Found) -> None:
    parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
    found.known.update(part.meta["start"] for part in parts if "start" in part.meta)
    function = node.parts[-1]
    name = function.name if isinstance(function, exp.Anonymous) else function.key
    if name.lower() == "identifier":
        start, end = _extent(node, found)
        found.problem(
            "sql-syntax", "IDENTIFIER(...) hides the table's name", start, end, help="Write the name itself; Jinja can compute it."
        )
    _relate(node, _Relation(spellings=(((alias or name).lower(),),), exact=True), found)


def _alias_of(node: exp.Table, found: _Found) -> str | None:
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias) or alias.this is None:
        return None
    if isinstance(alias.this, exp.Identifier):
        return alias.this.name
    start, end = _extent(node, found)
    found.problem("sql-syntax", "This table's alias cannot be read", start, end, help=BACKTICKS)
    return None


def _alias(node: exp.TableAlias, found: _Found) -> None:
    """The alias of a subquery, of VALUES, LATERAL, PIVOT..."""
    if isinstance(node.this, exp.Identifier) and node.parent:
        _relate(node.parent, _Relation(spellings=((node.this.name.lower(),),), exact=True), found)


def _relate(node: exp.Expr, relation: _Relation, found: _Found) -> None:
    owner: exp.Expr | None = node.parent
    while owner is not None and not isinstance(owner, exp.Select):
        owner = owner.parent
    if owner is not None:
        found.scopes[id(owner)].append(relation)


def _is_cte(node: exp.Expr, name: str) -> bool:
    """Whether an enclosing WITH defines the name, and it is visible at this place."""
    name = name.lower()
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            names = [cte.alias.lower() for cte in parent.expressions]
            here = next((i for i, cte in enumerate(parent.expressions) if cte is child), 0)
            if name in names[: here + bool(parent.args.get("recursive"))]:
                return True
        else:
            clause = parent.args.get("with_")
            if isinstance(clause, exp.With) and clause is not child and name in (cte.alias.lower() for cte in clause.expressions):
                return True
        child, parent = parent, parent.parent
    return False


# Columns


def _column(node: exp.Column, found: _Found) -> None:
    if node.args.get("table") is None and not isinstance(node.parent, exp.Dot):
        return
    chain = _chain(node)
    if len(chain) < 2 or any("start" not in part.meta for part in chain[:-1]):
        return
    names = _lower(part.name for part in chain)
    for relations in _visible(node, found):
        relation, length = _best(relations, names)
        if relation is None:
            continue
        if relation.qualifiers is not None:
            _qualified(chain[:length], relation, found)
        return


def _best(relations: Iterable[_Relation], names: tuple[str, ...]) -> tuple[_Relation | None, int]:
    """The relation that matches the most parts; among equals one with an alias, which is never rewritten."""
    best: _Relation | None = None
    length = 0
    for relation in relations:
        matched = relation.matched(names)
        if matched > length or (matched == length and matched and best and best.qualifiers is not None and relation.qualifiers is None):
            best, length = relation, matched
    return best, length


def _chain(node: exp.Column) -> list[exp.Expr]:
    """All parts of a path `a.b.c.d.e`, including the star of `a.*`."""
    chain: list[exp.Expr] = list(node.parts)
    current: exp.Expr = node
    while isinstance(current.parent, exp.Dot) and current.parent.this is current and isinstance(current.parent.expression, exp.Identifier):
        current = current.parent
        chain.append(current.expression)
    return chain


def _visible(node: exp.Expr, found: _Found) -> Iterator[list[_Relation]]:
    """The relations of each SELECT around a column, from the inside out, without those that a derived table or CTE cannot see."""
    child, parent, hidden = node, node.parent, False
    while parent is not None:
        if isinstance(parent, exp.Select):
            if not hidden:
                yield found.scopes[id(parent)]
            hidden = False
        elif isinstance(parent, exp.With):
            break
        elif _is_derived(child, parent):
            hidden = True
        elif isinstance(parent, (exp.Subquery, exp.SetOperation)) and child.arg_key in ("order", "sort", "distribute", "cluster"):
            yield from _leftmost(parent, found)
        child, parent = parent, parent.parent
    if _PIPE in found.kinds:
        yield list(found.unaliased.values())


def _is_derived(child: exp.Expr, parent: exp.Expr) -> bool:
    source = isinstance(parent, exp.From) or (isinstance(parent, exp.Join) and child.arg_key == "this")
    return source and isinstance(child, exp.Subquery) and isinstance(child.unnest(), exp.Query)


def _leftmost(node: exp.Expr, found: _Found) -> Iterator[list[_Relation]]:
    """ORDER BY of a parenthesized query or a union sees the tables of its first SELECT."""
    while isinstance(node, (exp.Subquery, exp.SetOperation)):
        node = node.this
    if isinstance(node, exp.Select):
        yield found.scopes[id(node)]


def _qualified(parts: Sequence[exp.Expr], relation: _Relation, found: _Found) -> None:
    identifiers = [part for part in parts if isinstance(part, exp.Identifier)]
    offsets = _name_offsets(identifiers, found)
    if offsets is not None and relation.qualifiers is not None:
        relation.qualifiers.add(offsets)


def _hints(found: _Found) -> None:
    """`/*+ BROADCAST(raw.orders) */` names a table too. A hint is one token, so its text is read separately."""
    if _HINT not in found.kinds:
        return
    for token in found.tokens:
        if token.token_type != _HINT:
            continue
        base = token.start + 3
        try:
            inner = tokenize(found.text.text[base : token.end - 1])
        except SqlglotError:
            continue
        for chain in _chains(inner):
            names = _lower(part.text for part in chain)
            matches = [r for r in found.unaliased.values() if r.matched((*names, "*")) == len(names)]
            if len(matches) == 1 and matches[0].qualifiers is not None:
                matches[0].qualifiers.add((base + chain[0].start, base + chain[-1].end + 1))


def _chains(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Dotted names between other tokens, except those that a parenthesis makes functions."""
    index = 0
    while index < len(tokens):
        end = _chain_end(tokens, index)
        if end > index and not (end < len(tokens) and tokens[end].token_type == TokenType.L_PAREN):
            yield list(tokens[index:end:2])
        index = max(end, index + 1)


def _chain_end(tokens: Sequence[Token], index: int) -> int:
    """The index after the dotted name that begins at a token; the same index if none begins."""
    if tokens[index].token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
        return index
    index += 1
    while index + 1 < len(tokens) and tokens[index].token_type == TokenType.DOT:
        index += 2
    return index


# Offsets


def _name_offsets(parts: Sequence[exp.Expr], found: _Found) -> tuple[int, int] | None:
    """[start, end) of a dotted name, None unless the tokens there are exactly these parts."""
    index = found.at.get(parts[0].meta.get("start", -1))
    if index is None:
        return None
    end = index + 2 * len(parts) - 1
    tokens, kinds = found.tokens[index:end], found.kinds[index:end]
    if [token.text for token in tokens[::2]] != [part.name for part in parts] or any(kind != _DOT for kind in kinds[1::2]):
        return None
    if any(kind in _LITERALS for kind in kinds[::2]):
        return None
    return tokens[0].start, tokens[-1].end + 1


def _unreliable(parts: Sequence[exp.Expr], found: _Found) -> None:
    start = parts[0].meta.get("start", 0)
    end = parts[-1].meta.get("end", len(found.text.text) - 1) + 1
    found.problem("sql-syntax", "This table name cannot be read", start, end, help=BACKTICKS)


def _extent(node: exp.Expr, found: _Found) -> tuple[int, int]:
    """The place of a node as far as its identifiers show, otherwise the whole query's first word."""
    offsets = [(n.meta["start"], n.meta["end"] + 1) for n in node.find_all(exp.Identifier, exp.Func) if "start" in n.meta]
    if offsets:
        return min(o[0] for o in offsets), max(o[1] for o in offsets)
    words = {n.name.lower() for n in node.walk() if n.name}
    first = next((t for t in found.tokens if t.text.lower() in words), found.tokens[0])
    return first.start, first.end + 1


def _lower(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


# A second way to the same result


_COUNTED = frozenset((TokenType.L_PAREN, TokenType.R_PAREN, TokenType.SELECT, TokenType.JOIN, TokenType.FROM))


def _account(found: _Found) -> None:
    """Every name after FROM or JOIN must be known from the tree: if the parser lost one, a dependency would be missing."""
    selects = [False]
    for index, kind in enumerate(found.kinds):
        if kind not in _COUNTED:
            continue
        if kind == TokenType.L_PAREN:
            selects.append(False)
        elif kind == TokenType.R_PAREN:
            del selects[max(len(selects) - 1, 1) :]
        elif kind == TokenType.SELECT:
            selects[-1] = True
        elif kind == TokenType.JOIN or (selects[-1] and not _is_distinct_from(found.kinds, index)):
            _expect_known(index + 1, found)


def _is_distinct_from(kinds: Sequence[TokenType], index: int) -> bool:
    return index > 1 and kinds[index - 1] == TokenType.DISTINCT and kinds[index - 2] in (TokenType.IS, TokenType.NOT)


def _expect_known(index: int, found: _Found) -> None:
    if index >= len(found.tokens) or found.tokens[index].start in found.known:
        return
    end = _chain_end(found.tokens, index)
    is_call = end < len(found.tokens) and found.tokens[end].token_type == TokenType.L_PAREN
    if end > index and not is_call:
        found.problem(
            "sql-syntax", "This table name cannot be read", found.tokens[index].start, found.tokens[end - 1].end + 1, help=BACKTICKS
        )
