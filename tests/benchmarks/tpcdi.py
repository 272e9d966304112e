"""The warehouse of TPC-DI as MVs, its historical load and daily batches -> how each MV is refreshed, and whether it is right.

    .venv/bin/python tests/benchmarks/tpcdi.py --customers 300 --days 6
    .venv/bin/python tests/benchmarks/tpcdi.py --customers 3000 --days 9 --choices

After each batch one `run` refreshes all MVs, with `refresh_policy: incremental`, and every MV is compared with its query in plain Spark over
the sources alone, as bags. With `--choices` batches are refreshed in turns by `auto`, in full and by `incremental`, as in incremental.py:
then it is known how often `auto` chose what is faster. Exit code 1 if any MV differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from incremental import Measured, note, summary  # noqa: E402
from refreshed import how  # noqa: E402
from tpcdi_data import SOURCES, Batch, Brokerage, arrow  # noqa: E402
from tpcdi_models import MODELS, plain  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from mvbuild.refresh.result import RunResult  # noqa: E402
from spark.projects import Project, messages, new_project, of  # noqa: E402
from spark.refresh_histories import as_if_large  # noqa: E402

PASSES = ("auto", "full", "incremental")


@dataclass
class Played:
    """`strategies`: MV -> how often it was refreshed by each; a complete computation with its reason."""

    strategies: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    measured: dict[str, Measured] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[str] = field(default_factory=list)
    compared: int = 0


def warehouse(root: Path, spark: Any, auxiliary_views: str) -> Project:
    sources = ", ".join(f"{{name: {name}}}" for name in SOURCES)
    files = {f"models/{name}.sql": sql.lstrip() for name, sql in MODELS.items()}
    project = new_project(root, {**files, "models/sources.yml": f"sources:\n  - {{name: raw, tables: [{sources}]}}\n"}, spark)
    with_policy(project, "incremental", auxiliary_views)
    project.catalog.create_namespace("raw")
    for name, schema in SOURCES.items():
        properties = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")}
        project.catalog.create_table(f"raw.{name}", schema, properties=properties)
    return project


def with_policy(project: Project, policy: str, auxiliary_views: str) -> None:
    settings = {"+refresh_policy": policy, "+auxiliary_views": auxiliary_views, "+namespace": "mart"}
    project.write({"mvbuild.yml": f"name: tpcdi\nmodels: {json.dumps(settings)}\n"})


def bring(project: Project, batch: Batch) -> None:
    for statement in batch.updates:
        project.sql(statement)
    for name, rows in batch.appended.items():
        project.table(f"raw.{name}").append(arrow(name, rows))
    for name, rows in batch.replaced.items():
        project.table(f"raw.{name}").overwrite(arrow(name, rows))


def refresh(project: Project, **options: Any) -> RunResult:
    result = project.run(threads=1, **options)
    if not result.ok:
        raise SystemExit("\n".join(messages(result)))
    return result


def compare(project: Project, when: str, played: Played) -> None:
    """All MVs with their queries, in which other MVs are views."""
    for name, sql in MODELS.items():
        project.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {plain(sql)}")
    for name in MODELS:
        stored, wanted = project.bag(f"SELECT * FROM lake.mart.{name}__storage"), project.bag(f"SELECT * FROM {name}")
        played.compared += 1
        if stored != wanted:
            played.wrong.append(f"{name} after {when}: too many {list(stored - wanted)[:3]}, missing {list(wanted - stored)[:3]}")


def play(project: Project, options: argparse.Namespace) -> Played:
    played, brokerage = Played(), Brokerage(options.customers, options.seed)
    bring(project, brokerage.history())
    first = refresh(project)
    print(f"historical load: {len(MODELS)} MVs built in {first.seconds:.0f} s", flush=True)
    compare(project, "the historical load", played)
    for day in range(options.days):
        bring(project, brokerage.day(day))
        what = PASSES[(day + day // len(PASSES)) % len(PASSES)] if options.choices else "incremental"
        with_policy(project, "incremental" if what == "incremental" else "auto", options.auxiliary_views)
        result = refresh(project, full_refresh=what == "full")
        played.seconds[what].append(result.seconds)
        for name in MODELS:
            found = of(result, name)
            if what == "incremental":
                played.strategies[name][how(found)] += 1
            if day >= len(PASSES):
                # The first batches of each kind warm the session up.
                _measure(played.measured.setdefault(name, Measured(query=name)), what, found)
        compare(project, f"day {day + 1}", played)
        print(f"day {day + 1}: {what}, {result.seconds:.1f} s, wrong so far: {len(played.wrong)}", flush=True)
    return played


def _measure(one: Measured, what: str, found: Any) -> None:
    if what == "auto":
        note(one, found.seconds, found)
    elif what == "full":
        one.fulls.append(found.seconds)
    elif found.details.get("strategy") not in (None, "full"):
        one.incrementals.append(found.seconds)


def report(played: Played, options: argparse.Namespace) -> str:
    lines = [
        f"## {options.customers:,} customers, {options.days} days, `auxiliary_views: {options.auxiliary_views}`",
        "",
        f"MVs that were compared: {played.compared}; that differed: {len(played.wrong)}",
        "",
        "| MV | refreshed by |",
        "|---|---|",
    ]
    lines += [f"| {name} | {', '.join(f'{what} ({n})' for what, n in played.strategies[name].items())} |" for name in MODELS]
    whole = [name for name in MODELS if not any("full" in what for what in played.strategies[name])]
    lines += ["", f"- never computed in full: {len(whole)} of {len(MODELS)}"]
    if options.choices:
        lines += [f"- {line}" for line in summary([m for m in played.measured.values() if m.autos and m.fulls])]
        lines += [f"- seconds of a run by {what}: {', '.join(f'{s:.1f}' for s in seconds)}" for what, seconds in played.seconds.items()]
    return "\n".join([*lines, *played.wrong, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--customers", type=int, default=300)
    parser.add_argument("--days", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--auxiliary-views", choices=("auto", "never", "always"), default="always")
    parser.add_argument("--choices", action="store_true", help="refresh batches in turns by auto, in full and by incremental")
    parser.add_argument("--report", type=Path, help="a Markdown file to append the table to")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="mvbuild-tpcdi-") as directory,
        warm_spark(Path(directory) / "spark", small=not options.choices) as spark,
    ):
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        project = warehouse(Path(directory) / "project", spark, options.auxiliary_views)
        if options.choices:
            played = play(project, options)
        else:
            with as_if_large():
                played = play(project, options)
        project.catalog.close()
    text = report(played, options)
    print(text)
    if options.report:
        with options.report.open("a", encoding="utf-8") as file:
            file.write(text)
    return 1 if played.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
