"""A run that is interrupted: its results say what had ended, and `retry` runs the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mvbuild import api
from mvbuild.api import runs
from mvbuild.refresh.result import Event, Finished
from unit.cli.bad_input import call
from unit.worlds import write_project

FILES = {"mvbuild.yml": "name: shop\n", **{f"seeds/{name}.csv": "id\n1\n" for name in ("a", "b", "c")}}
"""Seeds are loaded without Spark."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, FILES)


def statuses(root: Path) -> Mapping[str, str]:
    results = json.loads((root / "target/run_results.json").read_text())["results"]
    return {one["unique_id"].rpartition(".")[2]: one["status"] for one in results}


def interrupt(root: Path, *, atomic: bool = False) -> None:
    def stop(event: Event) -> None:
        if isinstance(event, Finished):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.run(root, threads=1, on_event=stop, atomic=atomic)


def test_what_had_ended_and_what_had_not(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    interrupt(root)
    assert statuses(root) == {"a": "success", "b": "skipped", "c": "skipped"}
    again = call("retry", root, {}, monkeypatch, capsys)
    assert again.exit == 0
    assert statuses(root) == {"b": "success", "c": "success"}


def test_nothing_of_an_atomic_run_was_published(root: Path) -> None:
    interrupt(root, atomic=True)
    assert set(statuses(root).values()) == {"skipped"}
    assert {one.node: one.status for one in api.run(root).results} == {f"seed.shop.{name}": "success" for name in ("a", "b", "c")}


def test_the_start_of_spark(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    assert api.run(root).ok
    (root / "seeds/a.csv").write_text("id\n2\n")
    monkeypatch.setattr(runs, "_started", stop)
    with pytest.raises(KeyboardInterrupt):
        api.run(root)
    assert statuses(root)["a"] == "skipped"
    around = json.loads((root / "target/run_results.json").read_text())
    assert not around["metadata"]["generated_at"].startswith("1970")


def test_a_process_that_is_killed(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its results are those that it had before the first step: `retry` does not take up what an earlier run left."""

    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    assert api.run(root).ok
    (root / "seeds/a.csv").write_text("id\n2\n")
    with monkeypatch.context() as patch:
        patch.setattr(runs, "_started", kill)
        with pytest.raises(Killed):
            api.run(root)
    assert statuses(root)["a"] == "skipped"
    assert call("retry", root, {}, monkeypatch, capsys).exit == 0
    assert statuses(root)["a"] == "success"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", ["--version", "--help", "plan", "--log-format json run", "run", "ls"])
def test_a_disk_that_is_full(root: Path, command: str) -> None:
    with Path("/dev/full").open("w") as full:
        arguments = [sys.executable, "-m", "mvbuild.cli.main", *command.split()]
        done = subprocess.run(arguments, cwd=root, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error[unwritable-target]: Cannot write the output: No space left on device")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["plan", "run"])
def test_no_stderr(root: Path, command: str) -> None:
    arguments = f'exec "{sys.executable}" -m mvbuild.cli.main {command} 2>&-'
    done = subprocess.run(arguments, shell=True, cwd=root, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    assert "seed" in done.stdout
