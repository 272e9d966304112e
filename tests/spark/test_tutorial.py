"""docs/tutorial.md -> its files and commands, one after another, as a newcomer would: each works, and prints what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.proof

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
STEP = re.compile(r"(?P<before>[^\n]*(?:\n[^\n]+)*)\n\n```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
SAVED = re.compile(r"[Ss]ave (?:it|this) as\s+`(?P<path>[\w/.]+)`")


def without_numbers(text: str) -> str:
    """Text in which times, ids and widths are equal between two runs."""
    return re.sub(r"\s+", " ", re.sub(r"\d+", "N", re.sub(r"[-.]{3,}", "...", text))).strip()


def test_every_step_of_the_tutorial(tmp_path: Path) -> None:
    # As a reader who keeps an engine warm: the commands share one Spark.
    environment = {**os.environ, "MVBUILD_KEEP_WARM": "10m", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    folder, printed = tmp_path, ""
    for step in STEP.finditer(PAGE):
        if step["kind"] == "text":
            for line in step["text"].strip().splitlines():
                assert without_numbers(line) in without_numbers(printed), f"The page shows {line!r}, but this was printed:\n{printed}"
        elif step["kind"] == "sh":
            done = subprocess.run(["bash", "-ec", step["text"]], cwd=folder, env=environment, capture_output=True, text=True)
            printed = done.stdout + done.stderr
            assert done.returncode == 0, f"{step['text']}\n{printed}"
            folder = tmp_path / "shop"
        else:
            saved = SAVED.search(step["before"])
            assert saved, f"The page does not say where to save:\n{step['text']}"
            (folder / saved["path"]).write_text(step["text"], encoding="utf-8")
    assert (tmp_path / "shop" / "models" / "revenue.yml").exists()
    subprocess.run(["mvbuild", "engine", "stop"], cwd=folder, env=environment, check=True, capture_output=True)
