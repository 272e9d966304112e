"""The sample project in a new process -> seconds of its first run, and of a bare loop of INSERT OVERWRITE of the same MVs in a new Spark.

    .venv/bin/python tests/benchmarks/cold_start.py [--rounds 5]

`first run` builds everything in an empty catalog: seeds, views, MVs, and data tests. The loop has plain Spark with Iceberg and mvbuild's
number of partitions, and nothing else: it writes what a run has written, by the same SQL, one MV after another. Both alternate.
Seconds are elapsed, and of processors: of the process and everything that it starts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "compiler")]

from processor_seconds import of_command  # noqa: E402

SAMPLE = HERE.parent.parent / "sample_project"


def copy(root: Path) -> Path:
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("target", ".mvbuild"))
    return root


def first_run(root: Path, env: dict[str, str]) -> tuple[float, float]:
    shutil.rmtree(root / ".mvbuild", ignore_errors=True)
    shutil.rmtree(root / "target", ignore_errors=True)
    return of_command([sys.executable, "-m", "mvbuild.cli.main", "run", "--project-dir", str(root)], env)


def bare_loop(root: Path) -> int:
    """What runs in the process of the loop. Its tables are those of a project that has been built."""
    from pyspark.sql import SparkSession

    from mvbuild import api
    from mvbuild.adapters.spark.jars import SQLITE, cache_dir
    from mvbuild.adapters.spark.launch import session_conf
    from mvbuild.adapters.spark.releases import installed_release

    graph = api.compile(root)
    ran = graph.project.target_path / "run" / graph.project.name
    jars = os.pathsep.join(str(cache_dir(os.environ) / "jars" / one.file_name) for one in (installed_release().runtime, SQLITE))
    builder = SparkSession.builder.config("spark.driver.extraClassPath", jars)
    for key, value in session_conf(graph.project.target).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for node in graph.views:
        query = (ran / node.model.file.path).read_text(encoding="utf-8")
        spark.sql(f"INSERT OVERWRITE {node.storage.sql} {query}")
    spark.stop()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loop", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        return bare_loop(options.loop)
    env = {**os.environ, "MVBUILD_KEEP_WARM": "off"}
    with tempfile.TemporaryDirectory(prefix="mvbuild-cold-") as directory:
        built, project = copy(Path(directory) / "loop"), copy(Path(directory) / "run")
        first_run(built, env)
        loop: list[tuple[float, float]] = []
        run: list[tuple[float, float]] = []
        for number in range(options.rounds):
            measures = [
                lambda: loop.append(of_command([sys.executable, __file__, "--loop", str(built)], env)),
                lambda: run.append(first_run(project, env)),
            ]
            for measure in measures if number % 2 else reversed(measures):
                measure()
            print(f"round {number + 1}: loop {loop[-1]}, first run {run[-1]}", file=sys.stderr, flush=True)
    of_loop, of_run = ([median(column) for column in zip(*of, strict=True)] for of in (loop, run))
    print("| | elapsed s | CPU s |\n|---|---:|---:|")
    print(f"| bare loop | {of_loop[0]:.1f} | {of_loop[1]:.1f} |\n| first run | {of_run[0]:.1f} | {of_run[1]:.1f} |")
    print(f"| ratio | {of_run[0] / of_loop[0]:.2f} | {of_run[1] / of_loop[1]:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
