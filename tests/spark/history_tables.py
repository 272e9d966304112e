"""One base table of a history, and its other writers: rows, files, schema and layout, each determined by a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from spark.equality_deletes import write_by_key
from spark.histories import despite_two_specs
from spark.projects import Project
from unit.incremental.queries import VALUES as OF_QUERIES
from unit.incremental.queries import Type

SQL_TYPES: Mapping[Type, str] = {
    "int": "INT",
    "decimal": "DECIMAL(10, 2)",
    "string": "STRING",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "double": "DOUBLE",
    "timestamp": "TIMESTAMP",
    "text": "STRING",
}
VALUES: Mapping[Type, tuple[Any, ...]] = {
    **OF_QUERIES,
    "double": (None, 0.5, 1.5, 1.0, 0.0, -0.0, float("nan")),
    "timestamp": (
        None,
        datetime(2026, 1, 1, 23, 30),
        datetime(2026, 1, 1, 0, 30),
        datetime(2026, 7, 1, 12),
        datetime(9999, 12, 31),
        datetime(1001, 1, 1),
    ),
    "text": (None, "x", "x", "y", b"x\xff", b"x\xfe", b"\xff"),
}
KEYS = ("int", "decimal", "string", "boolean", "date")
"""Types of columns by which an equality delete finds its rows."""
MOST_ROWS = 14
"""Above that a base table gets no more."""


@dataclass
class BaseTable:
    """One base table: the hands of its other writers."""

    name: str
    columns: Mapping[str, Type]
    required: frozenset[str]
    version: int
    mode: str
    project: Project
    log: list[str]
    extra: list[str] = field(default_factory=list)
    """Columns that no query reads."""
    fields: list[str] = field(default_factory=list)
    wide: set[str] = field(default_factory=set)
    added: int = 0
    catalog: str = "lake"
    replaced: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.catalog}.raw.{self.name}"

    @property
    def listed(self) -> str:
        return ", ".join(self.columns)

    def _into(self, rows: str) -> str:
        """The rest of an INSERT. Spark before 4.1 fills no column that the statement does not name."""
        more = self._unnamed()
        if not more:
            return f"{self.full_name} ({self.listed}) {rows}"
        return (
            f"{self.full_name} ({', '.join([self.listed, *more])}) SELECT {', '.join([self.listed, *('NULL' for _ in more)])} FROM ({rows})"
        )

    def _unnamed(self) -> list[str]:
        if not self.project.spark.version.startswith(("3.", "4.0")):
            return []
        named = {name.strip("`") for name in self.columns}
        return [f"`{name}`" for name in self.project.spark.table(self.full_name).columns if name not in named]

    def sql(self, text: str) -> list[Any]:
        self.log.append(text)
        return self.project.sql(text)

    def create(self, chance: random.Random, statement: str = "CREATE TABLE") -> None:
        columns = [f"{n} {SQL_TYPES[t]}{' NOT NULL' if n in self.required else ''}" for n, t in self.columns.items()]
        self.extra, self.wide = ["note"], set()
        by_text = [[n] for n, t in self.columns.items() if t == "text"] * 3
        self.fields = chance.choice(([], ["k"], ["bucket(2, v)"], *by_text))
        layout = f"PARTITIONED BY ({', '.join(self.fields)})" if self.fields else ""
        modes = ", ".join(f"'write.{of}.mode' = '{self.mode}'" for of in ("delete", "update", "merge"))
        self.sql(
            f"{statement} {self.full_name} ({', '.join(columns)}, note STRING) USING iceberg {layout} TBLPROPERTIES "
            f"('format-version' = '{self.version}', {modes}, 'write.delete.granularity' = '{chance.choice(('file', 'partition'))}')"
        )
        self.insert(chance, chance.randint(0, 9))

    def do(self, what: str, chance: random.Random) -> None:
        getattr(self, what)(chance)

    # --- rows ---

    def append(self, chance: random.Random) -> None:
        if self.size() > MOST_ROWS:
            return self.delete(chance)
        return self.insert(chance, chance.randint(1, 4))

    def append_again(self, chance: random.Random) -> None:
        """Rows that are there already."""
        if self.size() <= MOST_ROWS:
            self.sql(f"INSERT INTO {self._into(f'SELECT {self.listed} FROM {self.full_name} WHERE {self.predicate(chance)}')}")

    def delete(self, chance: random.Random) -> None:
        self.sql(f"DELETE FROM {self.full_name} WHERE {self.predicate(chance)}")

    def write_by_key(self, chance: random.Random) -> None:
        """An equality delete, as Flink writes it; most often of `k`, with the new rows of its keys in the same commit."""
        if self.version < 2:
            return self.merge(chance)
        able = [n for n, t in self.columns.items() if t in KEYS]
        names = chance.choice((["k"], ["k"], ["k", "v"], chance.sample(able, 2)))
        keys = [{n.strip("`"): self._value(chance, n) for n in names} for _ in range(chance.randint(1, 3))]
        is_whole = not self.fields and len(able) == len(self.columns) and not self.replaced
        rows = [{**{n.strip("`"): self._value(chance, n) for n in self.columns}, **key} for key in keys] if is_whole else []
        rows = [] if self.size() > MOST_ROWS else chance.sample(rows, chance.randint(0, len(rows)))
        self.log.append(f"-- {self.full_name} by key: {keys}, then {rows}")
        metrics, some = chance.random() < 0.7, chance.choice((0.5, 1))
        write_by_key(self.project.spark, self.full_name, keys, rows, metrics=metrics, into=lambda _: chance.random() < some)
        return None

    def _value(self, chance: random.Random, column: str) -> Any:
        values = VALUES[self.columns[column]]
        return chance.choice([v for v in values if v is not None] if column in self.required else values)

    def empty(self, chance: random.Random) -> None:
        self.sql(f"DELETE FROM {self.full_name}{chance.choice(('', ' WHERE k > 0 OR k <= 0 OR k IS NULL'))}")

    def refill(self, chance: random.Random) -> None:
        rows = [tuple(row) for row in self.sql(f"SELECT {self.listed} FROM {self.full_name}")]
        self.empty(chance)
        if rows and chance.random() < 0.5:
            self.insert_rows([[_literal(value) for value in row] for row in rows])
        else:
            self.insert(chance, chance.randint(1, 8))

    def update(self, chance: random.Random) -> None:
        name = chance.choice(list(self.columns))
        self.sql(f"UPDATE {self.full_name} SET {name} = {self.value(chance, name)} WHERE {self.predicate(chance)}")

    def touch(self, chance: random.Random) -> None:
        """Written again as they are."""
        self.sql(f"UPDATE {self.full_name} SET v = v WHERE {self.predicate(chance)}")

    def merge(self, chance: random.Random) -> None:
        keys = chance.sample(("0", "1", "2", "3", "-1", "7"), chance.randint(1, 4))
        rows = [[key if n == "k" else self.value(chance, n) for n in self.columns] for key in keys]
        sets = ", ".join(f"t.{n} = s.{n}" for n in self.columns if n != "k")
        more = self._unnamed()
        listed = ", ".join([self.listed, *more])
        values = ", ".join([*(f"s.{n}" for n in self.columns), *("NULL" for _ in more)])
        self.sql(
            f"MERGE INTO {self.full_name} t USING ({self.rows(rows)}) s ON t.k = s.k WHEN MATCHED AND t.v < 1 THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {sets} WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({values})"
        )

    def overwrite(self, chance: random.Random) -> None:
        """The partitions of the new rows, or the whole table."""
        self.project.spark.conf.set("spark.sql.sources.partitionOverwriteMode", chance.choice(("dynamic", "dynamic", "static")))
        try:
            rows = [[self.value(chance, n) for n in self.columns] for _ in range(chance.randint(0, 6))]
            self.sql(f"INSERT OVERWRITE {self._into(self.rows(rows))}")
        finally:
            self.project.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    # --- what touches no row ---

    def compact(self, chance: random.Random) -> None:
        options = chance.choice(("'rewrite-all', 'true'", "'min-input-files', '2', 'delete-file-threshold', '1'"))
        self.call(f"rewrite_data_files(table => 'raw.{self.name}', options => map({options}))")

    def compact_deletes(self, chance: random.Random) -> None:
        with despite_two_specs():
            self.call(f"rewrite_position_delete_files(table => 'raw.{self.name}', options => map('rewrite-all', 'true'))")

    def rewrite_manifests(self, chance: random.Random) -> None:
        self.call(f"rewrite_manifests(table => 'raw.{self.name}', use_caching => false)")

    def rollback(self, chance: random.Random) -> None:
        if self.replaced:
            # The rows from before may have NULL where the schema of now allows none, so that Spark itself reads them wrong.
            return self.append(chance)
        found = self.sql(f"SELECT snapshot_id FROM {self.full_name}.snapshots ORDER BY committed_at, snapshot_id")
        if found:
            self.call(f"set_current_snapshot(table => 'raw.{self.name}', snapshot_id => {chance.choice(found)[0]})")
        return None

    def expire(self, chance: random.Random) -> None:
        # Without the schemas and specs that no snapshot was written with, whose ids come again.
        clean = ", clean_expired_metadata => true" if chance.random() < 0.5 else ""
        self.call(f"expire_snapshots(table => 'raw.{self.name}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1{clean})")

    def recreate(self, chance: random.Random) -> None:
        self.sql(f"DROP TABLE {self.full_name} PURGE")
        self.replaced = False
        self.create(chance)

    def replace_table(self, chance: random.Random) -> None:
        """With its snapshots and field ids; other columns may be NULL than before."""
        self.required, self.replaced = frozenset(n for n in self.columns if chance.random() < 0.4), True
        self.create(chance, "CREATE OR REPLACE TABLE")

    def add_column(self, chance: random.Random) -> None:
        self.added += 1
        self.extra.append(f"extra_{self.added}")
        self.sql(f"ALTER TABLE {self.full_name} ADD COLUMN {self.extra[-1]} {chance.choice(('INT', 'STRING'))}")

    def drop_column(self, chance: random.Random) -> None:
        if self.extra:
            name = self.extra.pop()
            self.sql(f"ALTER TABLE {self.full_name} DROP COLUMN {name}")
            if chance.random() < 0.5:
                self.extra.append(name)
                self.sql(f"ALTER TABLE {self.full_name} ADD COLUMN {name} DOUBLE")

    def rename_column(self, chance: random.Random) -> None:
        if self.extra:
            self.added += 1
            self.sql(f"ALTER TABLE {self.full_name} RENAME COLUMN {self.extra[-1]} TO other_{self.added}")
            self.extra[-1] = f"other_{self.added}"

    def widen(self, chance: random.Random) -> None:
        wider = {"int": "BIGINT", "decimal": "DECIMAL(12, 2)"}
        fit = [n for n, t in self.columns.items() if t in wider and n not in self.wide]
        if fit:
            name = chance.choice(fit)
            self.wide.add(name)
            self.sql(f"ALTER TABLE {self.full_name} ALTER COLUMN {name} TYPE {wider[self.columns[name]]}")

    def evolve_partitioning(self, chance: random.Random) -> None:
        if self.fields and chance.random() < 0.5:
            self.sql(f"ALTER TABLE {self.full_name} DROP PARTITION FIELD {self.fields.pop()}")
        else:
            used = {field_[-2:] for field_ in self.fields} | set(self.fields)
            free = [f for f in ("k", "bucket(2, v)", "bucket(3, k)") if f not in used and f[-2:] not in used]
            if free:
                self.fields.append(chance.choice(free))
                self.sql(f"ALTER TABLE {self.full_name} ADD PARTITION FIELD {self.fields[-1]}")

    def move_column(self, chance: random.Random) -> None:
        """Most often of the two columns that every query reads, which have one type."""
        name, other = chance.sample(("k", "v") if chance.random() < 0.7 else (*self.columns, *self.extra), 2)
        self.sql(f"ALTER TABLE {self.full_name} ALTER COLUMN {name} {chance.choice(('FIRST', f'AFTER {other}'))}")

    def swap_names(self, chance: random.Random) -> None:
        """Each of two columns gets the other's name; there is no snapshot of that."""
        if not self.fields and not self.required & {"k", "v"} and not self.wide & {"k", "v"}:
            for before, after in (("k", "swapped"), ("v", "k"), ("swapped", "v")):
                self.sql(f"ALTER TABLE {self.full_name} RENAME COLUMN {before} TO {after}")

    def replace_column(self, chance: random.Random) -> None:
        """Another column under the old name, without values."""
        if not self.fields and "v" not in self.required | self.wide:
            self.sql(f"ALTER TABLE {self.full_name} DROP COLUMN v")
            self.sql(f"ALTER TABLE {self.full_name} ADD COLUMN v INT {chance.choice(('', 'AFTER k'))}")

    def add_int96(self, chance: random.Random) -> None:
        """Files of an old writer, taken in as they are: timestamps of 96 bits go beyond what 64 bits of nanoseconds hold."""
        if self.fields or "ts" not in self.columns or self.size() > MOST_ROWS:
            return self.append(chance)
        self.added += 1
        folder = self.project.root / "outside" / f"{self.catalog}_{self.name}_{self.added}"
        rows = [[self.value(chance, n) for n in self.columns] for _ in range(chance.randint(1, 3))]
        conf = self.project.spark.conf
        conf.set("spark.sql.parquet.outputTimestampType", "INT96")
        conf.set("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
        try:
            self.log.append(f"-- {folder.name}: {self.rows(rows)}")
            self.project.spark.sql(self.rows(rows)).coalesce(1).write.parquet(str(folder))
        finally:
            conf.unset("spark.sql.parquet.outputTimestampType")
            conf.unset("spark.sql.parquet.int96RebaseModeInWrite")
        return self.call(f"add_files(table => 'raw.{self.name}', source_table => '`parquet`.`{folder}`')")

    # --- statements ---

    def call(self, procedure: str) -> None:
        self.sql(f"CALL {self.catalog}.system.{procedure}")

    def size(self) -> int:
        return int(self.project.sql(f"SELECT count(*) FROM {self.full_name}")[0][0])

    def insert(self, chance: random.Random, count: int) -> None:
        self.insert_rows([[self.value(chance, n) for n in self.columns] for _ in range(count)])

    def insert_rows(self, rows: Sequence[Sequence[str]]) -> None:
        if rows:
            self.sql(f"INSERT INTO {self._into(self.rows(rows))}")

    def rows(self, rows: Sequence[Sequence[str]]) -> str:
        casts = ", ".join(f"CAST(c{at} AS {SQL_TYPES[t]}) AS {n}" for at, (n, t) in enumerate(self.columns.items()))
        names = ", ".join(f"c{at}" for at in range(len(self.columns)))
        values = ", ".join(f"({', '.join(row)})" for row in rows) or f"({', '.join('NULL' for _ in self.columns)})"
        return f"SELECT {casts} FROM VALUES {values} AS q ({names}){'' if rows else ' WHERE false'}"

    def value(self, chance: random.Random, column: str) -> str:
        return _literal(self._value(chance, column))

    def predicate(self, chance: random.Random) -> str:
        n = chance.choice((0, 1, 2, 3))
        return chance.choice((f"k = {n}", f"v = {n}", f"k = {n}", f"k > {n}", "k IS NULL", f"v <= {n} AND k <> {n}", "v IS NULL", "true"))


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, float):
        return f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, bytes):
        return f"CAST(X'{value.hex()}' AS STRING)"
    if isinstance(value, datetime):
        return f"TIMESTAMP'{value}'"
    return f"DATE'{value}'" if hasattr(value, "isoformat") else f"CAST({value} AS DECIMAL(10, 2))"
