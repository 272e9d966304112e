"""A seed -> a Generated case: tables with rows that are full of NULLs and duplicates, a query over them, and a change.

Everything that a query can be refreshed for is in the grammar: docs/incremental.md. What two engines would not do alike (overflow, division
by zero, the order of equal rows, a union of strings and numbers) is not. One column may have another type in each table.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from unit.incremental.mixed_queries import Mixed
from unit.incremental.on_duckdb import Row, Table

Type = Literal["int", "decimal", "string", "boolean", "date", "double", "bigint", "decimal4", "timestamp", "digits", "text"]
"""decimal4 has four digits behind the point, decimal two; digits are strings that are numbers; text may not be valid UTF-8, and only tables
of histories have it."""
Change = Literal["inserts", "deletes", "mixed"]
"""Of a whole case: nothing but rows that came, nothing but rows that went, or anything."""

ICEBERG: Mapping[Type, str] = {
    "int": "int",
    "decimal": "decimal(10, 2)",
    "string": "string",
    "boolean": "boolean",
    "date": "date",
    "double": "double",
    "bigint": "long",
    "decimal4": "decimal(12, 4)",
    "timestamp": "timestamp",
    "digits": "string",
}
VALUES: Mapping[Type, tuple[Any, ...]] = {
    "int": (None, 0, 1, 1, 1, 2, 2, 3),
    "decimal": (None, Decimal("0.00"), Decimal("1.10"), Decimal("2.25"), Decimal("-1.10"), Decimal("1.00"), Decimal("2.00")),
    "string": (None, "x", "x", "y", "", "xy"),
    "boolean": (None, True, False),
    "date": (None, date(2026, 1, 1), date(2026, 1, 31), date(2025, 12, 31)),
    "double": (None, 0.5, 1.5, float("nan"), 1.0),
    "bigint": (None, 0, 1, 1, 1, 2, 2, 3),
    "decimal4": (None, Decimal("0.0000"), Decimal("1.0000"), Decimal("1.1000"), Decimal("2.2500"), Decimal("2.0000")),
    "timestamp": (None, datetime(2026, 1, 1), datetime(2026, 1, 1, 5, 30), datetime(2026, 1, 31), datetime(2025, 12, 31)),
    "digits": (None, "1", "1", "01", "2", "02", "3"),
}
COLUMNS: Mapping[str, Type] = {
    "k": "int",
    "g": "int",
    "v": "int",
    "s": "string",
    "d": "decimal",
    "f": "boolean",
    "t": "date",
    "r": "double",
}
OTHERS: Mapping[str, Sequence[Type]] = {
    "k": ("int", "bigint", "decimal", "decimal", "decimal4", "double", "digits"),
    "g": ("int", "bigint", "decimal", "string", "digits"),
    "v": ("int", "int", "bigint"),
    "d": ("decimal", "decimal4", "double"),
    "t": ("date", "timestamp"),
}
"""The types that a column has where a table is unlike others."""
NAMED: Sequence[str] = ("part", "keys_0", "stored", "total")
"""Names that statements of mvbuild have or had: of columns, and of outputs of inner queries."""
FAMILIES: Sequence[Sequence[Type]] = (("int", "bigint", "decimal", "decimal4", "double"), ("date", "timestamp"))
"""Types of which the later is what a union with it has."""
_NOON = "CAST('2026-01-01 12:00:00' AS TIMESTAMP_NTZ)"
LATER = 10_000
"""From this seed on every other query may have the forms that were added later: the cases before it stay what they were."""
CLOCKED = 20_000
"""From this seed on queries read the day, which is another one after the change."""
SHAPED = 30_000
"""From this seed on queries have UNPIVOT."""
VALUED = 40_000
"""From this seed on queries join VALUES."""
NEWEST = 50_000
"""From this seed on queries take the newest row of each key, below joins and aggregates."""
GROUPED = 60_000
"""From this seed on queries have grouping sets."""
PIVOTED = 70_000
"""From this seed on queries have PIVOT."""
TIMED = 80_000
"""From this seed on queries have windows of time."""
MIXED = 90_000
"""From this seed on any operator may be below any other one."""
POSITIONED = 970_000
"""From this seed on queries have window functions that depend on the order of rows, over groups."""
COMPARED = 980_000
"""From this seed on queries compare a column with the value of a subquery."""
SESSIONED = 990_000
"""From this seed on queries have sessions."""
NEWEST_TODAY = 995_000
"""From this seed on queries have inner results that depend on order, or groups of which few are shown, and read the day above them."""
KINDS = (0, LATER, CLOCKED, SHAPED, VALUED, NEWEST, GROUPED, PIVOTED, TIMED, MIXED, POSITIONED, COMPARED, SESSIONED, NEWEST_TODAY)
PROOF = 1_000_000
"""From this seed on, which the proofs of many cases use, each of these kinds has its share."""
_SHARES = (
    0,
    LATER,
    LATER,
    LATER,
    0,
    LATER,
    CLOCKED,
    SHAPED,
    VALUED,
    NEWEST,
    NEWEST,
    NEWEST,
    GROUPED,
    GROUPED,
    PIVOTED,
    TIMED,
    SESSIONED,
    MIXED,
    MIXED,
    MIXED,
    POSITIONED,
    COMPARED,
    NEWEST_TODAY,
)
COMMON = ("k", "v")
"""Columns that every table has."""


@dataclass(frozen=True)
class Generated:
    seed: int
    query: str
    tables: tuple[Table, ...]
    operators: frozenset[str]
    change: Change


def generated(seed: int) -> Generated:
    random_, kind = random.Random(seed), kind_of_seed(seed)
    schemas = {name: _schema(random_) for name in "abc"[: random_.choice((1, 2, 2, 2, 3))]}
    if kind in (TIMED, SESSIONED):
        schemas = {name: replace(schema, columns={**schema.columns, "t": "timestamp"}) for name, schema in schemas.items()}
    if kind in (CLOCKED, NEWEST_TODAY):
        schemas = {name: replace(schema, columns={**schema.columns, "t": "date"}) for name, schema in schemas.items()}
    if kind in (MIXED, POSITIONED, COMPARED):
        schemas = {name: replace(schema, columns={**schema.columns, "k": "int", "v": "int"}) for name, schema in schemas.items()}
    maker = _Maker(random_, schemas, any_order=random_.random() < 0.15)
    maker.turned = random.Random(seed + 5)
    if kind and seed % 2:
        maker.later = random.Random(seed + 1)
    if kind in (CLOCKED, NEWEST_TODAY):
        maker.clock = random.Random(seed + 2)
        maker.lambdas = random.Random(seed + 4)
    of_kind = {
        SHAPED: maker.of_shape,
        VALUED: maker.of_values,
        NEWEST: maker.of_newest,
        NEWEST_TODAY: maker.of_newest_today,
        GROUPED: maker.of_grouping_sets,
        PIVOTED: maker.of_pivot,
        TIMED: maker.of_time_window,
        SESSIONED: maker.of_sessions,
        MIXED: lambda: Mixed(random_, list(schemas), maker.operators).query(),
        POSITIONED: lambda: Mixed(random_, list(schemas), maker.operators).positions(),
        COMPARED: lambda: Mixed(random_, list(schemas), maker.operators).compared(),
    }
    if kind in of_kind:
        query = of_kind[kind]()
    else:
        query = maker.of_time() if maker.clock is not None and maker.clock.random() < 0.3 else maker.top().text
    change: Change = random_.choice(("inserts", "inserts", "deletes", "mixed", "mixed"))
    read = [name for name in schemas if "{" + name + "}" in query]
    tables = _changed(random_, {name: schemas[name] for name in read}, change)
    if maker.clock is not None and maker.clock.random() < 0.4:
        tables = tuple(replace(table, new=table.old, carried=()) for table in tables)
    return Generated(seed, query, tables, frozenset(maker.operators), change)


def kind_of_seed(seed: int) -> int:
    """The kind of query that a seed gives, as the first seed of its kind; 0 for those that were there first."""
    if seed >= PROOF:
        return _SHARES[seed // 2 % len(_SHARES)]
    return max(start for start in KINDS if seed >= start)


def query_over(
    random_: random.Random, tables: Mapping[str, Mapping[str, Type]], wanted: Sequence[Type] | None = None
) -> tuple[str, tuple[tuple[str, Type], ...], frozenset[str]]:
    """A query over tables with these columns, its own columns, and its operators. `wanted`: the types of its columns."""
    maker = _Maker(random_, {name: _Schema(columns, frozenset()) for name, columns in tables.items()})
    query = maker.top() if wanted is None else maker.query(random_.choice((0, 1)), wanted)
    return query.text, query.columns, frozenset(maker.operators)


# --- tables ------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Schema:
    columns: Mapping[str, Type]
    required: frozenset[str]


def _schema(random_: random.Random) -> _Schema:
    names = [name for name in COLUMNS if name in COMMON or random_.random() < 0.55]
    required = frozenset(name for name in names if random_.random() < 0.12)
    columns = {name: COLUMNS[name] for name in names}
    if random_.random() < 0.35:
        columns = {name: random_.choice(OTHERS.get(name, (type_,))) for name, type_ in columns.items()}
    columns.update((name, random_.choice(("int", "string", "decimal"))) for name in NAMED if random_.random() < 0.04)
    return _Schema(columns, required)


def comparable(one: Type, other: Type) -> bool:
    """Whether both engines compare them after the same cast."""
    if one == other:
        return one != "boolean"
    pair = {one, other}
    return any(pair <= set(family) for family in FAMILIES) or pair in ({"digits", "int"}, {"digits", "bigint"})


def widest(one: Type, other: Type) -> Type:
    """The type of a union."""
    family = next((f for f in FAMILIES if one in f and other in f), (one,))
    return max(one, other, key=family.index) if other in family else one


def _row(random_: random.Random, schema: _Schema) -> Row:
    def value(name: str, type_: Type) -> Any:
        values = VALUES[type_]
        return random_.choice([v for v in values if v is not None] if name in schema.required else values)

    if not schema.required and random_.random() < 0.05:
        return tuple(None for _ in schema.columns)
    return tuple(value(name, type_) for name, type_ in schema.columns.items())


def _rows(random_: random.Random, schema: _Schema, most: int) -> list[Row]:
    rows = [_row(random_, schema) for _ in range(random_.randint(most // 2, most))]
    return rows + [random_.choice(rows) for _ in range(random_.choice((0, 0, 1, 3))) if rows]


def _changed(random_: random.Random, schemas: Mapping[str, _Schema], change: Change) -> tuple[Table, ...]:
    moving = {name for name in schemas if random_.random() < 0.6} or {random_.choice(list(schemas))}
    tables = []
    for name, schema in schemas.items():
        old = _rows(random_, schema, random_.choice((0, 4, 6, 8, 8, 10, 10, 10)))
        if name not in moving:
            # The same rows, as a compaction leaves them.
            new, carried = random_.sample(old, len(old)) if random_.random() < 0.5 else list(old), []
        else:
            kind = {"inserts": "insert", "deletes": random_.choice(("delete", "delete", "empty"))}.get(change) or random_.choice(
                ("mixed", "mixed", "mixed", "update", "update", "insert", "delete", "empty", "fill", "net-zero", "unrelated")
            )
            old, new, carried = _moved(random_, schema, old, kind)
        columns = {column: ICEBERG[type_] for column, type_ in schema.columns.items()}
        tables.append(Table(name, columns, old, new, schema.required, carried))
    return tuple(tables)


def _moved(random_: random.Random, schema: _Schema, old: list[Row], kind: str) -> tuple[list[Row], list[Row], list[Row]]:
    """The rows before and after, and those that a rewritten file carries over."""
    if kind in ("delete", "empty", "net-zero", "update") and not old:
        old = [_row(random_, schema) for _ in range(3)]
    came = [_row(random_, schema) for _ in range(random_.randint(1, 3))]
    kept = [row for row in old if random_.random() < 0.6]
    if kind == "insert":
        return old, [*old, *came, *(random_.choice(old) for _ in range(random_.randint(0, 1)) if old)], []
    if kind == "delete":
        return old, kept, []
    if kind == "empty":
        return old, [], []
    if kind == "fill":
        return [], came, []
    if kind == "net-zero":
        return old, list(old), random_.sample(old, random_.randint(1, len(old)))
    if kind == "unrelated":
        return old, came, []
    if kind == "update":
        return old, [_updated(random_, schema, row) if random_.random() < 0.5 else row for row in old], _carried(random_, kept)
    return old, [*kept, *came], _carried(random_, kept)


def _updated(random_: random.Random, schema: _Schema, row: Row) -> Row:
    at = random_.randrange(len(row))
    other = _row(random_, schema)
    return tuple(b if i == at or random_.random() < 0.2 else a for i, (a, b) in enumerate(zip(row, other, strict=True)))


def _carried(random_: random.Random, kept: list[Row]) -> list[Row]:
    return random_.sample(kept, random_.randint(0, len(kept))) if random_.random() < 0.3 else []


# --- queries -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Query:
    text: str
    columns: tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class _Column:
    text: str
    type: Type


@dataclass
class _From:
    text: str
    columns: list[_Column]
    conditions: list[str] = field(default_factory=list)
    is_plain: bool = False
    """One base table: all that a row is can be named."""


Wanted = Sequence[Type]


class _Maker:
    """One query. `operators` are the names of what it has got."""

    def __init__(self, random_: random.Random, schemas: Mapping[str, _Schema], *, any_order: bool = False) -> None:
        self.random = random_
        self.schemas = schemas
        self.operators: set[str] = set()
        self.ctes: dict[str, _Query] = {}
        self.is_linear = False
        """Nothing but projections, filters, inner joins and UNION ALL from here on."""
        self.unlike: set[str] = set()
        """Columns that are compared with, or united with, columns of another type: their text differs more than their value."""
        self.any_order = any_order
        """Functions that depend on the order of rows may be in it."""
        self.later: random.Random | None = None
        self.clock: random.Random | None = None
        """Set if the query may read the day."""
        self.turned = random.Random(0)
        """For conditions with a constant before the column. A source of its own leaves all other choices as they are."""
        self.lambdas: random.Random | None = None
        """Set if it may do so in a lambda function."""
        self.types = {type_ for schema in schemas.values() for type_ in schema.columns.values()}
        self._numbers = 0

    def name(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}{self._numbers}"

    def names(self, number: int) -> list[str]:
        """Of the outputs of a query."""
        made = [self.name("c") for _ in range(number)]
        if made and self.chance(0.08):
            made[self.random.randrange(number)] = self.random.choice(NAMED)
        return made

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def has(self, probability: float) -> bool:
        """As `chance`, of the forms that were added later."""
        return self.later is not None and self.later.random() < probability

    def top(self) -> _Query:
        depth = self.random.choice((0, 0, 0, 1, 1, 1, 2))
        if self.chance(0.3):
            return self.common()
        if depth and self.chance(0.15):
            cte = self.query(depth - 1)
            self.ctes[self.name("w")] = cte
            self.operators.add("cte")
            (name,) = self.ctes
            query = self.query(depth, start=name)
            return _Query(f"WITH {name} AS ({cte.text}) {query.text}", query.columns)
        return self.query(depth)

    def common(self) -> _Query:
        """What most MVs are: rows of joined tables, or sums of them."""
        self.is_linear = True
        source = self.source(1)
        conditions = [*source.conditions, *(self.condition(source.columns) for _ in range(self.random.choice((0, 0, 1))))]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if self.chance(0.35):
            items, after = self.plain(source, None, "distinct", 0)
        else:
            kind = self.random.choice(("group", "group", "group", "global"))
            self.operators.add("global aggregate" if kind == "global" else "group by")
            keys = [] if kind == "global" else self.keys(source.columns)
            items, after = [*keys, *self.aggregates(source.columns)], self.grouping(keys)
            if self.chance(0.5):
                items = [*keys, _Column("count(*)", "int"), *self.followed(source.columns)]
        names = self.names(len(items))
        chosen = ", ".join(f"{item.text} AS {name}" for item, name in zip(items, names, strict=True))
        columns = tuple((name, item.type) for name, item in zip(names, items, strict=True))
        return _Query(f"SELECT {chosen} FROM {source.text}{where}{after}", columns)

    def query(self, depth: int, wanted: Wanted | None = None, start: str | None = None) -> _Query:
        if depth and self.chance(0.33) and start is None:
            return self.set_operation(depth, wanted)
        return self.select(depth, wanted, start)

    def set_operation(self, depth: int, wanted: Wanted | None) -> _Query:
        types = wanted or [self.random.choice(("int", "int", "string", "decimal")) for _ in range(self.random.randint(1, 3))]
        left = self.select(depth - 1, types)
        text = left.text
        for _ in range(self.random.choice((1, 1, 1, 2))):
            kind = (
                "UNION ALL"
                if self.is_linear
                else self.random.choice(("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
            )
            self.operators.add(kind.lower())
            others = [self.other(type_) for type_ in types]
            if others != list(types):
                self.operators.add("set operation of unlike types")
            text = f"({text}) {kind} ({self.select(depth - 1, others).text})"
            types = [widest(one, other) for one, other in zip(types, others, strict=True)]
        return _Query(text, tuple((name, type_) for (name, _), type_ in zip(left.columns, types, strict=True)))

    def other(self, type_: Type) -> Type:
        """A type that a union casts to it, or it to that; more often than not the same."""
        family = next((f for f in FAMILIES if type_ in f), ())
        found = [one for one in family if one != type_ and one in self.types]
        return self.random.choice(found) if found and self.chance(0.35) else type_

    def select(self, depth: int, wanted: Wanted | None = None, start: str | None = None) -> _Query:
        source = self.source(depth, start)
        conditions = list(source.conditions)
        conditions.extend(self.condition(source.columns) for _ in range(self.random.choice((0, 0, 0, 0, 1, 1, 2))))
        if self.chance(0.2) and not self.is_linear:
            conditions.append(self.subquery_condition(source.columns, depth))
        self.random.shuffle(conditions)
        if len(conditions) > len(source.conditions):
            self.operators.add("filter")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        kind = self.random.choice(("plain", "plain", "group", "group", "group", "global", "distinct", "window"))
        if self.is_linear or (kind == "global" and self.chance(0.4)):
            kind = "plain"
        made = {"plain": self.plain, "distinct": self.plain, "group": self.group, "global": self.group, "window": self.window}[kind]
        items, after = made(source, wanted, kind, depth)
        names = self.names(len(items))
        chosen = ", ".join(f"{item.text} AS {name}" for item, name in zip(items, names, strict=True))
        if kind == "group" and self.has(0.8):
            after = self.grouped_by_alias(after, items, names)
        if kind == "plain" and wanted is None and self.has(0.2):
            chosen += self.of_aliases(items, names)
        distinct = "DISTINCT " if kind == "distinct" else ""
        if kind == "distinct":
            self.operators.add("distinct")
        text = f"SELECT {distinct}{chosen} FROM {source.text}{where}{after}"
        return _Query(text, tuple((name, item.type) for name, item in zip(names, items, strict=True)))

    def grouped_by_alias(self, after: str, items: list[_Column], names: list[str]) -> str:
        """GROUP BY the name of a computed output."""
        for item, name in zip(items, names, strict=True):
            if "(" in item.text and name not in NAMED and after.startswith(f" GROUP BY {item.text}"):
                self.operators.add("group by alias")
                return f" GROUP BY {name}{after.removeprefix(f' GROUP BY {item.text}')}"
        return after

    def of_aliases(self, items: list[_Column], names: list[str]) -> str:
        """One more output, which is made of others by their names."""
        for item, name in zip(items, names, strict=True):
            if item.type == "int" and name not in NAMED:
                self.operators.add("lateral alias")
                return f", {name} + 1 AS {self.name('more')}, coalesce({name}, 0) * 2 AS {self.name('more')}"
        return ""

    # --- the SELECT list -----------------------------------------------------------------------------------------------------------

    def plain(self, source: _From, wanted: Wanted | None, kind: str, depth: int) -> tuple[list[_Column], str]:
        if wanted is not None:
            return [self.expression(source.columns, type_) for type_ in wanted], ""
        items = [self.random.choice(source.columns) for _ in range(self.random.randint(1, 4))]
        items.extend(self.texts(source.columns))
        if self.chance(0.4):
            items.append(self.expression(source.columns, self.random.choice(("int", "string", "string", "decimal", "boolean", "double"))))
        if kind == "plain" and self.chance(0.15) and not self.is_linear:
            items.append(self.scalar(source.columns, depth))
        if kind == "plain" and self.has(0.3) and not self.is_linear:
            self.operators.add("exists as a value")
            items.append(_Column(self.exists(source.columns), "boolean"))
        return items, ""

    def group(self, source: _From, wanted: Wanted | None, kind: str, depth: int) -> tuple[list[_Column], str]:
        keys = [] if kind == "global" else self.keys(source.columns)
        self.operators.add("global aggregate" if kind == "global" else "group by")
        if wanted is not None:
            items = [self.random.choice([k for k in keys if k.type == t] or [self.aggregate(source.columns, t)]) for t in wanted]
            missing = [] if self.chance(0.7) else [k for k in keys if k not in items]
            keys = [k for k in keys if k not in missing] or keys
        else:
            items = [key for key in keys if self.chance(0.93)] + self.aggregates(source.columns)
            if self.chance(0.1) and items:
                self.random.shuffle(items)
        after = self.grouping(keys)
        if self.chance(0.15):
            self.operators.add("having")
            after += f" HAVING {self.having(source.columns, keys)}"
        return items, after

    def grouping(self, keys: list[_Column]) -> str:
        return f" GROUP BY {', '.join(dict.fromkeys(key.text for key in keys))}" if keys else ""

    def having(self, columns: list[_Column], keys: list[_Column]) -> str:
        if keys and self.chance(0.2):
            return self.condition(keys)
        return self.random.choice(("count(*) > 1", "count(*) < 3", f"{self.aggregate(columns, 'int').text} > 1"))

    def keys(self, columns: list[_Column]) -> list[_Column]:
        chosen = [self.random.choice(columns) for _ in range(self.random.choice((1, 1, 2, 3)))]
        keys = list({key.text: key for key in chosen}.values())
        if self.chance(0.2) or self.has(0.2):
            keys[0] = self.expression(columns, self.random.choice(("int", "string", "string", "string", "boolean", "double")))
        return [*keys[:-1], *(self.texts(columns) or keys[-1:])]

    def texts(self, columns: list[_Column]) -> list[_Column]:
        """Of a column that has equals of another type; more often than not none."""
        found = [column.text for column in columns if column.text in self.unlike]
        if not found or not self.chance(0.4):
            return []
        text = self.random.choice(found)
        return [_Column(self.random.choice((f"CAST({text} AS STRING)", f"concat('c', {text})")), "string")]

    def aggregates(self, columns: list[_Column]) -> list[_Column]:
        found: list[_Column] = []
        if self.chance(0.65):
            found.append(_Column("count(*)", "int"))
        for _ in range(self.random.choice((0, 1, 1, 2))):
            if self.chance(0.4):
                found.extend(self.followed(columns))
            else:
                found.append(self.aggregate(columns, self.random.choice(("int", "int", "decimal", "string", "boolean", "date", "double"))))
        return found or [_Column("count(*)", "int")]

    def followed(self, columns: list[_Column]) -> list[_Column]:
        """A sum or an average with what it takes to follow deletes."""
        type_ = self.random.choice(("int", "decimal"))
        value = self.expression(columns, type_)
        made = [_Column(f"sum({value.text})", type_), _Column(f"count({value.text})", "int")]
        if self.chance(0.3):
            self.operators.add("avg")
            made.append(_Column(f"avg({value.text})", "double"))
        if self.has(0.3):
            self.operators.add("computed from aggregates")
            ratio = f"sum({value.text}) / nullif(count({value.text}), 0)"
            made.append(_Column(self.random.choice((ratio, f"CAST({ratio} AS STRING)", f"coalesce({ratio}, 7)")), "double"))
        self.random.shuffle(made)
        return made

    def aggregate(self, columns: list[_Column], type_: Type) -> _Column:
        def over(wanted: Type) -> str:
            return self.expression(columns, wanted).text

        makers: dict[Type, Sequence[tuple[str, Callable[[], str]]]] = {
            "int": (
                ("count", lambda: "count(*)"),
                ("count", lambda: f"count({self.random.choice(columns).text})"),
                ("count distinct", lambda: f"count(DISTINCT {self.random.choice(columns).text})"),
                ("sum", lambda: f"sum({over('int')})"),
                ("sum distinct", lambda: f"sum(DISTINCT {over('int')})"),
                ("min max", lambda: f"{self.random.choice(('min', 'max'))}({over('int')})"),
                ("count_if", lambda: f"count_if({self.condition(columns)})"),
                ("bit", lambda: f"{self.random.choice(('bit_and', 'bit_or', 'bit_xor'))}({over('int')})"),
            ),
            "decimal": (("sum", lambda: f"sum({over('decimal')})"), ("min max", lambda: f"max({over('decimal')})")),
            "string": (("min max", lambda: f"{self.random.choice(('min', 'max'))}({over('string')})"),),
            "boolean": (("bool", lambda: f"{self.random.choice(('bool_and', 'bool_or'))}({over('boolean')})"),),
            "date": (("min max", lambda: f"min({over('date')})"),),
            "bigint": (("sum", lambda: f"sum({over('bigint')})"), ("min max", lambda: f"max({over('bigint')})")),
            "decimal4": (("sum", lambda: f"sum({over('decimal4')})"), ("min max", lambda: f"min({over('decimal4')})")),
            "timestamp": (("min max", lambda: f"max({over('timestamp')})"),),
            "double": (
                ("avg", lambda: f"avg({over(self.random.choice(('int', 'decimal')))})"),
                ("min max", lambda: f"max({over('double')})"),
            ),
        }
        operator, made = self.random.choice(makers[type_])
        self.operators.add(operator)
        text = made()
        if self.chance(0.12):
            self.operators.add("filter clause")
            text += f" FILTER (WHERE {self.condition(columns)})"
        if type_ == "int" and self.clock is not None and self.clock.random() < 0.25:
            self.operators.add("clock above groups")
            text = f"{text} {self.clock.choice(('+', '*', '-'))} month({self.day()})"
        return _Column(text, type_)

    def window(self, source: _From, wanted: Wanted | None, kind: str, depth: int) -> tuple[list[_Column], str]:
        self.operators.add("window")
        by = [self.random.choice(source.columns).text for _ in range(self.random.choice((1, 1, 2)))]
        if self.chance(0.06):
            by = []
        made = [self.over(source, by) for _ in range(self.random.choice((1, 1, 2)))]
        if wanted is not None:
            items = [self.random.choice([m for m in made if m.type == t] or [self.expression(source.columns, t)]) for t in wanted]
        else:
            shown = [column for column in source.columns if column.text in by or self.chance(0.4)]
            items = [*shown, *made]
        if self.chance(0.3):
            self.operators.add("qualify")
            first = self.over(source, by, ("rank()", "dense_rank()", "row_number()"))
            return items, f" QUALIFY {first.text} = 1"
        return items, ""

    def over(self, source: _From, by: list[str], functions: tuple[str, ...] = ()) -> _Column:
        number = self.expression(source.columns, "int").text
        chosen = self.random.choice(
            functions
            or (
                "rank()",
                "dense_rank()",
                f"sum({number})",
                f"count({number})",
                "count(*)",
                f"max({number})",
                "row_number()",
                "row_number()",
            )
        )
        order = [f"{self.random.choice(source.columns).text}{self.random.choice(('', ' DESC'))}"]
        if chosen == "row_number()":
            if not source.is_plain:
                chosen = "dense_rank()"
            else:
                self.operators.add("row_number")
                order.extend(column.text for column in source.columns)
        needs_order = chosen in ("rank()", "dense_rank()", "row_number()")
        parts = f"PARTITION BY {', '.join(by)}" if by else ""
        if needs_order or self.chance(0.4):
            parts += f" ORDER BY {', '.join(order)}"
        return _Column(f"{chosen} OVER ({parts.strip()})", "int")

    def scalar(self, columns: list[_Column], depth: int) -> _Column:
        table, alias = self.table()
        inner = self.columns_of(table, alias)
        aggregate = self.random.choice(
            (
                "count(*)",
                f"max({alias}.v)",
                f"sum({alias}.v)",
                f"count({alias}.v)",
                f"coalesce(sum({alias}.v), 0)",
                f"count(*) + coalesce(min({alias}.v), 7)",
            )
        )
        conditions = [self.condition(inner)] if self.chance(0.3) else []
        if self.chance(0.6):
            self.operators.add("correlated scalar subquery")
            conditions.extend(self.equalities(inner, columns, self.random.choice((1, 1, 2))))
        else:
            self.operators.add("scalar subquery")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return _Column(f"(SELECT {aggregate} FROM {{{table}}} {alias}{where})", "int")

    # --- FROM ----------------------------------------------------------------------------------------------------------------------

    def source(self, depth: int, start: str | None = None) -> _From:
        number = self.random.choice((1, 1, 1, 2, 2, 2, 2, 3, 3, 4)) if depth < 2 else self.random.choice((1, 1, 2))
        first = self.leaf(depth, start)
        if number == 1:
            return first
        if self.chance(0.15):
            return self.commas([first, *(self.leaf(depth) for _ in range(number - 1))])
        first.is_plain = False
        for at in range(number - 1):
            self.joined(first, self.leaf(depth), is_first=at == 0)
        if self.has(0.1) and first.columns:
            self.lateral(first)
        return first

    def lateral(self, left: _From) -> None:
        alias, name = self.name("x"), self.name("c")
        if self.has(0.5):
            self.operators.add("lateral select")
            value = self.expression(left.columns, "int")
            left.text += f" CROSS JOIN LATERAL (SELECT {value.text} AS {name}) AS {alias}"
            left.columns.append(_Column(f"{alias}.{name}", "int"))
            return
        self.operators.add("lateral rows")
        table, inner_alias = self.table()
        inner = self.columns_of(table, inner_alias)
        conditions = self.equalities(inner, left.columns, 1)
        if self.chance(0.4):
            conditions.append(self.random.choice((self.condition(inner), self.inequality(inner, left.columns))))
        items = [self.random.choice(inner), self.expression(inner, "int")]
        names = [name, self.name("c")]
        listed = ", ".join(f"{item.text} AS {name}" for item, name in zip(items, names, strict=True))
        join, on = self.random.choice((("CROSS JOIN", ""), ("LEFT JOIN", " ON true")))
        left.text += f" {join} LATERAL (SELECT {listed} FROM {{{table}}} {inner_alias} WHERE {' AND '.join(conditions)}) AS {alias}{on}"
        left.columns.extend(_Column(f"{alias}.{name}", item.type) for item, name in zip(items, names, strict=True))

    def commas(self, parts: list[_From]) -> _From:
        self.operators.add("comma join")
        made = _From(", ".join(part.text for part in parts), list(parts[0].columns))
        for part in parts[1:]:
            made.conditions.extend(self.equalities(part.columns, made.columns, 1))
            made.columns.extend(part.columns)
        return made

    def joined(self, left: _From, right: _From, *, is_first: bool) -> None:
        kind = self.random.choice(
            ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
        )
        kind = self.random.choice(("JOIN", "JOIN", "CROSS JOIN")) if self.is_linear else kind
        self.operators.add({"JOIN": "inner join"}.get(kind, kind.lower()))
        if kind == "CROSS JOIN":
            left.text += f" CROSS JOIN {right.text}"
            left.columns.extend(right.columns)
            return
        keys = [sum(c.text.endswith(".k") for c in side.columns) for side in (left, right)]
        is_common = keys == [1, 1] and "digits" not in (c.type for c in (*left.columns, *right.columns) if c.text.endswith(".k"))
        if is_first and is_common and not kind.endswith(("SEMI JOIN", "ANTI JOIN")) and self.chance(0.08):
            self.operators.add("using")
            left.text += f" {kind} {right.text} USING (k)"
            types = [next(c.type for c in side.columns if c.text.endswith(".k")) for side in (left, right)]
            type_ = {"RIGHT JOIN": types[1], "FULL JOIN": widest(*types)}.get(kind, types[0])
            left.columns = [c for c in (*left.columns, *right.columns) if not c.text.endswith(".k")] + [_Column("k", type_)]
            return
        conditions = self.equalities(right.columns, left.columns, self.random.choice((1, 1, 1, 1, 1, 2)))
        if self.chance(0.12):
            conditions = [self.inequality(right.columns, left.columns)]
            self.operators.add("theta join")
        elif self.chance(0.3):
            self.operators.add("join with more conditions")
            conditions.append(
                self.random.choice(
                    (self.condition(left.columns), self.condition(right.columns), self.inequality(right.columns, left.columns))
                )
            )
        left.text += f" {kind} {right.text} ON {' AND '.join(conditions)}"
        if "SEMI" not in kind and "ANTI" not in kind:
            left.columns.extend(right.columns)

    def leaf(self, depth: int, start: str | None = None) -> _From:
        alias = self.name("x")
        if start is not None or (self.ctes and depth and self.chance(0.5)):
            name = start or next(iter(self.ctes))
            if start is None:
                self.operators.add("cte twice")
            return _From(f"{name} {alias}", [_Column(f"{alias}.{column}", type_) for column, type_ in self.ctes[name].columns])
        if self.any_order and self.chance(0.35):
            return self.picked(alias)
        if self.chance(0.06):
            return self.united(alias)
        if depth and self.chance(0.25):
            if self.has(0.15):
                return self.starred(alias)
            query = self.limited(depth) if self.chance(0.06) and not self.is_linear else self.query(depth - 1)
            self.operators.add("derived table")
            if "GROUP BY" in query.text:
                self.operators.add("nested aggregate")
            return _From(f"({query.text}) {alias}", [_Column(f"{alias}.{column}", type_) for column, type_ in query.columns])
        table, alias = self.table()
        return _From(f"{{{table}}} {alias}", self.columns_of(table, alias), is_plain=True)

    def starred(self, alias: str) -> _From:
        """A table without one of its columns."""
        self.operators.add("star except")
        table, inner = self.table()
        columns = self.schemas[table].columns
        out = self.random.choice([name for name in columns if name not in COMMON] or list(columns))
        shown = [_Column(f"{alias}.{name}", type_) for name, type_ in columns.items() if name != out]
        return _From(f"(SELECT * EXCEPT ({out}) FROM {{{table}}} {inner}) {alias}", shown)

    def united(self, alias: str) -> _From:
        """Rows of two tables, or of one twice, with columns of types that may differ."""
        parts = [self.table(), self.table()]
        one, other = (self.columns_of(*part) for part in parts)
        pairs = [(a, b) for a in one for b in other if a.type == b.type or any({a.type, b.type} <= set(f) for f in FAMILIES)]
        unlike = [pair for pair in pairs if pair[0].type != pair[1].type]
        chosen = [self.random.choice(unlike if unlike and self.chance(0.7) else pairs), *self.random.choices(pairs, k=2)]
        if any(a.type != b.type for a, b in chosen):
            self.operators.add("set operation of unlike types")
        names = [self.name("c") for _ in chosen]
        left = ", ".join(f"{a.text} AS {name}" for (a, _), name in zip(chosen, names, strict=True))
        right = ", ".join(b.text for _, b in chosen)
        kind = "UNION ALL" if self.is_linear else self.random.choice(("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        self.operators.add(kind.lower())
        text = f"SELECT {left} FROM {{{parts[0][0]}}} {parts[0][1]} {kind} SELECT {right} FROM {{{parts[1][0]}}} {parts[1][1]}"
        columns = [_Column(f"{alias}.{name}", widest(a.type, b.type)) for (a, b), name in zip(chosen, names, strict=True)]
        self.unlike.update(column.text for column, (a, b) in zip(columns, chosen, strict=True) if a.type != b.type)
        return _From(f"({text}) {alias}", columns)

    def picked(self, alias: str) -> _From:
        """One value of many, by the order in which rows come."""
        self.operators.add("order of rows")
        table, inner = self.table()
        columns = self.columns_of(table, inner)
        key, value, order = (self.random.choice(columns) for _ in range(3))
        one, other = self.name("c"), self.name("c")
        if self.chance(0.5):
            text = f"SELECT {key.text} AS {one}, first({value.text}) AS {other} FROM {{{table}}} {inner} GROUP BY {key.text}"
            return _From(f"({text}) {alias}", [_Column(f"{alias}.{one}", key.type), _Column(f"{alias}.{other}", value.type)])
        over = f"PARTITION BY {key.text} ORDER BY {order.text}"
        number = self.random.choice(
            (f"row_number() OVER ({over})", f"count(*) OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)")
        )
        text = f"SELECT {value.text} AS {one}, {number} AS {other} FROM {{{table}}} {inner}"
        return _From(f"({text}) {alias}", [_Column(f"{alias}.{one}", value.type), _Column(f"{alias}.{other}", "int")])

    def limited(self, depth: int) -> _Query:
        """The first rows in an order that leaves no choice."""
        self.operators.add("limit")
        query = self.query(depth - 1)
        most = self.random.randint(1, 4)
        if self.chance(0.5):
            order = ", ".join(name for name, _ in query.columns)
            return _Query(f"SELECT * FROM ({query.text}) ORDER BY {order} LIMIT {most}", query.columns)
        # By what SELECT computes, and not by the names that it gives.
        alias = self.name("x")
        columns = [(self.name("c"), type_) for _, type_ in query.columns]
        written = [f"{alias}.{name}" for name, _ in query.columns]
        selected = ", ".join(f"{value} AS {name}" for value, (name, _) in zip(written, columns, strict=True))
        order = ", ".join(value.upper() if self.chance(0.3) else value for value in written)
        return _Query(f"SELECT {selected} FROM ({query.text}) {alias} ORDER BY {order} LIMIT {most}", columns)

    def table(self) -> tuple[str, str]:
        return self.random.choice(list(self.schemas)), self.name("x")

    def columns_of(self, table: str, alias: str) -> list[_Column]:
        return [_Column(f"{alias}.{name}", type_) for name, type_ in self.schemas[table].columns.items()]

    # --- conditions ----------------------------------------------------------------------------------------------------------------

    def equalities(self, one: list[_Column], other: list[_Column], number: int) -> list[str]:
        every = [(a, b) for a in one for b in other if comparable(a.type, b.type) and (a.type, b.type) != ("double", "double")]
        if not every:
            return [self.condition(one)]
        keys = [p for p in every if p[0].text.endswith(".k") and p[1].text.endswith((".k", ".v"))]
        same = [p for p in every if p[0].type == p[1].type]
        found = []
        for _ in range(number):
            a, b = self.random.choice(keys if keys and self.chance(0.75) else same if same and self.chance(0.8) else every)
            if a.type != b.type:
                self.operators.add("equality of unlike types")
                self.unlike.update((a.text, b.text))
            sign = "=" if self.chance(0.85) else "<=>"
            if sign == "<=>":
                self.operators.add("null-safe equality")
            found.append(f"{a.text} {sign} {b.text}" if self.chance(0.5) else f"{b.text} {sign} {a.text}")
        return found

    def inequality(self, one: list[_Column], other: list[_Column]) -> str:
        pairs = [(a, b) for a in one for b in other if a.type == b.type and a.type not in ("boolean", "double")]
        if not pairs:
            return self.condition(one)
        a, b = self.random.choice(pairs)
        return f"{a.text} {self.random.choice(('<', '>', '<>', '<='))} {b.text}"

    def exists(self, columns: list[_Column]) -> str:
        table, alias = self.table()
        inner = self.columns_of(table, alias)
        conditions = self.equalities(inner, columns, self.random.choice((1, 1, 2))) if self.chance(0.9) else []
        if self.chance(0.3):
            conditions.append(self.random.choice((self.condition(inner), self.inequality(inner, columns))))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"EXISTS (SELECT 1 FROM {{{table}}} {alias}{where})"

    def alternative(self, columns: list[_Column]) -> str:
        """EXISTS or IN beside another condition."""
        self.operators.add("subquery in OR")
        test = self.exists(columns)
        if self.chance(0.5):
            table, alias = self.table()
            pairs = [(a, b) for a in self.columns_of(table, alias) for b in columns if a.type == b.type and a.type != "double"]
            if pairs:
                a, b = self.random.choice(pairs)
                test = f"{b.text} IN (SELECT {a.text} FROM {{{table}}} {alias})"
        if test.startswith("EXISTS") and self.chance(0.3):
            test = f"NOT {test}"
        return f"({self.condition(columns)} {self.random.choice(('OR', 'OR', 'AND'))} {test})"

    def subquery_condition(self, columns: list[_Column], depth: int) -> str:
        if self.has(0.5):
            return self.alternative(columns)
        inner = self.leaf(max(depth - 1, 0))
        kind = self.random.choice(("EXISTS", "NOT EXISTS", "IN", "IN", "NOT IN", "scalar"))
        self.operators.add({"scalar": "scalar subquery"}.get(kind, kind.lower()))
        if kind == "scalar":
            numbers = [c.text for c in inner.columns if c.type == "int"] or ["1"]
            outer = [c.text for c in columns if c.type == "int"] or ["1"]
            where = ""
            if self.chance(0.4):
                self.operators.add("correlated scalar subquery")
                where = f" WHERE {' AND '.join(self.equalities(inner.columns, columns, 1))}"
            aggregate = self.random.choice(("max", "min", "sum", "count"))
            return f"{self.random.choice(outer)} >= (SELECT {aggregate}({self.random.choice(numbers)}) FROM {inner.text}{where})"
        conditions = [self.condition(inner.columns)] if self.chance(0.3) else []
        if kind in ("EXISTS", "NOT EXISTS"):
            if self.chance(0.95):
                conditions.extend(self.equalities(inner.columns, columns, self.random.choice((1, 1, 1, 2))))
            if self.chance(0.3):
                self.operators.add("correlated inequality")
                conditions.append(self.inequality(inner.columns, columns))
            where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
            return f"{kind} (SELECT 1 FROM {inner.text}{where})"
        pairs = [(a, b) for a in inner.columns for b in columns if a.type == b.type and a.type != "double"]
        if self.chance(0.2):
            pairs = [(a, b) for a in inner.columns for b in columns if any({a.type, b.type} <= set(f) for f in FAMILIES)] or pairs
        if not pairs:
            return self.condition(columns)
        a, b = self.random.choice(pairs)
        if a.type != b.type:
            self.operators.add("equality of unlike types")
        if kind == "IN" and self.chance(0.3):
            conditions.extend(self.equalities(inner.columns, columns, 1))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"{b.text} {kind} (SELECT {a.text} FROM {inner.text}{where})"

    def day(self) -> str:
        """A date, which may be read from the clock."""
        if self.clock is None or self.clock.random() < 0.2:
            return "DATE '2026-01-01'"
        self.operators.add("clock")
        return self.clock.choice(("{today}", "{today}", "{today} + 1", "{today} - 30", "date_sub({today}, 30)", "date_add({today}, 30)"))

    def in_a_lambda(self, date: str) -> str | None:
        """A condition on a date within a lambda function, in some cases. Its parameter can have the name of a column."""
        if self.lambdas is None or self.lambdas.random() >= 0.15:
            return None
        self.operators.update(("clock", "clock in a lambda"))
        name = self.lambdas.choice(("k", "t", "k_0", "v_1", "t_2", "t_3"))
        day = self.lambdas.choice(("{today}", "{today} + 1", "{today} - 30"))
        return f"array_contains(filter(array({date}), {name} -> {name} < {day}), {date})"

    def of_shape(self) -> str:
        """A query over one table with an operator that the others do not have."""
        table = self.random.choice(list(self.schemas))
        columns = [_Column(f"a.{name}", type_) for name, type_ in self.schemas[table].columns.items()]
        where = f" WHERE {self.condition(columns)}" if self.chance(0.5) else ""
        self.operators.add("unpivot")
        nulls = self.random.choice(("", " INCLUDE NULLS"))
        inner = f"SELECT a.k, a.v AS x, a.v + 1 AS y, 3 AS z FROM {{{table}}} AS a{where}"
        made = f"({inner}) UNPIVOT{nulls} (much FOR what IN (x, y AS other, z))"
        if self.chance(0.4):
            return f"SELECT k, what, sum(much) AS s, count(*) AS n FROM {made} GROUP BY k, what"
        return f"SELECT {self.random.choice(('k, what, much', 'much, k', 'what, k'))} FROM {made}"

    def of_values(self) -> str:
        """A table joined with rows of constants."""
        table = self.random.choice(list(self.schemas))
        columns = [_Column(f"a.{name}", type_) for name, type_ in self.schemas[table].columns.items()]
        where = f" WHERE {self.condition(columns)}" if self.chance(0.5) else ""
        self.operators.add("values")
        rows = self.random.choice(("(1, 'one'), (2, 'two'), (1, 'one')", "(1, 'one')", "(0, ''), (1, 'x, y'), (2, '(b)'), (7, 'z')"))
        join = self.random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        below = f"FROM {{{table}}} AS a {join} (VALUES {rows}) AS w(n, label) ON a.v = w.n{where}"
        if self.chance(0.5):
            return f"SELECT w.label, count(*) AS n, sum(a.v) AS s {below} GROUP BY w.label"
        return f"SELECT w.label, a.k, a.v {below}"

    def of_grouping_sets(self) -> str:
        """ROLLUP, CUBE or GROUPING SETS over one table or two, alone or below other operators."""
        self.operators.add("grouping sets")
        first, other = (self.random.choice(list(self.schemas)) for _ in range(2))
        columns = [_Column(f"a.{name}", type_) for name, type_ in self.schemas[first].columns.items()]
        columns.append(_Column("a.e", "int"))
        below = f"FROM (SELECT *, coalesce(v, 0) AS e FROM {{{first}}}) AS a"
        if self.chance(0.4):
            join = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"))
            below += f" {join} {{{other}}} AS b ON {self.random.choice(('a.k = b.k', 'a.v = b.k'))}"
            columns.extend(_Column(f"b.{name}", type_) for name, type_ in self.schemas[other].columns.items())
        if self.chance(0.3):
            below += f" WHERE {self.condition(columns)}"
        some = [self.random.choice(columns).text for _ in range(2)]
        x, y, z = self.random.sample(list(dict.fromkeys(("a.k", "a.v", "a.e", *some))), 3)
        forms = (
            (f"ROLLUP ({x}, {y})", [x, y]),
            (f"CUBE ({x}, {y})", [x, y]),
            (f"ROLLUP ({x})", [x]),
            (f"GROUPING SETS (({x}, {y}), ({y}), ())", [x, y]),
            (f"GROUPING SETS (({y}), ({x}))", [y, x]),
            (f"{x}, ROLLUP ({y}, {z})", [x, y, z]),
            (f"CUBE ({x}, ({y}, {z}))", [x, y, z]),
            (f"{z}, GROUPING SETS (({x}), ({y}))", [z, x, y]),
            (f"ROLLUP ({x}), ROLLUP ({y})", [x, y]),
        )
        by, keys = self.random.choice(forms)
        number, one = f"grouping_id({', '.join(keys)})", f"grouping({self.random.choice(keys)})"
        if self.chance(0.35):
            items = [*keys, number, *([one] if self.chance(0.3) else []), "count(*)", *(i.text for i in self.followed(columns))]
            return self.as_columns(items, f"{below} GROUP BY {by}")
        shown = [*keys] if self.chance(0.85) else keys[1:]
        items = [*shown, *([number] if self.chance(0.4) else []), *([one] if self.chance(0.25) else [])]
        items.extend(item.text for item in self.aggregates(columns))
        having = self.random.choice(("", "", "", " HAVING count(*) > 1", f" HAVING grouping({keys[0]}) = 0"))
        query, last = self.as_columns(items, f"{below} GROUP BY {by}{having}"), f"c{len(items) - 1}"
        return self.random.choice(
            (
                query,
                query,
                query,
                f"SELECT c0, count(*) AS n, max({last}) AS m FROM ({query}) AS q GROUP BY c0",
                f"SELECT q.c0, q.{last}, b.v FROM ({query}) AS q JOIN {{{other}}} AS b ON CAST(b.k AS STRING) = CAST(q.c0 AS STRING)",
                f"SELECT * FROM ({query}) AS q WHERE c0 IS NOT NULL",
            )
        )

    def of_time_window(self) -> str:
        """window() of a time: in groups, as a column, and below other operators."""
        self.operators.add("time window")
        table, other = (self.random.choice(list(self.schemas)) for _ in range(2))
        columns = [_Column(f"a.{name}", type_) for name, type_ in self.schemas[table].columns.items()]
        below = f"FROM {{{table}}} AS a"
        if self.chance(0.3):
            below += f" {self.random.choice(('JOIN', 'LEFT JOIN', 'RIGHT JOIN'))} {{{other}}} AS b ON a.k = b.k"
        where = f" WHERE {self.condition(columns)}" if self.chance(0.3) else ""
        lengths = self.random.choice(
            ("'1 day'", "'6 hours'", "'12 hours', '6 hours'", "'1 day', '6 hours'", "'12 hours', '12 hours', '3 hours'")
        )
        call = f"window(a.t, {lengths})"
        values = ", ".join(f"{item.text} AS c{at}" for at, item in enumerate(self.aggregates(columns)))
        return self.random.choice(
            (
                f"SELECT {call}.start AS begun, {values} {below}{where} GROUP BY {call}",
                f"SELECT {call} AS w, a.k, {values} {below}{where} GROUP BY {call}, a.k",
                f"SELECT a.k, count(*) AS n, {values} {below}{where} GROUP BY a.k, {call} HAVING count(*) > 1",
                f"SELECT a.k, a.v, {call} AS w {below}{where}",
                f"SELECT w, count(*) AS n, sum(v) AS s FROM (SELECT a.v, {call} AS w {below}{where}) AS q GROUP BY w",
                f"SELECT q.begun, b.k FROM (SELECT a.k, {call}.start AS begun {below}{where}) AS q JOIN {{{other}}} AS b ON b.k = q.k",
            )
        )

    def of_sessions(self) -> str:
        """session_window() with other keys and without, over one table or two, and below other operators."""
        self.operators.add("sessions")
        table, other = (self.random.choice(list(self.schemas)) for _ in range(2))
        columns = [_Column(f"a.{name}", type_) for name, type_ in self.schemas[table].columns.items()]
        below = f"FROM {{{table}}} AS a"
        if self.chance(0.3):
            below += f" {self.random.choice(('JOIN', 'LEFT JOIN'))} {{{other}}} AS b ON a.k = b.k"
        where = f" WHERE {self.condition(columns)}" if self.chance(0.3) else ""
        key = self.random.choice(("k", "k", "v", "k + v"))
        inner = [_Column(f"q.{one.text.removeprefix('a.')}", one.type) for one in columns]
        rows = f"(SELECT {', '.join(one.text for one in columns)} {below}{where}) AS q"
        call = f"session_window(q.t, '{self.random.choice(('1 hour', '6 hours', '2 days'))}')"
        values = ", ".join(f"{item.text} AS c{at}" for at, item in enumerate(self.aggregates(inner)))
        sessions = f"SELECT {key} AS key, {call}.start AS begun, {values} FROM {rows} GROUP BY {key}, {call}"
        return self.random.choice(
            (
                sessions,
                sessions,
                f"{sessions} HAVING count(*) > 1",
                f"SELECT {key} AS key, q.k, session_window.end AS ended, {values} FROM {rows} GROUP BY {key}, q.k, {call}",
                f"SELECT {call} AS w, {values} FROM {rows} GROUP BY {call}",
                f"SELECT key, count(*) AS n, max(c0) AS m FROM ({sessions}) AS s GROUP BY key",
                f"SELECT begun, count(*) AS n FROM ({sessions}) AS s GROUP BY begun",
                f"SELECT s.begun, s.c0, b.v FROM ({sessions}) AS s JOIN {{{other}}} AS b ON b.k = s.key",
                f"SELECT key, begun, row_number() OVER (PARTITION BY key ORDER BY begun) AS number FROM ({sessions}) AS s",
            )
        )

    def of_pivot(self) -> str:
        """PIVOT over one table or two. Counts are left out: those of no rows are NULL in Spark, and 0 in DuckDB."""
        self.operators.add("pivot")
        table, other = (self.random.choice(list(self.schemas)) for _ in range(2))
        columns = [_Column(f"a.{name}", type_) for name, type_ in self.schemas[table].columns.items()]
        by = self.random.choice([c for c in columns if c.type in ("int", "bigint", "string")])
        cases = self.random.choice(
            (("0", "1", "2 AS two"), ("1",)) if by.type != "string" else (("'x'", "'y' AS why", "''"), ("'x' AS c",))
        )
        numbers = [column for column in columns if column.type in ("int", "decimal", "bigint")]
        value = self.expression(columns, "int").text if self.chance(0.3) else self.random.choice(numbers).text
        keys = self.random.choice(("a.k AS k, ", "a.k AS k, ", "a.v AS v, a.k AS k, ", ""))
        function = self.random.choice(("sum", "sum", "min", "max", "avg"))
        below = f"FROM {{{table}}} AS a" + (f" JOIN {{{other}}} AS b ON a.k = b.k" if self.chance(0.3) else "")
        where = f" WHERE {self.condition(columns)}" if self.chance(0.3) else ""
        functions = f"{function}(x)" if self.chance(0.6) else f"{function}(x) AS p, max(x) AS q"
        made = f"(SELECT {keys}{by.text} AS b, {value} AS x {below}{where}) PIVOT ({functions} FOR b IN ({', '.join(cases)}))"
        query = f"SELECT * FROM {made}"
        if keys and self.chance(0.3):
            return f"SELECT p.k, b.v, b.k AS other FROM ({query}) AS p {self.random.choice(('LEFT JOIN', 'JOIN'))} {{{other}}} AS b ON p.k = b.k"
        return query

    def as_columns(self, items: Sequence[str], rest: str) -> str:
        return f"SELECT {', '.join(f'{item} AS c{at}' for at, item in enumerate(items))} {rest}"

    def of_newest(self) -> str:
        """The idiom of a staging view: the newest row of each key; then what marts do with it."""
        first, other = (self.random.choice(list(self.schemas)) for _ in range(2))
        key = self.random.choice(("k", "k", "k, v"))
        order = self.random.choice(("v DESC", "v DESC, k", "v", ", ".join(f"{name} DESC" for name in self.schemas[first].columns)))
        rank, most = self.random.choice((("row_number", "= 1"), ("row_number", "= 1"), ("rank", "= 1"), ("row_number", "<= 2")))
        self.operators.add("newest row")
        numbered = f"SELECT *, {rank}() OVER (PARTITION BY {key} ORDER BY {order}) AS place FROM {{{first}}}"
        newest = f"(SELECT k, v FROM ({numbered}) AS numbered WHERE place {most})"
        join = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        on = self.random.choice(("b.k = a.k", "b.k = a.k", "b.v = a.k AND b.k > 0", "b.k = a.v"))
        below = f"FROM {{{other}}} AS b {join} {newest} AS a ON {on}"
        where = self.random.choice(("", "", " WHERE a.k > 0", " WHERE a.v IS NOT NULL", " WHERE b.v > 0"))
        return self.random.choice(
            (
                f"SELECT a.v, sum(b.v) AS s, count(*) AS n, count(b.v) AS m {below}{where} GROUP BY a.v",
                f"SELECT a.v, sum(b.v) / count(*) AS mean {below}{where} GROUP BY a.v",
                f"SELECT a.k, max(b.v) AS most, count(DISTINCT b.v) AS n {below}{where} GROUP BY a.k HAVING count(*) > 1",
                f"SELECT b.k AS one, b.v AS two, a.k AS three, a.v AS four {below}{where}",
                f"SELECT sum(b.v) AS s, count(*) AS n {below}{where}",
                f"SELECT k, v FROM {{{other}}} AS b WHERE EXISTS (SELECT 1 FROM {newest} AS a WHERE {on})",
                f"SELECT v, count(*) AS n FROM (SELECT a.v {below}{where} UNION ALL SELECT v FROM {{{other}}}) AS u GROUP BY v",
            )
        )

    def of_newest_today(self) -> str:
        """The newest row of each key, or groups: the day is read above them, and at times in them or below."""
        first, other = (self.random.choice(list(self.schemas)) for _ in range(2))
        self.operators.add("newest row")

        def near(column: str) -> str:
            return f"{column} {self.random.choice(('>=', '>', '<', '<=', '='))} {self.day()}"

        order = self.random.choice(("t DESC, v DESC", "v, t", "t"))
        below = f" WHERE {near('t')}" if self.chance(0.1) else ""
        numbered = f"SELECT *, row_number() OVER (PARTITION BY k ORDER BY {order}) AS place FROM {{{first}}}{below}"
        shown = self.random.choice(("place = 1", "place = 1", f"place = 1 AND {near('t')}", f"{near('t')} AND place <= 2"))
        newest = f"(SELECT k, v, t FROM ({numbered}) AS numbered WHERE {shown}) AS a"
        joined = f"{{{other}}} AS b {self.random.choice(('JOIN', 'JOIN', 'LEFT JOIN', 'RIGHT JOIN'))} {newest} ON b.k = a.k"
        where = self.random.choice(
            ("", f" WHERE {near('a.t')}", f" WHERE {near('b.t')}", f" WHERE a.v > 0 AND {near('a.t')} AND b.v IS NOT NULL")
        )
        return self.random.choice(
            (
                f"SELECT a.k, a.v, a.t FROM {newest} WHERE {near('a.t')}",
                f"SELECT a.k, a.v, {near('a.t')} AS x, CASE WHEN {near('a.t')} THEN 'new' ELSE 'old' END AS y FROM {newest}",
                f"SELECT a.v, count(*) AS n, sum(b.v) AS s, count(b.v) AS m FROM {joined}{where} GROUP BY a.v",
                f"SELECT a.v, avg(b.v) AS mean FROM {joined}{where} GROUP BY a.v HAVING count(*) > 1",
                f"SELECT a.v, sum(CASE WHEN {near('a.t')} THEN b.v END) AS s FROM {joined} GROUP BY a.v",
                f"SELECT count(*) AS n, max(a.t) AS last FROM {newest} WHERE {near('a.t')}",
                f"SELECT b.k, b.v FROM {{{other}}} AS b WHERE EXISTS (SELECT 1 FROM {newest} WHERE a.k = b.k AND {near('a.t')})",
                f"SELECT k, avg(v) AS mean FROM {{{first}}} GROUP BY k HAVING {near('max(t)')}",
                f"SELECT k, sum(v) / count(*) AS mean, {near('max(t)')} AS x FROM {{{first}}} GROUP BY k",
                f"SELECT n, count(*) AS ks FROM (SELECT k, count(*) AS n, max(t) AS last FROM {{{first}}} GROUP BY k) AS q WHERE {near('last')} GROUP BY n",
                f"SELECT v, n FROM (SELECT a.v, count(*) AS n FROM {newest} WHERE {near('a.t')} GROUP BY a.v) AS q ORDER BY n DESC, v LIMIT 2",
            )
        )

    def of_time(self) -> str:
        """What reads the day in several places: some rows pass one limit, and some another one."""
        assert self.clock is not None
        table = self.clock.choice(list(self.schemas))
        columns = [_Column(f"a.{name}", type_) for name, type_ in self.schemas[table].columns.items()]

        def near() -> str:
            return self.in_a_lambda("a.t") or f"a.t {self.clock.choice(('>=', '>', '<', '<='))} {self.day()}"  # type: ignore[union-attr]

        def either() -> str:
            return f"({self.condition(columns)} OR {near()})"

        conditions = self.clock.choice(((), (either(),), (either(), either()), (near(), either()), (near(),)))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        values = [
            f"sum(CASE WHEN {near()} THEN a.v END)",
            f"sum(CASE WHEN {either()} THEN a.v ELSE 0 END)",
            f"count(*) FILTER (WHERE {near()})",
        ]
        if self.clock.random() < 0.5:
            self.operators.add("group by")
            return f"SELECT a.k, count(*) AS n, {', '.join(f'{v} AS x{at}' for at, v in enumerate(values))} FROM {{{table}}} AS a{where} GROUP BY a.k"
        return f"SELECT a.k, a.v, {near()} AS x, CASE WHEN {near()} THEN 'new' ELSE 'old' END AS y FROM {{{table}}} AS a{where}"

    def condition(self, columns: list[_Column]) -> str:
        column = self.random.choice(columns)
        if self.clock is not None and self.clock.random() < 0.6:
            column = self.clock.choice(self.some(columns, "date") or [column])
            if column.type == "date" and self.clock.random() < 0.3:
                return self.in_a_lambda(column.text) or self.clock.choice(
                    (
                        f"{column.text} BETWEEN {self.day()} AND {self.day()}",
                        f"({column.text} >= {self.day()} AND {column.text} < {self.day()})",
                        f"({column.text} < {self.day()} OR {self.day()} <= {column.text})",
                        f"coalesce({column.text}, {self.day()}) <= {self.day()}",
                        f"NOT ({column.text} > {self.day()})",
                        f"month({column.text}) = month({self.day()})",
                    )
                )
        if self.chance(0.2):
            return f"{column.text} IS {self.random.choice(('', 'NOT ', 'NOT ', 'NOT '))}NULL"
        if self.chance(0.12):
            return f"({self.condition(columns)} {self.random.choice(('OR', 'AND'))} {self.condition(columns)})"
        if self.chance(0.05):
            return f"NOT ({self.condition(columns)})"
        if column.type == "boolean":
            return self.random.choice((column.text, f"NOT {column.text}", f"{column.text} IS NOT NULL"))
        if column.type == "double":
            return f"{column.text} IS NOT NULL"
        if column.type == "timestamp":
            return f"{column.text} {self.random.choice(('>=', '<', '='))} {_NOON}"
        if column.type == "digits":
            return f"{column.text} {self.random.choice(('<>', '='))} '1'"
        if column.type == "string":
            found = self.random.choice(
                (f"{column.text} <> 'y'", f"{column.text} LIKE 'x%'", f"{column.text} IN ('x', '')", f"length({column.text}) > 0")
            )
            turned = self.turned.random()
            if turned > 0.8:
                return found.replace(" LIKE", " NOT LIKE").replace(" IN", " NOT IN")
            return found if turned > 0.1 else f"'y' IN ({column.text}, 'y')"
        if column.type == "date":
            return f"{column.text} {self.random.choice(('>=', '<', '='))} {self.day()}"
        if column.type in ("decimal", "decimal4"):
            return f"{column.text} {self.random.choice(('>', '<=', '<>'))} 1.10"
        number = self.random.choice((1, 1, 2))
        found = self.random.choice(
            (
                f"{column.text} > {number}",
                f"{column.text} <= {number}",
                f"{column.text} = {number}",
                f"{column.text} <> {number}",
                f"{column.text} IN (1, {number})",
                f"{column.text} BETWEEN 0 AND {number}",
                f"{column.text} IS DISTINCT FROM {number}",
            )
        )
        turned = (f"{number} IN (1, {column.text})", f"1 BETWEEN {column.text} AND {number}", f"{number} > {column.text}")
        return found if self.turned.random() > 0.1 else self.turned.choice(turned)

    def some(self, columns: list[_Column], *types: Type) -> list[_Column]:
        """A column of one of the types, if there is one."""
        found = [column for column in columns if column.type in types]
        return [self.random.choice(found)] if found else []

    # --- expressions ---------------------------------------------------------------------------------------------------------------

    def expression(self, columns: list[_Column], type_: Type) -> _Column:
        """A value of that type; a plain column more often than not."""
        own = [column for column in columns if column.type == type_]
        if own and self.chance(0.6):
            return self.random.choice(own)
        return _Column(self.random.choice(list(self.expressions(columns, own, type_))), type_)

    def expressions(self, columns: list[_Column], own: list[_Column], type_: Type) -> Iterator[str]:
        literals: Mapping[Type, str] = {
            "int": "4",
            "decimal": "CAST(0.50 AS DECIMAL(10, 2))",
            "string": "'z'",
            "boolean": "true",
            "date": self.day(),
            "double": "CAST(2 AS DOUBLE)",
            "bigint": "CAST(4 AS BIGINT)",
            "decimal4": "CAST(0.25 AS DECIMAL(12, 4))",
            "timestamp": _NOON,
            "digits": "'2'",
        }
        one = self.random.choice(own).text if own else literals[type_]
        other = self.random.choice(own).text if own else literals[type_]
        condition = self.condition(columns)
        yield f"CASE WHEN {condition} THEN {one} ELSE {other} END"
        yield f"CASE WHEN {condition} THEN {one} END"
        if type_ == "double":
            yield one
            yield from (f"{c.text} / 3" for c in self.some(columns, "int", "bigint", "decimal", "decimal4"))
            return
        yield f"coalesce({one}, {literals[type_]})"
        if type_ == "int":
            yield from (
                f"{one} + {other}",
                f"{one} - {other}",
                f"{one} * 2",
                f"abs({one})",
                f"{one} % 3",
                f"nullif({one}, 1)",
                f"greatest({one}, {other})",
            )
            yield from (f"length({c.text})" for c in columns if c.type == "string")
            yield from (f"{self.random.choice(('year', 'month', 'day'))}({c.text})" for c in columns if c.type == "date")
        if type_ == "bigint":
            yield from (f"{one} + {other}", f"greatest({one}, {other})")
        if type_ == "decimal":
            yield from (f"{one} + {other}", f"{one} - 0.25", f"-{one}")
        if type_ == "string":
            yield from (f"upper({one})", f"concat({one}, 'q')", f"substring({one}, 1, 1)", f"coalesce({one}, {other})", f"{one} || {other}")
            for column in self.some(columns, "int", "bigint", "decimal", "decimal4", "double", "date", "timestamp", "digits"):
                yield from (f"CAST({column.text} AS STRING)", f"concat('c', {column.text})")
            yield from (f"CAST({c.text} / 3 AS STRING)" for c in self.some(columns, "int", "bigint", "decimal", "decimal4"))
        if type_ == "boolean":
            yield condition
            yield f"NOT ({condition})"
        if type_ == "date":
            yield f"coalesce({one}, {other})"
