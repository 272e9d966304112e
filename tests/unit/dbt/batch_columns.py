"""Queries of Spark -> Leaf: the columns of the tables that they read, where each column of a query comes from, and its type by its use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from mvbuild.parse import placeholder
from unit.dbt.batch_rows import IN_ARRAY, IN_MAP

THIS = "this"
DOMAINS = ("TIMESTAMP", "DATE", "BOOLEAN", "VARCHAR", "DOUBLE", "BIGINT")
"""Types in the order in which one wins over another."""
_TIMES = (
    *(exp.TimestampTrunc, exp.DateTrunc, exp.TsOrDsToDate, exp.DateAdd, exp.DateSub, exp.TsOrDsAdd, exp.DateDiff, exp.Extract),
    *(exp.TimestampAdd, exp.TimestampDiff, exp.UnixSeconds, exp.UnixMillis, exp.AtTimeZone, exp.FromTimeZone, exp.TimeToStr),
    *(exp.Date, exp.AddMonths, exp.MonthsBetween, exp.GenerateSeries, exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute),
    *(exp.DayOfWeek, exp.DayOfMonth, exp.Quarter, exp.Week, exp.LastDay, exp.NextDay),
)
_TEXTS = (
    *(exp.Lower, exp.Upper, exp.Concat, exp.ConcatWs, exp.DPipe, exp.Substring, exp.Like, exp.ILike, exp.RegexpLike, exp.Trim),
    *(exp.Length, exp.Split, exp.SplitPart, exp.RegexpExtract, exp.RegexpReplace, exp.Replace, exp.JSONExtractScalar, exp.ParseUrl),
)
_NUMBERS = (
    *(exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Abs, exp.Round, exp.Pow, exp.Sum, exp.Avg, exp.Sqrt, exp.Ln, exp.Log, exp.Floor, exp.Ceil),
    *(exp.ApproxQuantile, exp.UnixToStr, exp.UnixToTime),
)
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Between, exp.In)
_PASSED = (exp.Paren, exp.Coalesce, exp.Max, exp.Min, exp.If, exp.Case, exp.First, exp.Last, exp.AnyValue)
_NEARLY = (*_PASSED, exp.Lower, exp.Upper, exp.Trim, exp.Cast, exp.TryCast)
"""What may change a value and still compares it with a literal."""
_ARRAYS_OF = (exp.ArrayDistinct, exp.ArraySort, exp.ArrayFilter, exp.ArrayCompact, exp.ArraySlice, exp.ArrayExcept, exp.ArrayIntersect)
"""What returns an array of some of the elements."""
_OF_ARRAYS = (
    *(*_ARRAYS_OF, exp.Explode, exp.Inline, exp.ArraySize, exp.ArrayToString, exp.ArrayContains, exp.Exists, exp.Transform, exp.Reduce),
    *(exp.Flatten, exp.ArrayMax, exp.ArrayMin, exp.ArraysZip, exp.ArrayRemove, exp.ArrayPosition),
)
_NAMES_OF_ARRAYS = ("cardinality", "forall", "arrays_overlap", "array_union")
_NAMES_OF_MAPS = ("map_entries", "map_values", "map_filter", "transform_values", "map_keys")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NAMES = (
    (re.compile(r"(^|_)(ts|at|minute|hour|datetime)$|time|(^|_)ts_|loaded|updated|created|seen"), "TIMESTAMP"),
    (re.compile(r"(^|_)(day|date|dt|month|week)($|_)"), "DATE"),
    (re.compile(r"^(is|has)_"), "BOOLEAN"),
    (re.compile(r"^(id|n|v|x|value|number|parent|other)$|_(id|index|number|n)$|decimals|block_number"), "BIGINT"),
    (re.compile(r"amount|price|count|total|quantity|qty|(^|_)(usd|raw|fee|gas)($|_)"), "DOUBLE"),
)


@dataclass(frozen=True, order=True)
class Leaf:
    """A column of a table, or what is inside of it: ("payload", "items", IN_ARRAY, "price"). `computed`: what was asked for is more than its value."""

    table: str
    path: tuple[str, ...]
    computed: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        return next(part for part in reversed(self.path) if part not in (IN_ARRAY, IN_MAP))

    def inside(self, *path: str) -> Leaf:
        return self if self.computed else replace(self, path=(*self.path, *path))


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
        named = [kind for member in (leaf, *members) for pattern, kind in _NAMES if pattern.search(member.name)]
        if found == "TIMESTAMP" and named[:1] == ["DATE"]:
            return "DATE"
        return found or next(iter(named), "VARCHAR")

    def values_of(self, leaf: Leaf) -> list[str]:
        return [text for other in self.leaves if self.of(other) == self.of(leaf) for text in self.literals.get(other, ())]


def table_name(table: exp.Table, model: str) -> str:
    """`raw_events`, `ref_orders`, or `this` for dbt's own table."""
    decoded = placeholder.decode(table.name)
    if decoded == ("ref", (model,)):
        return THIS
    parts = ["ref", *decoded[1]] if decoded and decoded[0] == "ref" else decoded[1] if decoded else [part.name for part in table.parts]
    return re.sub(r"\W", "_", "_".join(parts)).lower()


