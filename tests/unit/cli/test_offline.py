"""`--offline`, and a machine without a network: what is reported, and that nothing forbidden is tried."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mvbuild.adapters.spark.jars import SQLITE
from mvbuild.adapters.spark.releases import installed_release
from unit.cli.bad_input import Outcome, call, lay_out

RUNTIME = installed_release().runtime

JAVA = '#!/bin/sh\necho "$@" >> "$(dirname "$0")/calls"\necho "java.net.UnknownHostException: repo1.maven.org" >&2\nexit 1\n'
PROJECT = {"models/a.sql": "SELECT 1 AS a\n"}
MIRROR = """
targets:
  dev:
    spark:
      config:
        spark.jars.repositories: http://builds:canary-of-a-mirror@127.0.0.1:9/maven
        spark.driver.extraJavaOptions: -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9
"""


class Machine:
    """A cache of jars, and a Java that has no network."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.cache = root, root / "cache"
        self._patch, self._said = monkeypatch, capsys
        home = root / "java"
        lay_out(root, PROJECT)
        lay_out(home, {"release": 'JAVA_VERSION="17.0.1"\n', "bin/java": JAVA})
        (home / "bin" / "java").chmod(0o755)

    @property
    def calls(self) -> int:
        """How often Java was started."""
        calls = self.root / "java" / "bin" / "calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0

    def keep(self, *names: str) -> None:
        (self.cache / "jars").mkdir(parents=True)
        for name in names:
            (self.cache / "jars" / name).write_text("jar")

    def debug(self, options: str = "", **env: str) -> Outcome:
        # MVBUILD_OFFLINE is set here so that it is put back afterwards: the option keeps it in the environment.
        given = {"MVBUILD_OFFLINE": "", "MVBUILD_CACHE_DIR": str(self.cache), "JAVA_HOME": str(self.root / "java"), **env}
        return call(f"debug {options}", self.root, given, self._patch, self._said)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Machine:
    return Machine(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("options", "env"), [("--offline", {}), ("", {"MVBUILD_OFFLINE": "true"}), ("", {"DBT_OFFLINE": "1"}), ("--debug --offline", {})]
)
def test_what_is_not_kept_is_named_and_not_asked_for(machine: Machine, options: str, env: dict[str, str]) -> None:
    machine.keep(RUNTIME.file_name)
    said = machine.debug(options, **env)
    assert said.exit == 1
    assert f"{SQLITE.coordinate}: not in {machine.cache / 'jars'}, and mvbuild is offline." in said.stdout
    assert RUNTIME.coordinate not in said.stdout
    assert "without --offline" in said.stdout
    assert "resolving jars" not in said.stderr
    assert machine.calls == 0


def test_a_warm_cache_is_enough(machine: Machine) -> None:
    machine.keep(RUNTIME.file_name, SQLITE.file_name)
    said = machine.debug("--offline")
    assert f"{RUNTIME.file_name}, {SQLITE.file_name}" in said.stdout
    assert "not in" not in said.stdout


@pytest.mark.parametrize("env", [{}, {"MVBUILD_OFFLINE": "0"}, {"MVBUILD_OFFLINE": "no"}])
def test_without_the_option_the_network_is_asked_and_missed(machine: Machine, env: dict[str, str]) -> None:
    said = machine.debug(**env)
    assert said.exit == 1
    assert f"{RUNTIME.coordinate}, {SQLITE.coordinate} could not be downloaded: Maven Central cannot be reached." in said.stdout
    assert "spark.jars.repositories" in said.stdout
    assert machine.calls


def test_a_run_says_it_before_it_touches_anything(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    env = {"MVBUILD_OFFLINE": "", "MVBUILD_CACHE_DIR": str(machine.cache), "JAVA_HOME": str(tmp_path / "java")}
    said = call("run --offline", tmp_path, env, monkeypatch, capsys)
    assert said.exit == 2
    assert said.stderr.count("error[jars-unavailable]") == 1
    assert machine.calls == 0
    # Commands without Spark do not mind.
    assert call("plan --offline", tmp_path, env, monkeypatch, capsys).exit == 0


@pytest.mark.proof
def test_the_resolver_itself_without_a_network(machine: Machine) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no Java")
    lay_out(machine.root, {"mvbuild.yml": f"name: shop{MIRROR}"})
    said = machine.debug("--debug", JAVA_HOME=str(Path(os.path.realpath(java)).parents[1]))
    assert said.exit == 1
    assert f"{RUNTIME.coordinate}, {SQLITE.coordinate} could not be downloaded: Maven Central cannot be reached." in said.stdout
    assert "canary" not in said.stdout + said.stderr
    assert [path.name for path in machine.cache.iterdir()] == ["jars"]
