"""An incremental model -> Played: dbt's table after three batches and the query of the MV, on DuckDB, for random rows.

dbt's side is its query with is_incremental() false in the first run and true in the others, merged into its own table as the strategy says.
The MV's side is the imported query over the tables as they are at the end. What "equal" means is in docs/proofs/dbt-batches.md.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mvbuild.dbt.rendering import ANY_VALUE
from mvbuild.dbt.takeover import IncrementalModel
from unit.dbt.batch_columns import DOMAINS, THIS, Columns, Leaf, Reader, table_name
from unit.dbt.batch_rows import BATCHES, KINDS, Field, History, Row, Table, clock, history, subsets
from unit.dbt.batch_tables import statements

MOST_LATE = 12
MOST_SECONDS = 20
"""For the search of types. None for a model whose two queries are the same text."""
MOST_SECONDS_OF_A_MODEL = 120
"""Then DuckDB stops what it does: a join without its condition can take hours."""
SPARK_ON_DUCKDB = (
    "CREATE OR REPLACE MACRO date_add(d, n) AS d + to_days(CAST(n AS INTEGER))",
    "CREATE OR REPLACE MACRO nvl(a, b) AS coalesce(a, b)",
)


class NotRunnable(Exception):
    """The message is a reason for a table of models."""


@dataclass
class Played:
    """What became of one model.

    `counts`: kind of history -> how many were compared. `differs`: the first difference of each kind; `said`: one that the import names.
    """

    counts: Counter[str] = field(default_factory=Counter)
    changed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    differs: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    by_text: bool = False
    """Whether they are equal without a run."""

    @property
    def verdict(self) -> str:
        if self.reason:
            return "same text" if self.by_text else "not runnable"
        return "differs" if self.differs else "agrees, noted" if self.said else "agrees"


def play(model: IncrementalModel, trials: int, adapter: str = "spark", kinds: Sequence[str] = KINDS) -> Played:
    found = Played()
    limit = Limit(MOST_SECONDS_OF_A_MODEL)
    try:
        run = Run(model, adapter, limit)
        for kind in KINDS:
            if kind not in kinds or not run.has(kind):
                continue
            for seed in range(trials):
                run.trial(history(run.tables, kind, seed), found)
                if kind in found.differs or kind in found.said:
                    break
        if not found.changed and not found.differs:
            raise NotRunnable(_most(found.skipped) or "generated rows do not reach the result")
    except NotRunnable as exc:
        found.reason = str(exc)
    finally:
        limit.end()
    found.by_text = is_rebuilt(model)
    return found


def is_rebuilt(model: IncrementalModel) -> bool:
    """Whether each run of dbt replaces the whole table by the rows of the query that the MV has: then they are equal without a run."""
    whole = model.config.get("incremental_strategy") == "insert_overwrite" and not model.config.get("partition_by")
    return whole and len({" ".join(text.split()) for text in (model.full, model.guarded, model.written)}) == 1


def _most(skipped: Counter[str]) -> str:
    return skipped.most_common(1)[0][0] if skipped else ""


class Limit:
    """Interrupts the connections that it is given, from a time on until it is ended."""

    def __init__(self, seconds: float) -> None:
        self._connections: list[duckdb.DuckDBPyConnection] = []
        self._ended = threading.Event()
        self._seconds = seconds
        threading.Thread(target=self._wait, daemon=True).start()

    def of(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        self._connections.append(connection)
        return connection

    def end(self) -> None:
        self._ended.set()

    def _wait(self) -> None:
        if self._ended.wait(self._seconds):
            return
        while not self._ended.wait(0.1):
            for connection in self._connections:
                connection.interrupt()


class Run:
    """One model: its queries for DuckDB, and the tables that they read."""

    def __init__(self, model: IncrementalModel, adapter: str, limit: Limit) -> None:
        self.model = model
        self.name = model.item.name
        config = model.config
        self.strategy = str(config.get("incremental_strategy") or ("merge" if adapter == "databricks" else "append")).lower()
        self.keys = _names(config.get("unique_key"))
        self.partitions = _names(config.get("partition_by"))
        self._texts: dict[tuple[str, int], str] = {}
        self.connection = limit.of(duckdb.connect(":memory:"))
        self.connection.execute("SET threads = 1; PRAGMA disable_optimizer")
        for macro in SPARK_ON_DUCKDB:
            self.connection.execute(macro)
        try:
            self.trees = {side: _tree(getattr(model, side)) for side in ("full", "guarded", "written")}
            self.columns = Columns()
            readers = {side: Reader(tree, self.name) for side, tree in self.trees.items()}
            for reader in readers.values():
                reader.collect(self.columns)
        except (SqlglotError, RecursionError, AttributeError, KeyError) as exc:
            raise NotRunnable(f"sqlglot: {type(exc).__name__}") from exc
        for name in (*self.keys, *self.partitions):
            for leaf in readers["full"].output(name):
                self.columns.leaves[leaf] = None
                self.columns.passive.discard(leaf)
        self.bounded = _bounded(self.trees["full"], readers["guarded"])
        self.read = readers["written"].tables()
        self.tables = self._tables(readers["full"])
        self._find_types()

    def has(self, kind: str) -> bool:
        """Whether a kind of history says something about the model."""
        if kind == "others":
            return any(not table.guarded for table in self.tables)
        if kind == "updates":
            keyed = {leaf for name in self.keys for leaf in Reader(self.trees["full"], self.name).output(name)}
            return self.strategy == "merge" and bool(self.keys) and not keyed & self.bounded
        return True

    def trial(self, played: History, found: Played) -> None:
        """Play the batches, and compare. Adds to `found`."""
        try:
            first = self._query("full", played, 1)
            if not first:
                raise _Skip("dbt's first table is empty: the bound is the NULL of no rows from then on")
            for batch in BATCHES:
                self._require_unique(self._query("full", played, batch), found)
            table = self._dbt(played)
        except _Skip as exc:
            found.skipped[str(exc)] += 1
            return
        found.counts[played.kind] += 1
        mv = self._query("written", played, BATCHES[-1])
        found.changed += mv != first
        late = played.late if played.kind == "late" else []
        if any(table == self._query("written", played, BATCHES[-1], skipped) for skipped in subsets(late, MOST_LATE)):
            return
        is_said = self._is_join_noted(played) or any(self._is_kept(table, played, skipped) for skipped in subsets(late, MOST_LATE))
        (found.said if is_said else found.differs)[played.kind] = f"dbt alone {_shown(table - mv)}; MV alone {_shown(mv - table)}"

    def _is_join_noted(self, played: History) -> bool:
        """The import says that dbt keeps joined values, and what is joined changes in this history."""
        changes = played.kind == "others" or len(self.read) > len({*self.read})
        return changes and any(reason.code == "joined-tables" for reason in self.model.item.reasons)

    def _is_kept(self, table: Counter[Row], played: History, skipped: frozenset[int]) -> bool:
        """The import says that dbt keeps rows, and all that dbt has more are rows that its query returned earlier."""
        if all(reason.code != "kept-rows" for reason in self.model.item.reasons):
            return False
        mv = self._query("written", played, BATCHES[-1], skipped)
        earlier = [self._query("written", played, batch, skipped) for batch in BATCHES[:-1]]
        return not mv - table and all(any(row in rows for rows in earlier) for row in table - mv)

    # dbt

    def _dbt(self, played: History) -> Counter[Row]:
        run = self.connection.execute
        self._load(played.rows(1))
        run(f"CREATE OR REPLACE TEMP TABLE {THIS} AS {self._sql('full', 1)}")
        for batch in BATCHES[1:]:
            self._load(played.rows(batch))
            self._safely(f"CREATE OR REPLACE TEMP TABLE delta AS {self._sql('guarded', batch)}")
            self._merge()
        return _bag(self._rows(f"SELECT * FROM {THIS}"))

    def _merge(self) -> None:
        run = self.connection.execute
        if self.strategy in ("merge", "delete+insert") and self.keys:
            keys = ", ".join(f'"{k}"' for k in self.keys)
            if self.strategy == "merge" and run(f"SELECT 1 FROM delta GROUP BY {keys} HAVING count(*) > 1 LIMIT 1").fetchall():
                raise _Skip("a merge that finds two rows with a key fails")
            # As in SQL, a NULL in a key equals nothing.
            same = " AND ".join(f'd."{k}" = {THIS}."{k}"' for k in self.keys)
            run(f"DELETE FROM {THIS} WHERE EXISTS (SELECT 1 FROM delta AS d WHERE {same})")
        elif self.strategy == "insert_overwrite":
            same = " AND ".join(f'd."{p}" IS NOT DISTINCT FROM {THIS}."{p}"' for p in self.partitions) or "true"
            where = f"WHERE EXISTS (SELECT 1 FROM delta AS d WHERE {same})" if self.partitions else ""
            run(f"DELETE FROM {THIS} {where}")
        elif self.strategy not in ("append", "merge"):
            raise NotRunnable(f"strategy {self.strategy}")
        run(f"INSERT INTO {THIS} FROM delta")

    def _require_unique(self, rows: Counter[Row], found: Played) -> None:
        if self.strategy != "merge" or not self.keys:
            return
        names = [str(d[0]).lower() for d in self.connection.description or ()]
        if any(key not in names for key in self.keys):
            raise NotRunnable("a key is not a column of the query")
        at = [names.index(key) for key in self.keys]
        counted = Counter(tuple(row[i] for i in at) for row in rows.elements())
        if any(n > 1 for n in counted.values()):
            raise _Skip("generated keys are not unique in the result")

    # The queries on DuckDB

    def _query(self, side: str, played: History, batch: int, skipped: frozenset[int] = frozenset()) -> Counter[Row]:
        self._load(played.rows(batch, skipped))
        return _bag(self._rows(self._sql(side, batch)))

    def _rows(self, sql: str) -> list[Row]:
        """Times with a zone as text: DuckDB needs one more package to give them to Python."""
        done = self._safely(sql)
        zoned = [str(column[1]) == "TIMESTAMP WITH TIME ZONE" for column in done.description or ()]
        if not any(zoned):
            return done.fetchall()
        texts = ", ".join(f"CAST(c{at} AS VARCHAR)" if is_zoned else f"c{at}" for at, is_zoned in enumerate(zoned))
        names = ", ".join(f"c{at}" for at in range(len(zoned)))
        return self._safely(f"SELECT {texts} FROM ({sql}) AS r({names})").fetchall()

    def _safely(self, sql: str) -> duckdb.DuckDBPyConnection:
        try:
            return self.connection.execute(sql)
        except duckdb.Error as exc:
            raise NotRunnable(_short(exc)) from exc

    def _sql(self, side: str, batch: int) -> str:
        """In DuckDB's dialect, with the clock of a batch."""
        if (side, batch) in self._texts:
            return self._texts[side, batch]

        days = _run_days(self.model.run_values)

        def change(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Table):
                if node.name.lower() in self._ctes:
                    return node
                made = exp.to_table(f'"{table_name(node, self.name)}"')
                made.set("alias", node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(_last(node), quoted=True)))
                for key in ("joins", "laterals", "pivots"):
                    made.set(key, node.args.get(key))
                return made
            now = clock(batch)
            if isinstance(node, exp.CurrentDate):
                return exp.cast(exp.Literal.string(now.date().isoformat()), "date")
            if isinstance(node, exp.CurrentTimestamp) or (isinstance(node, exp.Anonymous) and node.name.lower() == "now"):
                return exp.cast(exp.Literal.string(now.isoformat(" ")), "timestamp")
            if isinstance(node, exp.Literal) and node.is_string and node.name == ANY_VALUE:
                return exp.Literal.string("2000-01-01")
            if isinstance(node, exp.Literal) and node.is_string and node.name in days and side == "guarded":
                return exp.Literal.string((now.date() + days[node.name]).isoformat())
            return node

        tree = self.trees[side]
        self._ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        self._texts[side, batch] = tree.transform(change).sql("duckdb", identify=True)
        return self._texts[side, batch]

    def _load(self, rows: Mapping[str, Sequence[Row]]) -> None:
        self.connection.execute(";".join(text for table in self.tables for text in statements(table, rows[table.name])))

    # The tables

    def _tables(self, full: Reader) -> tuple[Table, ...]:
        found: dict[str, list[Leaf]] = {name: [] for reader in (full,) for name in reader.tables()}
        for leaf in self.columns.leaves:
            found.setdefault(leaf.table, []).append(leaf)
        bounded_tables = {leaf.table for leaf in self.bounded}
        keyed = {leaf for name in self.keys for leaf in full.output(name)}
        return tuple(
            self._table(name, leaves or [Leaf(name, ("id",))], not self.bounded or name in bounded_tables, keyed)
            for name, leaves in found.items()
        )

    def _table(self, name: str, leaves: list[Leaf], guarded: bool, keyed: set[Leaf]) -> Table:
        leaves = [leaf for leaf in leaves if not any(o != leaf and o.path[: len(leaf.path)] == leaf.path for o in leaves)]
        own = {leaf for leaf in leaves if leaf in keyed} if guarded else {leaf for leaf in leaves if leaf in self.columns.joined}
        own = own or {leaf for leaf in leaves if leaf in keyed} or {leaf for leaf in leaves if leaf.path[-1] == "id"}
        fields = tuple(
            Field(
                path=leaf.path,
                type=self.columns.type_of(leaf),
                ordered=leaf in self.bounded,
                key=leaf in own,
                passive=leaf in self.columns.passive and leaf not in self.bounded,
                values=tuple(self.columns.values_of(leaf)),
                size=9 if leaf in own else 3,
                share=_share(leaf, keyed),
            )
            for leaf in sorted(leaves)
        )
        return Table(name=name, fields=fields, guarded=guarded)

    def _find_types(self) -> None:
        """Try other types while DuckDB does not bind the query, one column after the other."""
        seen: set[str] = set()
        until = time.monotonic() + (0 if is_rebuilt(self.model) else MOST_SECONDS)
        for _ in range(8):
            wrong = self._binds()
            if not wrong:
                return
            seen.add(wrong)
            if not self._improve(seen, until):
                raise NotRunnable(wrong)
        raise NotRunnable(wrong)

    def _improve(self, seen: set[str], until: float) -> bool:
        before, better = self.tables, None
        for at, table in enumerate(before):
            for column, f in enumerate(table.fields):
                for kind in DOMAINS:
                    if kind == f.type or time.monotonic() > until:
                        continue
                    fields = (*table.fields[:column], replace(f, type=kind), *table.fields[column + 1 :])
                    self.tables = (*before[:at], replace(table, fields=fields), *before[at + 1 :])
                    wrong = self._binds()
                    if not wrong:
                        return True
                    if wrong not in seen and better is None:
                        better = self.tables
        self.tables = better or before
        return better is not None

    def _binds(self) -> str:
        """The error of DuckDB, or nothing."""
        try:
            self._load({table.name: () for table in self.tables})
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {THIS} AS {self._sql('full', 1)}")
            self._load(history(self.tables, "inserts", 0).rows(BATCHES[-1]))
            for side in self.trees:
                self._rows(self._sql(side, 2))
        except duckdb.Error as exc:
            return _short(exc)
        except NotRunnable as exc:
            return str(exc)
        return ""


