"""22 MVs over small tables -> what each step of a refresh costs however little it reads: the constants of incremental/fixed_costs.py.

    .venv/bin/python tests/benchmarks/fixed_costs.py [--rounds 3]

Every MV is refreshed incrementally and in full in one warm session. The steps are those that the cost model counts, and the constants are
those that explain the medians of processor time best (least squares, none negative).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict, fields
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from processor_seconds import of_this_and_children  # noqa: E402
from small_tables import FILES, QUERIES, more, tables  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from mvbuild import api  # noqa: E402
from mvbuild.incremental.fixed_costs import Steps, steps_of, steps_of_full  # noqa: E402
from spark.projects import Project, messages, new_project  # noqa: E402

NAMES = [one.name for one in fields(Steps)]
CONFIG = "name: small\nmodels: {+refresh_policy: incremental}\n"
Rows = dict[tuple[str, str], list[tuple[Steps, float, float]]]
"""(MV, strategy) -> steps, processor seconds and elapsed seconds of each refresh."""


def steps_now(project: Project, name: str) -> tuple[Steps | None, Steps]:
    """Of the next incremental refresh, if there is one, and of a full one."""
    (step,) = [s for s in api.plan(project.root, select=[name]).steps if s.node.endswith(f".{name}")]
    choice = step.choice
    assert choice is not None, name
    assert choice.shape is not None, choice.message
    made = choice.difference and steps_of(choice.difference, len(choice.changes), is_proven=True)
    return made, steps_of_full(choice.shape.root)


def timed(project: Project, name: str, **options: Any) -> tuple[float, float, str]:
    used, began = of_this_and_children(), time.monotonic()
    result = project.run(name, threads=1, **options)
    spent = of_this_and_children() - used, time.monotonic() - began
    assert result.ok, messages(result)
    (found,) = [r for r in result.results if r.node.endswith(f".{name}")]
    return *spent, str(found.details.get("strategy") or found.status)


def measure(project: Project, rounds: int) -> Rows:
    found: Rows = defaultdict(list)
    for round_ in range(-1, rounds):
        for number, full in enumerate((False, True) if round_ % 2 else (True, False)):
            for table, rows in more(2 * round_ + number + 2).items():
                project.append(table, *rows)
            for name in QUERIES:
                made, whole = steps_now(project, name)
                seconds, elapsed, strategy = timed(project, name, full_refresh=full)
                steps = whole if strategy == "full" else made
                # The first round warms up, and proves the queries.
                if round_ >= 0 and steps is not None and strategy != "reused":
                    found[name, strategy].append((steps, seconds, elapsed))
    return found


def fitted(found: Rows, at: int) -> dict[str, float]:
    """Least squares without negative constants: the most negative one is left out until there is none."""
    rows = [(steps[0][0], median(one[at] for one in steps)) for steps in found.values()]
    columns = list(NAMES)
    while True:
        matrix = np.array([[asdict(steps)[name] for name in columns] for steps, _ in rows], dtype=float)
        solved = np.linalg.lstsq(matrix, np.array([seconds for _, seconds in rows]), rcond=None)[0]
        if min(solved) >= 0:
            return {**dict.fromkeys(NAMES, 0.0), **dict(zip(columns, map(float, solved), strict=True))}
        columns.pop(int(np.argmin(solved)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mvbuild-fixed-") as directory, warm_spark(Path(directory)) as spark:
        project = new_project(Path(directory) / "project", {"mvbuild.yml": CONFIG, **FILES}, spark)
        for name, rows in tables().items():
            project.make(name, rows)
        first = project.run()
        assert first.ok, messages(first)
        found = measure(project, options.rounds)
        project.catalog.close()
    for (name, strategy), measured in sorted(found.items()):
        steps = measured[0][0]
        told = " ".join(f"{getattr(steps, one):2}" for one in NAMES)
        seconds, elapsed = (median(one[at] for one in measured) for at in (1, 2))
        print(f"{name:18} {strategy:14} {told}  {seconds:6.2f} s  {elapsed:6.2f} s elapsed  {steps.seconds:6.2f} s expected")
    for what, at in (("processor", 1), ("elapsed", 2)):
        print(f"{what}: SECONDS = _Seconds({', '.join(f'{name}={value:.2f}' for name, value in fitted(found, at).items())})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
