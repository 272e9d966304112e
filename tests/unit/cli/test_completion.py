"""What the shells complete."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from mvbuild.cli.main import COMMANDS, group
from unit.cli.bad_input import call
from unit.imports import COMPILER, imported
from unit.worlds import write_project

FILES = {
    "mvbuild.yml": "name: shop\ntarget: dev\ntargets: {dev: {}, production: {threads: 2}}\nmodels: {shop: {marts: {+tags: [nightly]}}}\n",
    "selectors.yml": "selectors: [{name: every_night, definition: 'tag:nightly'}]\n",
    "seeds/orders.csv": "id\n1\n",
    "models/clean.sql": "SELECT id FROM {{ ref('orders') }}\n",
    "models/marts/daily.sql": "SELECT {{ broken",
    "models/sources.yml": "sources: [{name: crm, tags: [weekly], tables: [{name: people}]}]\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(write_project(tmp_path, FILES))
    return tmp_path


def proposed(*words: str) -> list[str]:
    *before, incomplete = words
    return [item.value for item in ShellComplete(group, {}, "mvbuild", "_MVBUILD_COMPLETE").get_completions(before, incomplete)]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("pl",), ["plan"]),
        (("run", "--sel"), ["--select", "--selector"]),
        (("nothing", "x"), []),
        (("run", "--select", "da"), ["daily"]),
        (("run", "--select", "clean", "da"), ["daily"]),
        (("run", "--exclude", "o"), ["orders"]),
        (("run", "--select", "+da"), ["+daily"]),
        (("run", "--select", "@clean,2+or"), ["@clean,2+orders"]),
        (("run", "--select", "ta"), ["tag:"]),
        (("run", "--select", "tag:"), ["tag:nightly", "tag:weekly"]),
        (("ls", "--select", "+source:crm"), ["+source:crm", "+source:crm.people"]),
        (("ls", "--select", "path:models/m"), ["path:models/marts", "path:models/marts/daily.sql"]),
        (("ls", "--selector", ""), ["every_night"]),
        (("run", "--target", ""), ["dev", "production"]),
        (("run", "-t", "p"), ["production"]),
        (("explain", "d"), ["daily"]),
        (("verify", "clean", "d"), ["daily"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("lint", "--output", "s"), ["sarif"]),
    ],
)
def test_words(root: Path, words: tuple[str, ...], wanted: list[str]) -> None:
    assert proposed(*words) == wanted


def test_commands_are_all_there(root: Path) -> None:
    assert proposed("") == sorted(COMMANDS)


def test_a_project_elsewhere_and_none_at_all(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert proposed("run", "--project-dir", "..", "--select", "da") == ["daily"]
    for words in (("run", "--select", "da"), ("run", "--select", "tag:"), ("run", "--target", ""), ("ls", "--selector", "")):
        assert proposed(*words) == []


def test_what_is_broken_completes_nothing(root: Path) -> None:
    (root / "mvbuild.yml").write_text("name: [")
    assert proposed("run", "--target", "") == proposed("run", "--select", "da") == proposed("run", "--select", "tag:") == []


@pytest.mark.parametrize(
    ("shell", "part"), [("bash", "complete -o nosort -F"), ("zsh", "#compdef mvbuild"), ("fish", "complete --no-files")]
)
def test_scripts(root: Path, shell: str, part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(f"completion {shell}", root, {}, monkeypatch, capsys)
    assert (done.exit, done.stderr, part in done.stdout, "_MVBUILD_COMPLETE" in done.stdout) == (0, "", True, True)


def test_bash_itself(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin/mvbuild"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mvbuild.cli.main "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    script = """
    eval "$(mvbuild completion bash)"
    COMP_WORDS=(mvbuild run --select tag:n); COMP_CWORD=3
    _mvbuild_completion mvbuild
    echo "${COMPREPLY[@]}" "[$COMP_WORDBREAKS]"
    """
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(COMPILER)}
    done = subprocess.run(["bash", "-c", script], cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tag:nightly [")
    assert ":" not in done.stdout.partition("[")[2]


def test_the_script_imports_nothing_that_is_slow() -> None:
    assert imported("completion", "bash").isdisjoint(("sqlglot", "jinja2", "yaml", "pyspark", "pyiceberg"))
