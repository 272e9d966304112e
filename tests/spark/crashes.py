"""seed -> runs that are killed at random moments, and what must hold after each: for the test suite and for tests/benchmarks/crash.py."""

from __future__ import annotations

import json
import os
import random
import re
import select
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.table import StaticTable, Table

from spark.projects import ENVIRONMENT, Project, bag, command_line, messages, new_project

BASE, CHILD, INDIRECT = "iceberg.base.snapshot.", "iceberg.child.view.version.", "mvbuild.record.indirect"
MV_FILE, STORAGE_FILE = "materialized-view.metadata-location", "materialized-view.storage.metadata-location"
FORMATS = ("table-properties", "metadata-file")
ORDERS = pa.schema([("order_id", pa.int64()), ("customer_id", pa.int64()), ("day", pa.int64()), ("amount", pa.int64())])
ACTIVE = "{{ config(materialized='view') }}\nSELECT customer_id, country FROM customers WHERE customer_id > 0\n"
# The columns of `daily` change between rounds: with another layout a refresh goes through a scratch table.
JOINED = "FROM raw.orders o JOIN {{ ref('active') }} r ON o.customer_id = r.customer_id"
SHAPES = (
    f"SELECT o.day, r.country, sum(o.amount) AS revenue {JOINED} GROUP BY o.day, r.country\n",
    f"SELECT o.day, r.country, sum(o.amount) AS revenue, count(*) AS orders {JOINED} GROUP BY o.day, r.country\n",
    f"SELECT o.day, sum(o.amount) AS revenue, max(o.amount) AS most {JOINED} GROUP BY o.day\n",
)
BY_CUSTOMER = "WITH {0} AS (SELECT customer_id, amount FROM raw.orders) SELECT customer_id, count(*) AS orders, sum(amount) AS revenue FROM {0} GROUP BY customer_id\n"
TOTAL = (
    "SELECT (SELECT sum(revenue) FROM {{ ref('%s') }}) AS by_day, (SELECT sum(revenue) FROM by_customer) AS by_customer,"
    " (SELECT count(*) FROM customers) AS customers\n"
)
NAMES = {"daily": ("daily", "daily_sales"), "by_customer": ("by_customer",), "total": ("total",)}
"""The MVs, each with all names that it has in turn."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The files of the project except its queries."""

    formats: Mapping[str, str]
    daily: str = "daily"
    """The name of the model now."""
    previous: str | None = None
    shape: int = 0
    partitioned: bool = True
    note: str = "Sales."
    cte: str = "lines"

    def files(self) -> dict[str, str]:
        former = f", previous_name: {self.previous}" if self.previous else ""
        partition = "[day]" if self.partitioned else "[]"
        storage = {name: f"storage: {{format: {kept}}}" for name, kept in self.formats.items()}
        tested = "columns: [{name: day, data_tests: [not_null]}]"
        return {
            f"models/{self.daily}.sql": SHAPES[self.shape],
            "models/by_customer.sql": BY_CUSTOMER.format(self.cte),
            "models/total.sql": TOTAL % self.daily,
            "models/all.yml": (
                "models:\n"
                f"  - {{name: {self.daily}, config: {{partition_by: {partition}, {storage['daily']}{former}}}, {tested}}}\n"
                f"  - {{name: by_customer, description: {self.note}, config: {{{storage['by_customer']}}}}}\n"
                f"  - {{name: total, config: {{{storage['total']}}}}}\n"
            ),
        }


@dataclass(frozen=True, kw_only=True)
class Seen:
    """An MV at one moment: the metadata files that the catalog showed for it."""

    view: str | None
    table: str | None
    """Of a storage table with an entry of its own."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a reader makes of an MV: the view, the rows, and what these were built from."""

    view: Mapping[str, Any] | None
    storage: Table
    version: int | None
    """None before the first refresh."""
    bases: Mapping[str, int]
    """Uuid of a table -> snapshot."""
    children: Mapping[str, int]
    """Uuid of a view -> version."""


