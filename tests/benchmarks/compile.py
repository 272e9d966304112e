"""A synthetic project of many models: mvbuild's compile, ls, lint and lineage against `dbt parse` of the same project, by dbt-core's own
parser and by its v2 parser.

    .venv/bin/python tests/benchmarks/compile.py [--models 10000] [--dbt PATH | --no-dbt] [--rounds 1]

Makes dbt-core 1.12 an environment of its own, unless --dbt names one. Prints seconds of wall clock and of CPU, peak memory of all processes
together, and what dbt takes as a multiple of that, with its own parser and with v2. Each figure is the best of the rounds.
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from wide_project import lock_sources, name, write_project  # noqa: E402

PACKAGES = ("dbt-core==1.12.*", "dbt-duckdb")
PREBUILT = ("--only-binary", "dbt-core-experimental-parser")
PARSERS = {"dbt parse": (), "dbt parse, v2 parser": ("--use-v2-parser",)}
"""dbt-core's parser in Python, and the one in Rust to which dbt-core delegates: then it only reads its result."""
MVBUILD = (sys.executable, "-m", "mvbuild.cli.main")


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    wall: float
    cpu: float
    megabytes: float

    def over(self, other: Took) -> tuple[float, float, float]:
        return self.wall / other.wall, self.cpu / other.cpu, self.megabytes / other.megabytes

    def best(self, other: Took) -> Took:
        return Took(wall=min(self.wall, other.wall), cpu=min(self.cpu, other.cpu), megabytes=min(self.megabytes, other.megabytes))


def measured(command: list[str], directory: Path) -> Took:
    """One command with all its children."""
    paths = os.pathsep.join(str(HERE.parent.parent / folder) for folder in ("compiler", "templates"))
    env = {**os.environ, "PYTHONPATH": paths, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    before, started = os.times(), perf_counter()
    process = subprocess.Popen(command, cwd=directory, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak = _Peak(process.pid)
    peak.start()
    _, said = process.communicate()
    peak.done.set()
    peak.join()
    after = os.times()
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: {said}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(wall=perf_counter() - started, cpu=cpu, megabytes=peak.megabytes)


class _Peak(threading.Thread):
    """Watches the memory of a process and its descendants (proportional set size) until it is stopped."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.done = threading.Event()
        self.megabytes = 0.0

    def run(self) -> None:
        while not self.done.wait(0.2):
            self.megabytes = max(self.megabytes, sum(_kilobytes(pid) for pid in _family(self.pid)) / 1024)


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(one for child in children for one in _family(int(child)))]


def _kilobytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def dbt_command(given: str | None, directory: Path) -> str:
    if given:
        return given
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    subprocess.run([str(directory / "bin" / "pip"), "install", "-q", *PREBUILT, *PACKAGES], check=True)
    return str(directory / "bin" / "dbt")


def steps(root: Path, models: int) -> dict[str, tuple[list[str], str]]:
    """Name -> command of mvbuild, and what is done before it: `cold`, `edit` or nothing."""
    compile = [*MVBUILD, "compile", "--project-dir", str(root)]
    lineage = [sys.executable, "-c", f"from mvbuild import api; api.lineage({str(root)!r})"]
    one = name(9, 0)
    return {
        "compile, cold": (compile, "cold"),
        "compile, warm": (compile, ""),
        "compile, one file changed": (compile, "edit"),
        f"ls -s {one}, warm": ([*MVBUILD, "ls", "--project-dir", str(root), "-s", one], ""),
        f"lint -s {one}, changed": ([*MVBUILD, "lint", "--project-dir", str(root), "-s", one], "edit"),
        "lineage of all, cold": (lineage, "lineage"),
        "lineage of all, cached": (lineage, ""),
        f"lineage {one}, cached": ([*MVBUILD, "lineage", "--project-dir", str(root), one], ""),
    }


def prepare(what: str, root: Path) -> None:
    if what == "cold":
        shutil.rmtree(root / "target", ignore_errors=True)
    elif what == "edit":
        with next(root.glob(f"models/layer_9/**/{name(9, 0)}.sql")).open("a") as file:
            file.write(" -- changed\n")
    elif what == "lineage":
        lock_sources(root)
        with closing(sqlite3.connect(root / "target" / "cache.sqlite")) as cache, cache:
            cache.execute("DELETE FROM bindings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--dbt", help="the command of a dbt-core 1.12 with an adapter for DuckDB")
    parser.add_argument("--no-dbt", action="store_true", help="measure mvbuild alone")
    options = parser.parse_args()
    # As pip does with what it installs, dbt among it.
    compileall.compile_dir(HERE.parent.parent / "compiler", quiet=2)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "wide"
        write_project(root, options.models)
        dbt = None if options.no_dbt else dbt_command(options.dbt, Path(directory) / "dbt")
        found: dict[str, Took] = {}
        for _ in range(options.rounds):
            if dbt is not None:
                parse = [dbt, "parse", "--no-partial-parse", "--project-dir", str(root), "--profiles-dir", str(root)]
                for parser_name, flags in PARSERS.items():
                    (root / "target" / "partial_parse.msgpack").unlink(missing_ok=True)
                    _keep(found, parser_name, measured([*parse, *flags], root))
            (root / "schemas.lock").unlink(missing_ok=True)
            for step, (command, before) in steps(root, options.models).items():
                prepare(before, root)
                _keep(found, step, measured(command, root))
        print(f"{options.models} models, {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}")
        heads = (f"{short} / {what}" for short in ("dbt", "v2") for what in ("wall", "CPU", "MB"))
        print(f"{'':32}{'wall s':>9}{'CPU s':>9}{'MB':>8}{''.join(f'{head:>12}' for head in heads)}")
        for step, took in found.items():
            bases = [found[parser] for parser in PARSERS if parser in found]
            ratios = (f"{ratio:12.1f}" for base in bases for ratio in base.over(took))
            print(f"{step:32}{took.wall:9.2f}{took.cpu:9.2f}{took.megabytes:8.0f}{''.join(ratios)}")


def _keep(found: dict[str, Took], step: str, took: Took) -> None:
    found[step] = took.best(found[step]) if step in found else took


if __name__ == "__main__":
    main()
