"""old SQL + new SQL of one definition -> Change: what was changed, said in a clause; and whether only names inside were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from mvbuild.parse.dialect import parse, tokenize
from mvbuild.parse.fingerprint import fingerprint, folded

Kind = Literal["formatting", "names", "column-added", "filter", "join", "expression", "column-removed", "column-changed", "other"]

_GRAVEST_FIRST: tuple[Kind, ...] = ("column-removed", "column-changed", "join", "filter", "expression", "other", "column-added", "names")
_MARK = "mvbuild__"
"""Begins the names that stand for the user's own."""
_LONGEST = 200_000
"""CTEs that read each other twice grow by powers of two when they are inlined."""
_FILTERS = ("where", "having", "qualify", "limit", "offset")
_JOINS = ("from_", "joins", "laterals")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`message` follows "its definition was changed: "."""

    kind: Kind
    message: str


class _Unreadable(Exception):
    """A query that is not understood well enough to exchange its names."""


def classify(old_sql: str, new_sql: str) -> Change:
    """What was changed from one definition to the next; never raises. Of several changes `kind` is the gravest.

    `names` is said of the text alone: a name of the new query may be that of a column of a table too, so Spark has to confirm it.
    """
    if fingerprint(old_sql) == fingerprint(new_sql):
        return Change(kind="formatting", message="only formatting and comments")
    if folded(old_sql) == folded(new_sql):
        return Change(kind="names", message="only the case of names")
    if same_but_names(old_sql, new_sql):
        return Change(kind="names", message="only names or the arrangement of CTEs and aliases inside")
    try:
        found = list(_differences(_parsed(old_sql)[1], _parsed(new_sql)[1]))
        # Under canonical names other names are no differences; but something new in front moves all that follow.
        canonical = list(_differences(_parsed(_canonical(old_sql))[1], _parsed(_canonical(new_sql))[1])) if len(found) > 1 else []
        found = canonical if 0 < len(canonical) < len(found) else found
    except _FAILURES:
        found = []
    found = found or [Change(kind="other", message="the query as a whole")]
    return Change(kind=min((c.kind for c in found), key=_GRAVEST_FIRST.index), message=", ".join(c.message for c in found))


def same_but_names(one: str, other: str) -> bool:
    """Whether two queries are the same word by word after CTEs are inlined, aliases inside get canonical names, and idle parentheses go.

    Literals are then the same at the same places, which no printed plan could tell: Spark prints '1' as it prints 1. That each name still
    means the same column is left to the plan.
    """
    try:
        mine, its = _canonical(one), _canonical(other)
        return folded(mine) == folded(its) or _same_but_parentheses(mine, its)
    except _FAILURES:
        return False


_FAILURES = (_Unreadable, SqlglotError, RecursionError)


def _parsed(sql: str) -> tuple[list[Token], exp.Expr]:
    tokens = tokenize(sql)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    trees = parse(tokens, sql)
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise _Unreadable
    return tokens, trees[0]


def _start(identifier: exp.Expr) -> int:
    start = identifier.meta.get("start")
    if start is None:
        # Made by the parser: a step of a |> query.
        raise _Unreadable
    return int(start)


# Canonical text


def _canonical(sql: str) -> str:
    if _MARK in sql:
        raise _Unreadable
    inlined = _inlined(sql)
    tokens, tree = _parsed(inlined)
    return _Renaming(text=inlined, tokens=tokens, tree=tree).applied()


def _same_but_parentheses(one: str, other: str) -> bool:
    """The same words in the same order, and the same tree: then parentheses that differ were idle."""
    (mine, tree), (its, other_tree) = _parsed(one), _parsed(other)
    if _words(mine, one) != _words(its, other):
        return False
    return _without_parentheses(tree) == _without_parentheses(other_tree)


def _words(tokens: Iterable[Token], sql: str) -> list[str]:
    brackets = (TokenType.L_PAREN, TokenType.R_PAREN)
    return [sql[t.start : t.end + 1] for t in tokens if t.token_type not in brackets]


def _without_parentheses(tree: exp.Expr) -> exp.Expr:
    # From the inside out: what is replaced is not looked into again.
    for paren in reversed(list(tree.find_all(exp.Paren))):
        paren.replace(paren.this)
    return tree


# CTEs


def _inlined(sql: str) -> str:
    """Every reference to a CTE becomes a subquery, in the text itself."""
    tokens, tree = _parsed(sql)
    if not any(True for _ in tree.find_all(exp.With)):
        return sql
    references = {
        _start(table.this): not table.alias
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and not table.args.get("db") and not table.args.get("version")
    }
    inliner = _Inliner(sql=sql, tokens=tokens, references=references)
    text = inliner.block(0, len(tokens), {})
    if inliner.found != sum(1 for _ in tree.find_all(exp.CTE)):
        raise _Unreadable
    return text


@dataclass(slots=True, kw_only=True)
class _Inliner:
    """Walks the tokens of a query. `references`: start of a name that may be a CTE's -> whether it lacks an alias."""

    sql: str
    tokens: Sequence[Token]
    references: dict[int, bool]
    found: int = 0

    def block(self, index: int, end: int, known: dict[str, str]) -> str:
        """The text of the tokens; a CTE is known to what follows it up to the bracket that closes."""
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
                raise _Unreadable
        return "".join(out)

    def _begins_ctes(self, index: int) -> bool:
        # WITH (options) of a table, WITH ROLLUP, WITH ORDINALITY are other words.
        following = [t.token_type for t in self.tokens[index + 2 : index + 3]]
        return following in ([TokenType.ALIAS], [TokenType.L_PAREN])

    def _ctes(self, index: int, known: dict[str, str]) -> tuple[int, dict[str, str]]:
        while True:
            name = self.tokens[index].text.lower()
            index += 1
            if self.tokens[index].token_type == TokenType.ALIAS:
                index += 1
            if index >= len(self.tokens) or self.tokens[index].token_type != TokenType.L_PAREN:
                raise _Unreadable
            close = self._closing(index)
            following = self.tokens[close + 1 : close + 2]
            if not following or following[0].token_type == TokenType.ALIAS or self._is_column_list(index, close):
                raise _Unreadable
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
        raise _Unreadable

    def _gap(self, index: int) -> str:
        """What stands before a token, a comment reduced to a blank: inlined text must not end in one."""
        begin = self.tokens[index - 1].end + 1 if index else 0
        return " " if self.sql[begin : self.tokens[index].start] else ""

    def _raw(self, index: int) -> str:
        token = self.tokens[index]
        # `10L` is three tokens over the same characters.
        if index and self.tokens[index - 1].end >= token.start:
            return ""
        return self.sql[token.start : token.end + 1]


