"""a long list -> a result for each item, computed by other processes and by this one.

A worker is a plain Python process that runs this module. It is not a fork, which a process with threads or a JVM would not survive, and it
does not import the program that called mvbuild. It ends when its input does, so that none outlives this process.

There are no threads: this process checks the pipes between two of its own items, and a worker gets its next items before it is done with
the last ones.

By hand and not with `ProcessPoolExecutor`: its spawned processes import the caller's `__main__`, and it needs threads in this process.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import IO, Any, TypeVar

MOST = 8
_SHARES = 100
"""A list is split into at least this many parts, so that all processes end at the same time."""
_LARGEST = 50
"""Items in a part."""
_AHEAD = 5
"""Parts that a worker has at most."""
_READ = 1 << 20
_START = """
import ast, gc, sys
sys.path[:], thresholds = ast.literal_eval(sys.argv[1])
gc.set_threshold(*thresholds)
from mvbuild.workers import serve
serve()
"""
Given = TypeVar("Given")
Item = TypeVar("Item")
Found = TypeVar("Found")
Work = Callable[[Given, Sequence[Item]], "Sequence[Found]"]
"""What is the same for all items, and some items -> a result for each. It is a function of a module, because processes receive it by name.
"""


class Workers:
    """As many processes as there are processors, started when there is something to do, and kept for everything that follows."""

    def __init__(self, most: int = MOST) -> None:
        """`most`: the number of processes including this one; with one, there are no others."""
        self._most = most
        self._processes: list[_Worker] | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        """Also after Ctrl-C, which workers ignore."""
        for worker in self._processes or ():
            worker.end()
        self._processes = None

    def shared(self, work: Work[Given, Item, Found], given: Given, items: Sequence[Item]) -> Iterator[tuple[int, Found | None]]:
        """Each item's index, with the result of another process. With None if there is none: the caller processes that item now.

        Roughly in order. Pipes are checked whenever the next item is requested.
        """
        size = min(max(len(items) // _SHARES, 1), _LARGEST)
        left = deque(range(at, min(at + size, len(items))) for at in range(0, len(items), size))
        workers = self._started() if len(left) > 1 else ()
        for worker in workers:
            worker.begin(work, given)
        try:
            while left or any(worker.is_busy for worker in workers):
                for worker in workers:
                    while left and worker.is_free:
                        worker.give(left.popleft(), items)
                    yield from worker.done()
                if left:
                    for index in left.popleft():
                        yield index, None
                        for worker in workers:
                            worker.look()
                elif any(worker.is_busy for worker in workers):
                    _wait(workers)
        finally:
            # Their remaining output would be mistaken for results of the next list.
            for worker in workers:
                if worker.is_busy:
                    worker.end()
                    worker.answers.clear()

    def _started(self) -> Sequence[_Worker]:
        if self._processes is None:
            self._processes = []
            with suppress(OSError):
                for _ in range(1, min(_processors(), self._most) if sys.executable and os.name == "posix" else 1):
                    self._processes.append(_Worker())
        return self._processes


class _Worker:
    """A process, its tasks, and the bytes in transit."""

    def __init__(self) -> None:
        alike = repr(([path or str(Path.cwd()) for path in sys.path], gc.get_threshold()))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, alike], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.input, self.output = self._process.stdin.fileno(), self._process.stdout.fileno()
        for end in (self.input, self.output):
            os.set_blocking(end, False)
        self.is_alive = True
        self.to_send = memoryview(b"")
        self._received = bytearray()
        self._tasks: deque[range] = deque()
        self.answers: deque[tuple[range, Sequence[Any]]] = deque()

    @property
    def is_free(self) -> bool:
        return self.is_alive and len(self._tasks) < _AHEAD

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks or self.answers)

    def begin(self, work: Any, given: Any) -> None:
        self._send((work, given))

    def give(self, indexes: range, items: Sequence[Any]) -> None:
        self._tasks.append(indexes)
        self._send([items[index] for index in indexes])

    def done(self) -> Iterator[tuple[int, Any]]:
        self.look()
        while self.answers:
            indexes, values = self.answers.popleft()
            yield from zip(indexes, values, strict=True)

    def look(self) -> None:
        """Send and receive what the pipes accept and have."""
        if not self.is_alive or not (self._tasks or self.to_send):
            return
        try:
            with suppress(BlockingIOError):
                while self.to_send:
                    self.to_send = self.to_send[os.write(self.input, self.to_send) :]
            with suppress(BlockingIOError):
                while part := os.read(self.output, _READ):
                    self._received += part
                    self._understand()
                self.end()
        except (OSError, EOFError, pickle.UnpicklingError, ValueError, LookupError, AttributeError, TypeError):
            self.end()

    def end(self) -> None:
        """Its tasks have no process any more."""
        self.is_alive = False
        self.to_send = memoryview(b"")
        self.answers.extend((indexes, [None] * len(indexes)) for indexes in self._tasks)
        self._tasks.clear()
        self._process.kill()
        with suppress(OSError):
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _send(self, value: Any) -> None:
        if not self.is_alive:
            return
        try:
            self.to_send = memoryview(bytes(self.to_send) + _message(value))
        except (pickle.PicklingError, TypeError, AttributeError):
            self.end()
        self.look()

    def _understand(self) -> None:
        while len(self._received) >= 8:
            end = 8 + int.from_bytes(self._received[:8], "big")
            if len(self._received) < end:
                return
            values = pickle.loads(memoryview(self._received)[8:end])
            del self._received[:end]
            if len(values) != len(self._tasks[0]):
                raise ValueError("not an answer")
            self.answers.append((self._tasks.popleft(), values))


def _wait(workers: Sequence[_Worker]) -> None:
    """Wait until one of them can receive or has sent something."""
    with DefaultSelector() as selector:
        for worker in workers:
            if worker.is_alive:
                selector.register(worker.output, EVENT_READ)
                if worker.to_send:
                    selector.register(worker.input, EVENT_WRITE)
        selector.select()


def serve() -> None:
    """A worker. Its stderr would mean nothing to users, and what a library prints is not a result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    pipe, work, given = sys.stdin.buffer, None, None
    with suppress(EOFError):
        while True:
            task = _heard(pipe)
            if isinstance(task, tuple):
                work, given = task
            else:
                answers.write(_message(work(given, task) if work else None))
                answers.flush()


def _heard(pipe: IO[bytes]) -> Any:
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(pipe.read(int.from_bytes(head, "big")))


def _message(value: Any) -> bytes:
    """A message, preceded by its length."""
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return len(content).to_bytes(8, "big") + content


def _processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
