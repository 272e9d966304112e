"""TPC-H at a scale, a small change -> the seconds of each statement of a warm incremental refresh, and of its reads and commits.

    .venv/bin/python tests/benchmarks/small_refresh.py [--scale 1] [--rounds 5] [--statements] [--engine]

Three MVs: the parts of Q5 (sum and counts over a join of six tables, `merge`) and the newest order of each customer (`row_number`) after
deletes of neighbouring keys, and a projection after a hundred updates. `--engine`: nothing is read or written without Spark, as it was
before mvbuild did so. Each line has the median of the rounds after the first two, which warm up.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from tpch_data import tables_of_tpch  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from mvbuild.adapters.iceberg import net_rows  # noqa: E402
from mvbuild.adapters.iceberg.catalog import MetadataCatalog  # noqa: E402
from mvbuild.adapters.iceberg.metadata_changes import MetadataChanges  # noqa: E402
from mvbuild.adapters.spark.engine import SparkEngine, SparkQuery  # noqa: E402
from mvbuild.refresh import few_rows, materialize, run  # noqa: E402
from spark.projects import Project, messages, of  # noqa: E402
from spark.tpch_streams import RefreshStreams  # noqa: E402

MODELS = {
    "q05_parts": """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, count(l_extendedprice * (1 - l_discount)) AS counted,
  count(*) AS n
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
  AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name
""",
    "newest_order": """SELECT o_custkey, o_orderkey, o_totalprice, o_orderdate
FROM (SELECT *, row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderdate DESC, o_orderkey DESC) AS nth FROM orders)
WHERE nth = 1
""",
    "priced": """SELECT p_partkey, upper(p_name) AS name, p_retailprice * 2 AS twice FROM part WHERE p_size > 3
""",
}
TARGETS = {"q05_parts": 2.0, "newest_order": 1.8, "priced": 0.5}
Noted = list[tuple[str, float, str]]


@contextmanager
def timed(noted: Noted) -> Iterator[None]:
    """Every call to the engine and the catalog, with its seconds and the beginning of its SQL."""

    def wrapped(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            began = time.monotonic()
            try:
                return function(*args, **options)
            finally:
                texts = [" ".join(a.split()) for a in args if isinstance(a, str) and " " in a]
                noted.append((what, time.monotonic() - began, texts[0] if texts else ""))

        return call

    places = [
        (SparkEngine, "prepare rows explain call define keep supply fetch forget settings"),
        (SparkQuery, "overwrite append"),
        (MetadataCatalog, "load stage create_branch commit change_rows pin_schema drop_scratch"),
        (MetadataChanges, "between net_rows stage value_ranges"),
        (materialize, "chosen prepare stage audit publish refresh"),
        (run, "refresh"),
    ]
    with ExitStack() as stack:
        for owner, names in places:
            for name in names.split():
                if hasattr(owner, name):
                    label = f"{getattr(owner, '__name__', owner).rpartition('.')[2]}.{name}"
                    stack.enter_context(patch.object(owner, name, wrapped(label, getattr(owner, name))))
        yield


def refreshed(project: Project, name: str) -> tuple[float, Noted, str]:
    noted: Noted = []
    with timed(noted):
        began = time.monotonic()
        result = project.run(name, threads=1)
        seconds = time.monotonic() - began
    assert result.ok, messages(result)
    return seconds, noted, str(of(result, name).details.get("strategy"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--format-version", type=int, default=2)
    parser.add_argument("--statements", action="store_true", help="print the SQL of the last round")
    parser.add_argument("--engine", action="store_true")
    options = parser.parse_args()
    if options.engine:
        net_rows.MAX_VALUES = few_rows.MAX_ROWS = -1
    with warm_spark(Path("/tmp/mvbuild-small-refresh")) as spark:
        project = tables_of_tpch(spark, options.scale, format_version=options.format_version, mode="merge-on-read", files={})
        for left in (project.root / "models").glob("*.sql"):
            left.unlink()
        files = {f"models/{name}.sql": sql for name, sql in MODELS.items()}
        project.write({**files, "mvbuild.yml": "name: small\nmodels: {+refresh_policy: incremental}\n"})
        first = project.run()
        assert first.ok, messages(first)
        streams = RefreshStreams(scale=options.scale, seed=1)
        found: dict[str, list[tuple[float, Noted, str]]] = defaultdict(list)
        for round_ in range(options.rounds + 2):
            for statement in streams.deletes(round_, 0.001, clustered=True):
                project.sql(statement)
            low = 1 + 200 * round_
            project.sql(f"UPDATE lake.main.part SET p_retailprice = p_retailprice + 1 WHERE p_partkey BETWEEN {low} AND {low + 99}")
            for name in MODELS:
                measured = refreshed(project, name)
                if round_ > 1:
                    found[name].append(measured)
        project.catalog.close()
    for name, rounds in found.items():
        report(name, rounds, statements=options.statements)
    return 0


def report(name: str, rounds: list[tuple[float, Noted, str]], *, statements: bool) -> None:
    print(
        f"\n{name}: {median(s for s, *_ in rounds):.2f} s by {rounds[-1][2]} (target {TARGETS[name]:.1f} s; {[round(s, 2) for s, *_ in rounds]})"
    )
    last = rounds[-1][1]
    for at, (what, seconds, sql) in enumerate(last):
        same = [noted[at][1] for _, noted, _ in rounds if len(noted) == len(last) and noted[at][0] == what]
        if median(same or [seconds]) >= 0.005 or statements:
            print(f"  {median(same or [seconds]):6.3f} s  {what:28} {sql if statements else sql[:110]}")


if __name__ == "__main__":
    sys.exit(main())
