"""A file that has not changed since an earlier command is not read again, and one that has changed is always noticed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mvbuild.api import compilation, sessions
from mvbuild.cli.main import main
from mvbuild.graph import file_facts, graph_cache
from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph
from mvbuild.project import files
from mvbuild.project.files import FilesChanged
from mvbuild.project.load import Opened

FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/first.sql": "SELECT id FROM raw.orders\n",
    "models/second.sql": "SELECT id, '{{ env_var(\"PLACE\", \"here\") }}' AS place FROM {{ ref('first') }}\n",
    "models/shop.yml": "models: [{name: first, columns: [{name: id, data_tests: [unique]}]}]\n",
    "macros/one.sql": "{% macro one() %}1{% endmacro %}\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that was compiled once, a long time after its files were written."""
    monkeypatch.setattr(file_facts, "AT_REST", 0)
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "target").mkdir()
    compiled(tmp_path)
    return tmp_path


def compiled(root: Path, **env: str) -> Graph:
    return compilation.compile(root, env=env, is_kept=False)


def sql(graph: Graph, name: str) -> str:
    return definition(graph, graph.model(f"model.shop.{name}")).text


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read."""
    found: list[str] = []
    real = files.read_bytes

    def read(file: str | Path, path: str, largest: int) -> bytes:
        found.append(path)
        return real(file, path, largest)

    monkeypatch.setattr(files, "read_bytes", read)
    return found


def test_a_model_is_read_when_its_text_is_needed(root: Path, opened: list[str]):
    graph = compiled(root)
    assert graph.nodes.keys() == {"table.lake.raw.orders", "model.shop.first", "model.shop.second"}
    assert not any(path.startswith("models/") for path in opened)
    assert "raw.orders" in sql(graph, "first")
    assert sorted(path for path in opened if path.startswith("models/")) == ["models/first.sql", "models/second.sql", "models/shop.yml"]


def test_each_command_reads_files_that_were_just_written(root: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_facts, "AT_REST", 3_600_000_000_000)
    (root / "models" / "first.sql").write_text("SELECT id FROM raw.events\n")
    for _ in range(2):
        opened.clear()
        compiled(root)
        assert "models/second.sql" in opened


@pytest.mark.parametrize("path", [path for path in FILES if path != "mvbuild.yml"])
def test_an_edit_that_leaves_size_and_time_is_noticed(root: Path, opened: list[str], path: str):
    file = root / path
    before = file.stat()
    text = file.read_text()
    file.write_text(text[:-1] + " ")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    compiled(root)
    assert path in opened


def test_a_file_that_another_one_replaced_is_noticed(root: Path):
    other = root / "other.sql"
    other.write_text("SELECT id FROM raw.events\n")
    compiled(root)
    other.replace(root / "models" / "first.sql")
    assert "raw.events" in sql(compiled(root), "first")


def test_variables_of_the_environment_count_without_reading(root: Path, opened: list[str]):
    assert "'here'" in sql(compiled(root), "second")
    assert "'there'" in sql(compiled(root, PLACE="there"), "second")
    opened.clear()
    keys = {graph.outlined.key for graph in (compiled(root), compiled(root, PLACE="there"), compiled(root, OTHER="x")) if graph.outlined}
    assert len(keys) == 2
    assert "models/second.sql" not in opened


@pytest.mark.parametrize("is_kept", [True, False])
def test_edits_during_a_command_change_nothing_for_it(root: Path, is_kept: bool):
    graph = compilation.compile(root, env={}, is_kept=is_kept)
    first = None if is_kept else sql(graph, "first")
    for name in ("first", "second"):
        (root / "models" / f"{name}.sql").write_text("SELECT 0 AS id\n")
    assert "raw.orders" in sql(graph, "first")
    assert first in (None, sql(graph, "first"))
    assert "'here'" in sql(graph, "second")
    assert sql(compiled(root), "second") == "SELECT 0 AS id"


@pytest.mark.parametrize("is_deleted", [True, False])
@pytest.mark.parametrize("path", ["models/first.sql", "models/second.sql", "models/shop.yml"])
def test_an_edit_before_files_are_read_stops_the_command(root: Path, path: str, is_deleted: bool):
    graph, before = compiled(root), sql(compiled(root), "first")
    file = root / path
    text = file.read_text()
    file.unlink() if is_deleted else file.write_text(f"{text} ")
    for _ in range(2):
        for ask in (lambda: sql(graph, "first"), lambda: graph.tests[0].test, lambda: graph.model("model.shop.first").model.properties):
            with pytest.raises(FilesChanged, match=f"{path} was changed while mvbuild was reading the project"):
                ask()
    file.write_text(text)
    assert sql(compiled(root), "first") == before


@pytest.mark.parametrize("path", [path for path in FILES if path != "mvbuild.yml"])
def test_a_graph_that_is_kept_is_compiled_again_if_a_file_changes_meanwhile(root: Path, path: str, monkeypatch: pytest.MonkeyPatch):
    real = file_facts.facts_of

    def edited_then(opened: Opened) -> object:
        found = real(opened)
        with (root / path).open("a") as file:
            file.write("\n")
        return found

    monkeypatch.setattr(graph_cache, "facts_of", edited_then)
    graph = compilation.compile(root, env={})
    assert "raw.orders" in sql(graph, "first")
    assert [test.name for test in graph.tests] == ["unique_first_id"]
    assert [str(test.test.column) for test in graph.tests] == ["id"]


def test_a_wrong_hash_is_forgotten(root: Path, monkeypatch: pytest.MonkeyPatch):
    """Whatever made it wrong: the next command reads the files."""
    file = root / "models" / "first.sql"
    monkeypatch.setattr(file_facts, "_seen", lambda *_: ("the same for ever", 0))
    compiled(root)
    file.write_text("SELECT id FROM raw.events\n")
    graph = compiled(root)
    with pytest.raises(FilesChanged):
        sql(graph, "first")
    assert "raw.events" in sql(compiled(root), "first")


def test_a_version_of_a_model_reads_nothing(root: Path, opened: list[str]):
    (root / "models" / "shop.yml").write_text("models: [{name: first, versions: [{v: 1, defined_in: first}]}]\n")
    (root / "models" / "second.sql").write_text("SELECT id FROM {{ ref('first', v=1) }}\n")
    compiled(root)
    opened.clear()
    compiled(root)
    assert not any(path.startswith("models/") for path in opened)


def test_an_engine_starts_after_all_files_were_read(root: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch):
    class Started(Exception):
        pass

    def start(*_: object, **__: object) -> None:
        assert "models/second.sql" in opened
        raise Started

    monkeypatch.setattr(sessions, "start_engine", start)
    with pytest.raises(Started):
        sessions.started_engine(compiled(root), None, sessions.ignore_event)


@pytest.mark.parametrize("text", ["{}", "[]", "null", '{"seen": 1}'])
def test_a_row_that_another_program_wrote_is_no_row(root: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setattr("mvbuild.cache.store.Table.get", lambda table, _: text if table.name == "contents" else None)
    assert "raw.orders" in sql(compiled(root), "first")
    assert "models/second.sql" in opened


def listed(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code and output of `mvbuild ls`."""
    asked = ["--output", "json", "--output-keys", "name tags", "--select", "first"]
    monkeypatch.setattr(sys, "argv", ["mvbuild", "ls", "--project-dir", str(root), *asked])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return int(str(ended.value.code)), out, err


def test_a_command_begins_once_more(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
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
