"""64 tiny MVs -> the wall time of mvbuild refreshing them, over that of a bare loop of INSERT OVERWRITE: the target is 1.5 at most.

    .venv/bin/python tests/benchmarks/overhead.py [--models 64] [--rounds 3] [--threads 1 2 4] [--tests]

Each MV joins and aggregates two tables of a hundred rows, so that nearly all of the time is overhead: of Spark, of Iceberg, of mvbuild.
`first` builds everything, `stale` refreshes everything after a base table changed; the loop writes the same queries into plain tables
that exist. Rounds of both sides alternate, in one warm Spark; from the first statement to the last publish.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "compiler")]

import pyarrow as pa  # noqa: E402

from mvbuild import api  # noqa: E402
from mvbuild.adapters.spark import start_engine  # noqa: E402
from mvbuild.project.loaded import SparkSettings, Target  # noqa: E402
from spark.projects import Project, messages, new_project, properties  # noqa: E402

QUERY = (
    "SELECT c.country, o.day, sum(o.amount) AS revenue, count(*) AS orders, max(o.order_id) AS last_order\n"
    "FROM {orders} o JOIN {customers} c ON o.customer_id = c.customer_id\n"
    "WHERE o.amount > {number}\n"
    "GROUP BY c.country, o.day\n"
)
TESTS = "models: [{{name: {name}, columns: [{{name: country, data_tests: [not_null]}}, {{name: day, data_tests: [not_null]}}]}}]\n"


class Bench:
    """One Spark; for each kind of round a project, and plain tables for the loop."""

    def __init__(self, root: Path, spark: Any, models: int, *, with_tests: bool) -> None:
        self.models = [f"m{n:02}" for n in range(models)]
        self.root, self.spark, self.with_tests = root, spark, with_tests
        self.projects = 0
        self.loop = self.project({})
        for name in self.models:
            self.loop.sql(f"CREATE TABLE lake.main.{name} USING iceberg AS {self.query(name)} LIMIT 0")

    def project(self, files: dict[str, str]) -> Project:
        self.projects += 1
        made = new_project(self.root / f"p{self.projects}", {"mvbuild.yml": "name: bench\n", **files}, self.spark)
        made.make("main.orders", orders(0))
        made.make("main.customers", customers())
        return made

    def query(self, name: str) -> str:
        return QUERY.format(orders="lake.main.orders", customers="lake.main.customers", number=self.models.index(name) % 7)

    def models_project(self) -> Project:
        files = {f"models/{m}.sql": QUERY.format(orders="orders", customers="customers", number=i % 7) for i, m in enumerate(self.models)}
        if self.with_tests:
            files |= {f"models/{m}.yml": TESTS.format(name=m) for m in self.models}
        return self.project(files)

    def bare(self, threads: int) -> float:
        """The loop."""
        self.loop.append("main.orders", *orders(self.projects).to_pylist())
        began = perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda name: self.loop.sql(f"INSERT OVERWRITE lake.main.{name} {self.query(name)}"), self.models))
        return perf_counter() - began

    def build(self, project: Project, threads: int) -> float:
        """A run that must refresh everything; the graph is compiled before, as the queries of the loop are written before."""
        graph = api.compile(project.root)
        began = perf_counter()
        result = api.run(graph, spark=project.spark, threads=threads)
        seconds = perf_counter() - began
        assert result.ok, messages(result)
        assert all(r.status == "success" for r in result.results)
        return seconds

    def round(self, threads: int) -> tuple[float, float, float]:
        project = self.models_project()
        first = self.build(project, threads)
        project.append("main.orders", *orders(1).to_pylist())
        bare = self.bare(threads)
        stale = self.build(project, threads)
        project.catalog.close()
        shutil.rmtree(project.root)
        return bare, first, stale


def orders(batch: int) -> pa.Table:
    numbers = range(batch * 100, batch * 100 + 100)
    columns = {
        "order_id": numbers,
        "customer_id": [n % 100 for n in numbers],
        "day": [n % 5 for n in numbers],
        "amount": [n % 31 for n in numbers],
    }
    return pa.table({name: pa.array(list(values), pa.int64()) for name, values in columns.items()})


def customers() -> pa.Table:
    return pa.table({"customer_id": pa.array(range(100), pa.int64()), "country": pa.array([("DE", "FR", "IT")[n % 3] for n in range(100)])})


def profiled(action: Callable[[], Any], lines: int) -> None:
    """Where the threads of a run spend their time, Spark's answers included."""
    total: list[pstats.Stats] = []

    def thread(*_: Any) -> None:
        threading.setprofile(None)

    profile = cProfile.Profile()
    submit = ThreadPoolExecutor.submit

    def in_place(pool: Any, call: Any, /, *args: Any, **kwargs: Any) -> Any:
        def measured() -> Any:
            own = cProfile.Profile()
            try:
                return own.runcall(call, *args, **kwargs)
            finally:
                total.append(pstats.Stats(own))

        return submit(pool, measured)

    ThreadPoolExecutor.submit = in_place  # type: ignore[method-assign]
    try:
        profile.runcall(action)
    finally:
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]
    stats = pstats.Stats(profile)
    for one in total:
        stats.add(one)
    stats.sort_stats("cumulative").print_stats(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--tests", action="store_true", help="give every MV two data tests")
    parser.add_argument("--profile", type=int, default=0, metavar="LINES", help="show where one stale run with one thread spends its time")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mvbuild-overhead-") as directory:
        root = Path(directory)
        settings = SparkSettings(master="local[2]", config={"spark.driver.memory": "2g"})
        target = Target(
            name="bench",
            catalog_name="other",
            catalog=properties(root / "other"),
            namespace=("main",),
            spark=settings,
            threads=1,
            embedded=True,
        )
        engine = start_engine(target, log_file=root / "spark.log", env=os.environ, spark=None)
        try:
            bench = Bench(root, engine.session, options.models, with_tests=options.tests)  # type: ignore[attr-defined]
            bench.round(2)  # warms Spark up
            if options.profile:
                project = bench.models_project()
                bench.build(project, 1)
                project.append("main.orders", *orders(1).to_pylist())
                profiled(lambda: bench.build(project, 1), options.profile)
                return 0
            times: dict[int, list[tuple[float, float, float]]] = {threads: [] for threads in options.threads}
            for _ in range(options.rounds):
                for threads in options.threads:
                    times[threads].append(bench.round(threads))
                    print(
                        f"threads {threads}: "
                        + "  ".join(f"{k} {v:6.2f} s" for k, v in zip(("loop", "first", "stale"), times[threads][-1], strict=True)),
                        flush=True,
                    )
            for threads, rounds in times.items():
                bare, first, stale = (median(column) for column in zip(*rounds, strict=True))
                print(
                    f"{options.models} MVs, {threads} threads: loop {bare:.2f} s; ratio first {first / bare:.2f}, stale {stale / bare:.2f}"
                )
        finally:
            engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
