"""An environment without PySpark, such as mvbuild-core's: what it can do, and what it says where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unit.worlds import write_project

COMPILER = Path(__file__).resolve().parents[3] / "compiler"
WITHOUT = """
import sys
sys.modules["pyspark"] = None  # as if it were not installed
from mvbuild.cli.main import main
main()
"""
FILES = {"mvbuild.yml": "name: shop\n", "models/names.sql": "SELECT 1 AS id\n"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path, FILES)


def called(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments, "--project-dir", str(project)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(COMPILER)},
    )


@pytest.mark.parametrize("command", ["compile", "ls", "lint", "plan", "status"])
def test_commands_that_refresh_nothing_work(command: str, project: Path) -> None:
    done = called(project, command)
    assert done.returncode == 0, done
    assert "PySpark" not in done.stdout + done.stderr


def test_a_refresh_says_what_is_missing_and_how_to_install_it(project: Path) -> None:
    done = called(project, "run")
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "PySpark is not installed, and this command needs it." in said
    assert "pip install 'pyspark>=3.5,<4.2'" in said
    assert "Traceback" not in said


def test_debug_says_so_too(project: Path) -> None:
    done = called(project, "debug")
    assert done.returncode == 1
    assert "PySpark is not installed" in done.stdout
