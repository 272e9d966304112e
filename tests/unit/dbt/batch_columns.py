"""Queries of Spark -> Leaf: the columns of the tables that they read, where each column of a query comes from, and its type by its use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from mvbuild.parse import placeholder

THIS = "this"
DOMAINS = ("TIMESTAMP", "DATE", "BOOLEAN", "VARCHAR", "DOUBLE", "BIGINT")
"""Types in the order in which one wins over another."""
_TIMES = (exp.TimestampTrunc, exp.DateTrunc, exp.Date, exp.TsOrDsToDate, exp.DateAdd, exp.DateSub, exp.TsOrDsAdd, exp.DateDiff, exp.Extract)
_TIME_PARTS = (exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.DayOfWeek, exp.DayOfMonth, exp.Quarter, exp.Week, exp.LastDay)
_TEXTS = (exp.Lower, exp.Upper, exp.Concat, exp.DPipe, exp.Substring, exp.Like, exp.ILike, exp.RegexpLike, exp.Trim, exp.Length, exp.Split)
_NUMBERS = (
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.Neg,
    exp.Abs,
    exp.Round,
    exp.Pow,
    exp.Sum,
    exp.Avg,
    exp.Sqrt,
    exp.Ln,
    exp.Log,
    exp.Floor,
    exp.Ceil,
)
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Between, exp.In)
_PASSED = (exp.Paren, exp.Coalesce, exp.Max, exp.Min, exp.If, exp.Case, exp.First, exp.Last, exp.AnyValue)
_NAMES = (
    (re.compile(r"(^|_)(ts|at|minute|hour|datetime)$|time|(^|_)ts_|loaded|updated|created|seen"), "TIMESTAMP"),
    (re.compile(r"(^|_)(day|date|dt|month|week)($|_)"), "DATE"),
    (re.compile(r"^(is|has)_"), "BOOLEAN"),
    (re.compile(r"^(id|n|v|x|value|number|parent|other)$|_(id|index|number|n)$|decimals|block_number"), "BIGINT"),
    (re.compile(r"amount|price|count|total|quantity|qty|(^|_)(usd|raw|fee|gas)($|_)"), "DOUBLE"),
)


@dataclass(frozen=True, order=True)
class Leaf:
    """A column of a table, or a field of a struct in one: ("payload", "ts"). `computed`: what was asked for is more than its value."""

    table: str
    path: tuple[str, ...]
    computed: bool = field(default=False, compare=False)


@dataclass
class Columns:
    """What the queries read. `same`: leaves that are compared with each other have the same representative."""

    leaves: dict[Leaf, None] = field(default_factory=dict)
    same: dict[Leaf, Leaf] = field(default_factory=dict)
    joined: set[Leaf] = field(default_factory=set)
    types: dict[Leaf, set[str]] = field(default_factory=dict)
    literals: dict[Leaf, dict[str, None]] = field(default_factory=dict)
    passive: set[Leaf] = field(default_factory=set)
    """Those that are only in projections."""

    def of(self, leaf: Leaf) -> Leaf:
        while self.same.get(leaf, leaf) != leaf:
            leaf = self.same[leaf]
        return leaf

    def type_of(self, leaf: Leaf) -> str:
        members = [other for other in self.leaves if self.of(other) == self.of(leaf)]
        hints = {hint for member in members for hint in self.types.get(member, ())}
        found = next((domain for domain in DOMAINS if domain in hints), None)
        named = next((kind for pattern, kind in _NAMES if pattern.search(leaf.path[-1])), None)
        if found == "TIMESTAMP" and named == "DATE":
            return "DATE"
        return found or next((k for m in members for p, k in _NAMES if p.search(m.path[-1])), "VARCHAR")

    def values_of(self, leaf: Leaf) -> list[str]:
        return [text for other in self.leaves if self.of(other) == self.of(leaf) for text in self.literals.get(other, ())]


def table_name(table: exp.Table, model: str) -> str:
    """`source_raw_events`, or `this` for dbt's own table."""
    decoded = placeholder.decode(table.name)
    if decoded == ("ref", (model,)):
        return THIS
    parts = [decoded[0], *decoded[1]] if decoded else [part.name for part in table.parts]
    return re.sub(r"\W", "_", "_".join(parts)).lower()


