"""names in a query -> the columns of the tree that they mean, by lineage's rules of names.

In an expression as it was written, a column is a name, and a Placeholder is a column of the tree that is already known: where a subquery
or a star was replaced. `resolved` turns both into columns of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Relation, column
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.syntax import require, unsupported
from mvbuild.lineage import scopes as lineage
from mvbuild.lineage.expression_type import Types, type_of
from mvbuild.lineage.scopes import Meaning, Source, Tables, meaning, star
from mvbuild.lineage.types import Struct
from mvbuild.lineage.values import Attribute, Output, Value
from mvbuild.lineage.values import Relation as Columns


@dataclass(frozen=True, slots=True)
class Block:
    """A query that was turned into a tree: (name as the user knows it, name in the tree) of its columns."""

    relation: Relation
    columns: tuple[tuple[str, str], ...]


_WITH_STARS = (exp.Struct, exp.Array, exp.ConcatWs, exp.Anonymous)
"""Functions in whose arguments a star means every column. In `count(*)` it does not."""
_ANY = Value()
"""Types are those of the tree's columns: here only names matter."""


class TreeColumn(Attribute):
    """The identity of a column in FROM: the name of a column of the tree, or its value over several."""

    __slots__ = ("value",)

    def __init__(self, value: str | exp.Expr) -> None:
        self.value = value


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that can be used: those of FROM, of the query around, and of common table expressions."""

    tables: Tables = field(default_factory=Tables)
    outer: Tables | None = None
    ctes: Mapping[str, tuple[exp.Expr, Scope, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def below(self) -> Scope:
        """The scope of a query that sees nothing around it."""
        return Scope(ctes=self.ctes)

    def inside(self, around: Scope) -> Scope:
        """The scope of a subquery's own names, with those around it."""
        return replace(self, outer=around.tables)

    def meaning(self, names: Sequence[str]) -> Meaning:
        outer = lineage.Scope(tables=self.outer) if self.outer is not None else None
        return meaning(lineage.Scope(tables=self.tables, outer=outer), names)

    @property
    def column_names(self) -> frozenset[str]:
        """The names of the columns of FROM, in lower case."""
        return frozenset(c.key for table in self.tables.sources for c in table.relation.columns if c.key)


def with_ctes(tree: exp.Expr, scope: Scope) -> Scope:
    """The scope of a query, with its own common table expressions. In place of a recursive one is its clause, for `recursion`."""
    clause = tree.args.get("with_")
    if clause is None:
        return scope
    for cte in clause.expressions:
        names = tuple(c.name for c in cte.args["alias"].columns)
        body = cte.this
        if clause.args.get("recursive") and any(table.name.lower() == cte.alias.lower() for table in body.find_all(exp.Table)):
            body, names = exp.With(expressions=[cte.copy()], recursive=True), ()
        scope = replace(scope, ctes={**scope.ctes, cte.alias.lower(): (body, scope.below, names)})
    return scope


def source(alias: str, columns: Iterable[tuple[str, str]]) -> Tables:
    """A table of FROM. `columns`: (name, name in the tree)."""
    outputs = tuple(Output(name, _ANY, None, TreeColumn(unique)) for name, unique in columns)
    return Tables.of(Source(((alias,),) if alias else (), Columns(outputs)))


def aliased(node: exp.Expr, columns: Sequence[tuple[str, str]], name: str = "") -> Tables:
    """A table of FROM under the alias that it has there."""
    alias = node.args.get("alias")
    names = tuple(c.name for c in alias.columns) if alias else ()
    if names and len(names) != len(columns):
        raise unsupported(node)
    return source((node.alias or name).lower(), zip(names, (u for _, u in columns), strict=True) if names else columns)


# --- values -------------------------------------------------------------------------------------------------------------------------


def value_of(output: Output) -> exp.Expr:
    """The value of a column in FROM, over the columns of the tree."""
    assert isinstance(output.attribute, TreeColumn)
    value = output.attribute.value
    return column(value) if isinstance(value, str) else value.copy()


def resolved(expression: exp.Expr, scope: Scope) -> exp.Expr:
    """The expression over the columns of the tree. Raises Refused for a name that is not known, or that several columns have."""
    holder = exp.paren(expression.copy(), copy=False)
    _expand_stars(holder, scope)
    for found in list(holder.find_all(exp.Column, exp.Placeholder)):
        if isinstance(found, exp.Placeholder):
            found.replace(column(found.name))
        elif isinstance(found, exp.Column) and _is_parameter(found):
            found.replace(found.to_dot() if found.table else found.this)
        else:
            found.replace(placed(column_of(found, scope), found))
    return only_child(holder)


def _expand_stars(holder: exp.Expr, scope: Scope) -> None:
    """Stars among the arguments of a function, as in `struct(*)` and `hash(o.*)`. The fields of a struct have the names of the columns."""
    for star_ in list(holder.find_all(exp.Star)):
        node = star_.parent if isinstance(star_.parent, exp.Column) else star_
        call = node.parent
        if not isinstance(call, _WITH_STARS) or not any(one is node for one in call.expressions):
            continue
        columns = _starred(scope, node, {})
        made = [_named_field(name, value) if isinstance(call, exp.Struct) else value for name, value in columns]
        call.set("expressions", [other for one in call.expressions for other in (made if one is node else [one])])


