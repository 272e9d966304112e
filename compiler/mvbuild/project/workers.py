"""long lists -> shares of them that processes beside this one work off.

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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

MOST = 8
_START = """
import ast, sys
sys.path[:] = ast.literal_eval(sys.argv[1])
from mvbuild.project.workers import serve
serve()
"""
Given = TypeVar("Given")
Item = TypeVar("Item")
Found = TypeVar("Found")
Work = Callable[[Given, Sequence[Item]], "Sequence[Found]"]
"""What is the same for all items, and some items -> what was found for each. A function of a module: it goes to the processes by name."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one process was given to do."""

    process: subprocess.Popen[bytes]
    items: Sequence[int]


class Workers:
    """As many processes as there are processors to spare, started when there is something to do, and for all that follows."""

    def __init__(self, most: int = MOST) -> None:
        """`most`: processes, this one among them; with one there are no others."""
        self._most = most
        self._processes: list[subprocess.Popen[bytes]] | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        """Also where the user has pressed Ctrl-C, which workers do not hear."""
        for process in self._processes or ():
            process.kill()
            with suppress(OSError):
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._processes = None

    def begin(self, work: Work[Given, Item, Found], given: Given, items: Sequence[Item]) -> tuple[Sequence[int], list[Share]]:
        """The items that are left to this process, and the shares that others do now; `results` waits for these."""
        processes = self._started()
        count = len(processes) + 1
        shares = [Share(process, range(number, len(items), count)) for number, process in enumerate(processes, 1)]
        for share in shares:
            # A worker reads when it has started, and until then the pipe holds little.
            task = (work, given, [items[i] for i in share.items])
            threading.Thread(target=_hand_over, args=(share.process.stdin, task), daemon=True).start()
        return range(0, len(items), count), shares

    def _started(self) -> Sequence[subprocess.Popen[bytes]]:
        if self._processes is None:
            self._processes = []
            with suppress(OSError):
                for _ in range(1, min(_processors(), self._most) if sys.executable else 1):
                    self._processes.append(_start())
        return self._processes


def results(shares: Sequence[Share]) -> dict[int, Any]:
    """Item -> what was found. Those of a worker that failed are not there."""
    found: dict[int, Any] = {}
    for share in shares:
        try:
            assert share.process.stdout is not None
            values = pickle.load(share.process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError, ValueError, LookupError, AttributeError, TypeError):
            # What else it might say would be taken for the answer to the next question.
            share.process.kill()
            continue
        found.update(zip(share.items, values, strict=False))
    return found


def serve() -> None:
    """A worker. What it says on stderr nobody would understand."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError):
        while True:
            work, given, items = pickle.load(sys.stdin.buffer)
            _send(sys.stdout.buffer, work(given, items))


def _start() -> subprocess.Popen[bytes]:
    paths = repr([path or str(Path.cwd()) for path in sys.path])
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _START, paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _send(pipe: IO[bytes], value: Any) -> None:
    pickle.dump(value, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()


def _hand_over(pipe: IO[bytes], task: Any) -> None:
    """A worker that hears nothing more ends, and its share is missing from the results."""
    try:
        _send(pipe, task)
    except (OSError, ValueError, TypeError, AttributeError, pickle.PicklingError):
        with suppress(OSError):
            pipe.close()


def _processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
