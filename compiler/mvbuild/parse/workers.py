"""many SQL files -> what is to be kept of each, made by processes beside this one.

A worker is a plain Python process that runs this module: no fork, which a process with threads or a JVM would not survive, and nothing that
imports the program that called mvbuild once more. It ends when its input does, so that none outlives us.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from mvbuild.parse.file import dumped, parse_file
from mvbuild.parse.files import FEWEST, Task
from mvbuild.parse.templates import Templates
from mvbuild.project.loaded import LoadedProject, ModelFile, Properties
from mvbuild.source import SourceFile

MOST = 8
_START = """
import ast, sys
sys.path[:] = ast.literal_eval(sys.argv[1])
from mvbuild.parse.workers import serve
serve()
"""


class Workers:
    """Processes that parse their share while this one does its own."""

    def __init__(self, tasks: Sequence[Task], project: LoadedProject, env: Mapping[str, str]) -> None:
        """Starts none where that would not pay."""
        self._shares: list[tuple[subprocess.Popen[bytes], Sequence[int]]] = []
        count = min(_processors(), MOST, len(tasks) // (FEWEST // 2))
        self.own: Sequence[int] = range(0, len(tasks), max(count, 1))
        """The tasks that are left to this process."""
        if count < 2 or not sys.executable:
            self.own = range(len(tasks))
            return
        slim = _slim(project)
        for number in range(1, count):
            share = range(number, len(tasks), count)
            try:
                process = _started()
            except OSError:
                self.own = [*self.own, *share]
                continue
            self._shares.append((process, share))
            # A worker reads when it has started, and until then the pipe holds little.
            work = (slim, dict(env), [tasks[i] for i in share])
            threading.Thread(target=_hand_over, args=(process.stdin, work), daemon=True).start()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        """Also where the user has pressed Ctrl-C, which workers do not hear."""
        for process, _share in self._shares:
            process.kill()
            with suppress(OSError):
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def results(self) -> dict[int, str]:
        """Task -> what is to be kept. Tasks of a worker that failed are not there, nor files with something wrong in them."""
        found: dict[int, str] = {}
        for process, share in self._shares:
            try:
                assert process.stdout is not None
                texts = pickle.load(process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError, ValueError, LookupError, AttributeError, TypeError):
                continue
            found.update((i, text) for i, text in zip(share, texts, strict=False) if isinstance(text, str))
        return found


def serve() -> None:
    """A worker. What it says on stderr nobody would understand."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    project, env, tasks = pickle.load(sys.stdin.buffer)
    templates = Templates(project, env)
    _send(sys.stdout.buffer, [_kept(file, model, templates) for file, model in tasks])


def _kept(file: SourceFile, model: str | None, templates: Templates) -> str | None:
    return dumped(parse_file(file, model, templates), file, templates)


def _started() -> subprocess.Popen[bytes]:
    paths = repr([path or str(Path.cwd()) for path in sys.path])
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _START, paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _send(pipe: IO[bytes], value: Any) -> None:
    pickle.dump(value, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()


def _hand_over(pipe: IO[bytes], work: Any) -> None:
    with suppress(OSError, ValueError, pickle.PicklingError), pipe:
        _send(pipe, work)


def _processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _slim(project: LoadedProject) -> LoadedProject:
    """What templates can see: of models and seeds their names, of the target no secrets."""
    nothing = SourceFile("", "")
    names = (*(model.name for model in project.models), *(seed.name for seed in project.seeds))
    models = tuple(ModelFile(name=name, file=nothing, folders=(), layers=(), properties=Properties()) for name in names)
    sources = tuple(replace(source, properties=Properties(), options={}, meta={}, places={}) for source in project.sources)
    target = replace(project.target, catalog={}, spark=replace(project.target.spark, remote=None, config={}), span=None)
    return replace(
        project,
        file=nothing,
        target=target,
        vars=dict(project.vars),
        models=models,
        seeds=(),
        sources=sources,
        tests=(),
        lint={},
        documents=(),
        kept=type(project.kept)(),
    )