# Aliases


@dataclass(slots=True, kw_only=True)
class _Renaming:
    """Gives canonical names to the aliases of a query without CTEs: those of tables each in its SELECT, those of columns each by name.

    A column alias cannot be told from a table's column of the same name without the catalog, so one name is exchanged everywhere: names
    that differ stay different.
    """

    text: str
    tokens: Sequence[Token]
    tree: exp.Expr
    edits: dict[int, str] = field(default_factory=dict)
    """Start of a word -> what it becomes."""

    def applied(self) -> str:
        tables = self._tables()
        outputs = _outputs(self.tree)
        inner = self._inner_names(outputs)
        self._columns(inner, tables, outputs)
        out, at = [], 0
        ends = {t.start: t.end + 1 for t in self.tokens}
        for start in sorted(self.edits):
            out += [self.text[at:start], self.edits[start]]
            at = ends[start]
        return "".join([*out, self.text[at:]])

    def _tables(self) -> dict[tuple[int, str], str]:
        """(id of a SELECT, alias) -> canonical name."""
        declared = [(a, a.parent) for a in self.tree.find_all(exp.TableAlias) if isinstance(a.this, exp.Identifier)]
        names: dict[tuple[int, str], str] = {}
        for alias, relation in sorted(declared, key=lambda pair: _start(pair[0].this)):
            assert relation is not None
            key = id(relation.find_ancestor(exp.Select)), alias.this.name.lower()
            if key in names:
                raise _Unreadable
            names[key] = f"{_MARK}t{len(names)}"
            self._name(alias.this, names[key])
        return names

    def _name(self, identifier: exp.Expr, new: str) -> None:
        """An alias, with the AS that it may do without."""
        start = _start(identifier)
        before = [t.token_type for t in self.tokens if t.end < start][-1:]
        self.edits[start] = new if before == [TokenType.ALIAS] else f"AS {new}"

    def _inner_names(self, outputs: set[int]) -> dict[str, str]:
        """Aliases of columns that are no names of the result -> canonical names, in order of appearance."""
        found: list[tuple[int, exp.Expr, bool]] = []
        for select in self.tree.find_all(exp.Select):
            if id(select) not in outputs:
                aliases = [p.args["alias"] for p in select.expressions if isinstance(p, exp.Alias)]
                found += [(_start(i), i, True) for i in aliases if isinstance(i, exp.Identifier)]
        for alias in self.tree.find_all(exp.TableAlias):
            if not _gives_output(alias, outputs):
                found += [(_start(i), i, False) for i in alias.columns if isinstance(i, exp.Identifier)]
        names: dict[str, str] = {}
        for start, identifier, is_alias in sorted(found, key=lambda item: item[0]):
            new = names.setdefault(identifier.name.lower(), f"{_MARK}c{len(names)}")
            if is_alias:
                self._name(identifier, new)
            else:
                self.edits[start] = new
        return names

    def _columns(self, inner: dict[str, str], tables: dict[tuple[int, str], str], outputs: set[int]) -> None:
        for column in self.tree.find_all(exp.Column):
            parts = [p for p in column.parts if isinstance(p, exp.Identifier)]
            canonical = _qualifier(column, parts[0].name.lower(), tables) if parts and len(column.parts) > 1 else None
            if canonical:
                self.edits[_start(parts[0])] = canonical
            named = parts[1:2] if canonical else parts[:1]
            for identifier in named:
                new = inner.get(identifier.name.lower())
                if new:
                    is_whole = identifier is column.this
                    self.edits[_start(identifier)] = new + (_kept_name(column, outputs) if is_whole else "")
        for join in self.tree.find_all(exp.Join):
            for identifier in join.args.get("using") or ():
                if isinstance(identifier, exp.Identifier) and identifier.name.lower() in inner:
                    self.edits[_start(identifier)] = inner[identifier.name.lower()]


