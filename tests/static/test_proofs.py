"""Test files marked `proof` <-> the table of docs/development.md."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_names_every_file_of_proofs() -> None:
    texts = {f.stem: f.read_text(encoding="utf-8") for f in (ROOT / "tests").rglob("test_*.py")}
    marked = {name for name, text in texts.items() if "\npytestmark = pytest.mark.proof\n" in text}
    partly = {name for name, text in texts.items() if "\n@pytest.mark.proof\n" in text}
    text = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
    table = text.partition("| marked `proof` |")[2].partition("\n\n")[0]
    assert marked <= set(re.findall(r"`(test_\w+)`", table)) <= marked | partly


def test_ci_runs_the_test_command_of_the_readme_and_then_the_proofs() -> None:
    command = re.search(r"\.venv/bin/python (-m pytest .*)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert command
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"pytest=(.venv/bin/python {command[1]} " in script
    assert '"${pytest[@]}" -m proof' in script
