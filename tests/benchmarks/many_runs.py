"""Many processes run one project against one catalog, with writers on its base tables -> whether every record and every storage is right.

    python tests/benchmarks/many_runs.py --catalog postgres --processes 8 --minutes 10      # or rest, sqlite

Each process runs the project again and again, and two writers append and delete all the while. Afterwards each snapshot that ever became
current of each storage is compared, as a bag, with the query at the snapshots that it records; none may have been made of the same input as
another; and one more run has at most what is new to do, the run after it nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

import duckdb  # noqa: E402
import pyarrow as pa  # noqa: E402
import yaml  # noqa: E402
from pyiceberg.catalog import load_catalog  # noqa: E402
from pyiceberg.exceptions import CommitFailedException  # noqa: E402

from spark import quick  # noqa: E402
from spark.projects import ENVIRONMENT, bag, command_line  # noqa: E402

ROWS = pa.schema([("id", pa.int64()), ("grp", pa.int64()), ("amount", pa.int64())])
QUERIES = {
    "by_group": "SELECT grp, count(*) AS n, sum(amount) AS total, count(amount) AS amounts FROM raw.a GROUP BY grp",
    "joined": "SELECT a.id, a.amount, b.amount AS other FROM raw.a a JOIN raw.b b ON a.grp = b.grp AND a.id = b.id",
    "above": "SELECT n, count(*) AS groups FROM main.by_group__storage GROUP BY n",
}
MODELS = {**QUERIES, "above": "SELECT n, count(*) AS groups FROM {{ ref('by_group') }} GROUP BY n"}
BASE = "iceberg.base.snapshot."


@contextmanager
def served(kind: str, root: Path) -> Iterator[dict[str, str]]:
    """The properties of a fresh catalog."""
    warehouse = (root / "warehouse").as_uri()
    if kind == "postgres":
        from servers import postgres

        with postgres.running() as server:
            yield {"type": "sql", "uri": server.fresh(), "warehouse": warehouse}
    elif kind == "rest":
        from servers import rest

        with rest.running(root) as server:
            yield server.properties
    else:
        yield {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": warehouse}


def project_in(root: Path, properties: Mapping[str, str]) -> Path:
    project = root / "project"
    (project / "models").mkdir(parents=True)
    spark = {"master": "local[1]", "config": {"spark.driver.memory": "512m", **quick.JVM, **quick.QUERIES}}
    target = {"catalog": {"name": "lake", **properties}, "namespace": "main", "spark": spark}
    (project / "mvbuild.yml").write_text(yaml.safe_dump({"name": "many", "target": "dev", "targets": {"dev": target}}), encoding="utf-8")
    for name, sql in MODELS.items():
        (project / "models" / f"{name}.sql").write_text(sql + "\n", encoding="utf-8")
    return project


def write(properties: Mapping[str, str], name: str, seed: int, stop: threading.Event) -> int:
    """Append, and sometimes delete, until stopped; returns the number of commits."""
    catalog, done = load_catalog("lake", **properties), 0
    while not stop.wait(1.0 + seed):
        table = catalog.load_table(name)
        first = done * 10 + seed
        rows = [{"id": (first + n) % 40, "grp": (first + n) % 7, "amount": first + n} for n in range(5)]
        try:
            if done % 4 == 3:
                table.delete(f"id = {first % 40}")
            else:
                table.append(pa.Table.from_pylist(rows, schema=ROWS))
        except CommitFailedException:
            continue
        done += 1
    return done


def run_again_and_again(project: Path, end: float, log: Path) -> Counter[str]:
    """Statuses of the MVs of all runs of one process after another."""
    seen: Counter[str] = Counter()
    while time.monotonic() < end:
        target = log.with_suffix("")
        with log.open("ab") as output:
            code = subprocess.run(
                [*command_line(project, "run"), "--target-path", str(target)], stdout=output, stderr=output, env=ENVIRONMENT, check=False
            ).returncode
        seen[f"exit {code}"] += 1
        results = target / "run_results.json"
        if results.is_file():
            for one in json.loads(results.read_text(encoding="utf-8"))["results"]:
                seen[str(one["status"])] += 1
                if one["status"] in ("error", "fail"):
                    seen[f"{one['status']}: {one['message'][:300]}"] += 1
            results.unlink()
    return seen


def wrong(properties: Mapping[str, str]) -> tuple[int, list[str]]:
    """How many refreshes were looked at, and what is not right."""
    catalog, found, looked = load_catalog("lake", **properties), [], 0
    for name, sql in QUERIES.items():
        table = catalog.load_table(f"main.{name}__storage")
        inputs: Counter[str] = Counter()
        for entry in table.metadata.snapshot_log:
            snapshot = table.snapshot_by_id(entry.snapshot_id)
            state = (
                json.loads(snapshot.summary["refresh-state"])
                if snapshot and snapshot.summary and "refresh-state" in snapshot.summary.additional_properties
                else None
            )
            if state is None:
                found.append(f"{name}: snapshot {entry.snapshot_id} has no record")
                continue
            looked += 1
            pins = {s["name"]: s["snapshot-id"] for s in state["source-states"]}
            inputs[json.dumps(pins, sort_keys=True)] += 1
            problem = difference(catalog, table, entry.snapshot_id, sql, pins)
            if problem:
                found.append(f"{name} at {entry.snapshot_id}: {problem}")
        found += [f"{name} was refreshed {times} times from {given}" for given, times in inputs.items() if times > 1]
    return looked, found


def difference(catalog: Any, storage: Any, snapshot_id: int, sql: str, pins: Mapping[str, int]) -> str:
    rows = storage.scan(snapshot_id=snapshot_id).to_arrow()
    with duckdb.connect() as db:
        for schema in ("raw", "main"):
            db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for name, pin in pins.items():
            schema = "main" if name.endswith("__storage") else "raw"
            content = catalog.load_table(f"{schema}.{name}").scan(snapshot_id=pin).to_arrow()
            db.register("content", content)
            db.execute(f"CREATE TABLE {schema}.{name} AS SELECT * FROM content")
            db.unregister("content")
        answer = db.execute(sql)
        names = [c[0] for c in answer.description or ()]
        expected = bag(tuple(None if v is None else int(v) for v in row) for row in answer.fetchall())
    actual = bag(tuple(None if v is None else int(v) for v in row) for row in zip(*(rows[n].to_pylist() for n in names), strict=True))
    return "" if actual == expected else f"too many {actual - expected}, missing {expected - actual}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalog", choices=("postgres", "rest", "sqlite"), default="postgres")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--logs", type=Path, help="a directory that the output of each process is copied to")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mvbuild-many-") as folder, ExitStack() as servers:
        root = Path(folder)
        properties = servers.enter_context(served(chosen.catalog, root))
        catalog = load_catalog("lake", **properties)
        for namespace in ("raw", "main"):
            catalog.create_namespace_if_not_exists(namespace)
        for name in ("raw.a", "raw.b"):
            catalog.create_table(name, ROWS).append(pa.Table.from_pylist([{"id": 1, "grp": 1, "amount": 1}], schema=ROWS))
        project, stop, end = project_in(root, properties), threading.Event(), time.monotonic() + chosen.minutes * 60
        counts: list[Counter[str]] = []
        writes: list[int] = []
        workers = [
            threading.Thread(target=lambda n=n, s=s: writes.append(write(properties, n, s, stop))) for s, n in enumerate(("raw.a", "raw.b"))
        ]
        runners = [
            threading.Thread(target=lambda at=at: counts.append(run_again_and_again(project, end, root / f"run-{at}.log")))
            for at in range(chosen.processes)
        ]
        for thread in (*workers, *runners):
            thread.start()
        for thread in runners:
            thread.join()
        stop.set()
        for thread in workers:
            thread.join()
        last = subprocess.run(command_line(project, "run"), env=ENVIRONMENT, check=False, capture_output=True, text=True)
        looked, found = wrong(properties)
        again = subprocess.run(command_line(project, "run"), env=ENVIRONMENT, check=False, capture_output=True, text=True)
        told = sum(counts, Counter())
        found += [] if last.returncode == 0 else [f"the last run failed: {last.stdout[-2000:]}{last.stderr[-2000:]}"]
        found += (
            []
            if "SUCCESS=0" in again.stdout or "REUSED=3" in again.stdout.upper()
            else [f"a run after it had something to do: {again.stdout[-500:]}"]
        )
        if chosen.logs:
            chosen.logs.mkdir(parents=True, exist_ok=True)
            for log in root.glob("run-*.log"):
                shutil.copy(log, chosen.logs)
        print(f"{chosen.catalog}: {chosen.processes} processes, {chosen.minutes:g} minutes, {sum(writes)} commits of writers")
        print(f"runs and statuses: {dict(told.most_common())}")
        print(f"{looked} refreshes looked at, {len(found)} wrong")
        for one in found:
            print(one)
        if found:
            for at in range(chosen.processes):
                print((root / f"run-{at}.log").read_text(encoding="utf-8")[-1500:])
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
