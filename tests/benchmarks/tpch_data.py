"""scale factor, format version and write mode -> a project with TPC-H's tables, kept in /tmp/mvbuild-tpch for the next time.

    .venv/bin/python tests/benchmarks/tpch_data.py --scale 1 [--format-version 3] [--mode copy-on-write] [--rounds 1 --fraction 0.001]

Prints what loading took and, with --rounds, what each statement of the refresh streams takes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from kept import keep, restore, start_over  # noqa: E402
from pyiceberg.catalog import load_catalog  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from spark.projects import Project, new_project, properties, session_on  # noqa: E402
from spark.tpch_streams import RefreshStreams  # noqa: E402

CACHE = Path("/tmp/mvbuild-tpch")
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
MODES = ("copy-on-write", "merge-on-read")
PARTS_PER_SCALE = {"lineitem": 4.8, "orders": 1.2, "partsupp": 2.4, "part": 0.4, "customer": 0.5}
"""So that each part is a Parquet file of about 50 MB, which one task copies to one file of the Iceberg table: in the order of its keys."""


def write_properties(mode: str) -> dict[str, str]:
    return {f"write.{statement}.mode": mode for statement in ("delete", "update", "merge")}


def tables_of_tpch(spark: Any, scale: float, *, format_version: int = 2, mode: str = "merge-on-read", files: Mapping[str, str]) -> Project:
    """A project directory with these files, whose tables are as they were loaded. Only one user at a time."""
    root = CACHE / f"{scale:g}" / f"v{format_version}"
    if restore(root):
        catalog = load_catalog("lake", **properties(root))
        project = Project(root=root, spark=session_on(spark, root), catalog=catalog).write(files)  # type: ignore[arg-type]
    else:
        start_over(root)
        project = new_project(root, {}, spark)
        load(project, scale, format_version)
        keep(root)
        project.write(files)
    for table in TABLES:  # by Spark: PyIceberg does not write v3
        project.sql(f"ALTER TABLE lake.main.{table} SET {properties_clause(write_properties(mode))}")
    return project


def load(project: Project, scale: float, format_version: int) -> None:
    """Through Parquet files of the generator, which are removed."""
    parquet = CACHE / f"{scale:g}" / "parquet"
    project.catalog.create_namespace_if_not_exists("main")
    project.spark.conf.set("spark.sql.files.maxPartitionBytes", "72m")
    clause = properties_clause({"format-version": str(format_version), "write.target-file-size-bytes": str(64 * 2**20)})
    for table in TABLES:
        generate(parquet, table, scale)
        project.sql(f"CREATE TABLE lake.main.{table} USING iceberg {clause} AS SELECT * FROM parquet.`{parquet}/{table}`")
        shutil.rmtree(parquet / table)


def generate(directory: Path, table: str, scale: float) -> None:
    """Parquet files <directory>/<table>/*; key ranges do not overlap."""
    if (directory / table).exists():
        return
    directory.mkdir(parents=True, exist_ok=True)
    generator = shutil.which("tpchgen-cli", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]))
    assert generator, "tpchgen-cli is not installed"
    parts = max(1, ceil(scale * PARTS_PER_SCALE.get(table, 0)))
    options = ["-s", f"{scale:g}", "--tables", table, "--parts", str(parts), "--quiet", "--output-dir", str(directory)]
    subprocess.run([generator, "parquet", *options], check=True)


def properties_clause(settings: Mapping[str, str]) -> str:
    return "TBLPROPERTIES (" + ", ".join(f"'{key}' = '{value}'" for key, value in settings.items()) + ")"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--format-version", type=int, choices=(2, 3), default=2)
    parser.add_argument("--mode", choices=MODES, default="merge-on-read")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--fraction", type=float, default=0.001)
    parser.add_argument("--clustered", action="store_true")
    options = parser.parse_args()
    with warm_spark(CACHE / "spark") as spark:
        began = perf_counter()
        project = tables_of_tpch(spark, options.scale, format_version=options.format_version, mode=options.mode, files={})
        print(f"scale {options.scale:g}, v{options.format_version}, {options.mode}: {perf_counter() - began:.1f} s", flush=True)
        for table in TABLES:
            files = project.table(f"main.{table}").inspect.files()
            size = sum(files["file_size_in_bytes"].to_pylist())
            print(f"{table:>10} {sum(files['record_count'].to_pylist()):>10} rows {files.num_rows:>3} files {size / 2**20:8.1f} MB")
        streams = RefreshStreams(scale=options.scale)
        for number in range(options.rounds):
            for statement in streams.all_kinds(number, options.fraction, clustered=options.clustered):
                began = perf_counter()
                project.sql(statement)
                table = statement.partition("lake.")[2].split()[0]
                done = project.table(table).current_snapshot().summary.additional_properties  # type: ignore[union-attr]
                counts = {k: v for k, v in done.items() if k.startswith(("added", "deleted", "removed")) and "size" not in k}
                print(f"{perf_counter() - began:6.2f} s  {statement.split()[0]} {table}: {counts}", flush=True)
        project.catalog.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
