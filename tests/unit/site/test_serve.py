"""A folder and a catalog -> a server for this machine: what it answers, and what it refuses."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from mvbuild import api
from mvbuild.api import sessions
from mvbuild.ports.catalog import CatalogError
from mvbuild.site.serve import SiteServer
from unit.worlds import PROJECT, append, shop


@contextmanager
def serving(folder: Path, live: Any) -> Iterator[SiteServer]:
    with SiteServer(folder, 0, live) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def get(server: SiteServer, path: str, host: str | None = None) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)  # type: ignore[arg-type]
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, content, answer.headers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("front")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/live.js").write_text("site.live(null);\n")
    return tmp_path


def test_pages_are_sent_where_to_ask_for_what_is_fresh_now(folder: Path) -> None:
    with serving(folder, lambda: {"at": 1, "nodes": {}}) as server:
        assert get(server, "/")[:2] == (200, "front")
        assert get(server, "/data/live.js?stamp")[:2] == (200, 'site.live("live.json");\n')
        status, content, headers = get(server, "/live.json")
        assert (status, json.loads(content)) == (200, {"at": 1, "nodes": {}})
        assert headers["Cache-Control"] == "no-cache"
        assert "default-src 'self'" in headers["Content-Security-Policy"]


def test_only_this_machine_is_answered_and_only_below_the_folder(folder: Path) -> None:
    (folder.parent / "secret.txt").write_text("secret")
    with serving(folder, dict) as server:
        assert server.server_address[0] == "127.0.0.1"
        assert get(server, "/live.json", "evil.example:80")[0] == 403
        assert get(server, "/", "localhost:80")[0] == 200
        assert get(server, "/../secret.txt")[0] == 404
        assert get(server, "/data/")[0] == 404  # no lists of files


def test_several_pages_get_one_answer(folder: Path) -> None:
    asked: list[int] = []

    def live() -> dict[str, Any]:
        asked.append(1)
        return {"nodes": {}}

    with serving(folder, live) as server:
        assert {get(server, "/live.json")[1] for _ in range(3)} == {'{"nodes": {}}'}
    assert len(asked) == 1


def test_what_is_fresh_is_read_from_the_catalog_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = shop(tmp_path, PROJECT)
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: of.catalog)
    monkeypatch.setattr("mvbuild.api.documentation._not_created", lambda _: None)
    of.run()
    live = api.live_freshness(of.root)
    assert {id: found["state"] for id, found in live()["nodes"].items()} == {"model.shop.daily": "fresh", "model.shop.monthly": "fresh"}
    append(of.catalog, "raw.orders")
    found = live()["nodes"]["model.shop.daily"]
    assert (found["state"], [reason["code"] for reason in found["reasons"]]) == ("stale", ["base-table-changed"])

    def refuse(*_: Any, **__: Any) -> None:
        raise CatalogError("nobody answers", unreachable=True)

    monkeypatch.setattr(of.catalog, "load", refuse)
    assert live()["error"] == "nobody answers"
