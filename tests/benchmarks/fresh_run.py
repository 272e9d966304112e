"""N fresh MVs in an embedded catalog -> what `run`, `status` and `plan` take, over a bare loop that loads the same tables with PyIceberg.

    .venv/bin/python tests/benchmarks/fresh_run.py [--mvs 1000 10000] [--format table-properties metadata-file] [--rounds 5]
                                                   [--columns 5] [--snapshots 3] [--keep DIRECTORY]

No Spark, neither to create the catalog nor in the measurement: a fake `java` only records that it was called.
Every command is a separate process; they alternate, and medians count. CPU is user and system time of the process and all below it: on a busy
machine it is more reliable than wall-clock time. Memory is that of the process and all below it, and the sum of their
resident sets. The phases are those of `run`, timed inside one process: the first two are the compiler's, with whatever it keeps in target/.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "compiler")]

from fresh_world import Shape, make, storage_files  # noqa: E402

BARE = """
import sys
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
catalog = SqlCatalog("lake", uri=sys.argv[1], warehouse=sys.argv[2])
files = open(sys.argv[3]).read().split()
found = 0
for namespace in catalog.list_namespaces():
    for name in catalog.list_tables(namespace):
        found += catalog.load_table(name).current_snapshot() is not None
for file in files:
    found += StaticTable.from_metadata(file).current_snapshot() is not None
print(found)
"""
PHASES = """
import gc, sys
from time import process_time
# As in the command.
gc.set_threshold(200_000, 20, 20)
began = process_time()
def told(name):
    global began
    print(name, process_time() - began, file=sys.stderr)
    began = process_time()
from mvbuild import api
from mvbuild.api import compilation, refreshes, sessions
from mvbuild.refresh.run import run_plan
from mvbuild.cli import output, progress, run
told("import")
graph = api.compile(sys.argv[1], is_kept=False)
told("compile")
catalog = sessions.catalog_of(graph)
world = sessions.observed(graph, catalog, lazily=True)
told("observe")
chosen, _ = refreshes.select_nodes(world.graph, [], [])
planned = refreshes.plan_nodes(world, catalog, chosen)
told("decide")
with progress.Progress(graph) as report, sessions.open_session(planned.world, catalog, None, report) as session:
    result = run_plan(planned, session, threads=1, fail_fast=False, on_event=report)
print(progress.summary(graph, result))
told("schedule and print")
api.write_artifacts(planned.world.graph, result)
told("artifacts")
"""
POLL_SECONDS = 0.02


class Machine:
    """Runs processes with a `java` of its own, and measures them."""

    def __init__(self, directory: Path) -> None:
        self.told = directory / "java-was-called"
        java = directory / "jvm" / "bin" / "java"
        java.parent.mkdir(parents=True, exist_ok=True)
        java.write_text(f"#!/bin/sh\ntouch {self.told}\nexit 1\n", encoding="ascii")
        java.chmod(0o755)
        path = f"{java.parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT / "compiler"), "JAVA_HOME": str(java.parents[1]), "PATH": path}

    def measured(self, command: Sequence[str]) -> tuple[float, float, int, str]:
        """Seconds on the wall and of CPU, peak memory in MB, and what the process said."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            began, peak, before = perf_counter(), 0, resource.getrusage(resource.RUSAGE_CHILDREN)
            process = subprocess.Popen(command, stdout=out, stderr=err, env=self.environment)
            while True:
                peak = max(peak, sum(map(resident_kb, tree(process.pid))))
                try:
                    code = process.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    continue
            seconds, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            out.seek(0)
            err.seek(0)
            assert code == 0, err.read()[-2000:] + out.read()[-2000:]
            return seconds, cpu, peak // 1024, out.read() + err.read()


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    try:
        children = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [pid, *(one for child in children for one in tree(child))]


