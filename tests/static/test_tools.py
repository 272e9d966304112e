"""The tree -> nothing to say: lint, format and layers are part of the test command, and types, which take longer, of the proofs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = {
    "ruff check": [sys.executable, "-m", "ruff", "check", "."],
    "ruff format": [sys.executable, "-m", "ruff", "format", "--check", "."],
    "import-linter": [str(Path(sys.executable).with_name("lint-imports"))],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_has_nothing_to_say(tool: str) -> None:
    assert_quiet(TOOLS[tool])


@pytest.mark.proof
def test_types() -> None:
    assert_quiet([sys.executable, "-m", "mypy"])


def assert_quiet(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
