"""events -> lines of a file, which a process of its own sends: the run never waits for a receiver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

EVENTS, SENT = "events", "sent"
"""The files of an outbox: the events, one a line, and a byte for each that was sent."""
END = "end\n"
"""The last line of the events."""
_WAIT_SECONDS = 1.0


class Outbox:
    """For one thread. `log`: where the sending process writes what goes wrong."""

    def __init__(self, log: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="mvbuild-openlineage-"))
        self._events = (self._folder / EVENTS).open("w", encoding="utf-8")
        self._put: list[float] = []
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as messages:
            # A session of its own: an interrupt of the run does not end it, and the end of the run does not wait for it.
            subprocess.Popen(
                [sys.executable, "-m", "mvbuild.openlineage.send", str(self._folder), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                start_new_session=True,
            )

    def put(self, event: Mapping[str, Any]) -> None:
        self._events.write(json.dumps(event, default=str) + "\n")
        self._events.flush()
        self._put.append(time.monotonic())

    def close(self) -> None:
        """No more events will come. The process sends the rest, and removes the files.

        If the receiver answers, the last events are given a moment, because the end of a run may be the end of its container. If an event
        of more than a moment ago was not sent, nothing is waited for.
        """
        self._events.write(END)
        self._events.close()
        now = time.monotonic()
        overdue = sum(at < now - _WAIT_SECONDS for at in self._put)
        if self._sent() < max(1, overdue):
            return
        while self._sent() < len(self._put) and time.monotonic() < now + _WAIT_SECONDS:
            time.sleep(0.01)

    def _sent(self) -> int:
        try:
            return (self._folder / SENT).stat().st_size
        except OSError:
            # All were sent, and the files are gone; or none was.
            return 0 if self._folder.exists() else len(self._put)
