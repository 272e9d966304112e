"""notable events -> a command or a webhook, in a thread of its own: a receiver that hangs delays nothing."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterable
from queue import Full, Queue
from threading import Thread

from mvbuild.watch.events import NOTABLE, Event

SECONDS = 10
"""A receiver that takes longer has failed."""
_MOST = 1000
"""How many notifications may wait; further ones are dropped."""

Send = Callable[[str], None]


class Notifier:
    """Passes notable events on, one after the other."""

    def __init__(self, receivers: Iterable[Send], on_failure: Callable[[str], None]) -> None:
        self._receivers = tuple(receivers)
        self._on_failure = on_failure
        self._waiting: Queue[str | None] = Queue(_MOST)
        self._thread = Thread(target=self._send_on, name="notifications", daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        if self._receivers and event.kind in NOTABLE:
            try:
                self._waiting.put_nowait(json.dumps(event.as_json()))
            except Full:
                self._on_failure("a notification was dropped: too many are waiting")

    def close(self) -> None:
        """Send what is waiting, for a few seconds at most."""
        try:
            self._waiting.put_nowait(None)
        except Full:
            return
        self._thread.join(SECONDS)

    def _send_on(self) -> None:
        while (text := self._waiting.get()) is not None:
            for send in self._receivers:
                try:
                    send(text)
                except Exception as exc:  # noqa: BLE001  a receiver may fail in any way, and the others must get the event
                    self._on_failure(f"a notification could not be sent: {type(exc).__name__}: {exc}")


def to_command(command: str) -> Send:
    """A command of the shell, which gets the event as JSON on its standard input."""

    def send(text: str) -> None:
        subprocess.run(command, shell=True, input=text, text=True, timeout=SECONDS, check=True, stdout=subprocess.DEVNULL)

    return send


def to_url(url: str) -> Send:
    """A webhook, which gets the event as JSON by POST."""

    def send(text: str) -> None:
        request = urllib.request.Request(url, data=text.encode(), headers={"Content-Type": "application/json"}, method="POST")
        with urllib.request.urlopen(request, timeout=SECONDS):
            pass

    return send
