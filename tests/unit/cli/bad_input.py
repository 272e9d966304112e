"""marked files + a command -> the output of the command line: the notation of the table in test_bad_input.py."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mvbuild.cli.main import main

PROJECT = "name: shop\n"

Content = str | bytes | Path | None
"""Of a file: text or bytes; a Path is a link to it, None a directory."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """`files` over a project called shop. The place that the error must show is marked in one of them: `from «orderz»`."""

    name: str
    code: str
    says: str
    files: Mapping[str, Content] = field(default_factory=dict)
    help: str = ""
    command: str = "compile"
    reads_catalog: bool = False
    """The error is found behind the catalog, which is made when it is first read."""

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    exit: int
    stdout: str
    stderr: str


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A marked place: `path:line:column` and how many characters the carets cover."""

    place: str
    width: int


def lay_out(root: Path, files: Mapping[str, Content]) -> Mark | None:
    """Write the files of a project without their marks; the place of the mark."""
    mark = None
    for path, content in {"mvbuild.yml": PROJECT, **files}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            file.mkdir()
            continue
        if isinstance(content, Path):
            file.symlink_to(content)
            continue
        if isinstance(content, bytes):
            file.write_bytes(content)
            continue
        found = re.search("«([^»]*)»", content)
        if found:
            line = content.count("\n", 0, found.start()) + 1
            column = found.start() - (content.rfind("\n", 0, found.start()) + 1) + 1
            mark = Mark(place=f"{path}:{line}:{column}", width=len(found[1].partition("\n")[0]))
        file.write_text(re.sub("[«»]", "", content), encoding="utf-8")
    return mark


def call(command: str, root: Path, env: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Outcome:
    """`mvbuild <command>` in a directory, in this process."""
    monkeypatch.chdir(root)
    for name in [n for n in os.environ if n.startswith(("MVBUILD_", "DBT_", "NO_COLOR"))]:
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["mvbuild", *shlex.split(command)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    return Outcome(exit=stopped.value.code, stdout=said.out, stderr=said.err)


def findings(stderr: str) -> list[str]:
    """`code at path:line:column` of every error in a text output."""
    blocks = re.split(r"\n\n(?=error\[|warning\[)", stderr)
    found = []
    for block in blocks:
        head = re.match(r"error\[([a-z-]+)\]", block)
        place = re.search(r"^  --> (.*)$", block.split("\n  note:")[0], re.MULTILINE)
        if head:
            found.append(f"{head[1]} at {place[1]}" if place else head[1])
    return found
