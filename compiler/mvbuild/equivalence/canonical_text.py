"""SQL -> the same without private names: CTEs inlined, inner aliases with canonical names; and whether two queries are then the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from sqlglot import Token, TokenType, exp

from mvbuild.dataclass import dataclass
from mvbuild.equivalence.inlined import FAILURES, Unreadable, inlined, parsed, start_of
from mvbuild.parse.fingerprint import folded

_MARK = "mvbuild__"
"""The prefix of names that stand for those of the user."""


def same_but_names(one: str, other: str) -> bool:
    """Whether two queries are equal word by word after CTEs are inlined, inner aliases get canonical names, and redundant parentheses are
    removed.

    Then literals are equal and at the same places. A printed plan does not show that: Spark prints '1' like 1. The plan must show that each
    name still means the same column.
    """
    try:
        mine, its = canonical_text(one), canonical_text(other)
        return folded(mine) == folded(its) or _same_but_parentheses(mine, its)
    except FAILURES:
        return False


def canonical_text(sql: str) -> str:
    if _MARK in sql:
        raise Unreadable
    text = inlined(sql)
    tokens, tree = parsed(text)
    return _Renaming(text=text, tokens=tokens, tree=tree).applied()


def _same_but_parentheses(one: str, other: str) -> bool:
    """The same words in the same order, and the same tree: then parentheses that differ are redundant."""
    (mine, tree), (its, other_tree) = parsed(one), parsed(other)
    if _words(mine, one) != _words(its, other):
        return False
    return _without_parentheses(tree) == _without_parentheses(other_tree)


def _words(tokens: Iterable[Token], sql: str) -> list[str]:
    brackets = (TokenType.L_PAREN, TokenType.R_PAREN)
    return [sql[t.start : t.end + 1] for t in tokens if t.token_type not in brackets]


def _without_parentheses(tree: exp.Expr) -> exp.Expr:
    # From the inside out, because replaced nodes are not visited again.
    for paren in reversed(list(tree.find_all(exp.Paren))):
        paren.replace(paren.this)
    return tree


@dataclass(slots=True, kw_only=True)
class _Renaming:
    """Gives canonical names to the aliases of a query without CTEs: to aliases of tables by their SELECT, to aliases of columns by name.

    Without the catalog, a column alias cannot be distinguished from a table's column of the same name, so a name is replaced everywhere:
    names that differ stay different.
    """

    text: str
    tokens: Sequence[Token]
    tree: exp.Expr
    edits: dict[int, str] = field(default_factory=dict)
    """Start of a word -> its replacement."""

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
        for alias, relation in sorted(declared, key=lambda pair: start_of(pair[0].this)):
            assert relation is not None
            key = id(relation.find_ancestor(exp.Select)), alias.this.name.lower()
            if key in names:
                raise Unreadable
            names[key] = f"{_MARK}t{len(names)}"
            self._name(alias.this, names[key])
        return names

    def _name(self, identifier: exp.Expr, new: str) -> None:
        """An alias, with its optional AS."""
        start = start_of(identifier)
        before = [t.token_type for t in self.tokens if t.end < start][-1:]
        self.edits[start] = new if before == [TokenType.ALIAS] else f"AS {new}"

    def _inner_names(self, outputs: set[int]) -> dict[str, str]:
        """Aliases of columns that are not names of the result -> canonical names, in order of appearance."""
        found: list[tuple[int, exp.Expr, bool]] = []
        for select in self.tree.find_all(exp.Select):
            if id(select) not in outputs:
                aliases = [p.args["alias"] for p in select.expressions if isinstance(p, exp.Alias)]
                found += [(start_of(i), i, True) for i in aliases if isinstance(i, exp.Identifier)]
        for alias in self.tree.find_all(exp.TableAlias):
            if not _gives_output(alias, outputs):
                found += [(start_of(i), i, False) for i in alias.columns if isinstance(i, exp.Identifier)]
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
                self.edits[start_of(parts[0])] = canonical
            named = parts[1:2] if canonical else parts[:1]
            for identifier in named:
                new = inner.get(identifier.name.lower())
                if new:
                    is_whole = identifier is column.this
                    self.edits[start_of(identifier)] = new + (_kept_name(column, outputs) if is_whole else "")
        for join in self.tree.find_all(exp.Join):
            for identifier in join.args.get("using") or ():
                if isinstance(identifier, exp.Identifier) and identifier.name.lower() in inner:
                    self.edits[start_of(identifier)] = inner[identifier.name.lower()]


def _qualifier(column: exp.Column, name: str, tables: dict[tuple[int, str], str]) -> str | None:
    scope = column.find_ancestor(exp.Select)
    while scope is not None:
        if (id(scope), name) in tables:
            return tables[id(scope), name]
        scope = scope.find_ancestor(exp.Select)
    return None


def _kept_name(column: exp.Column, outputs: set[int]) -> str:
    """A column of the result keeps the name that it got from an inner query."""
    is_output = id(column.parent) in outputs and column.arg_key == "expressions"
    return f" AS {column.this.sql(dialect='spark')}" if is_output else ""


def _outputs(tree: exp.Expr) -> set[int]:
    """The ids of the SELECTs that name the columns of the result: the outermost, and those below a star."""
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
    """The items of FROM and JOIN, in parentheses or not."""
    clauses = [select.args.get("from_"), *(select.args.get("joins") or ())]
    for clause in clauses:
        if isinstance(clause, (exp.From, exp.Join)):
            yield clause.this
            yield from (join.this for join in clause.this.args.get("joins") or ())


def _gives_output(alias: exp.TableAlias, outputs: set[int]) -> bool:
    select = alias.parent.find_ancestor(exp.Select) if alias.parent else None
    return isinstance(select, exp.Select) and id(select) in outputs and any(p.is_star for p in select.expressions)
