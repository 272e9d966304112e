"""results of the histories of a long proof, in sequence -> a file of JSON lines, so that a proof can continue where it stopped.

Each line has the seed, the commit that it ran on, and its counts; a report lists the commits of all its lines.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

Counts = TypeVar("Counts")


@dataclass(frozen=True, kw_only=True)
class Journal(Generic[Counts]):
    """Of one proof; several processes may write it."""

    path: Path | None
    """None: nothing is kept."""
    counts: type[Counts]
    """A dataclass of numbers, lists of texts and Counters."""
    commit: str

    def read(self) -> dict[int, tuple[str, Counts]]:
        """Seed -> commit and counts."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path and self.path.exists() else []
        return {one["seed"]: (one["commit"], self._filled(one["counts"])) for one in map(json.loads, lines)}

    def add(self, seed: int, counts: Counts) -> None:
        if self.path is None:
            return
        line = json.dumps({"seed": seed, "commit": self.commit, "counts": self._plain(counts)}, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(line + "\n")

    def _plain(self, counts: Counts) -> dict[str, Any]:
        given = {one.name: getattr(counts, one.name) for one in fields(self.counts)}  # type: ignore[arg-type]
        return {name: list(value.items()) if isinstance(value, Counter) else value for name, value in given.items() if value}

    def _filled(self, plain: dict[str, Any]) -> Counts:
        made = self.counts()
        for name, value in plain.items():
            if isinstance(getattr(made, name), Counter):
                value = Counter({tuple(key) if isinstance(key, list) else key: number for key, number in value})
            setattr(made, name, value)
        return made


def commit_now() -> str:
    """The commit that is checked out; `+` if files differ from it."""
    asked = {"cwd": Path(__file__).parent, "capture_output": True, "text": True, "check": False}
    name = subprocess.run(["git", "rev-parse", "--short", "HEAD"], **asked).stdout.strip()  # type: ignore[call-overload]
    changed = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], **asked).stdout.strip()  # type: ignore[call-overload]
    return name + ("+" if changed else "")