class _Skip(Exception):
    """A history says nothing about the model."""


def _run_days(values: Mapping[str, str]) -> Mapping[str, timedelta]:
    """The days that were given for variables of the run -> how far each is from the first one, which is the day of the run."""
    found = {value: date.fromisoformat(value) for value in values.values() if re.fullmatch(r"\d{4}-\d\d-\d\d", value)}
    return {value: day - min(found.values()) for value, day in found.items()}


def _tree(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="spark")


def _bounded(full: exp.Expr, guarded: Reader) -> set[Leaf]:
    """What the conditions bound that only the query with its guard has."""
    known = {condition.sql() for select in full.find_all(exp.Select) for condition in _conditions(select)}
    found: set[Leaf] = set()
    for scope in guarded.scopes:
        for condition in _conditions(scope.expression) if isinstance(scope.expression, exp.Select) else ():
            if condition.sql() not in known:
                for column in condition.walk(prune=lambda n: isinstance(n, exp.Query)):
                    if isinstance(column, exp.Column):
                        found.update(guarded.leaves(scope, column))
    return found


def _conditions(select: exp.Select) -> Iterator[exp.Expr]:
    """Those of WHERE and of the ON of joins."""
    where = select.args.get("where")
    for clause in (where and where.this, *(join.args.get("on") for join in select.args.get("joins") or ())):
        if clause is not None:
            yield from clause.flatten() if isinstance(clause, exp.And) else (clause,)


def _share(leaf: Leaf, keyed: set[Leaf]) -> tuple[int, int]:
    """Where the branches of a UNION read the key from different tables."""
    tables = sorted({other.table for other in keyed if other.path == leaf.path})
    return (tables.index(leaf.table), len(tables)) if leaf in keyed else (0, 1)


def _names(value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, (list, tuple)) else [value] if value else []
    return tuple(str(name).strip().strip("`").lower() for name in names)


def _last(table: exp.Table) -> str:
    return re.split(r"[.:]", table.name)[-1]


def _bag(rows: Sequence[Row]) -> Counter[Row]:
    return Counter(tuple(_comparable(value) for value in row) for row in rows)


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9) + 0.0 if value == value else "NaN"
    return repr(value) if isinstance(value, (list, dict)) else value


def _shown(rows: Counter[Row]) -> str:
    return "; ".join(str(tuple(str(v) for v in row)) for row in list(rows.elements())[:2]) or "nothing"


def _short(exc: Exception) -> str:
    return str(exc).splitlines()[0][:160]