class Reader:
    """One query, and where its columns come from."""

    def __init__(self, tree: exp.Expr, model: str) -> None:
        self.model = model
        self.scopes = traverse_scope(tree)
        self.root = self.scopes[-1]

    def tables(self) -> list[str]:
        """Each read of a table other than the model's own, by its name."""
        found = []
        for scope in self.scopes:
            found += [table_name(s, self.model) for s in _sources(scope).values() if isinstance(s, exp.Table)]
        return [name for name in found if name != THIS]

    def output(self, name: str) -> list[Leaf]:
        return list(self._into(self.root, (name.lower(),)))

    def leaves(self, scope: Scope, column: exp.Expr) -> list[Leaf]:
        """What a column of a scope comes from."""
        parts = _path(column)
        sources = _sources(scope)
        if len(parts) > 1 and parts[0] in sources:
            return list(self._into(sources[parts[0]], parts[1:]))
        return list(self._unqualified(scope, parts))

    def collect(self, found: Columns) -> None:
        for scope in self.scopes:
            if any(isinstance(s, exp.Table) and table_name(s, self.model) == THIS for s in _sources(scope).values()):
                continue
            for column in _columns_of(scope):
                if _is_own_alias(scope, column):
                    continue
                for leaf in self.leaves(scope, column):
                    if leaf not in found.leaves:
                        found.passive.add(leaf)
                    found.leaves.setdefault(replace(leaf, computed=False))
                    self._use(scope, column, leaf, found)

    def _use(self, scope: Scope, column: exp.Expr, leaf: Leaf, found: Columns) -> None:
        if column.find_ancestor(exp.Where, exp.Join, exp.Group, exp.Window, exp.Having, exp.Qualify, exp.Distinct, exp.SetOperation):
            found.passive.discard(leaf)
        if leaf.computed:
            return
        node: exp.Expr = column
        while isinstance(node.parent, _PASSED) and not (isinstance(node.parent, exp.If) and node.arg_key == "this"):
            node = node.parent
        parent = node.parent
        hints = found.types.setdefault(leaf, set())
        if isinstance(parent, _COMPARED):
            others = [v for v in parent.iter_expressions() if v is not node]
            for other in (inner for o in others for inner in ([o, *o.expressions] if isinstance(o, exp.Tuple | exp.Coalesce) else [o])):
                self._compared(scope, other.unnest(), leaf, found, isinstance(parent, exp.EQ))
        elif isinstance(parent, (*_TIMES, *_TIME_PARTS)):
            hints.add("TIMESTAMP")
        elif isinstance(parent, exp.Add | exp.Sub):
            hints.add("TIMESTAMP" if parent.find(exp.Interval) else "DOUBLE")
        elif isinstance(parent, _TEXTS):
            hints.add("VARCHAR")
        elif isinstance(parent, _NUMBERS):
            hints.add("DOUBLE")
        elif isinstance(parent, exp.And | exp.Or | exp.Not | exp.Where | exp.If) and node.arg_key == "this":
            hints.add("BOOLEAN")

    def _compared(self, scope: Scope, other: exp.Expr, leaf: Leaf, found: Columns, equal: bool) -> None:
        hints = found.types.setdefault(leaf, set())
        if isinstance(other, exp.Literal):
            is_day = other.is_string and re.match(r"\d{4}-\d\d-\d\d", other.name)
            hints.add("TIMESTAMP" if is_day else "VARCHAR" if other.is_string else "DOUBLE" if "." in other.name else "BIGINT")
            if (not is_day and equal) or isinstance(other.parent, exp.In):
                found.literals.setdefault(leaf, {})[other.name] = None
        elif isinstance(other, exp.Boolean):
            hints.add("BOOLEAN")
        elif isinstance(other, (*_TIMES, exp.CurrentDate, exp.CurrentTimestamp)):
            hints.add("TIMESTAMP")
        elif isinstance(other, exp.Column):
            for twin in (twin for twin in self.leaves(scope, other) if not twin.computed):
                found.leaves.setdefault(twin)
                found.same[found.of(leaf)] = found.of(twin)
                if equal and twin != leaf:
                    found.joined |= {leaf, twin}

    def _unqualified(self, scope: Scope, parts: tuple[str, ...]) -> Iterator[Leaf]:
        sources = list(_sources(scope).values())
        for source in sources:
            if isinstance(source, Scope) and parts[0] in _names(source):
                yield from self._into(source, parts)
                return
        open_ones = [s for s in sources if isinstance(s, exp.Table) or _has_star(s)]
        if open_ones:
            yield from self._into(open_ones[0], parts)

    def _into(self, source: exp.Table | Scope, path: tuple[str, ...]) -> Iterator[Leaf]:
        if isinstance(source, exp.Table):
            name = table_name(source, self.model)
            if name != THIS:
                yield Leaf(name, path)
            return
        if source.set_operation_scopes:
            left = _names(source)
            at = left.index(path[0]) if path[0] in left else None
            for part in source.set_operation_scopes:
                names = _names(part)
                yield from self._into(part, (names[at] if at is not None and at < len(names) else path[0], *path[1:]))
            return
        for projection in source.expression.expressions:
            if projection.alias_or_name.lower() == path[0]:
                inner = projection.unalias()
                if isinstance(inner, exp.Column):
                    yield from (Leaf(leaf.table, (*leaf.path, *path[1:]), leaf.computed) for leaf in self.leaves(source, inner))
                else:
                    for column in inner.find_all(exp.Column):
                        yield from (replace(leaf, computed=True) for leaf in self.leaves(source, column))
                return
        for projection in source.expression.expressions:
            if projection.is_star:
                of = projection.table.lower() if isinstance(projection, exp.Column) else ""
                aliased = _sources(source)
                yield from self._into(aliased[of], path) if of in aliased else self._unqualified(source, path)
                return


def _sources(scope: Scope) -> dict[str, exp.Table | Scope]:
    """What a query reads, by alias."""
    return {alias.lower(): source for alias, (_, source) in scope.selected_sources.items()}


def _projections(scope: Scope) -> list[exp.Expr]:
    while scope.set_operation_scopes:
        scope = scope.set_operation_scopes[0]
    return list(scope.expression.expressions)


def _names(scope: Scope) -> list[str]:
    return [projection.alias_or_name.lower() for projection in _projections(scope)]


def _has_star(scope: Scope) -> bool:
    return any(projection.is_star for projection in _projections(scope))


def _path(column: exp.Expr) -> tuple[str, ...]:
    return tuple(part.name.lower() for part in column.parts)


def _columns_of(scope: Scope) -> Sequence[exp.Column]:
    return [c for c in scope.columns if not isinstance(c.this, exp.Star)]


def _is_own_alias(scope: Scope, column: exp.Expr) -> bool:
    """Whether a name without a table is that of a projection of the same SELECT: in GROUP BY and beside it."""
    if column.table or not isinstance(scope.expression, exp.Select):
        return False
    for projection in scope.expression.expressions:
        if (
            isinstance(projection, exp.Alias)
            and projection.alias.lower() == column.name.lower()
            and column.find_ancestor(exp.Alias) is not projection
        ):
            return not isinstance(projection.this, exp.Column) and not column.find_ancestor(exp.Where, exp.Join)
    return False
