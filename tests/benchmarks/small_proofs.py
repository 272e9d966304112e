"""every proof of docs/proofs, at a size that takes a minute or two -> a table of what each printed, and whether all agree.

    .venv/bin/python tests/benchmarks/small_proofs.py --report docs/proofs/small-sizes.md

The proofs run one after another, each as its own process. Those that need a program that this machine does not have fail and say so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[2]
PROOFS = (
    "change.py --histories 6 --seed 1 --pairs 45",
    "rewrite_proof.py --cases 600 --seed 7 --jobs 2",
    "relevance.py --trials 5000 --queries 150 --seed 1 --jobs 2",
    "refresh_histories.py --histories 4 --seed 31000 --rounds 2 --mvs 2",
    "mutants.py --mutants 300 --seed 0 --jobs 2",
    "many_runs.py --catalog sqlite --processes 3 --minutes 1",
    "crash.py --times 4 --seed 7",
    "tpch.py --scale 0.01 --rounds 1 --mode merge-on-read --format-version 3 --as-if-large",
    "tpcdi.py --customers 60 --days 1",
    "connect.py --scale 0.01 --rounds 1",
    "incremental.py --scale 0.1 --kind deletes --clustered --rounds 1",
    "compile.py --models 10000 --no-dbt --rounds 1",
    "fresh_run.py --mvs 1000 --rounds 3",
)
_LINES = 12
"""How many of the last lines of a proof are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    command: str
    code: int
    seconds: float
    output: str

    @property
    def last_lines(self) -> str:
        lines = [line.rstrip() for line in self.output.strip().splitlines()]
        return "\n".join([line for line in lines if line and not line.startswith("[Stage ")][-_LINES:])


def outcome(command: str) -> Outcome:
    """Run one proof to its end."""
    name, *arguments = command.split()
    started = monotonic()
    path = str(ROOT / "tests/benchmarks" / name)
    done = subprocess.run([sys.executable, path, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return Outcome(command=command, code=done.returncode, seconds=monotonic() - started, output=done.stdout)


def report(outcomes: Sequence[Outcome], commit: str) -> str:
    rows = [f"| `{one.command}` | {one.seconds:.0f} | {'passed' if one.code == 0 else f'exit {one.code}'} |" for one in outcomes]
    details = [f"## {one.command.partition('.')[0]}\n\n```\n{one.last_lines}\n```" for one in outcomes]
    head = [
        "# The proofs at small sizes",
        f"On {date.today():%Y-%m-%d}, commit {commit}, by `tests/benchmarks/small_proofs.py`. The pages beside this one have the large sizes.",
        "\n".join(["| command | seconds | result |", "|---|---:|---|", *rows]),
    ]
    return "\n\n".join([*head, *details]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="proofs by name, with commas: change,tpch")
    parser.add_argument("--report", type=Path, help="write the table and the last lines of each proof here")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else None
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    outcomes = []
    for command in PROOFS:
        if names is None or command.partition(".")[0] in names:
            outcomes.append(one := outcome(command))
            print(f"{'passed' if one.code == 0 else f'exit {one.code}'} in {one.seconds:.0f} s: {command}", flush=True)
            if one.code:
                print(one.last_lines, flush=True)
    if options.report:
        options.report.write_text(report(outcomes, commit), encoding="utf-8")
    return int(any(one.code for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
