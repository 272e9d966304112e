"""A seed -> a Case: base tables, materialized views over them, and rounds of commits; played on Spark, with a run after every round.

    case = made(seed=7, version=2, mode="merge-on-read")
    seen = played(case, directory, spark)     # Seen: how often which strategy, and every failure
    print(shrunk(case, ...))                  # the smallest case that still fails

What must hold after every run: each MV has the rows of its full query (bags, both ways), nothing is left behind, a second run has nothing to do,
and an incremental refresh wrote no more rows than differ.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from mvbuild import api
from mvbuild.formats import metadata_file
from mvbuild.incremental import choose, sizes
from mvbuild.refresh import readings
from spark.histories import despite_two_specs
from spark.projects import Project, messages, new_project
from spark.quick import QUERIES as QUICK
from unit.incremental.queries import VALUES, Type, query_over

MODES = ((2, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read"))
"""Format version and write mode of the base tables; the last has deletion vectors."""
SQL_TYPES: Mapping[Type, str] = {
    "int": "INT",
    "decimal": "DECIMAL(10, 2)",
    "string": "STRING",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "double": "DOUBLE",
}
COLUMNS: Mapping[str, Type] = {
    "g": "int",
    "s": "string",
    "d": "decimal",
    "f": "boolean",
    "t": "date",
    "r": "double",
    "`a b`": "string",
    "`Größe`": "int",
}
"""Besides `k` and `v`, which every table has. Some need quoting."""
MOST_ROWS = 14
"""Above that a base table gets no more."""
MOST_RESULT = 400
"""An MV with more rows at the start is left out."""
EXACT = ("merge", "affected-keys", "bag", "full-diff", "append")
"""Strategies that write the rows that differ and no other."""

Kind = Literal["mv", "view", "ephemeral"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change of one table, or of an MV's storage. What it does is told by its own seed: others may be taken away."""

    what: str
    table: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Model:
    """`query` has the names of what it reads in braces."""

    name: str
    query: str
    kind: Kind = "mv"
    config: str = ""
    """In YAML's flow style."""

    @property
    def is_embedded(self) -> bool:
        return "metadata-file" in self.config


@dataclass(frozen=True, kw_only=True)
class Case:
    seed: int
    version: int
    mode: str
    tables: Mapping[str, Mapping[str, Type]]
    required: frozenset[tuple[str, str]]
    """(table, column) that cannot be NULL."""
    models: tuple[Model, ...]
    rounds: tuple[tuple[Step, ...], ...]

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, v{self.version} {self.mode}"]
        lines += [f"  {m.kind} {m.name} {{{m.config}}}: {m.query}" for m in self.models]
        lines += [f"  round {at}: {', '.join(f'{s.what} {s.table} ({s.seed})' for s in steps)}" for at, steps in enumerate(self.rounds)]
        return "\n".join(lines)


