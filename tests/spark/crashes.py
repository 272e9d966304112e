"""seed -> runs that are killed at random moments, and what must hold after each: for the test suite and for tests/benchmarks/crash.py."""

from __future__ import annotations

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
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.table import StaticTable, Table

from spark.projects import ENVIRONMENT, Project, bag, command_line, messages, new_project

BASE, CHILD = "iceberg.base.snapshot.", "iceberg.child.view.version."
ORDERS = pa.schema([("order_id", pa.int64()), ("customer_id", pa.int64()), ("day", pa.int64()), ("amount", pa.int64())])
# The columns of `daily` change between rounds: with another layout a refresh goes through a scratch table.
SHAPES = (
    "SELECT o.day, r.country, sum(o.amount) AS revenue FROM raw.orders o JOIN {{ ref('active') }} r ON o.customer_id = r.customer_id GROUP BY o.day, r.country\n",
    "SELECT o.day, r.country, sum(o.amount) AS revenue, count(*) AS orders FROM raw.orders o JOIN {{ ref('active') }} r ON o.customer_id = r.customer_id GROUP BY o.day, r.country\n",
    "SELECT o.day, sum(o.amount) AS revenue, max(o.amount) AS most FROM raw.orders o JOIN {{ ref('active') }} r ON o.customer_id = r.customer_id GROUP BY o.day\n",
)
FILES = {
    "mvbuild.yml": "name: crash\nseeds: {crash: {+column_types: {customer_id: bigint}}}\n",
    "models/active.sql": "{{ config(materialized='view') }}\nSELECT customer_id, country FROM customers WHERE customer_id > 0\n",
    "models/daily.sql": SHAPES[0],
    "models/daily.yml": "models: [{name: daily, config: {partition_by: [day]}, columns: [{name: day, data_tests: [not_null]}]}]\n",
    "models/by_customer.sql": "SELECT customer_id, count(*) AS orders, sum(amount) AS revenue FROM raw.orders GROUP BY customer_id\n",
    "models/total.sql": (
        "SELECT (SELECT sum(revenue) FROM daily) AS by_day, (SELECT sum(revenue) FROM by_customer) AS by_customer,"
        " (SELECT count(*) FROM customers) AS customers\n"
    ),
}
VIEWS = ("daily", "by_customer", "total")


@dataclass
class Rig:
    """One project that is changed, built, killed and mended in rounds."""

    project: Project
    random: random.Random
    events: list[str] = field(default_factory=list)
    next_order: int = 0
    seeds: int = 0
    shape: int = 0
    killed: int = 0

    @classmethod
    def make(cls, root: Path, spark: Any, seed: int) -> Rig:
        rig = cls(project=new_project(root, FILES, spark), random=random.Random(seed))
        rig.project.make("raw.orders", pa.Table.from_pylist([], schema=ORDERS))
        rig.write_seed()
        rig.append()
        return rig

    def change(self) -> None:
        """Give the next run something to do, along each way that a refresh can take."""
        self.append()
        if self.random.random() < 0.6:
            self.shape = (self.shape + self.random.choice((1, 2))) % len(SHAPES)
            self.project.write({"models/daily.sql": SHAPES[self.shape]})
        if self.random.random() < 0.4:
            self.write_seed()
        if self.random.random() < 0.2:
            edited = FILES["models/active.sql"].replace("> 0", f"> {self.random.randrange(3)}")
            self.project.write({"models/active.sql": edited})

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
        for name, locations in seen.items():
            for location in locations:
                self.check(name, StaticTable.from_metadata(location))
        self.mend()

    def run_and_kill(self) -> Mapping[str, set[str]]:
        """The metadata files that the catalog showed for each storage table while the run went on."""
        by_lines = self.random.random() < 0.3
        wanted = self.random.randrange(1, 6) if by_lines else self.random.randrange(1, 12)
        delay = self.random.uniform(0, 0.4 if by_lines else 0.1)
        only_python = self.random.random() < 0.2
        seen: dict[str, set[str]] = {v: set() for v in VIEWS}
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

    def watch(self, seen: Mapping[str, set[str]]) -> Mapping[str, str]:
        rows = self.pointers()
        for name, locations in seen.items():
            if f"main.{name}__storage" in rows:
                locations.add(rows[f"main.{name}__storage"])
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
        for name in VIEWS:
            storage = self.project.table(f"main.{name}__storage")
            self.check(name, storage)
            for table, snapshot_id in self.bases(storage):
                assert table.metadata.current_snapshot_id == snapshot_id, (name, table.name())
            assert storage.properties["iceberg.view.version"] == str(self.project.view_version(f"main.{name}"))
        assert self.project.only_reused()

    def check(self, name: str, storage: Table) -> None:
        """The rows are those of the view's query, in the recorded version, on the recorded snapshots; or there are no rows."""
        rows = storage.scan().to_arrow()
        if "iceberg.view.version" not in storage.properties:
            assert rows.num_rows == 0, f"{name} has rows and no record"
            return
        with duckdb.connect() as db:
            db.execute("ATTACH ':memory:' AS lake")
            db.execute("CREATE SCHEMA lake.raw")
            for table, snapshot_id in self.bases(storage):
                namespace, table_name = table.name()[-2:]
                content = table.scan(snapshot_id=snapshot_id).to_arrow()
                db.register("content", content)
                db.execute(f"CREATE TABLE lake.{namespace}.{table_name.removesuffix('__storage')} AS SELECT * FROM content")
                db.unregister("content")
            for key, value in storage.properties.items():
                if key.startswith(CHILD):
                    view = self.project.view("main.active")
                    assert view["view-uuid"] == key.removeprefix(CHILD)
                    db.execute(f"CREATE VIEW lake.main.active AS {sql_of(view, int(value))}")
            view = self.project.view(f"main.{name}")
            version = int(storage.properties["iceberg.view.version"])
            found = db.execute(sql_of(view, version))
            assert [c[0] for c in found.description or ()] == rows.column_names
            expected = bag(tuple(int(v) if isinstance(v, int) else v for v in row) for row in found.fetchall())
        actual: Counter[str] = bag(tuple(int(v) if isinstance(v, int) else v for v in row.values()) for row in rows.to_pylist())
        assert actual == expected, (name, storage.metadata_location)

    def bases(self, storage: Table) -> list[tuple[Table, int]]:
        """The tables that were read, each with the recorded snapshot."""
        catalog = self.project.catalog
        tables = [catalog.load_table(n) for ns in ("raw", "main") for n in catalog.list_tables(ns)]
        by_uuid = {str(t.metadata.table_uuid): t for t in tables}
        return [(by_uuid[k.removeprefix(BASE)], int(v)) for k, v in storage.properties.items() if k.startswith(BASE)]


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
