"""The tree -> nothing to say: typing, lint, format and layers are part of the test command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = {
    "ruff check": [sys.executable, "-m", "ruff", "check", "."],
    "ruff format": [sys.executable, "-m", "ruff", "format", "--check", "."],
    "mypy": [sys.executable, "-m", "mypy"],
    "import-linter": [str(Path(sys.executable).with_name("lint-imports"))],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_has_nothing_to_say(tool: str) -> None:
    done = subprocess.run(TOOLS[tool], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
