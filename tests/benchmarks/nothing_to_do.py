"""The built sample project -> the CPU time of a run that has nothing to do, over that of a bare script that loads the same tables: 1.5 at most.

    .venv/bin/python tests/benchmarks/nothing_to_do.py [--times 9]

The bare script opens the catalog with PyIceberg's `load_catalog` and loads every table that the run looks at. CPU is user and system time
of the whole process, by getrusage; processes alternate, medians count.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "compiler")}
BARE = """
import sys
from pyiceberg.catalog import load_catalog
catalog = load_catalog("lake", type="sql", uri=sys.argv[1], warehouse=sys.argv[2])
tables = [catalog.load_table(name) for namespace in catalog.list_namespaces() for name in catalog.list_tables(namespace)]
print(len(tables), sum(table.current_snapshot() is not None for table in tables))
"""


def mvbuild(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mvbuild.cli.main", *arguments]


def cpu(command: Sequence[str]) -> float:
    """Seconds of user and system time of a process that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mvbuild-nothing-") as directory:
        project = Path(directory) / "sample_project"
        shutil.copytree(ROOT / "sample_project", project, ignore=shutil.ignore_patterns(".mvbuild", "target"))
        run = mvbuild("run", "--project-dir", str(project))
        subprocess.run(run, check=True, capture_output=True, env=ENVIRONMENT)
        home = project / ".mvbuild"
        commands = {
            "run": run,
            "bare": [sys.executable, "-c", BARE, f"sqlite:///{home}/catalog.db", f"file://{home}/warehouse"],
            "plan": mvbuild("plan", "--project-dir", str(project)),
            "compile": mvbuild("compile", "--project-dir", str(project)),
            "ls": mvbuild("ls", "--project-dir", str(project)),
            "--version": mvbuild("--version"),
            "python -c pass": [sys.executable, "-c", "pass"],
        }
        print(
            "the bare script loads",
            subprocess.run(commands["bare"], check=True, capture_output=True, text=True).stdout.strip(),
            "tables, with snapshot",
        )
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.times):
            for name, command in commands.items():
                times[name].append(cpu(command))
    middle = {name: median(found) for name, found in times.items()}
    for name, seconds in middle.items():
        print(f"{name:>15}: {seconds:.3f} s CPU (best {min(times[name]):.3f})")
    print(f"ratio of run to the bare script: {middle['run'] / middle['bare']:.2f} (target: at most 1.5)")
    print(f"--version: {middle['--version']:.3f} s (target: under 0.15 s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