def own_name(table: exp.Table) -> str:
    """The alias, or the last part of the name."""
    decoded = None if table.alias else placeholder.decode(table.name)
    return (decoded[1][-1] if decoded else table.alias_or_name).lower()


def is_qualified(column: exp.Column, tables: Iterable[exp.Table]) -> bool:
    """Whether a column begins with the schema of a table: `shop.orders.id`. The schema of a model is not known: it may be any name."""
    if not column.db:
        return False
    first, second = (part.name.lower() for part in column.parts[:2])
    schemas = {qualifier for table in tables if (qualifier := _qualifier(table))}
    return (first, second) in schemas or (("", second) in schemas and all(first != own_name(table) for table in tables))


def _qualifier(table: exp.Table) -> tuple[str, str] | None:
    if table.alias:
        return None
    decoded = placeholder.decode(table.name)
    schema = decoded[1][0] if decoded and decoded[0] == "source" else table.db
    return (schema.lower(), own_name(table)) if schema or decoded else None


class Reader:
    """One query, and where its columns come from."""

    def __init__(self, tree: exp.Expr, model: str) -> None:
        self.model = model
        self.scopes = traverse_scope(tree)
        self.root = self.scopes[-1]
        self.known: set[tuple[str, str]] = set()
        """Tables and their columns, where a query names both."""

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
        parts, _ = read(column)
        sources = _sources(scope)
        if isinstance(column, exp.Column) and is_qualified(column, [s for s in sources.values() if isinstance(s, exp.Table)]):
            parts = parts[1:]
        if len(parts) > 1 and parts[0] in sources:
            return list(self._into(sources[parts[0]], parts[1:]))
        return list(self._unqualified(scope, parts))

    def know(self) -> set[tuple[str, str]]:
        """The columns whose tables are named."""
        for scope in self.scopes:
            for column in _columns_of(scope):
                tables = [s for s in _sources(scope).values() if isinstance(s, exp.Table)]
                if read(column)[0][0] in _sources(scope) or is_qualified(column, tables):
                    self.known |= {(leaf.table, leaf.path[0]) for leaf in self.leaves(scope, column)}
        return self.known

    def collect(self, found: Columns) -> None:
        for scope in self.scopes:
            if any(isinstance(s, exp.Table) and table_name(s, self.model) == THIS for s in _sources(scope).values()):
                continue
            for join in scope.expression.args.get("joins") or ():
                for name in join.args.get("using") or ():
                    self._equal([leaf for s in _sources(scope).values() for leaf in self._into(s, (name.name.lower(),))], found)
            for column in _columns_of(scope):
                if _is_own_alias(scope, column):
                    continue
                for leaf in self.leaves(scope, column):
                    if leaf not in found.leaves:
                        found.passive.add(leaf)
                    found.leaves.setdefault(replace(leaf, computed=False))
                    self._use(scope, column, leaf, found)

    def _equal(self, leaves: Sequence[Leaf], found: Columns) -> None:
        for leaf in leaves:
            found.leaves.setdefault(replace(leaf, computed=False))
            found.same[found.of(leaf)] = found.of(leaves[0])
            found.joined.add(leaf)

    def _use(self, scope: Scope, column: exp.Expr, leaf: Leaf, found: Columns) -> None:
        if column.find_ancestor(exp.Where, exp.Join, exp.Group, exp.Window, exp.Having, exp.Qualify, exp.Distinct, exp.SetOperation):
            found.passive.discard(leaf)
        if leaf.computed:
            return
        _, node = read(column)
        self._see_literals(node, leaf, found)
        self._see(scope, node, leaf, found)

    def _see(self, scope: Scope, node: exp.Expr, leaf: Leaf, found: Columns) -> None:
        """The type by the use."""
        hints = found.types.setdefault(leaf, set())
        while isinstance(node.parent, _PASSED) and not (isinstance(node.parent, exp.If) and node.arg_key == "this"):
            node = node.parent
            if isinstance(node, exp.Coalesce):
                hints |= {"BOOLEAN" for other in node.expressions if isinstance(other, exp.Boolean)}
        parent = node.parent
        name = parent.name.lower() if isinstance(parent, exp.Anonymous) else ""
        if name in _NAMES_OF_MAPS or isinstance(parent, exp.MapKeys) or (isinstance(parent, exp.Explode) and _explodes_map(parent)):
            self._inside(scope, parent, leaf.inside(IN_MAP), found)
        elif isinstance(parent, _OF_ARRAYS) or name in _NAMES_OF_ARRAYS:
            self._inside(scope, parent, leaf.inside(IN_ARRAY), found)
        elif isinstance(parent, _COMPARED):
            others = [v for v in parent.iter_expressions() if v is not node]
            for other in (inner for o in others for inner in ([o, *o.expressions] if isinstance(o, exp.Tuple | exp.Coalesce) else [o])):
                self._compared(scope, other.unnest(), leaf, found, isinstance(parent, exp.EQ))
        elif isinstance(parent, _TIMES) or (isinstance(parent, exp.Cast) and parent.to.is_type(*exp.DataType.TEMPORAL_TYPES)):
            hints.add("TIMESTAMP")
        elif isinstance(parent, exp.Cast | exp.TryCast) and parent.to.is_type(*exp.DataType.NUMERIC_TYPES):
            hints.add("DOUBLE")
        elif isinstance(parent, exp.Add | exp.Sub):
            hints.add("TIMESTAMP" if parent.find(exp.Interval) else "DOUBLE")
        elif isinstance(parent, _TEXTS):
            hints.add("VARCHAR")
        elif isinstance(parent, _NUMBERS) or "millis_to" in name:
            hints.add("DOUBLE" if isinstance(parent, _NUMBERS) else "BIGINT")
        elif isinstance(parent, exp.And | exp.Or | exp.Not | exp.Where) or (isinstance(parent, exp.If) and node.arg_key == "this"):
            hints.add("BOOLEAN")

    def _inside(self, scope: Scope, call: exp.Expr, leaf: Leaf, found: Columns) -> None:
        """What a function of arrays or maps reads of the elements, in its lambda."""
        found.leaves.setdefault(leaf)
        for function in call.find_all(exp.Lambda):
            names = [parameter.name for parameter in function.expressions]
            if leaf.path[-1] == IN_MAP or isinstance(call, exp.Reduce):
                names = names[-1:]
            elif not isinstance(call, exp.ArraySort):
                names = names[:1]
            for name in function.this.find_all(exp.Identifier):
                if name.name in names and not (isinstance(name.parent, exp.Dot) and name.arg_key == "expression"):
                    self._part(scope, name, leaf, 1, found)
        if isinstance(call, _ARRAYS_OF) and read(call)[0][1:2] == (IN_ARRAY,):
            self._part(scope, call, leaf, 2, found)

    def _part(self, scope: Scope, element: exp.Expr, leaf: Leaf, at: int, found: Columns) -> None:
        """What is read inside of an element."""
        path, node = read(element)
        part = leaf.inside(*path[at:])
        found.leaves.setdefault(part)
        self._see_literals(node, part, found)
        self._see(scope, node, part, found)

    def _see_literals(self, node: exp.Expr, leaf: Leaf, found: Columns) -> None:
        """Values that meet a condition, or nearly."""
        while isinstance(node.parent, _NEARLY) and not (isinstance(node.parent, exp.If) and node.arg_key == "this"):
            node = node.parent
        parent = node.parent
        if (
            isinstance(parent, exp.Like | exp.ILike | exp.RegexpLike)
            and node.arg_key == "this"
            and isinstance(parent.expression, exp.Literal)
        ):
            found.literals.setdefault(leaf, {})[_matching(parent.expression.name)] = None
        if not isinstance(parent, _COMPARED):
            return
        others = [other.unnest() for value in parent.iter_expressions() for other in ([value, *value.expressions])]
        for other in others:
            if isinstance(other, exp.Literal) and not _DAY.match(other.name) and not isinstance(parent, exp.NEQ):
                found.literals.setdefault(leaf, {})[other.name] = None
                if other.is_int and isinstance(parent, exp.GT | exp.LT):
                    found.literals[leaf].update(dict.fromkeys(str(int(other.name) + step) for step in (-1, 1)))

    def _compared(self, scope: Scope, other: exp.Expr, leaf: Leaf, found: Columns, equal: bool) -> None:
        hints = found.types.setdefault(leaf, set())
        if isinstance(other, exp.Literal):
            is_day = other.is_string and _DAY.match(other.name)
            hints.add("TIMESTAMP" if is_day else "VARCHAR" if other.is_string else "DOUBLE" if "." in other.name else "BIGINT")
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
        found = [list(self._into(s, parts)) for s in sources if isinstance(s, exp.Table) or _has_star(s)]
        known = [leaves for leaves in found if any((leaf.table, leaf.path[0]) in self.known for leaf in leaves)]
        yield from next(iter(known or found), ())

    def _into(self, source: exp.Table | Scope, path: tuple[str, ...]) -> Iterator[Leaf]:
        if isinstance(source, exp.Table):
            name = table_name(source, self.model)
            if name != THIS:
                yield Leaf(name, path)
            return
        if isinstance(source.expression, exp.Lateral):
            yield from self._generated(source, source.expression, path)
            return
        if source.set_operation_scopes:
            left = _names(source)
            at = left.index(path[0]) if path[0] in left else None
            for part in source.set_operation_scopes:
                names = _names(part)
                yield from self._into(part, (names[at] if at is not None and at < len(names) else path[0], *path[1:]))
            return
        for projection in source.expression.expressions:
            if _name(projection) == path[0]:
                inner = projection.unalias()
                if isinstance(inner, exp.Explode):
                    yield from (leaf.inside(*path[1:]) for leaf in self._elements(source, inner.this))
                else:
                    yield from (leaf.inside(*path[1:]) for leaf in self._value(source, inner))
                return
        for projection in source.expression.expressions:
            if projection.is_star:
                of = projection.table.lower() if isinstance(projection, exp.Column) else ""
                aliased = _sources(source)
                yield from self._into(aliased[of], path) if of in aliased else self._unqualified(source, path)
                return

    def _value(self, scope: Scope, value: exp.Expr) -> Iterator[Leaf]:
        """Where a value comes from."""
        column = _base(value)
        if column is not None:
            yield from self.leaves(scope, column)
            return
        for inner in value.find_all(exp.Column):
            yield from (replace(leaf, computed=True) for leaf in self.leaves(scope, inner))

    def _elements(self, scope: Scope, array: exp.Expr) -> Iterator[Leaf]:
        while isinstance(array, (exp.Paren, exp.Coalesce, *_ARRAYS_OF)):
            array = array.this
        if isinstance(array, exp.Anonymous) and array.name.lower() == "map_entries":
            yield from (leaf.inside(IN_MAP) for leaf in self._value(scope, array.expressions[0]))
        else:
            yield from (leaf.inside(IN_ARRAY) for leaf in self._value(scope, array))

    def _generated(self, source: Scope, lateral: exp.Lateral, path: tuple[str, ...]) -> Iterator[Leaf]:
        """A column of LATERAL VIEW."""
        call, alias = lateral.this, lateral.args["alias"]
        names = _names(source)
        if path[0] not in names:
            path = (names[-1], *path) if not alias.name and names else path
        if source.parent is None or not isinstance(call, exp.Explode | exp.Inline):
            return
        values = names[1:] if isinstance(call, exp.Posexplode) else names
        if isinstance(call, exp.Inline):
            yield from (leaf.inside(*path) for leaf in self._elements(source.parent, call.this))
        elif _explodes_map(call) and path[0] == values[-1]:
            yield from (leaf.inside(IN_MAP, *path[1:]) for leaf in self._value(source.parent, call.this))
        elif len(values) == 1 and path[0] == values[0]:
            is_map = isinstance(call.this, exp.Anonymous) and call.this.name.lower() == "map_entries"
            at = path[2:] if is_map else path[1:]
            if not is_map or path[1:2] != ("key",):
                yield from (leaf.inside(*at) for leaf in self._elements(source.parent, call.this))


