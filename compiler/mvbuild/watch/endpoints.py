"""Metrics -> an HTTP server with /metrics for Prometheus and /health for whoever restarts the process."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from mvbuild.watch.metrics import Metrics


class MetricsServer(ThreadingHTTPServer):
    """Serves in a thread of its own until `close`. Raises OSError if the port is taken."""

    daemon_threads = True

    def __init__(self, host: str, port: int, metrics: Metrics) -> None:
        self.metrics = metrics
        super().__init__((host, port), _Handler)
        Thread(target=self.serve_forever, name="metrics", daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that closed its connection is not an error."""


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    timeout = 10

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._answer(HTTPStatus.OK, "text/plain; version=0.0.4", self.server.metrics.text())
        elif self.path == "/health":
            ok, content = self.server.metrics.health()
            self._answer(HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE, "application/json", json.dumps(content))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, *args: Any) -> None:
        """Does not log requests."""

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
