"""`mvbuild drop`, `maintain`, `run --prune` and the sections of `plan`: exit codes and what is printed, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner, Result

from mvbuild import api
from mvbuild.api import sessions
from mvbuild.cli.main import group
from mvbuild.cli.maintain import line, total
from mvbuild.cli.removed_objects import removed_object, removed_text, rename_object, rename_text
from mvbuild.freshness.observe import observe
from mvbuild.lifecycle.compaction import Compaction
from mvbuild.lifecycle.maintain import Maintained
from mvbuild.lifecycle.removed_models import find_removed
from unit.worlds import PROJECT, Shop, compiled, shop, write_project


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "--project-dir", str(root)], standalone_mode=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/daily.sql": "SELECT 1 AS id\n"})


@pytest.fixture
def built(tmp_path: Path) -> Shop:
    made = shop(tmp_path, PROJECT)
    made.run()
    return made


def test_prune_takes_no_selection(project: Path) -> None:
    done = call(project, "run", "--prune", "--select", "daily")
    assert done.return_value == 2
    assert "cannot be combined with" in done.stderr


def test_drop_wants_a_yes_where_it_cannot_ask(built: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: built.catalog)
    done = call(built.root, "drop", "monthly")
    assert done.return_value == 2
    assert "error[command-line]: Cannot ask for confirmation without a terminal: pass --yes" in done.stderr
    assert "drop --help`." in done.stderr
    done = call(built.root, "drop", "monthly", "--yes")
    assert done.stdout.startswith("dropped lake.main.monthly, lake.main.monthly__storage (")


@pytest.mark.parametrize("yes", [("--yes",), ()])
def test_drop_of_what_is_not_there(project: Path, yes: tuple[str, ...]) -> None:
    done = call(project, "drop", "daily", *yes)
    assert done.return_value == 2
    assert "nothing to drop" in done.stderr


def test_a_plan_counts_what_it_is_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "seeds/a.csv": "id\n1\n",
        "seeds/b.csv": "id\n1\n",
        "models/v.sql": "{{ config(materialized='view') }} SELECT id FROM {{ ref('a') }}\n",
    }
    made = shop(tmp_path, PROJECT | files)
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    total = unstyle(call(made.root, "plan").stdout).splitlines()[-1]
    assert total.startswith("Plan: 2 seeds to load, 2 views to create, 2 to refresh.")


@pytest.mark.parametrize(("known", "help"), [(2, "Choose one that it has: 1, 2."), (0, "List the refreshes with `mvbuild history`.")])
def test_rollback_to_a_refresh_that_it_does_not_have(tmp_path: Path, known: int, help: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = shop(tmp_path, PROJECT)
    for _ in range(known):
        made.run(full_refresh=True)
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    done = call(made.root, "rollback", "daily", "--to", "99")
    assert "error[unknown-refresh]: 'daily' has no refresh 99 in its history\n" in done.stderr
    assert f"help: {help}" in done.stderr


def test_maintain_of_what_was_never_refreshed(project: Path) -> None:
    done = call(project, "maintain")
    assert done.return_value == 0, done.stderr
    assert done.stdout.splitlines() == [
        "lake.main.daily: it was never refreshed",
        "Done: 0 of 1 MV compacted, 0 snapshots expired, 0 files removed.",
    ]


def test_plan_as_json_has_renames_and_removed(project: Path) -> None:
    found = json.loads(call(project, "plan", "--output", "json").stdout)
    assert (found["renames"], found["removed"]) == ([], [])


def test_what_a_removed_model_left(built: Shop) -> None:
    (built.root / "models/monthly.sql").unlink()
    (item,) = find_removed(observe(compiled(built.root), built.catalog, at_ms=0), built.catalog)
    assert unstyle(removed_text(item, prune=False)).splitlines() == [
        "removed  lake.main.monthly",
        "    model.shop.monthly is no longer in the project",
        "    `mvbuild run --prune` drops it",
    ]
    assert unstyle(removed_text(item, prune=True)).startswith("drop  lake.main.monthly")
    assert removed_object(item) == {
        "unique_id": "model.shop.monthly",
        "relation": "lake.main.monthly",
        "storage": "lake.main.monthly__storage",
        "note": "model.shop.monthly is no longer in the project",
        "dependents": [],
    }


def test_a_rename(built: Shop) -> None:
    (built.root / "models/monthly.sql").rename(built.root / "models/per_month.sql")
    built.write({"models/per_month.yml": "models: [{name: per_month, config: {previous_name: monthly}}]\n"})
    (rename,) = built.plan().renames
    assert unstyle(rename_text(rename)).splitlines() == [
        "rename  lake.main.monthly -> lake.main.per_month",
        "    lake.main.monthly__storage -> lake.main.per_month__storage",
    ]
    assert rename_object(rename)["names"][0] == {"from": "lake.main.monthly", "to": "lake.main.per_month"}


def test_what_is_said_of_it_before_the_run_that_renames_it(built: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: built.catalog)
    (built.root / "models/monthly.sql").rename(built.root / "models/per_month.sql")
    built.write({"models/per_month.yml": "models: [{name: per_month, config: {previous_name: monthly}}]\n"})
    _, answers = api.status(built.root)
    found = answers["model.shop.per_month"]
    assert found.is_fresh
    assert found.was_refreshed
    assert [(r.code, r.message) for r in found.reasons] == [("renamed", "it is lake.main.monthly until the next run renames it")]
    assert [past.refresh_id for past in api.history(built.root, "per_month")[1]] == [1]
    built.run()
    assert not api.status(built.root)[1]["model.shop.per_month"].reasons


def test_a_plain_view_that_is_renamed_has_no_freshness(built: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: built.catalog)
    (built.root / "models/orders_clean.sql").rename(built.root / "models/clean.sql")
    for path in (built.root / "models").glob("*.sql"):
        path.write_text(path.read_text().replace("ref('orders_clean')", "ref('clean')"))
    built.write({"models/clean.yml": "models: [{name: clean, config: {previous_name: orders_clean}}]\n"})
    _, answers = api.status(built.root)
    assert "model.shop.clean" not in answers
    assert all(found.is_fresh for found in answers.values())


def test_the_lines_of_maintain(built: Shop) -> None:
    graph = built.world().graph
    one = Maintained(node="model.shop.daily", compaction=Compaction(before=12, after=1), snapshots=3, expired_files=40, orphans=1)
    assert line(graph, one, dry_run=False) == (
        "lake.main.daily: 12 files compacted to 1, 3 snapshots expired (40 files), 1 orphan file removed"
    )
    assert line(graph, one, dry_run=True) == "lake.main.daily: up to 12 files to compact, 3 snapshots to expire, 1 orphan file to remove"
    assert line(graph, Maintained(node="model.shop.daily"), dry_run=False) == "lake.main.daily: nothing to do"
    views = Maintained(node="model.shop.daily", dropped_views=2)
    assert line(graph, views, dry_run=False) == "lake.main.daily: 2 unused auxiliary views dropped"
    assert line(graph, views, dry_run=True) == "lake.main.daily: 2 unused auxiliary views to drop"
    assert total((one,), dry_run=False) == "Done: 1 of 1 MV compacted, 3 snapshots expired, 41 files removed."
    assert total((one,), dry_run=True) == "Dry run: up to 1 of 1 MV to compact, 3 snapshots to expire, 1 orphan file to remove."
