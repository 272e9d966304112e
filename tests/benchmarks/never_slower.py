"""Projects after a small change -> `auto` against full refreshes of the same MVs: elapsed and processor seconds of all processes.

    .venv/bin/python tests/benchmarks/never_slower.py [--rounds 5] [--of sample small tpch] [--scale 0.1] [--modes process warm]

`process`: `mvbuild run` in a new process with a Spark of its own. `warm`: in one session whose code has been compiled. Each round makes two
changes of the same size; after one of them the MVs are refreshed by `auto`, after the other one in full, in turns which first.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from processor_seconds import of_command, of_this_and_children  # noqa: E402
from small_tables import FILES, more, tables  # noqa: E402
from tpch import models  # noqa: E402
from tpch_data import tables_of_tpch  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from mvbuild import api  # noqa: E402
from spark.projects import ENVIRONMENT, Project, command_line, messages, new_project  # noqa: E402
from spark.tpch_streams import RefreshStreams  # noqa: E402

SAMPLE = HERE.parent.parent / "sample_project"
FRACTION = 0.001


@dataclass
class Measured:
    """Elapsed and processor seconds of each round."""

    name: str
    mode: str
    auto: list[tuple[float, float]] = field(default_factory=list)
    full: list[tuple[float, float]] = field(default_factory=list)
    strategies: dict[str, int] = field(default_factory=dict)

    def line(self) -> str:
        (auto, auto_used), (full, full_used) = (tuple(map(median, zip(*times, strict=True))) for times in (self.auto, self.full))
        told = ", ".join(f"{number} {name}" for name, number in sorted(self.strategies.items()))
        ratios = f"{auto / full:.2f} | {auto_used / full_used:.2f}"
        return f"| {self.name} | {self.mode} | {auto:.1f} | {full:.1f} | {auto_used:.1f} | {full_used:.1f} | {ratios} | {told} |"


HEAD = "| project | mode | auto s | full s | auto CPU s | full CPU s | ratio | ratio of CPU | refreshes by auto |\n|---|---|---:|---:|---:|---:|---:|---:|---|"
Change = Callable[[int], None]


def stale(project: Project) -> list[str]:
    """The MVs that the change concerns, and seeds."""
    steps = api.plan(project.root).steps
    return [s.node.rpartition(".")[2] for s in steps if s.action in ("load", "refresh", "record")]


def strategies(project: Project) -> dict[str, int]:
    """How the last run refreshed, by its file."""
    import json

    results = json.loads((project.root / "target/run_results.json").read_text())["results"]
    found: dict[str, int] = {}
    for one in results:
        strategy = (one.get("adapter_response") or {}).get("strategy")
        if strategy:
            found[strategy] = found.get(strategy, 0) + 1
    return found


def in_process(project: Project, select: list[str], *, full: bool) -> tuple[float, float]:
    command = command_line(project.root, "run", "--select", *select, *(["--full-refresh"] if full else []))
    return of_command(command, ENVIRONMENT)


def in_session(project: Project, select: list[str], *, full: bool) -> tuple[float, float]:
    used, began = of_this_and_children(), time.monotonic()
    result = project.run(*select, full_refresh=full)
    assert result.ok, messages(result)
    return time.monotonic() - began, of_this_and_children() - used


def compared(project: Project, name: str, mode: str, change: Change, rounds: int, first: int) -> Measured:
    found = Measured(name=name, mode=mode)
    run = in_process if mode == "process" else in_session
    for round_ in range(rounds + (mode == "warm")):
        for number, full in enumerate((False, True) if round_ % 2 else (True, False)):
            change(first + 2 * round_ + number)
            spent = run(project, stale(project), full=full)
            if mode == "warm" and not round_:
                continue
            (found.full if full else found.auto).append(spent)
            if not full:
                found.strategies = strategies(project)
        print(f"    {name} {mode} round {round_}: auto {found.auto[-1:]} full {found.full[-1:]}", file=sys.stderr, flush=True)
    return found


def sample(root: Path, spark: Any) -> tuple[Project, Change]:
    """A new order in a seed."""
    project = new_project(root / "sample", {}, spark)
    shutil.copytree(SAMPLE, project.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target", ".mvbuild"))
    orders = project.root / "seeds/orders.csv"
    last = orders.read_text().splitlines()[-1]

    def change(number: int) -> None:
        number_, _, rest = last.partition(",")
        with orders.open("a") as file:
            file.write(f"{int(number_) + number + 1},{rest}\n")

    return project, change


def small(root: Path, spark: Any) -> tuple[Project, Change]:
    project = new_project(root / "small", {"mvbuild.yml": "name: small\n", **FILES}, spark)
    for name, rows in tables().items():
        project.make(name, rows)

    def change(number: int) -> None:
        for name, rows in more(number).items():
            project.append(name, *rows)

    return project, change


def tpch(spark: Any, scale: float, kind: str) -> tuple[Project, Change]:
    project = tables_of_tpch(spark, scale, files={"mvbuild.yml": "name: tpch\n"})
    for left in (project.root / "models").glob("*.sql"):
        left.unlink()
    project.write(models("b", "auto", set()))
    streams = RefreshStreams(scale=scale, seed=1)

    def change(number: int) -> None:
        for statement in getattr(streams, kind)(number, FRACTION):
            project.spark.sql(statement)

    return project, change


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--of", nargs="*", default=["sample", "small", "tpch"], choices=("sample", "small", "tpch"))
    parser.add_argument("--modes", nargs="*", default=["process", "warm"], choices=("process", "warm"))
    parser.add_argument("--scale", type=float, default=0.1, help="of TPC-H")
    parser.add_argument("--kind", default="inserts", choices=("inserts", "deletes", "updates"), help="of changes of TPC-H")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="mvbuild-slower-") as directory, warm_spark(Path(directory)) as spark:
        for name in options.of:
            made = {"sample": sample, "small": small}.get(name)
            project, change = made(Path(directory), spark) if made else tpch(spark, options.scale, options.kind)
            began = project.run()
            assert began.ok, messages(began)
            label = f"tpch {options.scale:g} {options.kind}" if name == "tpch" else name
            for number, mode in enumerate(options.modes):
                found.append(compared(project, label, mode, change, options.rounds, 1 + 1000 * number))
            project.catalog.close()
    print(HEAD)
    for one in found:
        print(one.line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
