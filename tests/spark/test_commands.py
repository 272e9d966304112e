"""The commands beside `run`, as a user types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import run

import pytest

from spark.conftest import Lake
from spark.projects import Project, order
from spark.shop import MORE, MakeProject, shop

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def built(project: MakeProject, lake: Lake) -> Project:
    made = shop(project, MORE).over(lake.remote)
    assert made.run().ok
    return made


def out(of: Project, *arguments: str, code: int = 0) -> str:
    done = of.command(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_status_and_plan_as_json_before_and_after_a_change(built: Project) -> None:
    status = json.loads(out(built, "status", "--output", "json"))
    assert "stale" not in json.dumps(status)
    assert not [s for s in json.loads(out(built, "plan", "--output", "json"))["steps"] if s["action"] != "reuse"]
    before = built.table("raw.orders").metadata.current_snapshot_id
    built.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    after = built.table("raw.orders").metadata.current_snapshot_id
    steps = {s["unique_id"].rpartition(".")[2]: s for s in json.loads(out(built, "plan", "--output", "json"))["steps"]}
    assert {n: s["action"] for n, s in steps.items()} == {
        "active_customers": "reuse",
        "countries": "reuse",
        "revenue_daily": "refresh",
        "revenue_total": "refresh",
    }
    (reason,) = steps["revenue_daily"]["reasons"]
    assert (reason["recorded"], reason["current"]) == (before, after)
    assert str(after) in out(built, "status", "--output", "json")
    out(built, "run", "--dry-run")
    assert built.codes("revenue_daily") == ["base-table-changed"]
    assert built.run().ok


def test_show_reads_storage_while_fresh_and_the_query_otherwise(built: Project) -> None:
    built.run()
    shown = built.command("show", "revenue_daily")
    assert shown.returncode == 0, shown.stderr
    assert "DE" in shown.stdout
    assert "2026-01-05" in shown.stdout
    assert "storage" in shown.stdout + shown.stderr
    built.append("raw.orders", order(5, 2, "2029-12-31", "7.00"))
    shown = built.command("show", "revenue_daily", "--limit", "100")
    assert shown.returncode == 0, shown.stderr
    assert "2029-12-31" in shown.stdout
    assert "query" in shown.stdout + shown.stderr
    assert built.command("show", "revenue_dialy").returncode == 2


def test_test_reads_what_is_published(built: Project) -> None:
    built.run()
    assert "PASS" in out(built, "test")
    built.sql("INSERT INTO lake.mart.revenue_daily__storage VALUES (NULL, 'XX', 1, 1)")
    assert "FAIL" in out(built, "test", code=1)
    built.run()
    built.assert_tidy()


def test_ls_compile_and_clean_need_no_catalog(project: MakeProject) -> None:
    made = shop(project, MORE)
    assert {line.rpartition(".")[2] for line in out(made, "ls", "--resource-type", "model").split()} == {
        "active_customers",
        "countries",
        "revenue_daily",
        "revenue_total",
    }
    compiled = out(made, "compile", "--select", "revenue_daily")
    assert "raw.orders" in compiled
    assert "{{" not in compiled
    assert (made.root / "target" / "manifest.json").exists()
    kept = sorted(p for p in (made.root / ".mvbuild").rglob("*") if p.is_file())
    out(made, "clean")
    assert not (made.root / "target").exists()
    assert sorted(p for p in (made.root / ".mvbuild").rglob("*") if p.is_file()) == kept
    for path in (".mvbuild", ".", "models"):
        assert made.command("clean", "--target-path", str(made.root / path)).returncode == 2
    assert sorted(p for p in (made.root / ".mvbuild").rglob("*") if p.is_file()) == kept
    assert (made.root / "models").exists()


def test_debug_says_that_all_is_well(built: Project) -> None:
    assert "All checks passed" in out(built, "debug", "--target", "own")


def test_an_initialised_project_runs_at_once(tmp_path: Path) -> None:
    def mvbuild(*arguments: str) -> str:
        done = run([sys.executable, "-m", "mvbuild.cli.main", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    mvbuild("init", "fresh")
    assert "Completed successfully" in mvbuild("run", "--project-dir", "fresh")
    again = mvbuild("run", "--project-dir", "fresh")
    assert "ERROR=0" in again
    assert "PASS=0" in again