@dataclass
class Rig:
    """One project that is changed, built, killed and repaired in rounds."""

    project: Project
    random: random.Random
    config: Config
    events: list[str] = field(default_factory=list)
    next_order: int = 0
    seeds: int = 0
    killed: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    """How often `change` did what, and how often a reader could have seen an MV in which format."""

    @classmethod
    def make(cls, root: Path, spark: Any, seed: int) -> Rig:
        files = {
            "mvbuild.yml": "name: crash\nseeds: {crash: {+column_types: {customer_id: bigint}}}\n",
            "models/active.sql": ACTIVE,
        }
        chosen = random.Random(seed)
        config = Config(formats={name: chosen.choice(FORMATS) for name in NAMES})
        rig = cls(project=new_project(root, files | config.files(), spark), random=chosen, config=config)
        rig.project.make("raw.orders", pa.Table.from_pylist([], schema=ORDERS))
        rig.write_seed()
        rig.append()
        return rig

    def change(self) -> None:
        """Give the next run something to do, along each way that an MV can change."""
        before = self.config
        if self._maybe("rows", 0.8):
            self.append()
        if self._maybe("columns", 0.4):
            self.config = replace(self.config, shape=(self.config.shape + self.random.choice((1, 2))) % len(SHAPES))
        if self._maybe("seed", 0.3):
            self.write_seed()
        if self._maybe("child view", 0.2):
            self.project.write({"models/active.sql": ACTIVE.replace("> 0", f"> {self.random.randrange(3)}")})
        if self._maybe("conversion", 0.5):
            turned = {name for name in NAMES if self.random.random() < 0.6}
            formats = {name: FORMATS[(FORMATS.index(old) + (name in turned)) % 2] for name, old in self.config.formats.items()}
            self.config = replace(self.config, formats=formats)
        if self._maybe("rename", 0.35):
            (self.project.root / f"models/{self.config.daily}.sql").unlink()
            now = next(name for name in NAMES["daily"] if name != self.config.daily)
            self.config = replace(self.config, daily=now, previous=self.config.daily)
        if self._maybe("partitioning", 0.3):
            self.config = replace(self.config, partitioned=not self.config.partitioned)
        if self._maybe("comment", 0.3):
            self.config = replace(self.config, note=f"Sales {self.random.randrange(1000)}.")
        if self._maybe("names in a query", 0.3):
            self.config = replace(self.config, cte="sold" if self.config.cte == "lines" else "lines")
        if self.config == before:
            self.append()
        self.project.write(self.config.files())

    def _maybe(self, what: str, share: float) -> bool:
        chosen = self.random.random() < share
        self.changes[what] += chosen
        return chosen

    def append(self) -> None:
        rows = []
        for _ in range(self.random.randrange(1, 40)):
            self.next_order += 1
            rows.append(
                {
                    "order_id": self.next_order,
                    "customer_id": self.random.randrange(1, 6),
                    "day": self.random.randrange(8),
                    "amount": self.random.randrange(100),
                }
            )
        self.project.append("raw.orders", *rows)

    def write_seed(self) -> None:
        self.seeds += 1
        lines = [f"{i},{self.random.choice(('DE', 'FR', 'IT'))}" for i in range(1, 5 + self.seeds % 3)]
        self.project.write({"seeds/customers.csv": "\n".join(["customer_id,country", *lines, ""])})

    def round(self) -> None:
        """Start a run, kill it, look at every state that a reader could have seen, run again."""
        seen = self.run_and_kill()
        for name, moments in seen.items():
            for moment in moments:
                found = read(moment)
                if found is not None:
                    self.changes[f"seen in {FORMATS[moment.table is None]}"] += 1
                    self.check(name, found)
        self.mend()

    def run_and_kill(self) -> Mapping[str, set[Seen]]:
        """What the catalog showed of each MV while the run went on."""
        by_lines = self.random.random() < 0.3
        wanted = self.random.randrange(1, 6) if by_lines else self.random.randrange(1, 12)
        delay = self.random.uniform(0, 0.4 if by_lines else 0.1)
        only_python = self.random.random() < 0.2
        seen: dict[str, set[Seen]] = {name: set() for name in NAMES}
        process = subprocess.Popen(
            command_line(self.project.root, "run", "--threads", str(self.random.choice((1, 2, 4)))),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        assert process.stdout is not None
        lines = changes = 0
        last = self.watch(seen)
        deadline: float | None = None
        output, open_ = b"", True
        while open_ and (deadline is None or monotonic() < deadline):
            ready, _, _ = select.select([process.stdout], [], [], 0.002)
            if ready:
                chunk = os.read(process.stdout.fileno(), 65536)
                open_ = bool(chunk)
                output += chunk
                lines = len(re.findall(rb"START|\] *$", output, re.MULTILINE))
            now = self.watch(seen)
            changes += now != last
            last = now
            if deadline is None and (lines if by_lines else changes) >= wanted:
                deadline = monotonic() + delay
        if open_:
            self.killed += 1
            (os.kill if only_python else os.killpg)(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        _wait_for_session(process.pid)
        self.watch(seen)
        what = f"{'START line' if by_lines else 'catalog change'} {wanted} + {delay * 1000:.0f} ms{', Python only' if only_python else ''}"
        self.events.append(f"{what}: {'killed' if open_ else f'ended with {process.returncode}'} after {changes} catalog changes")
        assert open_ or process.returncode == 0, output.decode()
        return seen

    def watch(self, seen: Mapping[str, set[Seen]]) -> Mapping[str, str]:
        rows = self.pointers()
        for name, moments in seen.items():
            moments |= moments_of(name, rows)
        return rows

    def pointers(self) -> dict[str, str]:
        """What the catalog shows now: name -> metadata file."""
        with closing(sqlite3.connect(self.project.root / ".mvbuild" / "catalog.db", timeout=60)) as db:
            rows = db.execute("SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables").fetchall()
        return dict(rows)

    def mend(self) -> None:
        """Another run makes everything right, and the one after it has nothing to do."""
        result = self.project.run(threads=2)
        assert result.ok, messages(result)
        self.project.assert_tidy()
        rows = self.pointers()
        former = [name for name in NAMES["daily"] if name != self.config.daily]
        assert not [name for name in rows for old in former if name in (f"main.{old}", f"main.{old}__storage")], rows
        for name in NAMES:
            (moment,) = moments_of(name, rows)
            assert (moment.table is None) == (self.config.formats[name] == "metadata-file"), (name, moment)
            found = read(moment)
            assert found is not None
            self.check(name, found)
            assert found.view is not None
            assert found.version == found.view["current-version-id"]
            tables = self.tables()
            assert found.bases == {uuid: tables[uuid][1].metadata.current_snapshot_id for uuid in found.bases}, name
        assert self.project.only_reused()

    def check(self, name: str, found: Found) -> None:
        """The rows are those of the view's query, in the recorded version, on the recorded snapshots; or there are no rows."""
        rows = found.storage.scan().to_arrow()
        if found.version is None:
            assert rows.num_rows == 0, f"{name} has rows and no record"
            return
        assert found.view is not None, f"{name} has a record and no view"
        tables = self.tables()
        with duckdb.connect() as db:
            db.execute("ATTACH ':memory:' AS lake")
            db.execute("CREATE SCHEMA lake.raw")
            for uuid, snapshot_id in found.bases.items():
                aliases, table = tables[uuid]
                db.register("content", table.scan(snapshot_id=snapshot_id).to_arrow())
                for alias in aliases:
                    db.execute(f"CREATE TABLE lake.{alias} AS SELECT * FROM content")
                db.unregister("content")
            for uuid, version in found.children.items():
                view = self.project.view("main.active")
                assert view["view-uuid"] == uuid
                db.execute(f"CREATE VIEW lake.main.active AS {sql_of(view, version)}")
            answer = db.execute(sql_of(found.view, found.version))
            assert [c[0] for c in answer.description or ()] == rows.column_names
            expected = bag(tuple(int(v) if isinstance(v, int) else v for v in row) for row in answer.fetchall())
        actual: Counter[str] = bag(tuple(int(v) if isinstance(v, int) else v for v in row.values()) for row in rows.to_pylist())
        assert actual == expected, (name, found.storage.metadata_location)

    def tables(self) -> dict[str, tuple[tuple[str, ...], Table]]:
        """Uuid -> every table that an MV may have read, under all names that it ever has."""
        catalog, rows = self.project.catalog, self.pointers()
        tables = [((n,), catalog.load_table(n)) for n in ("raw.orders", "main.customers") if n in rows]
        for name, names in NAMES.items():
            aliases = tuple(f"main.{n}" for n in names)
            tables += [(aliases, found.storage) for moment in moments_of(name, rows) if (found := read(moment)) is not None]
        return {str(table.metadata.table_uuid): (aliases, table) for aliases, table in tables}


def moments_of(name: str, rows: Mapping[str, str]) -> set[Seen]:
    """One, unless the MV is not there yet. Two would be an MV under both of its names."""
    seen = {Seen(view=rows.get(f"main.{n}"), table=rows.get(f"main.{n}__storage")) for n in NAMES[name]} - {Seen(view=None, table=None)}
    assert len(seen) < 2, f"{name} is there twice: {seen}"
    return seen


def read(moment: Seen) -> Found | None:
    """What a reader sees that only knows the files; None for a view that is not an MV yet."""
    view = json.loads(_content(moment.view)) if moment.view else None
    pointer = view["properties"].get(MV_FILE) if view else None
    if pointer is None:
        if moment.table is None:
            return None
        storage = StaticTable.from_metadata(moment.table)
        version = storage.properties.get("iceberg.view.version")
        return Found(
            view=view,
            storage=storage,
            version=int(version) if version else None,
            bases=_numbers(storage.properties, BASE),
            children=_numbers(storage.properties, CHILD),
        )
    assert moment.table is None, f"an MV of one file has a storage table: {moment}"
    file = json.loads(_content(pointer))
    storage = StaticTable.from_metadata(file["properties"][STORAGE_FILE])
    assert view is not None
    assert file["uuid"] == view["properties"]["materialized-view.uuid"] == str(storage.metadata.table_uuid)
    assert (file["current-snapshot-id"], file["current_version_id"]) == (
        storage.metadata.current_snapshot_id,
        view["current-version-id"],
    ), pointer
    (refresh,) = (r for r in file["refreshes"] if r["refresh-id"] == file["current-refresh-id"])
    current = storage.current_snapshot()
    assert current is not None
    assert refresh["sequence-number"] == current.sequence_number
    return Found(
        view=view,
        storage=storage,
        version=refresh["version-id"],
        bases={base["properties"]["uuid"]: base["snapshot-reference"] for base in refresh["base-tables"].values()},
        children=_numbers(file["properties"], CHILD),
    )


def _content(location: str) -> bytes:
    return Path(location.removeprefix("file://").removeprefix("file:")).read_bytes()


def _numbers(properties: Mapping[str, str], prefix: str) -> dict[str, int]:
    """Of what the query itself reads."""
    found = {key.removeprefix(prefix): int(value) for key, value in properties.items() if key.startswith(prefix)}
    return {uuid: number for uuid, number in found.items() if uuid not in properties.get(INDIRECT, "").split(",")}


def sql_of(view: Mapping[str, Any], version_id: int) -> str:
    version = next(v for v in view["versions"] if v["version-id"] == version_id)
    return str(version["representations"][0]["sql"])


def _wait_for_session(session_id: int) -> None:
    """Until no process of the killed run is left: a JVM whose Python was killed ends by itself."""
    poll = select.poll()
    while any(_session_of(p) == session_id for p in Path("/proc").iterdir() if p.name.isdigit()):
        poll.poll(20)


def _session_of(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[3])
    except OSError:
        return None
