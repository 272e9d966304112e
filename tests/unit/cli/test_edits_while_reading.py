"""Files are saved while a command reads the project: the command begins once more, and sees them as they are now."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mvbuild.api import compilation
from mvbuild.cli.main import main
from mvbuild.graph import file_facts, graph_cache
from mvbuild.project.files import FilesChanged
from mvbuild.project.load import Opened

FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/first.sql": "SELECT id FROM raw.orders\n",
    "models/shop.yml": "models: [{name: first, config: {tags: [daily]}}]\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(file_facts, "AT_REST", 0)
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "target").mkdir()
    compilation.compile(tmp_path)
    return tmp_path


def listed(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    monkeypatch.setattr(
        sys, "argv", ["mvbuild", "ls", "--project-dir", str(root), "--output", "json", "--output-keys", "name tags", "-s", "first"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return int(str(ended.value.code)), out, err


def test_the_command_begins_once_more(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    real, calls = file_facts.facts_of, []

    def edited_then(opened: Opened) -> object:
        found = real(opened)
        calls.append(found)
        if len(calls) == 1:
            (root / "models" / "shop.yml").write_text("models: [{name: first, config: {tags: [hourly]}}]\n")
        return found

    monkeypatch.setattr(graph_cache, "facts_of", edited_then)
    code, out, err = listed(root, monkeypatch, capsys)
    assert (code, json.loads(out), err) == (0, {"name": "first", "tags": ["hourly"]}, "")
    assert len(calls) == 2


def test_a_file_that_changes_each_time_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def always(*_: object, **__: object) -> None:
        raise FilesChanged("models/shop.yml")

    monkeypatch.setattr(compilation, "compile", always)
    code, out, err = listed(root, monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert "error[unreadable-file]: models/shop.yml was changed while mvbuild was reading the project" in err
    assert "Run the command again." in err
