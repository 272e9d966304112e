"""files -> a git repository with a project in it, for the tests of selection and reviews."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from unit.worlds import write_project

_ENV = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "a"), ("EMAIL", "a@example.com"))
}


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], env=_ENV, check=True, capture_output=True, text=True).stdout


def repository(root: Path, files: Mapping[str, str], *, branch: str = "main") -> Path:
    """A repository with one commit."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", branch)
    write_project(root, files)
    commit(root)
    return root


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "change")
