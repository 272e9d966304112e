"""A REST server whose answers get lost: mvbuild finds out what was executed, and executes it once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from behaviour.test_rest_commits import TRANSACTION, publish, staged, states
from behaviour.world import World, name, remote, schema, table_commit, view_commit
from mvbuild.adapters.iceberg import remote_answers, rest_requests
from mvbuild.adapters.iceberg.retries import Retries
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.commits import ViewCommit
from mvbuild.ports.states import TableState, ViewState
from other_programs import drop
from servers.proxy import Proxy

pytestmark = pytest.mark.proof

Proxied = tuple[World, Proxy]
V = name("mart.v")
POST_A = "POST /v1/namespaces/mart/tables/a"
POST_V = "POST /v1/namespaces/mart/views/v"
ACCIDENTS: dict[str, dict[str, Any]] = {
    "connection cut, made": {},
    "connection cut, not made": {"forwarded": False},
    "500, made": {"status": 500},
    "502, not made": {"forwarded": False, "status": 502},
    "503, not made": {"forwarded": False, "status": 503},
    "504, made": {"status": 504},
    "cut three times, not made": {"forwarded": False, "times": 3},
}


@pytest.fixture(params=ACCIDENTS.values(), ids=ACCIDENTS)
def accident(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"lost": True, **request.param}


def _view(world: World, change: ViewCommit) -> ViewState:
    (state,) = world.catalog.commit([change]).values()
    assert isinstance(state, ViewState)
    return state


def _sent(accident: dict[str, Any]) -> int:
    """How often a request is sent in the end."""
    return 1 if accident.get("forwarded", True) else 1 + accident.get("times", 1)


def test_one_table(proxied: Proxied, accident: dict[str, Any]) -> None:
    world, proxy = proxied
    (table,) = staged(world, "mart.a")
    proxy.seen.clear()
    proxy.expect(POST_A, **accident)
    state = world.catalog.commit([publish(table)])[table.identifier]
    assert isinstance(state, TableState)
    assert (state.refs, state.properties["by"]) == ({"main": table.refs["audit"]}, "me")
    assert [entry[1] for entry in state.snapshot_log] == [table.current_snapshot_id, table.refs["audit"]]
    assert proxy.counted(POST_A) == _sent(accident)


def test_several_tables(proxied: Proxied, accident: dict[str, Any]) -> None:
    world, proxy = proxied
    tables = staged(world, "mart.a", "mart.b")
    proxy.expect(TRANSACTION, **accident)
    done = world.catalog.commit([publish(tables[0]), table_commit(tables[1], set_properties={"only": "this"})])
    assert done == states(world, *tables)
    assert done[tables[0].identifier].properties["by"] == "me"
    assert done[tables[1].identifier].properties["only"] == "this"
    assert proxy.counted(TRANSACTION) == _sent(accident)


def test_properties_alone_and_a_restated_snapshot(proxied: Proxied, accident: dict[str, Any]) -> None:
    world, proxy = proxied
    (table,) = staged(world, "mart.a")
    proxy.expect(POST_A, **accident)
    (state,) = world.catalog.commit([table_commit(table, set_properties={"a": "b"})]).values()
    assert isinstance(state, TableState)
    assert state.properties["a"] == "b"
    proxy.expect(POST_A, **accident)
    (state,) = world.catalog.commit([table_commit(state, restate={"k": "v"}, remove_properties=("a",))]).values()
    assert isinstance(state, TableState)
    assert len(state.snapshots) == len(table.snapshots) + 1
    assert state.current_snapshot
    assert (state.current_snapshot.operation, state.current_snapshot.summary["k"]) == ("replace", "v")
    assert "a" not in state.properties


def test_a_new_view(proxied: Proxied, accident: dict[str, Any]) -> None:
    world, proxy = proxied
    proxy.expect("POST /v1/namespaces/mart/views", **accident)
    state = _view(world, view_commit("mart.v", properties={"a": "b"}))
    assert (state.version_id, state.properties) == (1, {"a": "b"})
    assert world.catalog.load([V]) == {V: state}


def test_a_replaced_view(proxied: Proxied, accident: dict[str, Any]) -> None:
    world, proxy = proxied
    base = _view(world, view_commit("mart.v", "SELECT 0 AS a"))
    proxy.expect(POST_V, **accident)
    change = view_commit("mart.v", "SELECT 1 AS b", expect=base.metadata_location, version=2, schema=schema(b="int"), properties={"c": "d"})
    state = _view(world, change)
    assert (state.version_id, state.last_version_id, state.representations) == (2, 2, {"spark": "SELECT 1 AS b"})
    proxy.expect(POST_V, **accident)
    state = _view(world, replace(change, expect_metadata_location=state.metadata_location, version_id=None, properties={"c": "e"}))
    assert (state.version_id, state.properties) == (2, {"c": "e"})


def test_renames_and_drops(proxied: Proxied, accident: dict[str, Any]) -> None:
    world, proxy = proxied
    base = _view(world, view_commit("mart.v"))
    proxy.expect("POST /v1/views/rename", **accident)
    state = _view(world, view_commit("mart.v", expect=base.metadata_location, version=2, rename_to=name("mart.w")))
    assert (state.identifier, state.uuid, state.version_id) == (name("mart.w"), base.uuid, 2)
    (table,) = staged(world, "mart.a")
    proxy.expect("POST /v1/tables/rename", **accident)
    done = world.catalog.commit([table_commit(table, rename_to=name("mart.b"))])
    assert [i.name for i in done] == ["b"]
    proxy.expect("DELETE /v1/namespaces/mart/views/w", **accident)
    drop(world.catalog, name("mart.w"))
    assert world.catalog.list_names(("mart",)) == (name("mart.b"),)


def test_an_answer_that_does_not_come(proxied: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_requests, "_SECONDS", (5, 1))
    world, proxy = proxied
    (table,) = staged(world, "mart.a")
    proxy.seen.clear()
    proxy.expect(POST_A, after=lambda: time.sleep(2))
    state = world.catalog.commit([publish(table)])[table.identifier]
    assert (state.properties["by"], proxy.counted(POST_A)) == ("me", 1)


def test_made_and_then_changed_by_others(proxied: Proxied, rest_world: World) -> None:
    world, proxy = proxied
    (table,) = staged(world, "mart.a")
    proxy.expect(POST_A, lost=True, after=lambda: rest_world.write(table.identifier, {"id": [3]}, "main"))
    state = world.catalog.commit([publish(table)])[table.identifier]
    assert isinstance(state, TableState)
    assert [entry[1] for entry in state.snapshot_log][1] == table.refs["audit"]
    assert len(state.snapshot_log) == 3

    base = _view(world, view_commit("mart.v", "SELECT 0 AS a"))

    def others() -> None:
        (now,) = rest_world.catalog.load([V]).values()
        assert isinstance(now, ViewState)
        _view(rest_world, view_commit("mart.v", "SELECT 'later' AS a", expect=now.metadata_location, version=now.last_version_id + 1))

    proxy.expect(POST_V, lost=True, after=others)
    found = _view(world, view_commit("mart.v", "SELECT 1 AS a", expect=base.metadata_location, version=2))
    assert (found.version_id, found.representations) == (3, {"spark": "SELECT 'later' AS a"})


def test_not_made_and_then_changed_by_others(proxied: Proxied, rest_world: World) -> None:
    world, proxy = proxied
    one, two = staged(world, "mart.a", "mart.b")
    faster: Callable[[], Any] = lambda: rest_world.write(two.identifier, {"id": [3]}, "main")  # noqa: E731
    proxy.expect(TRANSACTION, lost=True, forwarded=False, after=faster)
    with pytest.raises(CommitConflict, match=r"mart\.b"):
        world.catalog.commit([publish(one), publish(two)])
    assert states(world, one) == {one.identifier: one}


def test_a_server_that_does_not_come_back(proxied: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_answers, "_TRIES", Retries(number=2, min_wait_ms=1))
    world, proxy = proxied
    (table,) = staged(world, "mart.a")
    proxy.expect(POST_A, lost=True, after=lambda: proxy.expect("", lost=True, forwarded=False, times=99))
    with pytest.raises(CatalogError, match=r"outcome of the commit of .*mart\.a is unknown") as caught:
        world.catalog.commit([publish(table)])
    assert caught.value.unreachable
    proxy.accidents.clear()
    assert world.catalog.load([table.identifier])[table.identifier].properties["by"] == "me"


def test_a_token_that_expired(proxied: Proxied) -> None:
    world, proxy = proxied
    (table,) = staged(world, "mart.a")
    proxy.expect(POST_A, lost=True, forwarded=False, status=419)
    state = world.catalog.commit([publish(table)])[table.identifier]
    assert state.properties["by"] == "me"
    proxy.expect(POST_A, lost=True, forwarded=False, status=403)
    with pytest.raises(CatalogError, match="cannot be reached: ForbiddenError"):
        world.catalog.commit([table_commit(state, set_properties={"a": "b"})])


@pytest.mark.parametrize("made", [True, False])
def test_catalogs_that_pyiceberg_commits_to(tmp_path: Path, made: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.exceptions import CommitStateUnknownException

    world: Any = remote(tmp_path)
    world.catalog.ensure_namespace(("mart",))
    (table,) = staged(world, "mart.a")
    real, calls = world.catalog._publisher.catalog().commit_table, []

    def commit_table(*given: Any) -> Any:
        calls.append(given)
        if made or len(calls) > 1:
            real(*given)
        if len(calls) == 1:
            raise CommitStateUnknownException("the line went dead")

    monkeypatch.setattr(world.catalog._publisher.catalog(), "commit_table", commit_table)
    state = world.catalog.commit([publish(table)])[table.identifier]
    assert (state.refs, state.properties["by"], len(calls)) == ({"main": table.refs["audit"]}, "me", 1 if made else 2)
    world.close()