def _named_field(name: str, value: exp.Expr) -> exp.Expr:
    return exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value)


def _is_parameter(node: exp.Column) -> bool:
    """Whether it is a parameter of a lambda function around it, or a field of one: Spark looks for these before columns and tables."""
    name, at = node.parts[0].name.lower(), node.parent
    while at is not None and not (isinstance(at, exp.Lambda) and name in {p.name.lower() for p in at.expressions}):
        at = at.parent
    return at is not None


def column_of(node: exp.Expr, scope: Scope) -> exp.Expr:
    """The value of a name; one with several parts may be that of a field of a struct."""
    names = [part.name for part in node.parts]  # type: ignore[attr-defined]
    found = scope.meaning(names)
    if len(found.candidates) != 1:
        raise Refused("unsupported-operator", f"column {node.sql('spark')} cannot be resolved", node)
    return field_of(value_of(found.candidates[0]), names[len(names) - found.fields :])


def refers_out(part: exp.Expr, scope: Scope) -> bool:
    """Whether it has a name of the query around. Raises Refused for a name before that one that neither query knows."""
    for found in part.find_all(exp.Column):
        column_of(found, scope)
        if scope.meaning([p.name for p in found.parts]).is_outer:
            return True
    return False


def selected_columns(select: exp.Select, scope: Scope, types: Types) -> list[tuple[str, exp.Expr]]:
    """(name, value as written) of the columns of SELECT, with stars expanded. `types`: of the columns of the tree."""
    found: list[tuple[str, exp.Expr]] = []
    for one in select.expressions:
        if isinstance(one, exp.Star) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star)):
            found.extend(_starred(scope, one, types))
        else:
            found.append((one.alias_or_name, one.unalias()))
    return found


def _starred(scope: Scope, node: exp.Expr, types: Types) -> list[tuple[str, exp.Expr]]:
    """The columns of `*`, `alias.*` or `* EXCEPT (...)`, or the fields of a struct. `node`: the star, or a column whose name is one."""
    written = node.this if isinstance(node, exp.Column) else node
    require(written, {"except_"}, "unsupported-operator")
    qualifier = tuple(node.parts[:-1]) if isinstance(node, exp.Column) else ()
    found = star(scope.tables, tuple(part.name for part in qualifier))
    if found is None and not written.args.get("except_"):
        names = zip(("this", "table", "db", "catalog"), reversed(qualifier), strict=False)
        return _fields(exp.Column(**{key: name.copy() for key, name in names}), scope, types)
    chosen = list(found.columns) if found is not None else []
    if not chosen:
        raise Refused("unsupported-operator", "the columns of a star are unknown", node)
    for excepted in written.args.get("except_") or ():
        left = [one for one in chosen if not _is(one, excepted, scope)]
        if len(left) != len(chosen) - 1:
            raise unsupported(excepted)
        chosen = left
    return [(one.name or "", as_written(value_of(one))) for one in chosen]


def _fields(node: exp.Column, scope: Scope, types: Types) -> list[tuple[str, exp.Expr]]:
    """The fields of a column with structs."""
    value = column_of(node, scope)
    type_ = type_of(value, types)
    if not isinstance(type_, Struct):
        raise Refused("unsupported-operator", "the columns of a star are unknown", node)
    return [(name, as_written(field_of(value.copy(), [name]))) for name, _ in type_.fields]


def _is(one: Output, excepted: exp.Expr, scope: Scope) -> bool:
    names = [part.name for part in excepted.parts] if isinstance(excepted, exp.Column) else [excepted.name]
    if len(names) == 1:
        return one.key == names[0].lower()
    found = scope.meaning(names)
    return not found.fields and [c.attribute for c in found.candidates] == [one.attribute]


def field_of(value: exp.Expr, path: Sequence[str]) -> exp.Expr:
    for part in path:
        value = exp.Dot(this=value, expression=exp.to_identifier(part, quoted=True))
    return value


# --- expressions as written ---------------------------------------------------------------------------------------------------------


def known(name: str) -> exp.Expr:
    """A column of the tree in an expression as written."""
    return exp.Placeholder(this=name)


def as_written(value: exp.Expr) -> exp.Expr:
    """A value over columns of the tree, for an expression as written."""
    return value.transform(lambda node: known(node.name) if isinstance(node, exp.Column) else node)


def placed(value: exp.Expr, node: exp.Expr) -> exp.Expr:
    """The expression with the position of the text that it replaces."""
    places = [(n.meta["start"], n.meta["end"]) for n in node.walk() if "start" in n.meta and "end" in n.meta]
    if places:
        value.meta.update(start=min(start for start, _ in places), end=max(end for _, end in places))
    return value


def replaced(expression: exp.Expr, name: str, value: exp.Expr) -> exp.Expr:
    holder = exp.paren(expression, copy=False)
    for found in list(holder.find_all(exp.Column)):
        if found.name == name:
            found.replace(value.copy())
    return only_child(holder)


def only_child(holder: exp.Expr) -> exp.Expr:
    """The content of a parenthesis that was only added so that it can be replaced."""
    found: exp.Expr = holder.this
    return found
