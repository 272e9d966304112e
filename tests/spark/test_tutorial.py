"""docs/tutorial.md -> its files and commands, one after another, as a newcomer would: each works, and prints what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

pytestmark = pytest.mark.proof

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
STEP = re.compile(r"(?P<before>[^\n]*(?:\n[^\n]+)*)\n\n```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
SAVED = re.compile(r"[Ss]ave (?:it|this) as\s+`(?P<path>[\w/.]+)`")


VARIES = {
    "<uuid>": re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
    "<time>": re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?|\b\d\d:\d\d:\d\d\b"),
    "<snapshot>": re.compile(r"\b\d{16,19}\b"),
    "<seconds>": re.compile(r"\b(?:\d+m )?\d+(?:\.\d+)?(?:ms|s)\b"),
    "<size>": re.compile(r"\b\d+(?:\.\d+)? (?:bytes|[kM]B)\b"),
    "---": re.compile(r"-{3,}"),
    "...": re.compile(r"\.{3,}"),
}
"""What differs between two runs of the same commands. Everything else, such as rows and counts, is compared as it is."""


START = re.compile(r"^\d\d:\d\d:\d\d +|^\d\d:\d\d:\d\d$", re.MULTILINE)
"""The time that each line of a run begins with."""


def lines_of(text: str) -> list[str]:
    """Without what differs between two runs, and without the widths of columns, which depend on it."""
    text = START.sub("", text)
    for name, pattern in VARIES.items():
        text = pattern.sub(name, text)
    return [" ".join(line.split()) for line in text.splitlines()]


def is_printed(shown: list[str], printed: list[str]) -> bool:
    """Whether it has these lines one below the other. Rows of a table may have any order, and there are no more of them."""
    body = next((at for at, line in enumerate(shown, 1) if line and set(line) <= {"-", " "}), len(shown))
    head, rows = shown[:body], sorted(shown[body:])
    places = [at + body for at in range(len(printed)) if printed[at : at + body] == head]
    return any(not rows or sorted(_until_blank(printed[at:])) == rows for at in places)


def _until_blank(lines: list[str]) -> list[str]:
    return list(takewhile(bool, lines))


@pytest.mark.parametrize(
    "printed",
    [
        "country orders\n--- ---\nFR 3\nIT 4\n",
        "country orders\n--- ---\nFR 3\n",
        "country orders\n--- ---\nDE 2\nFR 3\nIT 3\n",
        "country orders\n--- ---\nFR 3\nIT 3\nUK 1\n",
    ],
)
def test_other_rows_are_not_those_of_the_page(printed: str) -> None:
    assert not is_printed(lines_of("country  orders\n-------  ------\nFR  3\nIT  3\n"), lines_of(printed))


def test_times_and_ids_are_not_compared() -> None:
    shown = "lake.main.revenue  full  snapshot 7390154230451240381 at 2026-11-24 21:49:45 in 2.1s, 3 rows"
    printed = "lake.main.revenue  full  snapshot 120381731205439217 at 2026-11-25 01:02:03 in 11.45s, 3 rows"
    assert is_printed(lines_of(shown), lines_of(printed))
    assert not is_printed(lines_of(shown), lines_of(printed.replace("3 rows", "4 rows")))


def test_every_step_of_the_tutorial(tmp_path: Path) -> None:
    # As a reader who keeps an engine warm: the commands share one Spark.
    environment = {**os.environ, "MVBUILD_KEEP_WARM": "10m", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    folder, printed = tmp_path, ""
    for step in STEP.finditer(PAGE):
        if step["kind"] == "text":
            shown = lines_of(step["text"].strip())
            assert is_printed(shown, lines_of(printed)), f"The page shows\n{step['text']}\nBut this was printed:\n{printed}"
        elif step["kind"] == "sh":
            done = subprocess.run(["bash", "-ec", step["text"]], cwd=folder, env=environment, capture_output=True, text=True)
            printed = f"{done.stdout}\n{done.stderr}"
            assert done.returncode == 0, f"{step['text']}\n{printed}"
            folder = tmp_path / "shop"
        else:
            saved = SAVED.search(step["before"])
            assert saved, f"The page does not say where to save:\n{step['text']}"
            (folder / saved["path"]).write_text(step["text"], encoding="utf-8")
    assert (tmp_path / "shop" / "models" / "revenue.yml").exists()
    subprocess.run(["mvbuild", "engine", "stop"], cwd=folder, env=environment, check=True, capture_output=True)
