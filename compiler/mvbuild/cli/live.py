"""a function that returns text -> one line at the bottom of the terminal, rewritten during a run.

The line is written to stderr, and is cleared for each line that is printed: stdout may be the same terminal, or a file.
By hand, because one line does not justify another dependency.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from threading import Event, RLock, Thread

_CLEAR = "\r\x1b[2K"
_SECONDS = 0.5


class LiveLine:
    """Shows `text()` twice a second between `start` and `stop`. Code that prints a line must hold `printing`."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        self._ended = Event()
        self._lock = RLock()
        self._thread = Thread(target=self._draw_on, name="live line", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        self._write(_CLEAR)

    def __enter__(self) -> None:
        """Clear the line, so that something else can be printed."""
        self._lock.acquire()
        self._write(_CLEAR)

    def __exit__(self, *_: object) -> None:
        self._draw()
        self._lock.release()

    def _draw_on(self) -> None:
        while not self._ended.wait(_SECONDS):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        if not self._ended.is_set():
            width = shutil.get_terminal_size().columns - 1
            self._write(_CLEAR + self._text()[:width])

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