def read(column: exp.Expr) -> tuple[tuple[str, ...], exp.Expr]:
    """A column -> its path with what is read inside of it, and the expression that reads this."""
    path = tuple(part.name.lower() for part in column.parts) if isinstance(column, exp.Column) else (column.name.lower(),)
    node = column
    while (parent := node.parent) is not None and node.arg_key == "this":
        if isinstance(parent, exp.Dot) and isinstance(parent.expression, exp.Identifier):
            path += (parent.expression.name.lower(),)
        elif isinstance(parent, exp.Bracket):
            key = parent.expressions[0]
            is_name = isinstance(key, exp.Literal) and key.is_string
            path += (IN_MAP if parent.args.get("offset") else key.name.lower(),) if is_name else (IN_ARRAY,)
        else:
            break
        node = parent
    return path, node


def _explodes_map(call: exp.Explode) -> bool:
    """By the number of columns that it makes."""
    alias = call.parent.args.get("alias") if isinstance(call.parent, exp.Lateral) else None
    return alias is not None and len(alias.columns) == (3 if isinstance(call, exp.Posexplode) else 2)


def _base(value: exp.Expr) -> exp.Column | None:
    """The column that an expression reads something of, and nothing else."""
    base = value
    while isinstance(base, exp.Dot | exp.Bracket | exp.Paren):
        base = base.this
    return base if isinstance(base, exp.Column) and read(base)[1] is value.unnest() else None


def _matching(pattern: str) -> str:
    """A text that a pattern may match: of LIKE, or a simple regular expression."""
    return re.sub(r"[%^$\\]|\.\*|\(\?i\)", "", pattern.split("|")[0].strip("()"))


def _sources(scope: Scope) -> dict[str, exp.Table | Scope]:
    """What a query reads, by alias."""
    sources = {name.lower(): scope.sources[name] for name, _ in scope.references if name in scope.sources}
    return {own_name(source) if isinstance(source, exp.Table) else alias: source for alias, source in sources.items()}


def _projections(scope: Scope) -> list[exp.Expr]:
    while scope.set_operation_scopes:
        scope = scope.set_operation_scopes[0]
    return list(scope.expression.expressions)


def _names(scope: Scope) -> list[str]:
    if isinstance(scope.expression, exp.Lateral):
        return [name.name.lower() for name in scope.expression.args["alias"].columns]
    return [_name(projection) for projection in _projections(scope)]


def _name(projection: exp.Expr) -> str:
    return "col" if isinstance(projection, exp.Explode) else projection.alias_or_name.lower()


def _has_star(scope: Scope) -> bool:
    return any(projection.is_star for projection in _projections(scope))


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
