"""versions of Spark -> the sample project, TPC-H, random histories and the suites on each: a table of what passed.

    .venv/bin/python tests/benchmarks/spark_versions.py 3.5 4.0 4.1 --report docs/proofs/spark-versions.md

For each version it makes a virtual environment in the folder for temporary files, with that PySpark before the packages of the environment
that runs this script. `--only sample,tpch` runs some of the parts. The histories have a journal in that folder: after an interruption, those
that were played are not played again. `--again` forgets them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[2]
HOME = Path(tempfile.gettempdir(), "mvbuild-spark-versions")
BENCHMARKS = "tests/benchmarks"
PYTEST = "-m pytest -q -p no:cacheprovider"
PARTS = {
    "sample": (f"{BENCHMARKS}/spark_differences.py", f"{BENCHMARKS}/spark_sample.py"),
    "tpch": (f"{BENCHMARKS}/tpch.py --scale 0.01 --rounds 3 --rotate --sets a",),
    "histories": (f"{BENCHMARKS}/refresh_histories.py --histories 50 --seed 2400 --rounds 2 --mvs 3 --journal {{journal}}",),
    "engine": (f"{PYTEST} tests/spark/test_engine.py tests/spark/test_function_registry.py tests/spark/test_equivalence.py",),
    "spark": (f"{PYTEST} tests/spark",),
    "connect": (
        f"{BENCHMARKS}/tpch_data.py --scale 0.01",
        f"{BENCHMARKS}/connect.py --scale 0.01 --rounds 1",
    ),
    "behaviour": (f"{PYTEST} tests/behaviour",),
}
"""Commands of each part, after the name of Python. pytest leaves out what is marked `proof`, unless a file is named.
`{journal}` is a file of this version, where a part notes what it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    version: str
    command: str
    code: int
    seconds: float
    output: str

    @property
    def last_lines(self) -> str:
        return "\n".join([line.rstrip() for line in self.output.strip().splitlines()][-_LINES:])


_LINES = 12
"""How many of the last lines of a command are shown."""


def environment(version: str) -> Path:
    """The Python of an environment with that PySpark; made if it is not there."""
    home = HOME / version
    python = home / "bin" / "python"
    if not (home / "made").exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(home)], check=True)
        (packages,) = home.glob("lib/python*/site-packages")
        wanted = [f"pyspark=={version}.*"]
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", str(packages), *wanted], check=True)
        # After what is in the folder itself. Lines of the shared packages' own .pth files are not read: they name this checkout.
        shared = [ROOT / "compiler", ROOT / "templates", *{sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}, *_paths()]
        (packages / "shared.pth").write_text("".join(f"{path}\n" for path in shared), encoding="utf-8")
        program = home / "bin" / "mvbuild"
        program.write_text(f"#!{python}\nfrom mvbuild.cli.main import main\n\nmain()\n", encoding="utf-8")
        program.chmod(0o755)
        (home / "made").touch()
    return python


def _paths() -> list[str]:
    """Where the packages of this environment are, if it shares those of another one."""
    return [path for path in sys.path if path.endswith("site-packages")]


def journal(version: str) -> Path:
    """Of a full version, such as 3.5.8."""
    return HOME / f"journal-{version}.jsonl"


def outcome(version: str, python: Path, command: str) -> Outcome:
    started = monotonic()
    # The programs of the shared packages.
    path = os.pathsep.join([str(python.parent), sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    environ = {**os.environ, "PATH": path}
    words = command.format(journal=journal(version)).split()
    done = subprocess.run([str(python), *words], cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return Outcome(version=version, command=" ".join(words), code=done.returncode, seconds=monotonic() - started, output=done.stdout)


def full_version(python: Path) -> str:
    return subprocess.run(
        [str(python), "-c", "import pyspark; print(pyspark.__version__)"], capture_output=True, text=True, check=True
    ).stdout.strip()


def report(outcomes: Sequence[Outcome], commit: str) -> str:
    rows = [f"| {o.version} | `{o.command}` | {o.seconds:.0f} | {'passed' if o.code == 0 else f'exit {o.code}'} |" for o in outcomes]
    head = f"On {date.today():%Y-%m-%d}, commit {commit}, by `tests/benchmarks/spark_versions.py`."
    details = [f"## {o.version}: {o.command}\n\n```\n{o.last_lines}\n```" for o in outcomes]
    table = "\n".join(["| Spark | command | seconds | result |", "|---|---|---:|---|", *rows])
    return "\n\n".join(["# The versions of Spark", head, table, *details]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="3.5, 4.0 or 4.1; or a patch version, such as 3.5.7")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas: " + ", ".join(PARTS))
    parser.add_argument("--again", action="store_true", help="play histories again that an earlier call played")
    parser.add_argument("--report", type=Path, help="write the table and the last lines of each command here")
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    outcomes: list[Outcome] = []
    for version in options.versions:
        python = environment(version)
        full = full_version(python)
        if options.again:
            journal(full).unlink(missing_ok=True)
        for part in options.only.split(","):
            for command in PARTS[part]:
                outcomes.append(one := outcome(full, python, command))
                print(f"{one.version} {command}: {'passed' if one.code == 0 else f'exit {one.code}'}, {one.seconds:.0f} s", flush=True)
                if one.code:
                    print(one.output[-6000:], flush=True)
    if options.report:
        options.report.write_text(report(outcomes, commit), encoding="utf-8")
    return 1 if any(one.code for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
