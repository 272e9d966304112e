"""`mvbuild init --template team`: its project is built as its CI does it, and in a shared catalog as production."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.proof


def mvbuild(root: Path, *arguments: str, code: int = 0, **env: str) -> str:
    named = {name: value for name, value in os.environ.items() if not name.startswith(("MVBUILD_", "DBT_"))}
    named["MVBUILD_KEEP_WARM"] = "10m"  # the commands of a test share one Spark
    command = [sys.executable, "-m", "mvbuild.cli.main", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env={**named, **env})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_team_template_is_built_as_in_ci(tmp_path: Path) -> None:
    mvbuild(tmp_path, "init", "shop", "--template", "team")
    root = tmp_path / "shop"
    steps = yaml.safe_load((root / ".github/workflows/mvbuild.yml").read_text(encoding="utf-8"))["jobs"]["build"]["steps"]
    commands = [step["run"].split()[1:] for step in steps if str(step.get("run")).startswith("mvbuild ")]
    assert commands == [["deps"], ["lint"], ["test", "--select", "test_type:unit"], ["build"]]
    said = {command[0]: mvbuild(root, *command, MVBUILD_TARGET="ci", CI_RUN="7") for command in commands}
    assert "PASS=2" in said["test"]
    assert "ERROR=0" in said["build"]
    results = json.loads((root / "target/run_results.json").read_text(encoding="utf-8"))["results"]
    assert {one["status"] for one in results} <= {"success", "pass"}
    # The second build of the same run finds nothing to do.
    assert "ERROR=0" in mvbuild(root, "run", MVBUILD_TARGET="ci", CI_RUN="7")

    shared = {"CATALOG_TYPE": "sql", "CATALOG_URI": f"sqlite:///{tmp_path}/catalog.db", "CATALOG_WAREHOUSE": str(tmp_path / "warehouse")}
    assert "ERROR=0" in mvbuild(root, "build", "--target", "prod", **shared)
    rows = mvbuild(root, "show", "monthly_revenue", "--target", "prod", "--output", "json", **shared)
    months = [row["month"] for row in json.loads(rows)["rows"]] if rows.startswith("{") else rows
    assert "2026-01-01" in str(months)
    mvbuild(root, "engine", "stop")


def test_each_target_has_namespaces_of_its_own(tmp_path: Path) -> None:
    mvbuild(tmp_path, "init", "shop", "--template", "team")
    root = tmp_path / "shop"
    mvbuild(root, "deps")

    def names(target: str) -> set[str]:
        env = {"USER": "Ada", "CI_RUN": "7", "CATALOG_URI": "sqlite://", "CATALOG_WAREHOUSE": "w"}
        lines = mvbuild(
            root, "ls", "--target", target, "--resource-type", "model", "--output", "json", "--output-keys", "relation_name", **env
        )
        return {json.loads(line)["relation_name"] for line in lines.splitlines()}

    assert names("dev") == {"lake.dev_ada_staging.clean_orders", "lake.dev_ada_mart.daily_revenue", "lake.dev_ada_mart.monthly_revenue"}
    assert names("ci") == {"lake.ci_7_staging.clean_orders", "lake.ci_7_mart.daily_revenue", "lake.ci_7_mart.monthly_revenue"}
    assert names("prod") == {"lake.staging.clean_orders", "lake.mart.daily_revenue", "lake.mart.monthly_revenue"}


FAULTS = (
    ("models/marts/daily_revenue.sql", "= 'completed'", "<> 'none'"),
    ("models/staging/clean_orders.sql", ">= date", "> date"),
    ("packages/money/macros/cents.sql", "round({{ column }} * {{ var('cents_of') }})", "{{ column }}"),
)


def test_each_planted_fault_is_found_by_a_unit_test(tmp_path: Path) -> None:
    mvbuild(tmp_path, "init", "shop", "--template", "team")
    root = tmp_path / "shop"
    for file, old, new in FAULTS:
        path = root / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        mvbuild(root, "deps")
        assert " of 2 FAIL " in mvbuild(root, "test", "--target", "ci", "--select", "test_type:unit", code=1), file
        path.write_text(text, encoding="utf-8")
    mvbuild(root, "engine", "stop")
