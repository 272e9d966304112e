"""A receiver of OpenLineage events on this machine: it answers, or it accepts a connection and says nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any


@dataclass
class Receiver:
    """What arrived, in the order in which it did."""

    url: str
    events: list[dict[str, Any]] = field(default_factory=list)
    answers: Event = field(default_factory=Event)
    """While it is not set, nothing is answered."""
    arrived: Condition = field(default_factory=Condition)

    def wait(self, done: Callable[[list[dict[str, Any]]], bool], seconds: float = 60) -> list[dict[str, Any]]:
        with self.arrived:
            assert self.arrived.wait_for(lambda: done(self.events), seconds), [e["eventType"] for e in self.events]
            return list(self.events)


@contextmanager
def receiver(*, answers: bool = True) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with found.arrived:
                found.events.append(json.loads(body))
                found.arrived.notify_all()
            found.answers.wait(60)
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    if answers:
        found.answers.set()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.answers.set()
        server.shutdown()
        server.server_close()
