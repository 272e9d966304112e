"""metrics over HTTP, notifications to a command and a webhook, stamps of files: real sockets, processes and files."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from mvbuild.watch.endpoints import MetricsServer
from mvbuild.watch.events import Event
from mvbuild.watch.files import folders_of, stamp_of
from mvbuild.watch.metrics import Metrics
from mvbuild.watch.notify import Notifier, to_command, to_url
from unit.worlds import PROJECT, ManualClock, compiled

FAILED = Event(kind="failed", at_ms=1, message="no", node="model.shop.a", name="main.a", data={"failures": 1})


def fetched(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as exc:
        return exc.code, exc.read().decode()


def test_metrics_and_health_are_served() -> None:
    clock = ManualClock()
    metrics = Metrics(clock, lambda: True)
    server = MetricsServer("127.0.0.1", 0, metrics)
    try:
        url = f"http://127.0.0.1:{server.port}"
        assert fetched(f"{url}/health")[0] == 503
        metrics.polled(clock.at_ms, 0.01)
        metrics.lags({"model.shop.a": clock.at_ms - 2500}, {"model.shop.a": timedelta(minutes=15)}, ("model.shop.a", "model.shop.b"))
        metrics.refreshed("model.shop.a", "append", 1.5, 7)
        metrics.failed('model.shop."b"')
        assert fetched(f"{url}/health")[0] == 200
        status, text = fetched(f"{url}/metrics")
        assert status == 200
        lines = text.splitlines()
        for line in (
            'mvbuild_lag_seconds{mv="model.shop.a"} 2.5',
            'mvbuild_lag_seconds{mv="model.shop.b"} 0.0',
            'mvbuild_target_lag_seconds{mv="model.shop.a"} 900.0',
            'mvbuild_refreshes_total{mv="model.shop.a",strategy="append"} 1',
            'mvbuild_refresh_seconds_total{mv="model.shop.a"} 1.5',
            'mvbuild_rows{mv="model.shop.a"} 7',
            'mvbuild_failures_total{mv="model.shop.\\"b\\""} 1',
            "mvbuild_spark_running 1",
        ):
            assert line in lines, text
        assert fetched(f"{url}/else")[0] == 404
    finally:
        server.close()


def test_a_command_and_a_webhook_get_notable_events_as_json(tmp_path: Path) -> None:
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    failures: list[str] = []
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url, file = f"http://127.0.0.1:{server.server_address[1]}/", tmp_path / "events"
        notifier = Notifier([to_command("exit 3"), to_command(f"cat >> {file}; echo >> {file}"), to_url(url)], failures.append)
        notifier(FAILED)
        notifier(Event(kind="refreshed", at_ms=2, message="7 rows"))
        notifier.close()
        server.shutdown()
    assert [json.loads(line) for line in file.read_text().splitlines()] == [FAILED.as_json()]
    assert [json.loads(text) for text in received] == [FAILED.as_json()]
    # The first receiver failed, and the others got the event.
    assert len(failures) == 1


@pytest.mark.parametrize("edit", ["models/daily.sql", "models/new.sql", "mvbuild.yml", "models/deep/er.yml", "seeds/new.csv"])
def test_an_edit_changes_the_stamp_of_a_project(edit: str, tmp_path: Path) -> None:
    graph = compiled(tmp_path, PROJECT)
    folders = folders_of(graph)
    before = stamp_of(graph, folders)
    (tmp_path / "target").mkdir(exist_ok=True)
    (tmp_path / "target/manifest.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("no part of the project")
    assert stamp_of(graph, folders) == before
    path = tmp_path / edit
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + "\n-- edited\n")
    assert stamp_of(graph, folders) != before
