"""TPC-DS's 99 queries as MVs over its tables at a tiny scale, under changes -> how each is refreshed, why, and whether it is right.

    .venv/bin/python tests/benchmarks/tpcds.py --rounds 2 [--kinds deletes] [--threads 2] [--format-version 3] [--mode copy-on-write]
                                              [--only q01 q30] [--auxiliary-views always] [--report docs/proofs/tpcds.md]

In each round sales and returns get rows, then are updated, then lose rows; all MVs are refreshed after each kind of change. The generator
must be there: pip install tpcgen-cli.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from refreshed import differs, how  # noqa: E402
from tpcds_queries import queries  # noqa: E402
from tpch import SETS  # noqa: E402
from tpch_data import MODES, write_properties  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from mvbuild.refresh.result import NodeResult, RunResult  # noqa: E402
from spark.projects import Project, new_project  # noqa: E402
from spark.refresh_histories import as_if_large  # noqa: E402
from spark.tpcds_data import RefreshStreams, make_tables, tables  # noqa: E402

CONFIG = "name: tpcds\nmodels: {{+refresh_policy: incremental, +auxiliary_views: {}}}\n"


def tpcds(root: Path, spark: Any, options: argparse.Namespace) -> Project:
    """A project of all queries whose tables are loaded."""
    began = perf_counter()
    files = {
        "mvbuild.yml": CONFIG.format(options.auxiliary_views),
        **{f"models/{name}.sql": SETS[options.set](sql) for name, sql in queries().items() if not options.only or name in options.only},
    }
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


def rounds(project: Project, options: argparse.Namespace) -> int:
    """How many refreshes were wrong; prints and writes the table."""
    streams, wrong, times = RefreshStreams(), 0, {}
    seen: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    queries = {p.stem: p.read_text(encoding="utf-8") for p in sorted((project.root / "models").glob("*.sql"))}
    for number in range(options.rounds):
        for kind in options.kinds.split(","):
            for statement in getattr(streams, kind)(number, options.fraction):
                project.sql(statement)
            with as_if_large():
                result = project.run(threads=options.threads)
            for one in result.results:
                name = one.node.rpartition(".")[2]
                seen[name, kind][how(one)] += 1
                if one.status == "error":
                    print(f"    {name}: {said(one)[:300]}", flush=True)
            differ = [name for name, sql in queries.items() if name in _built(result) and differs(project, name, sql)]
            wrong += len(differ)
            times[f"{kind}, round {number}"] = result.seconds
            print(f"round {number} {kind}: {result.seconds:.0f} s, wrong: {', '.join(differ) or 'none'}", flush=True)
            report(table(list(queries), seen, options, wrong), options)
    times["all in full"] = in_full(project, options.threads)
    lines = [*table(list(queries), seen, options, wrong), "", *timed(times)]
    report(lines, options)
    print("\n".join(lines))
    return wrong


def in_full(project: Project, threads: int) -> float:
    """Seconds of a full refresh of all, without auxiliary views."""
    project.write({"mvbuild.yml": CONFIG.format("never")})
    return project.run(threads=threads, full_refresh=True).seconds


def timed(times: dict[str, float]) -> list[str]:
    return ["| all MVs | seconds |", "|---|---:|", *(f"| {what} | {seconds:.0f} |" for what, seconds in times.items())]


def report(lines: list[str], options: argparse.Namespace) -> None:
    if options.report:
        Path(options.report).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _built(result: RunResult) -> set[str]:
    return {one.node.rpartition(".")[2] for one in result.results if one.status != "error"}


KINDS = ("inserts", "updates", "deletes")


def table(names: list[str], seen: dict[tuple[str, str], Counter[str]], options: argparse.Namespace, wrong: int) -> list[str]:
    kinds = [kind for kind in KINDS if any(of == kind for _, of in seen)]
    incremental = {kind: sum(not any(what.startswith(("full", "error")) for what in seen[name, kind]) for name in names) for kind in kinds}
    told = (
        f"{options.rounds} rounds of {options.fraction:.1%}, {options.mode}, format v{options.format_version}, `refresh_policy: incremental`, "
        f"`auxiliary_views: {options.auxiliary_views}`"
    )
    told += "" if options.set == "a" else "; without the outermost ORDER BY and LIMIT"
    lines = ["# TPC-DS under refresh streams", "", f"{told}; run on {date.today()}: {wrong or 'no'} differences.", ""]
    lines += [f"Incremental or untouched, of {len(names)}: " + ", ".join(f"{n} on {kind}" for kind, n in incremental.items()) + ".", ""]
    lines += [f"| query | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    for name in names:
        cells = [", ".join(f"{what} x {times}" for what, times in seen[name, kind].items()) or "-" for kind in kinds]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="a", choices=("a", "b"), help="b: without their outermost ORDER BY and LIMIT")
    parser.add_argument("--only", nargs="*", default=(), help="these queries, by name")
    parser.add_argument("--report", default="", help="a Markdown file for the table")
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--share", type=float, default=1.0, help="of the orders, with their returns")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--format-version", type=int, choices=(2, 3), default=2)
    parser.add_argument("--mode", choices=MODES, default="merge-on-read")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS), help="of changes")
    parser.add_argument("--memory", default="9g", help="of Spark")
    parser.add_argument("--fraction", type=float, default=0.01)
    parser.add_argument("--auxiliary-views", choices=("auto", "never", "always"), default="auto")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="mvbuild-tpcds-") as directory,
        warm_spark(Path(directory) / "spark", memory=options.memory) as spark,
    ):
        project = tpcds(Path(directory), spark, options)
        built = build(project, options.threads)
        wrong = rounds(project, options) if options.rounds else 0
        project.catalog.close()
    return 0 if built and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
