"""A query, tables before and after a change, and a strategy -> the storage table that it leaves, on DuckDB.

The statements are those that Spark gets, in DuckDB's dialect: what is tested is the algebra, on thousands of cases. All statements of a
refresh are run as one query, since tables that are made and dropped cost more than the rows of these tests.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from mvbuild.incremental.algebra import Ref, Relation, Scan
from mvbuild.incremental.bounds import Bounds, bounded, bounds_of, bounds_of_range, scan_name
from mvbuild.incremental.building import LeafColumns
from mvbuild.incremental.clock import call
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.delta import KEYS, Cte
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.key_ranges import without_empty
from mvbuild.incremental.narrowed_joins import with_narrowed_joins
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import Bag, Exchange, Rewrite, StrategyInput, Top
from mvbuild.incremental.shape import Shape, shape_of, with_lifted_readings
from mvbuild.incremental.shared_joins import with_shared_joins
from mvbuild.incremental.shared_reads import Changed, with_shared_reads
from mvbuild.incremental.statements import difference
from mvbuild.incremental.stored_rows import STORAGE, Stored
from mvbuild.incremental.strategies import MAY_FALL_SHORT, STRATEGIES
from mvbuild.ports.changes import ValueRange

SQL_TYPES: Mapping[str, str] = {
    "int": "INTEGER",
    "long": "BIGINT",
    "decimal(10, 2)": "DECIMAL(10,2)",
    "decimal(12, 4)": "DECIMAL(12,4)",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
Row = tuple[Any, ...]
TODAY: Mapping[str, str] = {"old": "2025-12-31", "new": "2026-01-01"}
"""What `{today}` in a query is at both times."""


@dataclass(frozen=True)
class Table:
    """A table at both snapshots. `columns`: name -> Iceberg type."""

    name: str
    columns: Mapping[str, str]
    old: Sequence[Row]
    new: Sequence[Row]
    required: frozenset[str] = frozenset()
    carried: Sequence[Row] = ()
    """Rows that are in `plus` and in `minus`, as a rewritten file has them."""

    @property
    def plus(self) -> list[Row]:
        return [*(Counter(self.new) - Counter(self.old)).elements(), *self.carried]

    @property
    def minus(self) -> list[Row]:
        return [*(Counter(self.old) - Counter(self.new)).elements(), *self.carried]

    @property
    def is_changed(self) -> bool:
        return bool(self.plus or self.minus)


def connected() -> duckdb.DuckDBPyConnection:
    """A connection for any number of cases, one after the other."""
    found = duckdb.connect(":memory:")
    found.execute("SET threads = 1")
    found.execute("PRAGMA disable_optimizer")
    found.execute("CREATE OR REPLACE MACRO raise_error(m) AS error(m)")
    return found


@dataclass
class OnDuckDB:
    """`query` is SQL with the names of the tables in braces: SELECT * FROM {a}. A table in it twice is two leaves of one table."""

    query: str
    tables: Sequence[Table]
    connection: duckdb.DuckDBPyConnection = field(default_factory=connected)
    outputs: list[str] = field(init=False)
    types: list[str] = field(init=False)
    before: Counter[Row] = field(init=False)
    _text: str = field(init=False)
    _case: StrategyInput | None = field(init=False, default=None)
    _after: dict[str, Counter[Row]] = field(init=False, default_factory=dict)
    """The query of a refresh -> the storage after it: many ways of writing a refresh are the same text."""

    def __post_init__(self) -> None:
        sql = self.query.format(**{t.name: f'"{t.name}_VERSION"' for t in self.tables}, today="DATE 'today_VERSION'")
        text = _TIME_WINDOW.sub("TIME_WINDOW(", sql.replace('"', "`"))
        self._text = like_spark(sqlglot.transpile(text, read="spark", write="duckdb")[0])
        self._begin()

    def _begin(self) -> None:
        """The tables, and the storage as the query fills it before the change."""
        statements = [
            f'CREATE OR REPLACE TEMP TABLE "{t.name}_{version}" AS {_rows_sql(t.columns, getattr(t, version))}'
            for t in self.tables
            for version in ("old", "new", "plus", "minus")
        ]
        self.connection.execute(";\n".join(statements))
        names = self.connection.execute(f"DESCRIBE {self.text('new')}").fetchall()
        self.outputs = [f"c{at}" for at in range(len(names))]
        self.types = [str(row[1]) for row in names]
        columns = ", ".join(self.outputs)
        self.before = self.full("old")
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE storage AS SELECT * FROM ({self.text('old')}) AS q ({columns})")

    def text(self, version: str) -> str:
        return self._text.replace("'today_VERSION'", f"'{TODAY[version]}'").replace("_VERSION", f"_{version}")

    def shape(self) -> Shape:
        leaves = [LeafColumns.of_iceberg(t.columns, t.required) for t in self.tables]
        sql = self.query.format(**{t.name: f"`{MARKER}{at}`" for at, t in enumerate(self.tables)}, today=call("current_date", TODAY["new"]))
        return shape_of(sql.replace('"', "`"), leaves, self.outputs)

    def case(self, **changes: Any) -> StrategyInput:
        if self._case is None or changes:
            plus = frozenset(at for at, t in enumerate(self.tables) if t.plus)
            minus = frozenset(at for at, t in enumerate(self.tables) if t.minus)
            types = {name: _iceberg(kind) for name, kind in zip(self.outputs, self.types, strict=True)}
            clock = {"current_date": TODAY["old"]} if "{today}" in self.query else {}
            shape = with_lifted_readings(self.shape(), clock)
            values = {"shape": shape, "plus": plus, "minus": minus, "types": types, "has_children": True, "clock": clock}
            made = StrategyInput(**{**values, **changes})  # type: ignore[arg-type]
            self._case = self._case if changes else made
            return made
        return self._case

    def rows(self, version: str) -> list[Row]:
        return self.connection.execute(self.text(version)).fetchall()

    def full(self, version: str = "new") -> Counter[Row]:
        return bag(self.rows(version))

    def is_full(self, rows: Counter[Row]) -> bool:
        """Whether these are rows of the full query. Where they depend on the order of rows, as the tables that did not change lie now, or as
        they lay."""
        if rows == self.full():
            return True
        if all(t.is_changed or list(t.old) == list(t.new) for t in self.tables):
            return False
        text = self._text.replace("'today_VERSION'", f"'{TODAY['new']}'")
        for table in self.tables:
            text = text.replace(f"{table.name}_VERSION", f"{table.name}_{'new' if table.is_changed else 'old'}")
        return rows == bag(self.connection.execute(text).fetchall())

    def refreshed(self, strategy: str, case: StrategyInput | None = None) -> Counter[Row]:
        """The storage after the strategy, from that of before. Raises Refused."""
        asked = case or self.case()
        made = STRATEGIES[strategy](asked)
        rows, shared = self.apply(made), with_shared_joins(made)
        ways = [shared, *(with_narrowed_joins(one, _any_table) for one in (made, shared) if one is not None)]
        if strategy == "affected-keys":
            ways.append(STRATEGIES[strategy](replace(asked, narrow_keys=True)))
        changed = Changed(plus=asked.plus, minus=asked.minus, types=asked.shape.types)
        ways += [with_shared_reads(one, changed, _any_table) for one in (made, *ways) if one is not None]
        for other in ways:
            if other is not None:
                again = self.apply(other)
                assert again == rows or self.is_full(again), f"written in another way: too many {again - rows}, missing {rows - again}"
        return rows

    def apply(self, made: Rewrite) -> Counter[Row]:
        sql = self.applied_sql(made)
        if sql not in self._after:
            self._after[sql] = self._applied(made, sql)
        return self._after[sql]

    def _applied(self, made: Rewrite, sql: str) -> Counter[Row]:
        rows = self.connection.execute(sql).fetchall()
        (gone, distinct, wanted) = rows[0][:3]
        assert gone == distinct, f"{gone} positions to remove are {distinct} different ones"
        if made.strategy in MAY_FALL_SHORT and wanted not in (None, gone):
            raise Refused(MAY_FALL_SHORT[made.strategy], "what follows is not stored")
        assert wanted is None or wanted == gone, f"{gone} of {wanted} rows to be removed were found"
        after = bag([row[4:] for row in rows if row[3]])
        if isinstance(made.write, Exchange | Bag | Top):
            needless = gone - (self.before - after).total()
            assert not needless, f"{needless} rows go and come again"
        return after

    def applied_sql(self, made: Rewrite) -> str:
        """One query: how many rows go, how many different ones, how many should, whether there is a row; and the storage as it becomes."""
        # Both ways to find the rows of the storage, independent of the choice.
        change = difference(made, Stored(types=self.case().types, position=("rowid",), is_large=len(self.outputs) % 2 == 0))
        metadata: Any = Metadata(self)
        change = without_empty(change, metadata)
        columns = ", ".join(self.outputs)
        known = self.bounds()
        parts = []
        for cte in change.ctes:
            own = {(cte.name, name): bounds_of(cte.relation, name, known) for name in cte.relation.columns}
            known |= {key: found for key, found in own.items() if found is not None}
            parts.append(f'"{cte.name}" AS MATERIALIZED ({self.sql(bounded(pruned(cte.relation), known))})')
            if self.knowledge == "values" and (cte.name.startswith(KEYS) or cte.name in ("delta", "minus", "net_minus")):
                known |= self.measured(cte, parts)
        gone = self.sql(change.gone) if change.gone is not None else "SELECT 0 WHERE false"
        parts.append(f"gone_rows(gone_at) AS MATERIALIZED ({gone})")
        after = f"SELECT {columns} FROM storage WHERE rowid NOT IN (SELECT gone_at FROM gone_rows)"
        if change.came is not None:
            # Types as INSERT gives them.
            parts.append(f"came_rows({columns}) AS MATERIALIZED ({self.sql(change.came)})")
            cast = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in zip(self.outputs, self.types, strict=True))
            after += f" UNION ALL SELECT {cast} FROM came_rows"
        wanted = f'(SELECT count(*) FROM "{change.removes.name}")' if change.removes is not None else "NULL"
        counts = f"SELECT count(*) AS gone, count(DISTINCT gone_at) AS different, {wanted} AS wanted FROM gone_rows"
        return f"WITH {', '.join(parts)} SELECT n.*, q.* FROM ({counts}) AS n LEFT JOIN (SELECT true AS here, a.* FROM ({after}) AS a) AS q ON true"

    @property
    def knowledge(self) -> str:
        """What is known of the values of changes: each in turn."""
        return ("nothing", "values", "ranges")[sum(len(table.new) for table in self.tables) % 3]

    def measured(self, cte: Cte, parts: Sequence[str]) -> dict[tuple[str, str], Bounds]:
        """The bounds of what a statement computes, as mvbuild asks for them. `parts`: the statements up to it."""
        done = self.connection.execute(f'WITH {", ".join(parts)} SELECT * FROM "{cte.name}"')
        kinds, rows = [str(one[1]) for one in done.description or ()], done.fetchall()
        types = ["struct" if kind.startswith("STRUCT") else _iceberg(kind) for kind in kinds]
        ranges = (range_of([row[at] for row in rows], type_, with_values=True) for at, type_ in enumerate(types))
        return {(cte.name, name): bounds_of_range(one) for name, one in zip(cte.relation.columns, ranges, strict=True) if one is not None}

    def bounds(self) -> dict[tuple[str, str], Bounds]:
        """Those of the columns of each change, as mvbuild reads them."""
        if self.knowledge == "nothing":
            return {}
        found = {}
        for leaf, table in enumerate(self.tables):
            sources = tuple((name, name) for name in table.columns)
            for scan in (Scan(leaf, sources, "plus"), Scan(leaf, sources, "minus")):
                ranges = {name: Metadata(self).range(scan, name, with_values=self.knowledge == "values") for name in table.columns}
                found |= {(scan_name(scan), name): bounds_of_range(one) for name, one in ranges.items() if one is not None}
        return found

    def sql(self, relation: Relation) -> str:
        def source(read: Scan | Ref) -> str:
            if isinstance(read, Ref):
                return f'"{read.name}"'
            return "storage" if read.leaf == STORAGE else f'"{self.tables[read.leaf].name}_{read.version}"'

        return like_spark(sql_of(pruned(relation), source, outputs=[(n, n) for n in relation.columns], dialect="duckdb"))


def _any_table(_: Relation) -> bool:
    """Every table counts as large."""
    return True


@dataclass
class Metadata:
    """What manifests would show of the tables, if each had one file: the ranges of what changed, and whether a table has such values."""

    of: OnDuckDB

    def range(self, scan: Scan, name: str, *, with_values: bool = False) -> ValueRange | None:
        if scan.version not in ("plus", "minus") or scan.leaf == STORAGE:
            return None
        table, source = self.of.tables[scan.leaf], dict(scan.sources)[name]
        found = [row[list(table.columns).index(source)] for row in (table.plus if scan.version == "plus" else table.minus)]
        return range_of(found, table.columns[source], with_values=with_values)

    def type_of(self, scan: Scan, name: str) -> str | None:
        source = dict(scan.sources).get(name)
        return self.of.tables[scan.leaf].columns.get(source) if scan.leaf != STORAGE and source is not None else None

    def share(self, scan: Scan, wanted: Mapping[str, ValueRange]) -> float:
        if scan.leaf == STORAGE:
            types: dict[str, str] = {name: _iceberg(kind) for name, kind in zip(self.of.outputs, self.of.types, strict=True)}
            rows: Sequence[Row] = list(self.of.before)
        else:
            table = self.of.tables[scan.leaf]
            types, rows = dict(table.columns), table.old if scan.version == "old" else table.new
        if scan.version not in ("old", "new"):
            return 1.0
        for name, range_ in wanted.items():
            source = dict(scan.sources)[name]
            if types.get(source) != range_.type or range_.low is None:
                continue
            at = list(types).index(source)
            if not any(row[at] is not None and range_.low <= row[at] <= range_.high for row in rows):
                return 0.0
        return 1.0


def range_of(found: Sequence[Any], type_: str, *, with_values: bool) -> ValueRange | None:
    """None for a type without bounds."""
    if type_ not in ("int", "long", "date", "string") and not type_.startswith("decimal"):
        return None
    values = sorted({value for value in found if value is not None})
    low, high = (values[0], values[-1]) if values else (None, None)
    return ValueRange(type=type_, low=low, high=high, has_null=None in found, values=tuple(values) if with_values else ())


def bag(rows: Sequence[Row]) -> Counter[Row]:
    """Floats without their last digits; NaN equals NaN."""
    return Counter(tuple(_comparable(value) for value in row) if any(type(v) in (float, dict) for v in row) else tuple(row) for row in rows)


def like_spark(sql: str) -> str:
    """DuckDB's count_if of nothing is NULL, Spark's is 0. The grouping set () of no rows is a row in DuckDB, and none in Spark. DuckDB has neither
    window() nor session_window()."""
    if not any(word in sql for word in ("COUNT_IF(", "ROLLUP", "CUBE", "GROUPING SETS", "WINDOW(")):
        return sql

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Select):
            if node.args.get("group") and node.args["group"].find(exp.Rollup, exp.Cube, exp.GroupingSets):
                node.having("count(*) > 0", dialect="duckdb", copy=False)
            _with_time_windows(node)
            _with_sessions(node)
        return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))])) if isinstance(node, exp.CountIf) else node

    return sqlglot.parse_one(_TIME_WINDOW.sub("TIME_WINDOW(", sql), read="duckdb").transform(change).sql("duckdb")


_TIME_WINDOW = re.compile(r"\bwindow\(", re.IGNORECASE)
"""The function, whose name is a keyword of DuckDB."""


def _with_time_windows(select: exp.Select) -> None:
    """Each row comes with every window that it is in, by a join with the list of its windows."""
    calls = [c for c in select.find_all(exp.Anonymous) if c.name.lower() == "time_window" and c.parent_select is select]
    if not calls:
        return
    time, *lengths = calls[0].expressions
    listed = _windows(time.sql("duckdb"), [one.name for one in lengths])
    for one in calls:
        one.replace(exp.column("time_window"))
    select.join(f"UNNEST({listed}) AS time_windows(time_window)", join_type="cross", dialect="duckdb", copy=False)


def _with_sessions(select: exp.Select) -> None:
    """Each row gets its session by window functions below, over the only source of the SELECT."""
    calls = [c for c in select.find_all(exp.Anonymous) if c.name.lower() == "session_window" and c.parent_select is select]
    if not calls:
        return
    time, length = (one.copy() for one in calls[0].expressions)
    group, source = select.args["group"], select.args["from_"].this
    keys = "".join(f"{one.sql('duckdb')}, " for one in group.expressions if one not in calls)
    for one in calls:
        one.replace(exp.column("session_window"))
    at, gap, name = time.sql("duckdb"), f"INTERVAL {_hours(length.name)} HOUR", source.alias
    over = f"PARTITION BY {keys}1 ORDER BY {at}"
    first = f"SELECT *, CASE WHEN {at} <= lag({at}) OVER ({over}) + {gap} THEN 0 ELSE 1 END AS begins FROM {source.sql('duckdb')} WHERE {at} IS NOT NULL"
    numbered = f"SELECT *, sum(begins) OVER ({over}) AS number FROM ({first}) AS {name}"
    of_all = f"OVER (PARTITION BY {keys}number)"
    struct = f"{{'start': min({at}) {of_all}, 'end': max({at}) {of_all} + {gap}}}"
    made = f"SELECT *, {struct} AS session_window FROM ({numbered}) AS {name}"
    select.from_(f"({made}) AS {name}", dialect="duckdb", copy=False)


def _windows(time: str, lengths: Sequence[str]) -> str:
    """The list of the windows of a time."""
    size, slide, first = [*(_hours(one) for one in lengths), *[_hours(lengths[0]), 0][len(lengths) - 1 :]]
    starts = (f"time_bucket(INTERVAL {slide} HOUR, {time}, INTERVAL {first} HOUR) - INTERVAL {back} HOUR" for back in range(0, size, slide))
    windows = ", ".join(f"{{'start': {start}, 'end': {start} + INTERVAL {size} HOUR}}" for start in starts)
    return f"CASE WHEN {time} IS NULL THEN [] ELSE [{windows}] END"


def _hours(text: str) -> int:
    number, unit = text.split()
    return int(number) * (24 if unit.startswith("day") else 1)


def _comparable(value: Any) -> Any:
    if type(value) is dict:
        return tuple(value.values())
    return value if type(value) is not float else "NaN" if math.isnan(value) else round(value, 9) + 0.0


def _rows_sql(columns: Mapping[str, str], rows: Sequence[Row]) -> str:
    types = [SQL_TYPES.get(kind, kind.upper()) for kind in columns.values()]
    if not rows:
        return "SELECT " + ", ".join(f'CAST(NULL AS {t}) AS "{name}"' for name, t in zip(columns, types, strict=True)) + " WHERE false"
    names = ", ".join(f'"{name}"' for name in columns)
    # The first row gives the columns their types.
    first = ", ".join(f"CAST({_literal(value)} AS {t})" for value, t in zip(rows[0], types, strict=True))
    others = ("(" + ", ".join(_literal(value) for value in row) + ")" for row in rows[1:])
    casts = ", ".join(f'CAST("{name}" AS {t}) AS "{name}"' for name, t in zip(columns, types, strict=True))
    return f"SELECT {casts} FROM (VALUES {', '.join([f'({first})', *others])}) AS v({names})"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float):
        return f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"


def _iceberg(kind: str) -> str:
    if kind.startswith("DECIMAL"):
        return kind.lower()
    known = {
        "BIGINT": "long",
        "HUGEINT": "long",
        "INTEGER": "int",
        "TINYINT": "int",
        "DOUBLE": "double",
        "BOOLEAN": "boolean",
        "DATE": "date",
        "TIMESTAMP": "timestamp",
    }
    return known.get(kind, "string")