def resident_kb(pid: int) -> int:
    """The most that a process had so far."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def forget(root: Path) -> None:
    """What earlier commands found out about the catalog."""
    with closing(sqlite3.connect(root / "target" / "cache.sqlite")) as cache, cache:
        cache.execute("DROP TABLE IF EXISTS settled")


def measure(machine: Machine, root: Path, mvs: int, rounds: int) -> dict[str, float]:
    """Prints a table, and gives the median CPU seconds of each command."""
    from mvbuild import api

    listed = root / "storage_files.txt"
    if not listed.exists():
        listed.write_text("\n".join(storage_files(api.compile(root), root)), encoding="utf-8")
    home = root / ".mvbuild"
    mvbuild = [sys.executable, "-m", "mvbuild.cli.main"]
    commands = {
        "bare": [sys.executable, "-c", BARE, f"sqlite:///{home}/catalog.db", f"file://{home}/warehouse", str(listed)],
        "run": [*mvbuild, "run", "--project-dir", str(root)],
        # Nothing is known of the catalog, so everything is read and judged.
        "run, unknown": [*mvbuild, "run", "--project-dir", str(root)],
        "status": [*mvbuild, "status", "--project-dir", str(root)],
        "plan": [*mvbuild, "plan", "--project-dir", str(root)],
        "compile": [*mvbuild, "compile", "--project-dir", str(root)],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    cpus: dict[str, list[float]] = {name: [] for name in commands}
    memory = dict.fromkeys(commands, 0)
    said = dict.fromkeys(commands, "")
    # The first run compiles the project and learns what is settled.
    machine.measured(commands["run"])
    for _ in range(rounds):
        for name, command in commands.items():
            if name == "run, unknown":
                forget(root)
            seconds, cpu, peak, said[name] = machine.measured(command)
            times[name].append(seconds)
            cpus[name].append(cpu)
            memory[name] = max(memory[name], peak)
    for name in ("run", "run, unknown"):
        assert f"REUSED={mvs} TOTAL={mvs}" in said[name], said[name][-500:]
    assert said["bare"].split()[0] == str(2 * mvs), said["bare"]
    assert said["status"].count(" fresh ") == mvs, said["status"][-500:]
    wall, middle = ({name: median(found) for name, found in some.items()} for some in (times, cpus))
    for name, seconds in middle.items():
        ratios = f"{wall[name] / wall['bare']:5.2f} and {seconds / middle['bare']:5.2f} of bare"
        print(f"  {name:>12}: {wall[name]:7.2f} s, CPU {seconds:7.2f} s  {ratios}  {memory[name]:5d} MB")
    _, _, _, phases = machine.measured([sys.executable, "-c", PHASES, str(root)])
    told = [line.rsplit(" ", 1) for line in phases.splitlines() if line.rsplit(" ", 1)[0] in PHASES and "." in line]
    print("  phases of run, CPU s:", ", ".join(f"{name} {float(seconds):.2f}" for name, seconds in told), flush=True)
    return middle


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mvs", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--format", nargs="+", default=["table-properties", "metadata-file"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--snapshots", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="where the projects stand; those that are there are used again")
    options = parser.parse_args()
    shape = Shape(columns=options.columns, snapshots=options.snapshots)
    # As pip does with what it installs.
    compileall.compile_dir(ROOT / "compiler", quiet=2)
    with tempfile.TemporaryDirectory(prefix="mvbuild-fresh-") as directory:
        machine = Machine(Path(directory))
        for kind in options.format:
            medians: dict[int, float] = {}
            for mvs in options.mvs:
                root = (options.keep or Path(directory)) / f"{kind}-{mvs}-{shape.columns}-{shape.snapshots}"
                if not root.exists():
                    make(root, mvs, kind, shape)
                print(f"{mvs:,} MVs in the format {kind}, {shape.columns} columns, {shape.snapshots} snapshots", flush=True)
                medians[mvs] = measure(machine, root, mvs, options.rounds)["run"]
            if len(medians) > 1:
                few, many = min(medians), max(medians)
                print(
                    f"{kind}: run on {many:,} over run on {few:,}: {medians[many] / medians[few]:.1f} (target: at most {11 * many // (10 * few)})"
                )
        assert not machine.told.exists(), "a JVM was started"
        print("no JVM was started")
    return 0


if __name__ == "__main__":
    sys.exit(main())
