"""Mutant -> what is wrong with mvbuild's response: a traceback, a hang, too much memory, another answer the second time; or nothing."""

from __future__ import annotations

import re
from pathlib import Path

from mvbuild.diagnostics import CODES
from mvbuild.lint.rules import BY_CODE
from unit.hostile.bounded import Parent, Told
from unit.hostile.mutants import Mutant, clear

COMMANDS = ("compile", "lint")
MORE = ("lint --output sarif", "ls --output json", "lineage revenue")
"""For every fourth mutant."""
SECONDS = 20
_TAIL = re.compile(r"^.*the details are in (\S+)$", re.MULTILINE)


def tried(mutant: Mutant, parents: tuple[Parent, ...], folder: Path) -> tuple[str, Told]:
    """The complaint, empty if there is none, and the first output. Each parent gets a fresh copy of the project."""
    answers = []
    for parent in parents:
        root = folder / "project"
        root.mkdir()
        try:
            mutant.lay_out(root)
            answers.append(parent.run(root, *COMMANDS, *(() if mutant.seed % 4 else MORE), seconds=SECONDS))
        finally:
            clear(root)
    complaint = _complaint(answers[0])
    if not complaint and any((a.exit, a.stdout, a.stderr) != (answers[0].exit, answers[0].stdout, answers[0].stderr) for a in answers):
        complaint = "the same project was told in two ways"
    return complaint, answers[0]


def _complaint(told: Told) -> str:
    if told.killed:
        return f"ended by signal {told.killed} after {told.seconds:.0f} s of CPU"
    if not told.is_bounded:
        return f"took {told.peak / 1e6:,.0f} MB"
    said = told.stdout + told.stderr
    if "Traceback (most recent call last)" in said:
        return "a traceback"
    if "error[internal]" in said:
        found = _TAIL.search(told.stderr)
        return "not foreseen: " + (Path(found[1]).read_text()[-800:] if found else told.stderr[-300:])
    codes = set(re.findall(r"^(?:error|warning|info)\[([^\]]*)\]: ", told.stderr, re.MULTILINE))
    if not codes <= {*CODES, *BY_CODE}:
        return f"codes that are in no table: {codes - set(CODES) - set(BY_CODE)}"
    if told.exit not in (0, 1, 2) or (told.exit == 2 and not codes):
        return f"exit {told.exit} without a diagnostic"
    return ""