@dataclass
class Seen:
    """Of one case or many."""

    histories: int = 0
    runs: int = 0
    refreshes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(strategy, reason)."""
    steps: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    """Queries whose round trip Spark does not prove."""
    operators: Counter[str] = field(default_factory=Counter)
    verified: int = 0
    log: list[str] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        self.histories += other.histories
        self.runs += other.runs
        self.refreshes.update(other.refreshes)
        self.steps.update(other.steps)
        self.failures.extend(other.failures)
        self.unproven.extend(other.unproven)
        self.verified += other.verified


# --- a case ------------------------------------------------------------------------------------------------------------------------

STEPS: Mapping[str, float] = {
    "append": 6,
    "append_again": 1,
    "delete": 4,
    "update": 4,
    "touch": 1,
    "merge": 3,
    "overwrite": 2,
    "compact": 2,
    "compact_deletes": 1,
    "rewrite_manifests": 0.5,
    "rollback": 1.5,
    "add_column": 0.8,
    "drop_column": 0.4,
    "rename_column": 0.6,
    "widen": 0.4,
    "evolve_partitioning": 1,
    "empty": 0.4,
    "refill": 0.7,
    "expire": 0.5,
    "recreate": 0.3,
}
STORAGE_STEPS = ("compact_storage", "expire_storage", "compact_storage_deletes")


def made(seed: int, version: int, mode: str, *, rounds: int = 5, mvs: int = 6) -> Case:
    chance = random.Random(f"{seed} {version} {mode}")
    tables = {name: _columns(chance) for name in "abc"[: chance.choice((2, 2, 3))]}
    required = frozenset((t, c) for t, columns in tables.items() for c in columns if chance.random() < 0.08)
    models = tuple(_models(chance, tables, mvs))
    return Case(
        seed=seed,
        version=version,
        mode=mode,
        tables=tables,
        required=required,
        models=models,
        rounds=tuple(_round(chance, tables, models) for _ in range(rounds)),
    )


def _columns(chance: random.Random) -> dict[str, Type]:
    return {"k": "int", "v": "int", **{name: type_ for name, type_ in COLUMNS.items() if chance.random() < (0.15 if " " in name else 0.5)}}


def _round(chance: random.Random, tables: Mapping[str, Any], models: Sequence[Model]) -> tuple[Step, ...]:
    steps = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        seed = chance.randrange(10**6)
        stored = [m.name for m in models if m.kind == "mv" and not m.is_embedded]
        if stored and chance.random() < 0.1:
            steps.append(Step(what=chance.choice(STORAGE_STEPS), table=chance.choice(stored), seed=seed))
        else:
            (what,) = chance.choices(list(STEPS), weights=list(STEPS.values()))
            steps.append(Step(what=what, table=chance.choice(list(tables)), seed=seed))
    return tuple(steps)


def _models(chance: random.Random, tables: Mapping[str, Mapping[str, Type]], mvs: int) -> Iterator[Model]:
    """A view, an ephemeral model, MVs that others read, one of well-known shapes with odd names, and random ones over all of them."""
    readable: dict[str, Mapping[str, Type]] = dict(tables)
    for name, kind in (("w", "view"), ("e", "ephemeral")):
        below = chance.choice([t for t in readable if t != "w" or chance.random() < 0.6])
        shown = {"k": "k", "v": chance.choice(("v", "coalesce(v, 1)", "v + 1"))}
        shown |= {column: column for column in readable[below] if column not in shown and chance.random() < 0.6}
        where = chance.choice(("", " WHERE k > 0", " WHERE v IS NOT NULL", " WHERE k <= 2 OR v = 1"))
        listed = ", ".join(f"{text} AS {column}" for column, text in shown.items())
        yield Model(name=name, kind=kind, query=f"SELECT {listed} FROM {{{below}}}{where}")  # type: ignore[arg-type]
        readable[name] = {column: readable[below][column] for column in shown}
    for name in ("m1", "m2"):
        query, columns = _upstream(chance, readable)
        yield Model(name=name, query=query, config=_config(chance, columns))
        readable[name] = columns
    query, columns = _template(chance, tables)
    yield Model(name="m3", query=query, config=_config(chance, columns, is_typed=True))
    for at in range(4, mvs + 1):
        below = _some(chance, readable)
        text, found, _ = query_over(chance, below)
        yield Model(name=f"m{at}", query=text, config=_config(chance, dict(found)))


def _some(chance: random.Random, readable: Mapping[str, Mapping[str, Type]]) -> dict[str, Mapping[str, Type]]:
    return {name: readable[name] for name in chance.sample(list(readable), min(len(readable), chance.choice((1, 2, 2, 3))))}


def _upstream(chance: random.Random, readable: Mapping[str, Mapping[str, Type]]) -> tuple[str, dict[str, Type]]:
    """A query that others read: it has `k` and `v`."""
    types: list[Type] = ["int", "int", *chance.sample(("string", "decimal"), chance.choice((0, 1)))]
    names = ["k", "v", *(f"more_{at}" for at in range(len(types) - 2))]
    text, columns, _ = query_over(chance, _some(chance, readable), types)
    listed = ", ".join(f"{own} AS {name}" for (own, _), name in zip(columns, names, strict=True))
    return f"SELECT {listed} FROM ({text}) AS q", dict(zip(names, types, strict=True))


_TEMPLATES: Sequence[tuple[str, dict[str, Type]]] = (
    (
        "SELECT x.k, count(*) AS `count(*)`, sum(x.v) AS `sum of v`, count(x.v) AS `Count`, min(x.v) AS least FROM {%a} x GROUP BY x.k",
        {"k": "int"},
    ),
    (
        "SELECT k AS `the k`, count(*) AS n, sum(v) AS total, count(v) AS vs, avg(v) AS mean FROM {%a} GROUP BY k",
        {"`the k`": "int", "n": "int"},
    ),
    ("SELECT x.k, x.v AS `Größe`, y.v AS `select` FROM {%a} x JOIN {%b} y ON x.k = y.k WHERE x.v > 0 OR y.v > 0", {"k": "int"}),
    ("SELECT DISTINCT k, v FROM {%a} UNION ALL SELECT k, v FROM {%b} WHERE k IS NOT NULL", {"k": "int", "v": "int"}),
    ("SELECT x.k, x.v, y.v AS other FROM {%a} x LEFT JOIN {%b} y ON x.k = y.k AND y.v > 0", {"k": "int", "v": "int"}),
    ("SELECT coalesce(x.k, y.k) AS k, x.v, y.v AS other FROM {%a} x FULL JOIN {%b} y ON x.k = y.k", {"k": "int"}),
    ("SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v DESC) AS `rank 1` FROM {%a}", {"k": "int", "v": "int"}),
    ("SELECT k, count(DISTINCT v) AS n, max(v) AS most FROM {%a} GROUP BY k HAVING count(*) > 1", {"k": "int"}),
    ("SELECT k, v FROM {%a} WHERE k NOT IN (SELECT k FROM {%b} WHERE k IS NOT NULL AND v > 1)", {"k": "int"}),
    ("SELECT * FROM {%a} WHERE EXISTS (SELECT 1 FROM {%b} y WHERE y.v = 1)", {"k": "int", "v": "int"}),
    (
        "WITH sums AS (SELECT k, sum(v) AS v, count(*) AS n FROM {%a} GROUP BY k) "
        "SELECT v, count(*) AS `how many`, max(n) AS most FROM sums GROUP BY v",
        {"v": "int"},
    ),
    ("SELECT x.k, (SELECT max(y.v) FROM {%b} y WHERE y.k = x.k) AS most FROM {%a} x", {"k": "int"}),
    ("SELECT count(*) AS n, sum(v) AS total, count(v) AS vs FROM {%a}", {"n": "int"}),
    ("SELECT x.k, count(*) AS n FROM {%a} x JOIN {%a} y ON x.k = y.v GROUP BY x.k", {"k": "int"}),
)


def _template(chance: random.Random, tables: Mapping[str, Any]) -> tuple[str, dict[str, Type]]:
    query, columns = chance.choice(_TEMPLATES)
    one, other = chance.sample(list(tables), 2)
    return query.replace("%a", one).replace("%b", other), columns


def _config(chance: random.Random, columns: Mapping[str, Type], *, is_typed: bool = False) -> str:
    """Set operators may have widened a column to a floating-point number, of which Iceberg has no buckets, unless it `is_typed`."""
    parts = []
    if chance.random() < 0.35:
        fit = {name: type_ for name, type_ in columns.items() if type_ in ("int", "string", "date") and "`" not in name}
        if fit:
            name = chance.choice(list(fit))
            field_ = f"month({name})" if fit[name] == "date" and chance.random() < 0.6 else name
            is_bucket = chance.random() >= 0.85 and is_typed
            parts.append(f"partition_by: ['{f'bucket(3, {name})' if is_bucket else field_}']")
    if chance.random() < 0.2:
        parts.append(f"sort_by: ['{chance.choice([n for n in columns if '`' not in n] or ['k'])} desc']")
    if chance.random() < 0.35:
        modes = ", ".join(f"write.{of}.mode: copy-on-write" for of in ("delete", "update", "merge"))
        parts.append(f"table_properties: {{{modes}}}")
    if chance.random() < 0.15:
        parts.append("storage: {format: metadata-file}")
    return ", ".join(parts)


# --- base tables -------------------------------------------------------------------------------------------------------------------


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

    @property
    def full_name(self) -> str:
        return f"lake.raw.{self.name}"

    @property
    def listed(self) -> str:
        return ", ".join(self.columns)

    def sql(self, text: str) -> list[Any]:
        self.log.append(text)
        return self.project.sql(text)

    def create(self, chance: random.Random) -> None:
        columns = [f"{n} {SQL_TYPES[t]}{' NOT NULL' if n in self.required else ''}" for n, t in self.columns.items()]
        self.extra, self.wide = ["note"], set()
        self.fields = chance.choice(([], ["k"], ["bucket(2, v)"]))
        layout = f"PARTITIONED BY ({', '.join(self.fields)})" if self.fields else ""
        modes = ", ".join(f"'write.{of}.mode' = '{self.mode}'" for of in ("delete", "update", "merge"))
        self.sql(
            f"CREATE TABLE {self.full_name} ({', '.join(columns)}, note STRING) USING iceberg {layout} TBLPROPERTIES "
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
            self.sql(
                f"INSERT INTO {self.full_name} ({self.listed}) SELECT {self.listed} FROM {self.full_name} WHERE {self.predicate(chance)}"
            )

    def delete(self, chance: random.Random) -> None:
        self.sql(f"DELETE FROM {self.full_name} WHERE {self.predicate(chance)}")

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
        values = ", ".join(f"s.{n}" for n in self.columns)
        self.sql(
            f"MERGE INTO {self.full_name} t USING ({self.rows(rows)}) s ON t.k = s.k WHEN MATCHED AND t.v < 1 THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {sets} WHEN NOT MATCHED THEN INSERT ({self.listed}) VALUES ({values})"
        )

    def overwrite(self, chance: random.Random) -> None:
        """The partitions of the new rows, or the whole table."""
        self.project.spark.conf.set("spark.sql.sources.partitionOverwriteMode", chance.choice(("dynamic", "dynamic", "static")))
        try:
            rows = [[self.value(chance, n) for n in self.columns] for _ in range(chance.randint(0, 6))]
            self.sql(f"INSERT OVERWRITE {self.full_name} ({self.listed}) {self.rows(rows)}")
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
        found = self.sql(f"SELECT snapshot_id FROM {self.full_name}.snapshots ORDER BY committed_at, snapshot_id")
        if found:
            self.call(f"set_current_snapshot(table => 'raw.{self.name}', snapshot_id => {chance.choice(found)[0]})")

    def expire(self, chance: random.Random) -> None:
        self.call(f"expire_snapshots(table => 'raw.{self.name}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)")

    def recreate(self, chance: random.Random) -> None:
        self.sql(f"DROP TABLE {self.full_name} PURGE")
        self.create(chance)

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

    # --- statements ---

    def call(self, procedure: str) -> None:
        self.sql(f"CALL lake.system.{procedure}")

    def size(self) -> int:
        return int(self.project.sql(f"SELECT count(*) FROM {self.full_name}")[0][0])

    def insert(self, chance: random.Random, count: int) -> None:
        self.insert_rows([[self.value(chance, n) for n in self.columns] for _ in range(count)])

    def insert_rows(self, rows: Sequence[Sequence[str]]) -> None:
        if rows:
            self.sql(f"INSERT INTO {self.full_name} ({self.listed}) {self.rows(rows)}")

    def rows(self, rows: Sequence[Sequence[str]]) -> str:
        casts = ", ".join(f"CAST(c{at} AS {SQL_TYPES[t]}) AS {n}" for at, (n, t) in enumerate(self.columns.items()))
        names = ", ".join(f"c{at}" for at in range(len(self.columns)))
        values = ", ".join(f"({', '.join(row)})" for row in rows) or f"({', '.join('NULL' for _ in self.columns)})"
        return f"SELECT {casts} FROM VALUES {values} AS q ({names}){'' if rows else ' WHERE false'}"

    def value(self, chance: random.Random, column: str) -> str:
        values = VALUES[self.columns[column]]
        return _literal(chance.choice([v for v in values if v is not None] if column in self.required else values))

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
    return f"DATE'{value}'" if hasattr(value, "isoformat") else f"CAST({value} AS DECIMAL(10, 2))"


# --- playing it --------------------------------------------------------------------------------------------------------------------


def played(case: Case, root: Path, spark: Any, *, quick: bool = True, verify_every: int = 3) -> Seen:
    """Everything goes into `root`, which must not exist. A failure ends the case."""
    player = _Player(case=case, project=new_project(root, {}, spark), verify_every=verify_every)
    player.seen.histories = 1
    if quick:
        for key, value in QUICK.items():
            player.project.spark.conf.set(key, value)
    try:
        with as_if_large() if case.seed % 2 else nullcontext():
            player.play()
    except Failed as exc:
        player.seen.failures.append(f"{exc}\n{case}")
    except Exception as exc:  # noqa: BLE001  whatever it is, it is this case's
        player.seen.failures.append(f"{type(exc).__name__}: {str(exc)[:1500]}\n{case}")
    finally:
        player.project.spark.catalog.clearCache()
        player.project.catalog.close()
        shutil.rmtree(root, ignore_errors=True)
    return player.seen


@contextmanager
def as_if_large() -> Iterator[None]:
    """A few rows are refreshed as many would be: by bounds of keys, those that metadata tells among them, and without tables that have none."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((sizes, "LITTLE"), (readings, "LITTLE"), (readings, "MAX_VALUES"), (choose, "LARGE")):
            patch.setattr(module, name, 0)
        yield


