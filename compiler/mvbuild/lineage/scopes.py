"""FROM items + a dotted name -> the columns that the name means, by Spark's rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from mvbuild.dataclass import dataclass
from mvbuild.lineage.values import NOTHING, Base, Named, Output, Relation, Value, joined


@dataclass(frozen=True, slots=True)
class Source:
    """A relation of FROM, with the name that qualifies its columns."""

    spellings: tuple[tuple[str, ...], ...]
    """In lower case: the alias alone or, without an alias, the full name of the table; any suffix of it matches."""
    relation: Relation

    def answers(self, qualifier: tuple[str, ...]) -> bool:
        return any(spelling[-len(qualifier) :] == qualifier for spelling in self.spellings)


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything in FROM: what a qualifier can name, and what a star expands to."""

    sources: tuple[Source, ...] = ()
    star: tuple[Output, ...] = ()
    """The columns of `*` in order, with those of USING once."""
    rest: tuple[int | None, ...] = ()
    rows: frozenset[Base] = NOTHING
    covered: tuple[Output, ...] = ()
    """Columns that USING took out of `*`. `t.*` begins with them."""

    @staticmethod
    def of(source: Source) -> Tables:
        relation = source.relation
        return Tables((source,), relation.columns, relation.rest, relation.rows)

    def together(self, other: Tables) -> Tables:
        rows = self.rows | other.rows
        rest, covered = (*self.rest, *other.rest), (*self.covered, *other.covered)
        return Tables((*self.sources, *other.sources), (*self.star, *other.star), rest, rows, covered)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that can be used at a place in a query."""

    tables: Tables = field(default_factory=Tables)
    outer: Scope | None = None
    ctes: Mapping[str, Relation] = field(default_factory=dict)
    first: Named = field(default_factory=Named)
    """Names that take precedence over FROM: those of the SELECT list, in HAVING, QUALIFY and ORDER BY."""
    last: Named = field(default_factory=Named)
    """Names that are tried after FROM: earlier aliases of the SELECT list."""
    parameters: frozenset[str] = frozenset()
    """The parameters of enclosing lambda functions."""
    windows: Mapping[str, Value] = field(default_factory=dict)

    @property
    def levels(self) -> Iterator[Scope]:
        """The scopes, from the inside out."""
        level: Scope | None = self
        while level is not None:
            yield level
            level = level.outer

    def inner(self, tables: Tables) -> Scope:
        return Scope(tables=tables, outer=self.outer, ctes=self.ctes)

    def below(self) -> Scope:
        """The scope of a subquery in an expression."""
        return Scope(outer=self, ctes=self.ctes)

    def after(self, aliases: Named) -> Scope:
        """The scope of an item in the SELECT list, with the aliases before it."""
        return Scope(self.tables, self.outer, self.ctes, Named(), aliases, self.parameters, self.windows)

    def with_parameters(self, names: Iterable[str]) -> Scope:
        return replace(self, parameters=self.parameters.union(name.lower() for name in names))


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a dotted name. Without `candidates` and `value`, there is no such column."""

    candidates: tuple[Output, ...] = ()
    fields: int = 0
    """How many parts at the end of the name are fields of the column."""
    value: Value | None = None
    """The value, if the column is not in any list of columns."""
    is_alias: bool = False
    is_outer: bool = False
    """Whether the name belongs to an outer query."""

    @property
    def is_ambiguous(self) -> bool:
        return len({id(c.attribute) for c in self.candidates}) > 1 and not self.is_alias


NOWHERE = Meaning()


def meaning(scope: Scope, names: Sequence[str]) -> Meaning:
    """The meaning of a name. `names`: as the query spells them. The innermost scope that knows the name wins."""
    parts = tuple(name.lower() for name in names)
    for level in scope.levels:
        found = _of_level(level, parts, names)
        if found.candidates:
            return found if level is scope else replace(found, is_outer=True)
        if found.value is not None:
            if not found.value.sure or _elsewhere(level, parts):
                return Meaning(value=Value(sure=False))
            return found
    return Meaning(value=Value(sure=False)) if parts[0] in _OF_TIME_WINDOWS or _may_be_unnamed(scope, parts) else NOWHERE


_OF_TIME_WINDOWS = ("window", "session_window")
"""Columns that `GROUP BY window(...)` adds."""


