"""client -> server, with accidents on the way: answers that are lost, and others that are faster."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

_HOP = ("connection", "transfer-encoding", "content-length", "content-encoding", "keep-alive")


@dataclass
class Accident:
    """What happens to the next requests of one kind."""

    request: str
    """The beginning of `POST /v1/...`."""
    before: Callable[[], object] = lambda: None
    """What others do before the server gets the request."""
    after: Callable[[], object] = lambda: None
    """What others do before the answer is given."""
    forwarded: bool = True
    """Whether the server gets the request."""
    lost: bool = False
    """Whether the connection is cut instead of an answer, or `status` is returned."""
    status: int | None = None
    skip: int = 0
    """How many such requests go well before."""
    times: int = 1


@dataclass
class Proxy:
    uri: str
    accidents: list[Accident] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    """Each request: `POST /v1/...`."""
    statuses: list[int] = field(default_factory=list)
    """Of each answer that the server gave."""

    def expect(self, request: str, **accident: Any) -> None:
        self.accidents.append(Accident(request=request, **accident))

    def counted(self, request: str) -> int:
        return sum(one.startswith(request) for one in self.seen)

    def next_accident(self, request: str) -> Accident:
        found = next((one for one in self.accidents if request.startswith(one.request)), Accident(request="", times=2))
        if found.skip:
            found.skip -= 1
            return Accident(request="")
        found.times -= 1
        if not found.times:
            self.accidents.remove(found)
        return found


@contextmanager
def between(server: str) -> Iterator[Proxy]:
    address = urlsplit(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            request = f"{self.command} {self.path}"
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            proxy.seen.append(request)
            accident = proxy.next_accident(request)
            accident.before()
            if accident.forwarded:
                status, headers, content = _forwarded(address.netloc, self, body)
                proxy.statuses.append(status)
            accident.after()
            if not accident.lost:
                self._tell(status, headers, content)
            elif accident.status is not None:
                self._tell(accident.status, {"content-type": "application/json"}, b"")
            else:
                self.close_connection = True
                self.connection.close()

        do_GET = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815

        def _tell(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    proxy = Proxy(uri=f"http://127.0.0.1:{listening.server_address[1]}")
    thread = Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def _forwarded(server: str, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(server, timeout=60)
    headers = {key: value for key, value in handler.headers.items() if key.lower() not in (*_HOP, "host", "accept-encoding")}
    connection.request(handler.command, handler.path, body or None, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, {key: value for key, value in answer.getheaders() if key.lower() not in _HOP}, content