class Failed(Exception):
    pass


@dataclass
class _Player:
    case: Case
    project: Project
    verify_every: int
    seen: Seen = field(default_factory=Seen)
    tables: dict[str, BaseTable] = field(default_factory=dict)
    models: list[Model] = field(default_factory=list)
    stored: dict[str, Counter[str]] = field(default_factory=dict)

    def play(self) -> None:
        chance = random.Random(self.case.seed)
        self.project.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
        for name, columns in self.case.tables.items():
            required = frozenset(c for t, c in self.case.required if t == name)
            self.tables[name] = BaseTable(
                name=name,
                columns=columns,
                required=required,
                version=self.case.version,
                mode=self.case.mode,
                project=self.project,
                log=self.seen.log,
            )
            self.tables[name].create(chance)
        self._take_models()
        self._write_files()
        self._refresh("at first")
        for at, steps in enumerate(self.case.rounds):
            for step in steps:
                if self._step(step):
                    self.seen.steps[step.what] += 1
            self._refresh(f"round {at}")
            if self.verify_every and at % self.verify_every == self.verify_every - 1:
                self._verify()

    def _take_models(self) -> None:
        """Those that Spark understands, and that do not explode."""
        known = set(self.case.tables)
        for model in self.case.models:
            try:
                self.project.spark.sql(self._expanded(model.query))
            except Exception as exc:  # noqa: BLE001
                self.seen.log.append(f"-- {model.name} is left out: {str(exc)[:200]}")
                continue
            known.add(model.name)
            self.models.append(model)
        counts = [
            f"SELECT '{m.name}' AS mv, count(*) AS n FROM (SELECT 1 FROM ({self._expanded(m.query)}) AS q LIMIT {MOST_RESULT + 1}) AS r"
            for m in self.models
        ]
        large = {row[0] for row in self.project.sql(" UNION ALL ".join(counts)) if row[1] > MOST_RESULT}
        for model in list(self.models):
            if model.name in large or any(f"{{{name}}}" in model.query for name in large):
                large.add(model.name)
                self.models.remove(model)

    def _write_files(self) -> None:
        names = {name: f"raw.{name}" for name in self.tables} | {m.name: f"{{{{ ref('{m.name}') }}}}" for m in self.models}
        files = {"mvbuild.yml": "name: histories\nmodels: {+refresh_policy: incremental}\n"}
        kinds = {"mv": "", "view": "{{ config(materialized='view') }}\n", "ephemeral": "{{ config(materialized='ephemeral') }}\n"}
        entries = []
        for model in self.models:
            files[f"models/{model.name}.sql"] = kinds[model.kind] + _filled(model.query, names) + "\n"
            entries.append(f"  - {{name: {model.name}, config: {{{model.config}}}}}\n" if model.config else "")
        if any(entries):
            files["models/all.yml"] = "models:\n" + "".join(entries)
        self.project.write(files)

    def _step(self, step: Step) -> bool:
        chance = random.Random(step.seed)
        if step.what not in STORAGE_STEPS:
            self.tables[step.table].do(step.what, chance)
            return True
        if step.table not in [m.name for m in self.models]:
            return False
        table = f"main.{step.table}__storage"
        call = {
            "compact_storage": f"rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))",
            "compact_storage_deletes": f"rewrite_position_delete_files(table => '{table}', options => map('rewrite-all', 'true'))",
            "expire_storage": f"expire_snapshots(table => '{table}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)",
        }[step.what]
        self.seen.log.append(call)
        with despite_two_specs():
            self.project.sql(f"CALL lake.system.{call}")
        return True

    def _refresh(self, when: str) -> None:
        result = self.project.run(threads=2)
        self.seen.runs += 1
        self.seen.log.append(f"-- run {when}")
        if not result.ok:
            raise Failed(f"{when}: the run failed: {messages(result)}")
        details = {r.node.rpartition(".")[2]: r for r in result.results}
        for name, one in details.items():
            strategy = one.details.get("strategy")
            if strategy:
                reason = one.details.get("reason") or ""
                self.seen.refreshes[(strategy, reason)] += 1
                if reason == "incremental-failed":
                    raise Failed(f"{when}: {name}: {one.details.get('reason_message')}")
                if reason == "round-trip-unproven":
                    query = next(m.query for m in self.models if m.name == name)
                    self.seen.unproven.append(f"{query}\n{one.details.get('reason_message')}")
        self._compare(when, details)
        self._nothing_left(when)

    def _compare(self, when: str, details: Mapping[str, Any]) -> None:
        mvs = [m for m in self.models if m.kind == "mv"]
        wanted = self._rows({m.name: f"({self._expanded(m.query)})" for m in mvs})
        stored = self._rows({m.name: self._storage(m) for m in mvs})
        for model in mvs:
            name = model.name
            one = details.get(name)
            how = f"{one.status}, {one.details.get('strategy')}, {one.details.get('reason')}, {one.message}" if one else "not in the run"
            if stored[name] != wanted[name]:
                lacks, more = wanted[name] - stored[name], stored[name] - wanted[name]
                raise Failed(f"{when}: {name} ({how}) lacks {dict(lacks)} and has {dict(more)} too much\n{one.sql if one else ''}")
            before = self.stored.get(name)
            if one and one.status == "success" and before is not None and one.details.get("strategy") in EXACT:
                differing = (before - stored[name]).total(), (stored[name] - before).total()
                wrote = one.details.get("rows_removed"), one.details.get("rows_added")
                if None in wrote or sum(wrote) > sum(differing):
                    raise Failed(f"{when}: {name} ({how}) removed and added {wrote} rows, but {differing} differ\n{one.sql}")
        self.stored = stored

    def _rows(self, sources: Mapping[str, str]) -> dict[str, Counter[str]]:
        """MV -> its rows as text, all in one query where Spark's optimizer can make a plan of it."""
        parts = []
        for name, source in sources.items():
            fields = self.project.spark.sql(f"SELECT * FROM {source} AS q").schema.fields
            values = [
                f"round(q.{_quoted(f.name)}, 9) + 0.0D" if f.dataType.typeName() in ("double", "float") else f"q.{_quoted(f.name)}"
                for f in fields
            ]
            listed = ", ".join(f"coalesce(CAST({value} AS STRING), 'NULL')" for value in values)
            parts.append(f"SELECT '{name}' AS mv, concat_ws('|', {listed}) AS row FROM {source} AS q")
        found: dict[str, Counter[str]] = {name: Counter() for name in sources}
        for name, row in self._together(parts):
            found[name][row] += 1
        return found

    def _together(self, parts: Sequence[str]) -> list[Any]:
        try:
            return self.project.sql(" UNION ALL ".join(parts)) if parts else []
        except Exception as exc:
            # PushProjectionThroughUnion loses a column of some unions of unions.
            if "key not found" not in str(exc):
                raise
            return [row for part in parts for row in self.project.sql(part)]

    def _storage(self, model: Model) -> str:
        if not model.is_embedded:
            return f"lake.main.{model.name}__storage"
        pointer = self.project.view(f"main.{model.name}")["properties"][metadata_file.METADATA_LOCATION]
        file = metadata_file.read(Path(pointer.removeprefix("file://")).read_bytes())
        name = f"embedded_{model.name}"
        self.project.spark.read.format("iceberg").load(file.storage_metadata_location).createOrReplaceTempView(name)
        return name

    def _nothing_left(self, when: str) -> None:
        self.project.assert_tidy()
        for model in self.models:
            if model.is_embedded:
                self.project.spark.catalog.dropTempView(f"embedded_{model.name}")
        views = [t.name for t in self.project.spark.catalog.listTables() if t.isTemporary]
        if views:
            raise Failed(f"{when}: temporary views are left: {views}")
        if not self.project.only_reused():
            raise Failed(f"{when}: a second run has something to do: {self.project.statuses()}")

    def _verify(self) -> None:
        found = api.verify(self.project.root, spark=self.project.spark)
        wrong = [r for r in found.results if r.status not in ("same", "unverifiable")]
        self.seen.verified += len(found.results)
        if wrong:
            raise Failed(f"verify does not agree: {wrong}")

    def _expanded(self, query: str) -> str:
        """The query over the base tables alone."""
        names = {name: f"lake.raw.{name}" for name in self.tables}
        for model in self.models:
            names[model.name] = f"({_filled(model.query, names)})"
        return _filled(query, names)


