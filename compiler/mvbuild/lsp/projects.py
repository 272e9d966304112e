"""the files that an editor has open -> Projects: the project of each file, and what is known about each project."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import field
from pathlib import Path

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.lint.model import Finding
from mvbuild.lsp.check import Checked, CheckOptions, check
from mvbuild.lsp.definition import read_file
from mvbuild.lsp.freshness import Freshness
from mvbuild.lsp.names import Names
from mvbuild.lsp.positions import normal
from mvbuild.project.project_file import NAMES
from mvbuild.source import SourceFile

DELAY = 0.2
"""A project is checked after this many seconds without a change, so that not every key press starts a check."""
SUFFIXES = (".sql", ".yml", ".yaml", ".csv", ".lock")


Tell = Callable[["Project", Checked, Mapping[str, int | None]], None]
"""Receives the results, and the versions of the buffers that they are for."""


def root_of(path: Path) -> Path | None:
    """The nearest directory above a file that contains a project."""
    return next((folder for folder in path.parents if is_project(folder)), None)


def is_project(folder: Path) -> bool:
    return any((folder / name).is_file() for name in NAMES)


@dataclass(slots=True, kw_only=True)
class Project:
    """One project. `names` is from the last version that compiled."""

    root: Path
    freshness: Freshness
    buffers: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int | None] = field(default_factory=dict)
    """The versions of the buffers, as the editor counts them."""
    names: Names | None = None
    findings: tuple[Finding, ...] = ()
    """Those of open files that `lint --fix` can fix."""
    reported: set[Path] = field(default_factory=set)
    """The files with diagnostics in the last report."""
    _waiting: asyncio.TimerHandle | None = None
    _task: asyncio.Task[None] | None = None
    _again: bool = False

    def changed(self, executor: Executor, choices: CheckOptions, tell: Tell, delay: float = DELAY) -> None:
        """Check the project soon, and once more if it changes in the meantime. Must be called in an event loop; a thread does the work."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = asyncio.get_running_loop().call_later(delay, self._look, executor, choices, tell)

    def _look(self, executor: Executor, choices: CheckOptions, tell: Tell) -> None:
        self._waiting = None
        if self._task is not None and not self._task.done():
            self._again = True
            return
        self._again = False
        self._task = asyncio.get_running_loop().create_task(self._run(executor, choices, tell))

    async def _run(self, executor: Executor, choices: CheckOptions, tell: Tell) -> None:
        loop = asyncio.get_running_loop()
        versions = dict(self.versions)
        found = await loop.run_in_executor(executor, check, self.root, dict(self.buffers), choices)
        if found.graph is not None and found.bound is not None:
            self.names = Names(graph=found.graph, bound=found.bound)
            self.findings = found.fixable
            self.freshness.wanted(embedded=found.graph.project.target.embedded)
        tell(self, found, versions)
        if self._again:
            self._task = None
            self._look(executor, choices, tell)

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The SQL and YAML files of the last version that compiled, with the texts that the editor has of them now."""
        if self.names is None:
            return ()
        project = self.names.graph.project
        known = {file.path: file for file in (*(n.model.file for n in self.names.graph.models), *project.documents)}
        known |= {file.path: file for file in (*project.macros, *project.tests)}
        known |= {path: read_file(self.root, self.root / path) for path in project.yaml_paths if path not in known}
        return tuple(SourceFile(path, normal(self.buffers[path])) if path in self.buffers else file for path, file in known.items())

    def by_file(self, diagnostics: tuple[Diagnostic, ...]) -> dict[Path, list[Diagnostic]]:
        """Diagnostics without a place are reported at the project file."""
        own = next((name for name in NAMES if (self.root / name).is_file()), NAMES[0])
        found: dict[Path, list[Diagnostic]] = {}
        for one in diagnostics:
            path = Path(os.path.normpath(self.root / (one.span.file.path if one.span else own)))
            found.setdefault(path, []).append(one)
        return found


@dataclass(slots=True, kw_only=True)
class Projects:
    """All projects by their directories."""

    choices: CheckOptions = field(default_factory=CheckOptions)
    say: Callable[[str], None] = lambda _: None
    by_root: dict[Path, Project] = field(default_factory=dict)

    def of(self, path: Path) -> Project | None:
        """The project of a file; None for a file outside projects, or of a kind that projects do not have."""
        root = root_of(path) if path.suffix.lower() in SUFFIXES else None
        return self.at(root) if root is not None else None

    def at(self, root: Path) -> Project:
        if root not in self.by_root:
            self.by_root[root] = Project(root=root, freshness=Freshness(root=root, choices=self.choices, say=self.say))
        return self.by_root[root]

    def below(self, folder: Path) -> Iterator[Project]:
        """The project of a workspace folder, if it is one, and those directly below it."""
        if is_project(folder):
            yield self.at(folder)
        elif folder.is_dir():
            yield from (
                self.at(Path(child.path)) for child in sorted(os.scandir(folder), key=lambda c: c.name) if is_project(Path(child.path))
            )


def relative(root: Path, path: Path) -> str:
    """Also of a file beside the project, such as `../shared/a.sql`."""
    return os.path.relpath(path, root).replace(os.sep, "/")
