"""names in a query -> the columns that they mean: Scope, and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mvbuild.incremental.algebra import Relation, column
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.syntax import unsupported


@dataclass(frozen=True, slots=True)
class Block:
    """A query that was turned into a tree: (name as the user knows it, name in the tree) of its columns."""

    relation: Relation
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A table of FROM: its name and its columns."""

    alias: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of `*`: of which table, under which name, and its value."""

    alias: str
    name: str
    value: exp.Expr


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that can be used: the tables of FROM, common table expressions, and the scope of the query around."""

    sources: tuple[Source, ...] = ()
    ctes: Mapping[str, tuple[exp.Expr, Scope, tuple[str, ...]]] = field(default_factory=dict)
    outer: Scope | None = None
    merged: Mapping[str, exp.Expr] = field(default_factory=dict)
    """Columns of USING: lower-case name -> the common value of both sides."""
    shown: tuple[Shown, ...] | None = None
    """What `*` stands for, where that is not the columns of all sources in order."""
    hidden: tuple[Shown, ...] = ()
    """Columns that USING took out of `*`, and that `alias.*` still has."""

    @property
    def star(self) -> tuple[Shown, ...]:
        if self.shown is not None:
            return self.shown
        return tuple(Shown(source.alias, name, known_column(unique)) for source in self.sources for name, unique in source.columns)

    def with_sources(self, more: tuple[Source, ...]) -> Scope:
        shown = (*self.star, *Scope(sources=more).star) if self.shown is not None else None
        return replace(self, sources=(*self.sources, *more), shown=shown)


def aliased(node: exp.Expr, columns: tuple[tuple[str, str], ...], name: str = "") -> Source:
    alias = node.args.get("alias")
    names = tuple(c.name for c in alias.columns) if alias else ()
    if names and len(names) != len(columns):
        raise unsupported(node)
    named = tuple(zip(names, (unique for _, unique in columns), strict=True)) if names else columns
    return Source((node.alias or name).lower(), named)


def one_column(columns: Sequence[tuple[str, str]], name: str, node: exp.Expr) -> exp.Expr:
    found = [unique for known, unique in columns if known.lower() == name]
    if len(found) != 1:
        raise Refused("unsupported-operator", f"column {node.sql('spark')} cannot be resolved", node)
    return known_column(found[0])


def field_of(value: exp.Expr, path: list[str]) -> exp.Expr:
    for part in path:
        value = exp.Dot(this=value, expression=exp.to_identifier(part, quoted=True))
    return value


def known_column(name: str) -> exp.Expr:
    found = column(name)
    found.meta["known"] = True
    return found


def placed(value: exp.Expr, node: exp.Expr) -> exp.Expr:
    """The expression with the position of the text that it replaces."""
    places = [(n.meta["start"], n.meta["end"]) for n in node.walk() if "start" in n.meta and "end" in n.meta]
    if places:
        value.meta.update(start=min(start for start, _ in places), end=max(end for _, end in places))
    return value


def marked_known(value: exp.Expr) -> exp.Expr:
    for found in value.find_all(exp.Column):
        found.meta["known"] = True
    return value


def is_known(node: exp.Expr) -> bool:
    return bool(node.meta.get("known"))


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