def _qualifier(column: exp.Column, name: str, tables: dict[tuple[int, str], str]) -> str | None:
    scope = column.find_ancestor(exp.Select)
    while scope is not None:
        if (id(scope), name) in tables:
            return tables[id(scope), name]
        scope = scope.find_ancestor(exp.Select)
    return None


def _kept_name(column: exp.Column, outputs: set[int]) -> str:
    """A column of the result keeps the name that it had from inside."""
    is_output = id(column.parent) in outputs and column.arg_key == "expressions"
    return f" AS {column.this.sql(dialect='spark')}" if is_output else ""


def _outputs(tree: exp.Expr) -> set[int]:
    """ids of the SELECTs that give the result its column names: the outermost, and those below a star."""
    found: set[int] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Subquery):
            waiting.append(node.this)
        elif isinstance(node, exp.SetOperation):
            waiting += [node.left, node.right]
        elif isinstance(node, exp.Select):
            found.add(id(node))
            if any(p.is_star for p in node.expressions):
                waiting += [n for n in _sources(node) if isinstance(n, exp.Subquery)]
    return found


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    """What stands in FROM and JOIN, in parentheses or not."""
    clauses = [select.args.get("from_"), *(select.args.get("joins") or ())]
    for clause in clauses:
        if isinstance(clause, (exp.From, exp.Join)):
            yield clause.this
            yield from (join.this for join in clause.this.args.get("joins") or ())


def _gives_output(alias: exp.TableAlias, outputs: set[int]) -> bool:
    select = alias.parent.find_ancestor(exp.Select) if alias.parent else None
    return isinstance(select, exp.Select) and id(select) in outputs and any(p.is_star for p in select.expressions)


# What differs


def _differences(old: exp.Expr, new: exp.Expr) -> Iterator[Change]:
    """By clauses; trees are copies that lose what has been compared."""
    old, new = old.copy(), new.copy()
    columns = list(_column_changes(_output_select(old), _output_select(new)))
    yield from columns
    joined = _taken(old, _JOINS, _tables_of), _taken(new, _JOINS, _tables_of)
    filters = _taken(old, _FILTERS, _sql), _taken(new, _FILTERS, _sql)
    if joined[0] != joined[1]:
        yield Change(kind="join", message=_join_message(old, new, joined))
    if filters[0] != filters[1]:
        clauses = sorted({text.split()[0].upper() for text in (filters[0] - filters[1]) + (filters[1] - filters[0])})
        yield Change(kind="filter", message=f"{_and(clauses)} {'was' if len(clauses) == 1 else 'were'} changed")
    yield from _rest(old, new, bool(columns))


def _rest(old: exp.Expr, new: exp.Expr, columns_differ: bool) -> Iterator[Change]:
    """What is left of two queries without tables, conditions, and the columns of the result."""
    for tree in (old, new):
        _output_select(tree).set("expressions", [])
    mine, its = _selects(old), _selects(new)
    if mine == its:
        return
    if [s.args.get("group") for s in old.find_all(exp.Select)] != [s.args.get("group") for s in new.find_all(exp.Select)]:
        yield Change(kind="expression", message="GROUP BY was changed")
    elif len(mine) == len(its):
        yield Change(kind="expression", message="expressions inside were changed")
    elif not columns_differ:
        yield Change(kind="other", message="its subqueries were arranged anew")


def _selects(tree: exp.Expr) -> list[str]:
    return sorted(_own_sql(s) for s in tree.find_all(exp.Select))


def _own_sql(select: exp.Select) -> str:
    kept = {k: v for k, v in select.args.items() if k not in ("with_", *_JOINS, *_FILTERS) and v}
    return repr(sorted((k, [_sql(e) for e in (v if isinstance(v, list) else [v])]) for k, v in kept.items()))