def _may_be_unnamed(scope: Scope, parts: tuple[str, ...]) -> bool:
    """Whether it may be the name of a column that only Spark can name, as `CAST(a AS INT)` in a subquery is called `a`."""
    for level in scope.levels:
        own = [s.relation.columns for s in level.tables.sources if s.answers(parts[:1])] if len(parts) > 1 else []
        visible = own or [level.tables.star]
        if any(column.name is None for columns in visible for column in columns):
            return True
    return False


def _elsewhere(level: Scope, parts: tuple[str, ...]) -> bool:
    """Whether an outer scope knows a name that a relation with unknown columns may have too."""
    if level.last.of(parts[0]):
        return True
    return level.outer is not None and any(_known(outer.tables, parts, True)[0] for outer in level.outer.levels)


def _of_level(scope: Scope, parts: tuple[str, ...], names: Sequence[str]) -> Meaning:
    is_qualified = len(parts) > 1 and any(s.answers(parts[:1]) for s in scope.tables.sources)
    if scope.first and not is_qualified:
        wins = scope.first.of(parts[0])
        if wins:
            return Meaning(wins, len(parts) - 1, is_alias=True)
    known, fields = _known(scope.tables, parts, False)
    if known:
        return Meaning(known, fields)
    beyond = _beyond(scope.tables, parts, names)
    if beyond is not None:
        return Meaning(value=beyond)
    earlier = scope.last.of(parts[0])
    return Meaning(earlier, len(parts) - 1, is_alias=True) if earlier else NOWHERE


def _known(tables: Tables, parts: tuple[str, ...], plain: bool) -> tuple[tuple[Output, ...], int]:
    """Candidates among the known columns: the longest qualifier first, then the name alone."""
    for length in range(len(parts) - 1, 0, -1):
        matching = [s.relation for s in tables.sources if s.answers(parts[:length])]
        found = tuple(c for relation in matching for c in relation.columns if c.key == parts[length])
        if found:
            return found, len(parts) - length - 1
        if matching and any(not r.is_closed for r in matching) and not plain:
            return (), 0
    return tuple(c for c in tables.star if c.key == parts[0]), len(parts) - 1


def _beyond(tables: Tables, parts: tuple[str, ...], names: Sequence[str]) -> Value | None:
    """The value of a name that may belong to a relation with unknown columns; None if there is no such relation."""
    for length in range(len(parts) - 1, 0, -1):
        matching = [s.relation for s in tables.sources if s.answers(parts[:length])]
        if any(parts[length] in r.hidden for r in matching):
            return Value()
        rest = {read for r in matching for read in r.rest}
        if rest:
            # Fields follow the column's name, unless the qualifier is a struct after all.
            return _from_rest(rest, names[length])
    if any(parts[0] in s.relation.hidden for s in tables.sources):
        return Value()
    return _from_rest(set(tables.rest), names[0]) if tables.rest else None


def _from_rest(rest: set[int | None], name: str) -> Value:
    read = next(iter(rest))
    return Value(bases=frozenset((Base(read, name),))) if len(rest) == 1 and read is not None else Value(sure=False)


def star(tables: Tables, qualifier: tuple[str, ...]) -> Relation | None:
    """The columns of `*` or `qualifier.*`; None if no relation has that name."""
    if not qualifier:
        return Relation(tables.star, tables.rest)
    parts = tuple(name.lower() for name in qualifier)
    matching = [s.relation for s in tables.sources if s.answers(parts)]
    if not matching:
        return None
    columns = tuple(c for r in matching for c in r.columns)
    own = {id(c.attribute) for c in columns}
    ordered = tuple(c for c in (*tables.covered, *tables.star) if id(c.attribute) in own)
    # Where columns are unknown, `*` may not have all that are known.
    return Relation(ordered if len(ordered) == len(columns) else columns, tuple(read for r in matching for read in r.rest))


def known_names(scope: Scope) -> list[str]:
    """The names that can be used at a place, for messages."""
    outputs = (*scope.first, *scope.tables.star, *scope.last)
    return [c.name for c in outputs if c.name is not None]


def all_values(tables: Tables) -> Value:
    """Every column of FROM, for functions that accept a star."""
    found = joined(c.value for c in tables.star)
    return Value(None, found.bases, found.sure and not tables.rest)
