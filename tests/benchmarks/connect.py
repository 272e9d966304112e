"""TPC-H over Spark Connect -> whether every query is refreshed as it is in classic Spark, and its rows are right.

    pip install 'pyspark[connect]'; python tests/benchmarks/connect.py --scale 0.01 --rounds 1

The server is one that PySpark starts on this machine; the client has neither a JVM nor a SparkContext.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from pyiceberg.catalog import load_catalog  # noqa: E402
from tpch import QUERIES, counted, models  # noqa: E402
from tpch_data import CACHE, MODES, properties_clause, write_properties  # noqa: E402

from mvbuild.adapters.spark.catalog_conf import catalog_conf  # noqa: E402
from mvbuild.adapters.spark.jars import SQLITE, cache_dir, needed_for_connect, resolve  # noqa: E402
from mvbuild.adapters.spark.java import find_java  # noqa: E402
from mvbuild.adapters.spark.releases import installed_release, installed_version  # noqa: E402
from spark.projects import Project, properties  # noqa: E402
from spark.tpch_streams import RefreshStreams  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--format-version", type=int, default=2)
    parser.add_argument("--mode", choices=MODES, default="merge-on-read")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--fraction", type=float, default=0.01)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    from kept import restore
    from pyspark.sql import SparkSession

    root = CACHE / f"{options.scale:g}" / f"v{options.format_version}"
    if not restore(root):
        _load(options)
        assert restore(root)
    needed = (installed_release().runtime, SQLITE, *needed_for_connect("local", installed_version()))
    jars = ",".join(map(str, resolve(needed, cache=cache_dir(os.environ), java=find_java(os.environ).path, config={}, env=os.environ)))
    builder = SparkSession.builder.remote("local[2]").config("spark.jars", jars)
    for key, value in {
        **catalog_conf("lake", properties(root)),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.driver.memory": "3g",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    print(type(spark).__module__, spark.version, flush=True)
    for table in ("orders", "lineitem"):
        spark.sql(f"ALTER TABLE lake.main.{table} SET {properties_clause(write_properties(options.mode))}").collect()
    for left in (root / "models").glob("*.sql"):
        left.unlink()
    project = Project(root=root, spark=spark, catalog=load_catalog("lake", **properties(root)))  # type: ignore[arg-type]
    project.write(models("b", "incremental", set(filter(None, options.only.split(",")))))
    first = project.run(threads=2)
    assert first.ok, [d.message for r in first.results for d in r.diagnostics]
    streams = RefreshStreams(scale=options.scale, seed=3)
    wrong, seen = [], Counter()
    for round_ in range(options.rounds):
        for kind in ("inserts", "deletes", "updates"):
            for statement in getattr(streams, kind)(round_, options.fraction):
                spark.sql(statement).collect()
            result = project.run(threads=2)
            for one in result.results:
                seen[one.details.get("strategy") or one.status, one.details.get("reason") or ""] += 1
                if one.status == "error":
                    wrong.append(f"{one.node} {kind}: {one.message[:300]}")
            spark.sql("USE lake.main")
            for path in sorted((root / "models").glob("*.sql")):
                stored = spark.table(f"lake.main.{path.stem}")
                if counted(stored) != counted(spark.sql(path.read_text(encoding="utf-8")).toDF(*stored.columns)):
                    wrong.append(f"{path.stem} differs after {kind} of round {round_}")
            print(f"round {round_} {kind}: wrong so far {len(wrong)}", flush=True)
    for (strategy, reason), times in sorted(seen.items()):
        print(f"{strategy:16} {reason:24} {times}")
    print("\n".join(wrong) or f"no difference in {len(QUERIES)} queries")
    spark.stop()
    return 1 if wrong else 0


def _load(options: argparse.Namespace) -> None:
    """By another process: the Spark that loads them is not a client of Spark Connect."""
    given = [f"--{name}={getattr(options, name.replace('-', '_'))}" for name in ("scale", "format-version", "mode")]
    subprocess.run([sys.executable, str(Path(__file__).with_name("tpch_data.py")), *given], check=True)


if __name__ == "__main__":
    sys.exit(main())
