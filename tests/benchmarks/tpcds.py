"""TPC-DS's 99 queries as MVs over its tables at a tiny scale -> each MV's status and seconds.

    .venv/bin/python tests/benchmarks/tpcds.py --build-only [--share 0.2] [--threads 2] [--format-version 3] [--mode copy-on-write]

The generator must be there: pip install tpcgen-cli. With --rounds the streams of changes are tried after the build.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from tpch_data import MODES, write_properties  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from mvbuild.refresh.result import NodeResult  # noqa: E402
from spark.projects import Project, new_project  # noqa: E402
from spark.tpcds_data import QUERIES, RefreshStreams, make_tables, tables  # noqa: E402


def tpcds(root: Path, spark: Any, options: argparse.Namespace) -> Project:
    """A project of all queries whose tables are loaded."""
    began = perf_counter()
    files = {"mvbuild.yml": "name: tpcds\n", **{f"models/{name}.sql": sql for name, sql in QUERIES.items()}}
    project = new_project(root / "project", files, spark)
    made = tables(root / "parquet", scale=options.scale, share=options.share)
    make_tables(project, made, {"format-version": "2", **write_properties(options.mode)})
    if options.format_version != 2:
        for name in made:
            project.sql(f"ALTER TABLE lake.main.{name} SET TBLPROPERTIES ('format-version' = '{options.format_version}')")
    print(f"{len(made)} tables, {sum(t.num_rows for t in made.values())} rows: {perf_counter() - began:.1f} s", flush=True)
    return project


def build(project: Project, threads: int) -> bool:
    """Whether all can be built."""

    result = project.run(threads=threads)
    for one in result.results:
        print(f"{one.node.rpartition('.')[2]} {one.status:8} {one.seconds:6.2f} s  {said(one)}")
    print(f"{dict(Counter(one.status for one in result.results))} in {result.seconds:.1f} s")
    return result.ok


def said(one: NodeResult) -> str:
    rows = f"{one.details['rows']} rows" if "rows" in one.details else ""
    return "; ".join([rows, *(f"{d.code}: {d.message}" for d in one.diagnostics)])


def change(project: Project, rounds: int, fraction: float) -> None:
    for number in range(rounds):
        for statement in RefreshStreams().all_kinds(number, fraction):
            began = perf_counter()
            project.sql(statement)
            table = statement.partition("lake.")[2].split()[0]
            done = project.table(table).current_snapshot().summary.additional_properties  # type: ignore[union-attr]
            counts = {k: v for k, v in done.items() if k in ("added-records", "deleted-records", "added-position-deletes")}
            print(f"{perf_counter() - began:6.2f} s  {statement.split()[0]} {table}: {counts}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-only", action="store_true", help="what this command does; others are to come")
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--share", type=float, default=1.0, help="of the orders, with their returns")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--format-version", type=int, choices=(2, 3), default=2)
    parser.add_argument("--mode", choices=MODES, default="merge-on-read")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--fraction", type=float, default=0.01)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mvbuild-tpcds-") as directory, warm_spark(Path(directory) / "spark") as spark:
        project = tpcds(Path(directory), spark, options)
        built = build(project, options.threads)
        change(project, options.rounds, options.fraction)
        project.catalog.close()
    return 0 if built else 1


if __name__ == "__main__":
    sys.exit(main())
