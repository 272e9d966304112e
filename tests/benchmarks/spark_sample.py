"""the sample project, on a Spark that mvbuild starts -> its rows, which are the same with every version of Spark, and nothing left to do.

.venv/bin/python tests/benchmarks/spark_sample.py
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "compiler")]

from pyiceberg.catalog import load_catalog  # noqa: E402

from mvbuild.adapters.spark.releases import installed_release  # noqa: E402
from spark.projects import arrow_bag  # noqa: E402
from spark.test_sample_everywhere import MVS  # noqa: E402


def mvbuild(project: Path, *arguments: str) -> str:
    command = [sys.executable, "-c", "from mvbuild.cli.main import main; main()", *arguments, "--project-dir", str(project)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, env=None)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def target(iceberg: str) -> str:
    release = installed_release()
    runtime = f"org.apache.iceberg:iceberg-spark-runtime-{release.spark}_{release.scala}:{iceberg}"
    return f"\ntarget: dev\ntargets: {{dev: {{spark: {{config: {{spark.jars.packages: '{runtime}'}}}}}}}}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iceberg", help="instead of the version that mvbuild chooses")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        shutil.copytree(ROOT / "sample_project", project, ignore=shutil.ignore_patterns("target", ".mvbuild"))
        if chosen.iceberg:
            with (project / "mvbuild.yml").open("a", encoding="utf-8") as file:
                file.write(target(chosen.iceberg))
        mvbuild(project, "debug")
        print(mvbuild(project, "run").splitlines()[-1])
        print(mvbuild(project, "run").splitlines()[-1])
        results = json.loads((project / "target" / "run_results.json").read_text(encoding="utf-8"))["results"]
        again = [r["unique_id"] for r in results if r["adapter_response"].get("action") not in ("reuse", None)]
        catalog = load_catalog(
            "lake", type="sql", uri=f"sqlite:///{project}/.mvbuild/catalog.db", warehouse=f"file://{project}/.mvbuild/warehouse"
        )
        found = {name: sorted(arrow_bag(catalog.load_table(f"mart.{name}__storage").scan().to_arrow()).elements()) for name in MVS}
        rows = "".join(f"{name} {len(of)} {sha256(''.join(of).encode()).hexdigest()}\n" for name, of in found.items())
        same = rows == (ROOT / "tests" / "golden" / "sample-project-rows.txt").read_text(encoding="utf-8")
        print("rows are those of tests/golden/sample-project-rows.txt" if same else f"other rows:\n{rows}")
        print(f"refreshed again: {again or 'nothing'}")
    return 0 if same and not again else 1


if __name__ == "__main__":
    sys.exit(main())
