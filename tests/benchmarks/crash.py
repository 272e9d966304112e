"""--times N [--seed S] -> N runs of mvbuild that are killed at random moments, and whether everything held.

.venv/bin/python tests/benchmarks/crash.py --times 50
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from pathlib import Path
from time import monotonic

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "compiler")]

from mvbuild.adapters.spark import start_engine  # noqa: E402
from mvbuild.project.loaded import SparkSettings, Target  # noqa: E402
from spark.crashes import Rig  # noqa: E402
from spark.projects import properties  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    print(f"--seed {seed}")
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="mvbuild-crash-") as directory:
        root = Path(directory)
        settings = SparkSettings(master="local[2]", config={"spark.driver.memory": "1g"})
        target = Target(
            name="crash",
            catalog_name="other",
            catalog=properties(root / "other"),
            namespace=("main",),
            spark=settings,
            threads=2,
            embedded=True,
        )
        engine = start_engine(target, log_file=root / "spark.log", env=os.environ, spark=None)
        rig = Rig.make(root / "project", engine.session, seed)  # type: ignore[attr-defined]
        try:
            for number in range(1, options.times + 1):
                rig.round()
                rig.change()
                print(f"{number:3} {monotonic() - began:6.0f} s  {rig.events[-1]}", flush=True)
        finally:
            rig.project.catalog.close()
            engine.close()
    print(f"{options.times} runs, {rig.killed} killed: nothing was ever wrong; {dict(rig.changes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