def _filled(query: str, names: Mapping[str, str]) -> str:
    for name, text in names.items():
        query = query.replace(f"{{{name}}}", text)
    return query


def _quoted(name: str) -> str:
    return f"`{name}`"


# --- making it small ---------------------------------------------------------------------------------------------------------------


def shrunk(case: Case, fails: Callable[[Case], bool], *, seconds: float) -> Case:
    """The smallest case that still fails, as far as the time allows: fewer MVs, rounds and steps, one after another."""
    end = time.monotonic() + seconds
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for other in _smaller(case):
            if time.monotonic() > end:
                break
            if fails(other):
                case, smaller = other, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for at in range(len(case.rounds) - 1, 0, -1):
        yield replace(case, rounds=case.rounds[:at])
    for model in case.models:
        if not any(f"{{{model.name}}}" in other.query for other in case.models):
            yield replace(case, models=tuple(m for m in case.models if m is not model))
    for at, steps in enumerate(case.rounds):
        yield replace(case, rounds=(*case.rounds[:at], *case.rounds[at + 1 :]))
        for step in steps if len(steps) > 1 else ():
            yield replace(case, rounds=(*case.rounds[:at], tuple(s for s in steps if s is not step), *case.rounds[at + 1 :]))
    for model in case.models:
        if model.config:
            yield replace(case, models=tuple(replace(m, config="") if m is model else m for m in case.models))
