"""a seed -> a random history of one Iceberg table, written by Spark: every kind of commit, and changes of schema and layout.

history = History(spark, "lake.raw.t", seed=7, version=2, mode="merge-on-read")
print(history.step())            # one more commit (or change of layout, or nothing), and what it was
print(history.commits(10))       # until there are ten more snapshots
history.columns                  # the columns now: name -> type
history.log                      # every statement so far
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from spark.equality_deletes import write_by_key

KINDS = ((1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read"))
"""Format version and write mode, all that there are."""
ROWS = 60
"""About how many rows a table holds at most."""

_FLAT = {"id": "INT", "k": "INT", "v": "BIGINT", "s": "STRING", "d": "DATE", "w": "TIMESTAMP", "p": "DECIMAL(7, 2)"}
_NESTED = {"st": "STRUCT<a: INT, b: STRING>", "xs": "ARRAY<INT>", "m": "MAP<STRING, INT>"}
_KEPT = ("id", "k", "s", "d", "p")
"""May be partitioned by: Iceberg cannot read a table whose old partition spec lost its column."""
_FIELDS = ("k", "bucket(3, id)", "truncate(1, s)", "days(d)", "months(d)", "bucket(2, s)", "p", "truncate(2, p)")
_MOMENTS = ("9999-12-31 00:00:00", "1400-02-28 01:02:03.000004", "1677-09-20 00:00:00", "2262-04-12 00:00:00", "2024-02-29 12:00:00")
"""Most do not fit into nanoseconds."""
_KEYS = ("INT", "BIGINT", "STRING", "DATE", "DECIMAL")
"""Types of columns whose values an equality delete lists."""
_ODD = ("FF", "FE", "61FF", "61EFBFBD", "6100")
"""Text in hexadecimal: not valid in UTF-8, with the character that replaces such bytes, and with a zero."""
_WIDER = {"INT": "BIGINT", "FLOAT": "DOUBLE", "DECIMAL(9, 2)": "DECIMAL(12, 2)"}


@contextmanager
def despite_two_specs() -> Iterator[None]:
    """Iceberg 1.12 refuses to compact the position deletes of a table whose partitioning changed in between, which leaves it as it was."""
    try:
        yield
    except Exception as exc:
        if "expected to have same spec id" not in str(exc):
            raise


@dataclass
class History:
    """One table. Everything that is random comes from the seed: the same seed writes the same statements."""

    spark: Any
    table: str
    """catalog.namespace.name; must not exist."""
    seed: int
    version: int
    mode: str
    columns: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(f"{self.seed} {self.version} {self.mode}")
        self._fields: list[str] = []
        self._void: set[str] = set()
        self._dropped: list[str] = []
        self._added = 0
        self.columns = {**_FLAT, **(_NESTED if self._random.random() < 0.5 else {})}
        modes = ", ".join(f"'write.{of}.mode' = '{self.mode}'" for of in ("delete", "update", "merge"))
        granularity = self._random.choice(["file", "partition"])
        layout = self._random.choice(["", "PARTITIONED BY (k)", "PARTITIONED BY (bucket(3, id))", "PARTITIONED BY (p)"])
        self._fields += [layout[len("PARTITIONED BY (") : -1]] if layout else []
        self._sql(
            f"CREATE TABLE {self.table} ({', '.join(f'{name} {of}' for name, of in self.columns.items())}) USING iceberg {layout} "
            f"TBLPROPERTIES ('format-version' = '{self.version}', {modes}, 'write.delete.granularity' = '{granularity}', "
            f"'commit.manifest.min-count-to-merge' = '{self._random.choice([3, 100])}')"
        )
        self.append()

    def step(self) -> str:
        """One more random change; its name."""
        size = self._sql(f"SELECT count(*) FROM {self.table}")[0][0]
        steps = self._steps(size)
        (chosen,) = self._random.choices(steps, weights=[weight for weight, _ in steps])
        chosen[1]()
        return chosen[1].__name__

    def commits(self, count: int) -> list[str]:
        """Steps until there are `count` more snapshots: some steps make none, and a few make two."""
        wanted, done = len(self.snapshots()) + count, []
        while len(self.snapshots()) < wanted:
            done.append(self.step())
        return done

    def _steps(self, size: int) -> list[tuple[int, Callable[[], None]]]:
        rows: list[tuple[int, Callable[[], None]]] = [(4, self.append), (4, self.merge), (1, self.overwrite)] if size < ROWS else []
        fewer: list[tuple[int, Callable[[], None]]] = [(5, self.delete), (5, self.update), (1, self.overwrite)]
        fewer += [(3, self.delete_by_key)] if self.version > 1 else []
        kept: list[tuple[int, Callable[[], None]]] = [(3, self.compact), (1, self.rewrite_manifests), (2, self.rollback), (1, self.branch)]
        layout: list[tuple[int, Callable[[], None]]] = [(3, self.evolve_schema), (3, self.evolve_partitioning), (1, self.upgrade)]
        # Files without partition values fit into a table without partitions alone.
        files: list[tuple[int, Callable[[], None]]] = [(6, self.add_files)] if size < ROWS and not self._fields + sorted(self._void) else []
        return [*rows, *files, *fewer, *kept, *layout]

    def append(self) -> None:
        self._sql(f"INSERT INTO {self.table} ({self._names}) {self._rows(self._random.randint(1, 12))}")

    def add_files(self) -> None:
        """Files of another writer: without field ids, and with timestamps as INT96."""
        catalog, _, name = self.table.partition(".")
        self._added += 1
        (location,) = (row[1] for row in self.spark.sql(f"DESCRIBE TABLE EXTENDED {self.table}").collect() if row[0] == "Location")
        folder = f"{location}/added_{self._added}"
        conf = {"spark.sql.parquet.outputTimestampType": "INT96", "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED"}
        for key, value in conf.items():
            self.spark.conf.set(key, value)
        try:
            self._sql(f"INSERT OVERWRITE DIRECTORY '{folder}' USING parquet {self._rows(self._random.randint(1, 12))}")
        finally:
            for key in conf:
                self.spark.conf.unset(key)
        self._sql(f"CALL {catalog}.system.add_files(table => '{name}', source_table => '`parquet`.`{folder}`')")

    def delete(self) -> None:
        self._sql(f"DELETE FROM {self.table} WHERE {self._predicate()}")

    def delete_by_key(self) -> None:
        """An equality delete of some rows by one or two columns, and of a key that no row may have."""
        able = [name for name, of in self.columns.items() if of.startswith(_KEYS)]
        names = self._random.sample(able, self._random.choice((1, 1, 2)))
        rows = sorted({tuple(row) for row in self._sql(f"SELECT {', '.join(names)} FROM {self.table}")}, key=str)
        found = [dict(zip(names, row, strict=True)) for row in self._random.sample(rows, min(len(rows), 3))]
        keys = [*found, dict.fromkeys(names)]
        self.log.append(f"-- by key: {keys}")
        some = self._random.choice((0.5, 1))
        write_by_key(self.spark, self.table, keys, metrics=self._random.random() < 0.7, into=lambda _: self._random.random() < some)

    def update(self) -> None:
        name = self._random.choice(list(self.columns))
        self._sql(f"UPDATE {self.table} SET {name} = {self._value(self.columns[name])} WHERE {self._predicate()}")

    def merge(self) -> None:
        source = self._rows(self._random.randint(1, 8), distinct=True)
        sets = ", ".join(f"t.{name} = s.{name}" for name in self.columns if name != "id")
        self._sql(
            f"MERGE INTO {self.table} t USING ({source}) s ON t.id = s.id WHEN MATCHED AND t.k < 2 THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {sets} WHEN NOT MATCHED THEN INSERT ({self._names}) VALUES ({self._of('s')})"
        )

    def overwrite(self) -> None:
        """The partitions that the new rows are in; the whole table if it has none."""
        self.spark.conf.set("spark.sql.sources.partitionOverwriteMode", self._random.choice(["dynamic", "dynamic", "static"]))
        try:
            self._sql(f"INSERT OVERWRITE {self.table} ({self._names}) {self._rows(self._random.randint(0, 9))}")
        finally:
            self.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    def compact(self) -> None:
        catalog, _, name = self.table.partition(".")
        how = self._random.choice(["data", "data", "some", "deletes"])
        if how == "deletes":
            with despite_two_specs():
                self._sql(f"CALL {catalog}.system.rewrite_position_delete_files(table => '{name}', options => map('rewrite-all', 'true'))")
        else:
            options = "'rewrite-all', 'true'" if how == "data" else "'min-input-files', '2', 'delete-file-threshold', '1'"
            self._sql(f"CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map({options}))")

    def rewrite_manifests(self) -> None:
        catalog, _, name = self.table.partition(".")
        self._sql(f"CALL {catalog}.system.rewrite_manifests(table => '{name}', use_caching => false)")

    def rollback(self) -> None:
        """To any snapshot, also of another branch of the history."""
        catalog, _, name = self.table.partition(".")
        found = self._random.choice(self.snapshots())
        self._sql(f"CALL {catalog}.system.set_current_snapshot(table => '{name}', snapshot_id => {found})")

    def branch(self) -> None:
        """Rows on a branch that then becomes main."""
        catalog, _, name = self.table.partition(".")
        self._added += 1
        branch = f"b{self._added}"
        self._sql(f"ALTER TABLE {self.table} CREATE BRANCH {branch}")
        self._sql(f"INSERT INTO {self.table}.branch_{branch} ({self._names}) {self._rows(self._random.randint(1, 5))}")
        if self._random.random() < 0.5:
            self.append()
            self._sql(f"CALL {catalog}.system.set_current_snapshot(table => '{name}', ref => '{branch}')")
        else:
            self._sql(f"CALL {catalog}.system.fast_forward('{name}', 'main', '{branch}')")

    def evolve_schema(self) -> None:
        how = self._random.choice(["add", "add", "rename", "drop", "again", "widen", "widen", "move", "move"])
        own = [name for name in self.columns if name not in _KEPT]
        wide = [name for name, of in self.columns.items() if of in _WIDER]
        if how == "rename" and own:
            old, new = self._random.choice(own), self._new_name()
            self._sql(f"ALTER TABLE {self.table} RENAME COLUMN {old} TO {new}")
            self.columns[new] = self.columns.pop(old)
        elif how == "drop" and own:
            self._drop(self._random.choice(own))
        elif how == "again" and own:
            name = self._random.choice(own)
            self._drop(name)
            self._add(name)
        elif how == "move":
            self._move(self._random.choice(list(self.columns)))
        elif how == "widen" and wide:
            name = self._random.choice(wide)
            self.columns[name] = _WIDER[self.columns[name]]
            self._sql(f"ALTER TABLE {self.table} ALTER COLUMN {name} TYPE {self.columns[name]}")
        else:
            self._add(self._dropped.pop() if self._dropped and self._random.random() < 0.5 else self._new_name())

    def evolve_partitioning(self) -> None:
        free = [of for of in _FIELDS if not any(_source(of) == _source(other) for other in self._fields)]
        if self.version > 1:
            # Iceberg gives the field of a table that once was v1 its old id again beside the void one, and cannot read the table any more.
            free = [of for of in free if of not in self._void]
        how = self._random.choice(["add", "drop", "replace"])
        if how == "replace" and self._fields and free:
            old, new = self._random.choice(self._fields), self._random.choice(free)
            self._sql(f"ALTER TABLE {self.table} REPLACE PARTITION FIELD {old} WITH {new}")
            self._left(old)
            self._fields = [*(of for of in self._fields if of != old), new]
        elif how == "drop" and self._fields:
            old = self._random.choice(self._fields)
            self._sql(f"ALTER TABLE {self.table} DROP PARTITION FIELD {old}")
            self._fields.remove(old)
            self._left(old)
        elif free:
            self._fields.append(self._random.choice(free))
            self._sql(f"ALTER TABLE {self.table} ADD PARTITION FIELD {self._fields[-1]}")

    def _left(self, field: str) -> None:
        if self.version == 1:
            self._void.add(field)

    def upgrade(self) -> None:
        """To the next format version; of a table of the last one, an append."""
        if self.version == 3:
            return self.append()
        self.version += 1
        self._sql(f"ALTER TABLE {self.table} SET TBLPROPERTIES ('format-version' = '{self.version}')")
        return None

    def snapshots(self) -> list[int]:
        """The ids of all snapshots, oldest first."""
        return [row[0] for row in self._sql(f"SELECT snapshot_id FROM {self.table}.snapshots ORDER BY committed_at, snapshot_id")]

    def _sql(self, text: str) -> list[Any]:
        if not text.startswith("SELECT"):
            self.log.append(text)
        return self.spark.sql(text).collect()  # type: ignore[no-any-return]

    @property
    def _names(self) -> str:
        return ", ".join(self.columns)

    def _of(self, alias: str) -> str:
        return ", ".join(f"{alias}.{name}" for name in self.columns)

    def _drop(self, name: str) -> None:
        self._sql(f"ALTER TABLE {self.table} DROP COLUMN {name}")
        del self.columns[name]
        self._dropped.append(name)

    def _move(self, name: str) -> None:
        others = [other for other in self.columns if other != name]
        at = self._random.randint(0, len(others))
        self._sql(f"ALTER TABLE {self.table} ALTER COLUMN {name} {f'AFTER {others[at - 1]}' if at else 'FIRST'}")
        self.columns = {other: self.columns[other] for other in (*others[:at], name, *others[at:])}

    def _add(self, name: str) -> None:
        of = self._random.choice(["INT", "STRING", "FLOAT", "DECIMAL(9, 2)", "STRUCT<a: INT, b: STRING>"])
        self._sql(f"ALTER TABLE {self.table} ADD COLUMN {name} {of}")
        self.columns[name] = of
        self._dropped = [other for other in self._dropped if other != name]

    def _new_name(self) -> str:
        self._added += 1
        return f"c{self._added}"

    def _rows(self, count: int, *, distinct: bool = False) -> str:
        ids = self._random.sample(range(40), count) if distinct else [self._random.randint(0, 39) for _ in range(count)]
        rows = [[str(id_), *(self._value(of) for name, of in self.columns.items() if name != "id")] for id_ in ids]
        names = ["id", *(name for name in self.columns if name != "id")]
        selects = [", ".join(f"CAST({v} AS {self.columns[n]}) AS {n}" for n, v in zip(names, row, strict=True)) for row in rows]
        of_none = ", ".join(f"CAST(NULL AS {of}) AS {name}" for name, of in self.columns.items())
        union = " UNION ALL ".join(f"SELECT {one}" for one in selects) or f"SELECT {of_none} WHERE false"
        hint = f"/*+ REPARTITION({self._random.randint(1, 3)}) */ " if not distinct else ""
        return f"SELECT {hint}{self._names} FROM ({union})"

    def _value(self, of: str) -> str:
        if self._random.random() < 0.15:
            return "NULL"
        n = self._random.randint(0, 4)
        is_odd = self._random.random() < 0.06
        simple = {
            "STRING": f"CAST(X'{_ODD[n]}' AS STRING)" if is_odd else f"'{'abcde'[n]}{n}'",
            "DATE": f"DATE'2026-0{n + 1}-1{n}'",
            "TIMESTAMP": f"TIMESTAMP'{_MOMENTS[n]}'",
            "ARRAY<INT>": f"array({n}, {n + 1})",
        }
        if of.startswith("STRUCT"):
            return f"named_struct('a', {n}, 'b', 'b{n}')"
        return f"map('x', {n})" if of.startswith("MAP") else simple.get(of, str(n))

    def _predicate(self) -> str:
        n = self._random.randint(0, 4)
        partial = [f"id % 5 = {n}", f"id % 3 = {n % 3} AND k < 3", f"id BETWEEN {n * 8} AND {n * 8 + 9}", f"s = '{'abcde'[n]}{n}'"]
        return self._random.choice([*partial, *partial, "s IS NULL", f"k = {n}", f"d >= DATE'2026-0{n + 1}-01'", "true"])


def _source(of: str) -> str:
    """The column of a partition field."""
    return of.rpartition(", ")[2].rpartition("(")[2].rstrip(")")
