"""An MV whose metadata cannot be read, in every command: the reason is reported, the others continue, and the entry can be dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner, Result

from mvbuild.api import sessions
from mvbuild.cli.main import group
from mvbuild.formats.metadata_file import METADATA_LOCATION
from mvbuild.ports.states import TableState, ViewState
from unit.worlds import PROJECT, Shop, name, shop

FILE = {**PROJECT, "mvbuild.yml": "name: shop\nmodels: {+storage: {format: metadata-file}}\n"}


def call(of: Shop, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "--project-dir", str(of.root)], standalone_mode=False)


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """`daily` has `{}` for its metadata file."""
    made = built(tmp_path, monkeypatch, FILE)
    view = made.catalog.load([name("main.daily")])[name("main.daily")]
    assert isinstance(view, ViewState)
    damage(made, view.properties[METADATA_LOCATION])
    return made


def built(root: Path, monkeypatch: pytest.MonkeyPatch, project: dict[str, str]) -> Shop:
    made = shop(root, project)
    made.run()
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    return made


def damage(made: Shop, location: str) -> None:
    made.catalog._files.write(location, b"{}")


@pytest.mark.parametrize(
    "arguments", [("history", "daily"), ("rollback", "daily", "--to", "1"), ("show", "daily"), ("show", "daily", "--as-of", "1")]
)
def test_what_is_asked_of_it(broken: Shop, arguments: tuple[str, ...]) -> None:
    done = call(broken, *arguments)
    assert done.return_value == 2
    assert "unreadable-metadata" in done.stderr
    assert ".mv.metadata.json (format-version" in done.stderr
    others = call(broken, "history", "monthly")
    assert others.return_value == 0
    assert "refresh 1" in unstyle(others.stdout)


def test_maintain_does_the_others(broken: Shop) -> None:
    done = call(broken, "maintain")
    assert done.return_value == 1
    assert "unreadable-metadata" in done.stderr
    assert done.stdout.splitlines()[:2] == ["lake.main.daily: failed", "lake.main.monthly: nothing to do"]


def test_migrate_does_the_others(broken: Shop) -> None:
    done = call(broken, "migrate", "--to", "table-properties")
    assert done.return_value == 1
    assert "unreadable-metadata" in done.stderr
    assert isinstance(broken.table("main.monthly__storage"), TableState)


def test_status_and_run_name_it(broken: Shop) -> None:
    lines = [unstyle(line) for line in call(broken, "status").stdout.splitlines()]
    assert lines[0].split("  ")[-1] == "record unreadable"
    assert "metadata-unreadable" in lines[1]
    assert any("upstream-unknown" in line for line in lines)
    assert [o["storage_table"] for o in json.loads(call(broken, "status", "--output", "json").stdout)] == [None, None]
    steps = {s.node.rpartition(".")[2]: s.diagnostic for s in broken.plan().steps}
    assert steps["orders_clean"] is None
    assert {steps[n].code for n in ("daily", "monthly")} == {"unreadable-metadata"}  # type: ignore[union-attr]
    assert steps["monthly"].message.startswith("'monthly' reads lake.main.daily: ")  # type: ignore[union-attr]
    assert call(broken, "run").return_value == 1


def test_its_entry_can_be_dropped_and_made_again(broken: Shop) -> None:
    done = call(broken, "drop", "daily", "--yes")
    assert (done.return_value, done.stdout) == (0, "dropped lake.main.daily (0 files)\n")
    assert "its files are unknown and are kept" in done.stderr
    assert name("main.daily") not in broken.catalog.load([name("main.daily")])
    assert broken.statuses() == {"orders_clean": "reused", "daily": "success", "monthly": "success"}


def test_what_is_no_models_is_not_dropped(broken: Shop) -> None:
    for model in ("daily", "monthly"):
        (broken.root / f"models/{model}.sql").unlink()
    done = call(broken, "drop", "main.daily", "--yes")
    assert done.return_value == 2
    assert "unreadable-metadata" in done.stderr
    assert name("main.daily") in broken.catalog.load([name("main.daily")])


@pytest.mark.parametrize("part", ["view", "storage"])
def test_drop_of_one_with_a_storage_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    made = built(tmp_path, monkeypatch, PROJECT)
    identifiers = [name("main.daily"), name("main.daily__storage")]
    found = made.catalog.load(identifiers)
    damage(made, found[identifiers[part == "storage"]].metadata_location)
    assert "record unreadable" in call(made, "status").stdout
    assert [o["storage_table"] for o in json.loads(call(made, "status", "--output", "json").stdout)][1] == "lake.main.monthly__storage"
    assert call(made, "history", "daily").return_value == 2
    done = call(made, "drop", "daily", "--yes")
    assert done.return_value == 0, done.stderr
    assert f"only the catalog entry of {identifiers[part == 'storage']}" in done.stderr
    assert made.catalog.load(identifiers) == {}
    assert made.statuses() == {"orders_clean": "reused", "daily": "success", "monthly": "success"}
