"""The sample project, edited and run again and again -> seconds of each round with a warm engine, and with a new Spark each time.

    .venv/bin/python tests/benchmarks/edit_loop.py [--rounds 20] [--model product_sales]

A round edits the SQL of a model so that its rows change, and calls `mvbuild run --select MODEL` and `mvbuild show MODEL`, each in a new
process. Rounds of both kinds alternate, on two copies of the project. The first round with a warm engine, which starts it, is not counted.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent.parent / "sample_project"


class Copy:
    """A copy of the sample project that has been built."""

    def __init__(self, root: Path, keep: str) -> None:
        self.root = root
        self.env = {**os.environ, "MVBUILD_KEEP_WARM": keep}
        shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("target", ".mvbuild"))
        self.mvbuild("run")

    def mvbuild(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "mvbuild.cli.main", *arguments]
        done = subprocess.run(command, cwd=self.root, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def round(self, model: str, number: int) -> tuple[float, float]:
        """Seconds of `run` and of `show`."""
        (path,) = self.root.glob(f"models/**/{model}.sql")
        text = re.sub(
            r"(?:,\s*\d+ as edit_number)?\s*\nfrom ", f",\n    {number} as edit_number\nfrom ", path.read_text(encoding="utf-8"), count=1
        )
        path.write_text(text, encoding="utf-8")
        began = time.monotonic()
        self.mvbuild("run", "--select", model)
        between = time.monotonic()
        rows = self.mvbuild("show", model, "--output", "csv").splitlines()
        end = time.monotonic()
        assert len(rows) > 1
        assert all(row.endswith(f",{number}") for row in rows[1:]), rows
        return between - began, end - between


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--model", default="product_sales")
    parser.add_argument("--only-warm", action="store_true", help="do not measure a new Spark each time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mvbuild-edit-") as directory:
        copies = {"warm": Copy(Path(directory) / "warm", "30m")}
        if not options.only_warm:
            copies["new"] = Copy(Path(directory) / "new", "off")
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in copies}
        try:
            copies["warm"].round(options.model, 0)
            for number in range(1, options.rounds + 1):
                for name, copy in copies.items():
                    times[name].append(copy.round(options.model, number))
                print(
                    f"round {number}: { ({name: [round(s, 2) for s in of[-1]] for name, of in times.items()}) }",
                    file=sys.stderr,
                    flush=True,
                )
        finally:
            copies["warm"].mvbuild("engine", "stop")
    print("| engine | run, median s | show, median s | both, median s | both, worst s |\n|---|---:|---:|---:|---:|")
    for name, of in times.items():
        both = [run + show for run, show in of]
        runs, shows = (median(column) for column in zip(*of, strict=True))
        print(f"| {name} | {runs:.2f} | {shows:.2f} | {median(both):.2f} | {max(both):.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