def _taken(tree: exp.Expr, clauses: Sequence[str], shown: Callable[[exp.Expr], str]) -> Counter[str]:
    """The clauses of these kinds, each as text."""
    found = (select.args.get(clause) for select in tree.find_all(exp.Query) for clause in clauses)
    nodes = (node for value in found for node in (value if isinstance(value, list) else [value]) if isinstance(node, exp.Expr))
    return Counter(text for node in nodes if (text := shown(node)))


def _tables_of(clause: exp.Expr) -> str:
    """A FROM or JOIN with its tables and conditions; a subquery or CTE is compared by its own clauses."""
    copy = clause.copy()
    relation = copy.this
    if isinstance(relation, exp.Subquery):
        copy.set("this", exp.to_identifier("subquery"))
    return _sql(copy)


def _join_message(old: exp.Expr, new: exp.Expr, joined: tuple[Counter[str], Counter[str]]) -> str:
    mine, its = _table_names(old), _table_names(new)
    parts = [f"'{name}' is read now" for name in sorted(its - mine)] + [f"'{name}' is not read any more" for name in sorted(mine - its)]
    return _and(parts) if parts else "a join was changed" if _joins(joined[0]) or _joins(joined[1]) else "FROM was changed"


def _table_names(tree: exp.Expr) -> set[str]:
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names = (".".join(p.name for p in table.parts) for table in tree.find_all(exp.Table))
    return {name for name in names if name.lower() not in ctes}


def _joins(clauses: Counter[str]) -> bool:
    return any("JOIN" in text for text in clauses)


def _sql(node: object) -> str:
    return node.sql(dialect="spark", comments=False) if isinstance(node, exp.Expr) else repr(node)


# Columns of the result


def _output_select(tree: exp.Expr) -> exp.Expr:
    """The SELECT whose columns are the result's: through parentheses, set operations, and SELECT * FROM one query."""
    node, seen = tree, 0
    while seen < 100:
        seen += 1
        if isinstance(node, (exp.Subquery, exp.SetOperation)):
            node = node.this
        elif isinstance(node, exp.Select) and (below := _only_source(node, tree)) is not None:
            node = below
        else:
            break
    return node


def _only_source(select: exp.Select, tree: exp.Expr) -> exp.Expr | None:
    star = select.expressions[0] if len(select.expressions) == 1 else None
    from_ = select.args.get("from_")
    if not isinstance(star, exp.Star) or star.args.get("except_") or star.args.get("replace") or star.args.get("rename"):
        return None
    if select.args.get("joins") or select.args.get("laterals") or not isinstance(from_, exp.From):
        return None
    if isinstance(from_.this, exp.Subquery):
        return cast(exp.Expr, from_.this.this)
    name = from_.this.name.lower() if isinstance(from_.this, exp.Table) and not from_.this.args.get("db") else None
    return next((cte.this for cte in tree.find_all(exp.CTE) if cte.alias.lower() == name), None)


def _column_changes(old: exp.Expr, new: exp.Expr) -> Iterator[Change]:
    mine, its = _columns_of(old), _columns_of(new)
    if mine is None or its is None:
        return
    names = {name.lower(): name for name in its}
    removed = [name for name in mine if name.lower() not in names]
    known = {name.lower() for name in mine}
    added = [name for name in its if name.lower() not in known]
    changed = [name for name in mine if name.lower() in names and mine[name] != its[names[name.lower()]]]
    if removed:
        yield Change(kind="column-removed", message=f"{_named(removed)} removed")
    if changed:
        yield Change(kind="column-changed", message=f"{_named(changed)} changed")
    kept = [name for name in mine if name.lower() in names]
    if added:
        is_end = list(its)[: len(kept)] == [names[name.lower()] for name in kept]
        yield Change(kind="column-added" if is_end else "other", message=f"{_named(added)} added{' at the end' if is_end else ''}")
    elif [name.lower() for name in kept] != [name.lower() for name in its]:
        yield Change(kind="other", message="the order of its columns")
    elif not changed and [names[name.lower()] for name in kept] != kept:
        yield Change(kind="other", message="the case of its columns' names")


def _columns_of(select: exp.Expr) -> dict[str, str] | None:
    """Name -> expression of each column; None where they cannot be told, or two have one name."""
    if not isinstance(select, exp.Select) or any(p.is_star for p in select.expressions):
        return None
    columns = {p.alias_or_name or _sql(p): _sql(p.unalias()) for p in select.expressions}
    return columns if len({name.lower() for name in columns}) == len(select.expressions) else None


def _named(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return f"column {quoted[0]} was" if len(names) == 1 else f"columns {_and(quoted)} were"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
