"""the folder of a site, a function that returns freshness -> an HTTP server for the browsers of this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

HOST = "127.0.0.1"
"""Pages show all tables and there is no login, so other machines must not reach the server."""
_LIVE = "/live.json"
_KEPT = 5.0
"""Seconds for which several pages get the same answer."""
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"


class SiteServer(ThreadingHTTPServer):
    """Serves until `shutdown`. Raises OSError if the port is taken."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int, live: Callable[[], dict[str, Any]]) -> None:
        self.live = _Kept(live)
        super().__init__((HOST, port), partial(_Handler, directory=str(folder)))

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closed its connection is not an error."""


class _Kept:
    """Caches an answer for a few seconds, because each one reads the catalog."""

    def __init__(self, ask: Callable[[], dict[str, Any]]) -> None:
        self._ask, self._lock = ask, Lock()
        self._text, self._until = b"", 0.0

    def __call__(self) -> bytes:
        with self._lock:
            if time.monotonic() >= self._until:
                self._text = json.dumps(self._ask()).encode()
                self._until = time.monotonic() + _KEPT
            return self._text


class _Handler(SimpleHTTPRequestHandler):
    server: SiteServer

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if not self._is_local():
            # Otherwise a web page whose host name resolves to this machine could read the answers (DNS rebinding).
            self.send_error(HTTPStatus.FORBIDDEN, "Open the address that mvbuild printed")
        elif path == "/data/live.js":
            self._answer("text/javascript", f"site.live({json.dumps(_LIVE[1:])});\n".encode())
        elif path == _LIVE:
            self._answer("application/json", self.server.live())
        else:
            super().do_GET()

    def do_HEAD(self) -> None:
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)

    def list_directory(self, path: Any) -> None:  # noqa: ARG002
        """No directory listings."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, *args: Any) -> None:
        """Does not log each request on the terminal."""

    def _is_local(self) -> bool:
        name = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        return name in (HOST, "localhost")

    def _answer(self, kind: str, content: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
