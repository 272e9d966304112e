"""`mvbuild watch` as a process of its own: commits of another writer -> refreshed MVs, from one warm Spark; SIGTERM -> exit code 0."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from spark.projects import NoSpark, Project, command_line, order, properties
from spark.shop import MORE, shop

pytestmark = pytest.mark.proof

SECONDS = 240
"""For the slowest step, the start of Spark on a busy machine."""


@pytest.fixture
def built(tmp_path: Path) -> Project:
    (tmp_path / ".mvbuild" / "warehouse").mkdir(parents=True)
    catalog = load_catalog("lake", **properties(tmp_path))
    assert isinstance(catalog, SqlCatalog)
    return shop(lambda files: Project(tmp_path, NoSpark(), catalog).write(files), MORE)


class Watching:
    """The events of a running watcher."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: Queue[str] = Queue()
        self.seen: list[dict[str, Any]] = []
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def until(self, kind: str, name: str = "") -> dict[str, Any]:
        while True:
            try:
                event = json.loads(self.lines.get(timeout=SECONDS))
            except Empty:
                pytest.fail(f"no event {kind} {name}; there were {self.seen}")
            self.seen.append(event)
            if event["event"] == kind and event.get("name", "").endswith(name):
                return dict(event)

    def kinds(self) -> list[str]:
        return [event["event"] for event in self.seen]


@contextmanager
def watching(root: Path) -> Iterator[Watching]:
    arguments = command_line(root, "watch", "--log-format", "json", "--interval", "0.3")
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield Watching(process)
    finally:
        process.kill()
        process.wait()


def test_commits_are_followed_by_refreshes_until_it_is_terminated(built: Project) -> None:
    with watching(built.root) as watch:
        watch.until("started")
        for name in ("revenue_daily", "revenue_total", "countries"):
            if not any(e["event"] == "refreshed" and e.get("name", "").endswith(name) for e in watch.seen):
                watch.until("refreshed", name)
        built.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
        assert watch.until("refreshed", "revenue_daily")["reasons"] == ["base-table-changed"]
        watch.until("refreshed", "revenue_total")
        # An edit is taken up, and only what it changes is refreshed.
        built.write({"models/marts/countries.sql": "SELECT country, count(*) AS number FROM raw.customers GROUP BY country\n"})
        watch.until("reloaded")
        assert watch.until("refreshed", "countries")["reasons"] == ["definition-changed"]
        watch.process.send_signal(signal.SIGTERM)
        watch.until("stopped")
        assert watch.process.wait(timeout=SECONDS) == 0
        assert watch.kinds().count("failed") == 0
        assert sum("Starting Spark" in e["message"] for e in watch.seen) <= 1
    assert built.command("status", "--output", "json").stdout.count('"state": "fresh"') == 3
