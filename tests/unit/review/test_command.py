"""`mvbuild plan --against` and the options of selection, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mvbuild.cli.main import group
from unit.review.repositories import git, repository
from unit.worlds import write_project

FILES = {"mvbuild.yml": "name: shop\n", "models/a.sql": "SELECT 1 AS a, 2 AS b", "models/b.sql": "SELECT a FROM {{ ref('a') }}"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = repository(tmp_path, FILES)
    git(root, "checkout", "-q", "-b", "feature")
    return root


def call(root: Path, *words: str) -> int:
    code = group.main([*words, "--project-dir", str(root)], standalone_mode=False)
    return code if isinstance(code, int) else 0


def test_exit_codes(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ("plan", "--against", "main")
    assert call(shop, *plan, "--detailed-exitcode") == 0
    write_project(shop, {"models/a.sql": "select 1 as a, 2 as b -- c"})
    assert call(shop, *plan, "--detailed-exitcode") == 0
    write_project(shop, {"models/a.sql": "SELECT 1 AS a"})
    assert call(shop, *plan) == 0
    assert call(shop, *plan, "--detailed-exitcode") == 3
    assert call(shop, "plan", "--against", "mian") == 2
    assert call(shop, "plan", "--output", "markdown") == 2
    assert call(shop, *plan, "--full-refresh") == 2
    assert "Did you mean 'main'?" in capsys.readouterr().err


def test_a_review_of_a_project_with_wrong_columns_is_shown_and_fails(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = "version: 1\ntables:\n  raw.t:\n    columns: {id: bigint}\n"
    write_project(shop, {"schemas.lock": lock, "models/a.sql": "SELECT 1 AS a", "models/c.sql": "SELECT nope FROM raw.t"})
    assert call(shop, "plan", "--against", "main", "--detailed-exitcode") == 2
    shown = capsys.readouterr()
    assert shown.err.count("error[unknown-column]") == 1
    assert "column 'b' removed" in shown.out


def test_outputs(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_project(shop, {"models/a.sql": "SELECT 1 AS a"})
    assert call(shop, "plan", "--against", "main", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out)["changes"][0]["class"] == "breaking"
    assert call(shop, "plan", "--against", "main", "--output", "markdown") == 0
    assert capsys.readouterr().out.startswith("<!-- mvbuild plan -->\n\n### Plan against `main`")
    assert call(shop, "plan", "--against", "main") == 0
    assert capsys.readouterr().out.startswith("breaking  a  (models/a.sql)\n    column 'b' removed\n")


def listed(shop: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert call(shop, "ls", "--output", "name", *words) == 0
    return capsys.readouterr().out.split()


def test_selection_options(shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(shop, {"models/a.sql": "SELECT 1 AS a", "selectors.yml": "selectors: [{name: one, definition: b}]\n"})
    assert listed(shop, capsys, "--select", "state:modified", "--state", "main") == ["a"]
    assert listed(shop, capsys, "--select", "git:main") == ["a"]
    assert listed(shop, capsys, "--selector", "one") == ["b"]
    assert call(shop, "ls", "--selector", "one", "--select", "a") == 2
    assert call(shop, "ls", "--select", "stale:*") == 2
    capsys.readouterr()
    monkeypatch.setenv("DBT_STATE", "main")
    assert listed(shop, capsys, "--select", "state:modified") == ["a"]
