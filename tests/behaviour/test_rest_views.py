"""Views of a REST catalog: what its protocol does not compare, and what its server decides."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from behaviour.world import World, layout, name, schema, table_commit, view_commit
from mvbuild.adapters.iceberg.metadata import parse
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict
from mvbuild.ports.commits import ConvertCommit, ViewCommit
from mvbuild.ports.states import TableState, ViewState
from other_programs import drop
from servers.proxy import Proxy

V = name("mart.v")
POST_V = "POST /v1/namespaces/mart/views/v"


def _put(world: World, change: ViewCommit) -> ViewState:
    (state,) = world.catalog.commit([change]).values()
    assert isinstance(state, ViewState)
    return state


def _next(state: ViewState, sql: str, **changes: Any) -> ViewCommit:
    return view_commit(str(state.identifier), sql, expect=state.metadata_location, version=state.last_version_id + 1, **changes)


def _raw(state: ViewState) -> dict[str, Any]:
    return parse(Path(state.metadata_location.removeprefix("file://").removeprefix("file:")).read_bytes(), state.metadata_location)


@pytest.fixture
def view(rest_world: World) -> ViewState:
    return _put(rest_world, view_commit("mart.v", "SELECT 0 AS a", properties={"kept": "1", "gone": "2"}))


def test_the_metadata_location_is_that_of_the_file(rest_world: World, view: ViewState) -> None:
    assert _raw(view)["view-uuid"] == view.uuid
    state = _put(rest_world, _next(view, "SELECT 1 AS a", properties={"new": "é"}, remove_properties=("gone",)))
    assert _raw(state)["current-version-id"] == state.version_id == 2
    assert (state.uuid, state.location) == (view.uuid, view.location)
    assert state.properties == {"kept": "1", "new": "é"}
    assert state.spark_versions == {1: "SELECT 0 AS a", 2: "SELECT 1 AS a"}


def test_back_to_an_older_text_is_a_new_version(rest_world: World, view: ViewState) -> None:
    state = view
    for number, sql in enumerate(("SELECT 1 AS a", "SELECT 0 AS a", "SELECT 0 AS a"), start=2):
        state = _put(rest_world, _next(state, sql))
        assert (state.version_id, state.last_version_id) == (number, number)
        assert state.representations == {"spark": sql}


def test_back_to_older_columns(rest_world: World, view: ViewState) -> None:
    wide = schema(a="int", b="decimal(9, 2)", c={"type": "list", "element-id": 9, "element": "int", "element-required": False})
    state = _put(rest_world, _next(view, "SELECT 1", schema=wide))
    for sql, wanted in (("SELECT 2", schema(a="int")), ("SELECT 3", wide), ("SELECT 4", wide)):
        state = _put(rest_world, _next(state, sql, schema=wanted))
        assert [f["name"] for f in state.schema["fields"]] == [f["name"] for f in wanted["fields"]]
    assert len(_raw(state)["schemas"]) == 2


@pytest.mark.parametrize("setting", [{}, {"replace.drop-dialect.allowed": "false"}, {"replace.append-dialect.allowed": "true"}])
def test_a_dialect_can_go(rest_world: World, setting: dict[str, str]) -> None:
    both = {"spark": "SELECT 1 AS a", "trino": "SELECT 1 a"}
    state = _put(rest_world, view_commit("mart.v", properties={"k": "v", **setting}, representations=both))
    assert state.representations == both
    state = _put(rest_world, _next(state, "SELECT 2 AS a"))
    assert state.representations == {"spark": "SELECT 2 AS a"}
    assert state.properties == {"k": "v", **setting}
    assert state.metadata_location == rest_world.catalog.load([V])[V].metadata_location


def test_names_lists_and_drops(rest_world: World) -> None:
    rest_world.catalog.ensure_namespace(("größe", "a b", "c"))
    nested = [TableIdentifier("lake", ("größe", "a b", "c"), text) for text in ("x y", "日本", "d.o.t", 'qu"o`te', "a+b", "v")]
    for identifier in nested:
        change = view_commit("mart.v", "SELECT 'é' AS a")
        (state,) = rest_world.catalog.commit([replace(change, identifier=identifier)]).values()
        assert isinstance(state, ViewState)
        again = view_commit("mart.v", "SELECT 'ü' AS a", expect=state.metadata_location, version=2)
        (state,) = rest_world.catalog.commit([replace(again, identifier=identifier)]).values()
        assert rest_world.catalog.load([identifier]) == {identifier: state}
        assert isinstance(state, ViewState)
        assert state.representations == {"spark": "SELECT 'ü' AS a"}
    assert rest_world.catalog.list_names(("größe", "a b", "c")) == tuple(sorted(nested))
    assert rest_world.catalog.list_views() == tuple(sorted(nested))
    assert rest_world.pyiceberg
    plain = rest_world.pyiceberg()
    assert sorted(plain.list_views(("größe", "a b", "c"))) == sorted((*v.namespace, v.name) for v in nested)
    assert plain.load_view(("größe", "a b", "c", "日本")).metadata.current_version_id == 2
    plain.close()
    for identifier in nested:
        drop(rest_world.catalog, identifier)
        drop(rest_world.catalog, identifier)
    assert rest_world.catalog.list_views() == ()


def test_renames(rest_world: World, view: ViewState) -> None:
    rest_world.catalog.ensure_namespace(("other", "below"))
    rest_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    for taken in ("mart.t", "mart.w"):
        if taken == "mart.w":
            _put(rest_world, view_commit(taken))
        with pytest.raises(AlreadyExists, match=taken):
            rest_world.catalog.commit([_next(view, "SELECT 1 AS a", rename_to=name(taken))])
        assert rest_world.catalog.load([V]) == {V: view}
    with pytest.raises(CatalogError, match="nowhere"):
        rest_world.catalog.commit([_next(view, "SELECT 1 AS a", rename_to=name("nowhere.v"))])
    state = _put(rest_world, _next(view, "SELECT 5 AS a", rename_to=name("other.below.v")))
    assert (state.identifier, state.uuid, state.representations) == (name("other.below.v"), view.uuid, {"spark": "SELECT 5 AS a"})
    assert rest_world.catalog.load([V, state.identifier]) == {state.identifier: state}


def test_who_was_faster_between_look_and_commit_stays(proxied: tuple[World, Proxy], rest_world: World) -> None:
    world, proxy = proxied
    base = _put(world, view_commit("mart.v", "SELECT 0 AS a"))
    proxy.expect(POST_V, before=lambda: _put(rest_world, _next(base, "SELECT 'theirs' AS a")))
    with pytest.raises(CommitConflict, match="changed by another process"):
        _put(world, _next(base, "SELECT 'ours' AS a"))
    (now,) = world.catalog.load([V]).values()
    assert isinstance(now, ViewState)
    assert (now.representations, now.version_id) == ({"spark": "SELECT 'theirs' AS a"}, 2)
    after = _put(world, _next(now, "SELECT 'ours' AS a"))
    assert (after.representations, after.version_id) == ({"spark": "SELECT 'ours' AS a"}, now.last_version_id + 1)


def test_a_view_that_came_or_went_meanwhile(proxied: tuple[World, Proxy], rest_world: World) -> None:
    world, proxy = proxied
    proxy.expect("POST /v1/namespaces/mart/views", before=lambda: _put(rest_world, view_commit("mart.v", "SELECT 1 AS a")))
    with pytest.raises(CommitConflict, match="created"):
        _put(world, view_commit("mart.v", "SELECT 2 AS a"))
    (now,) = world.catalog.load([V]).values()
    assert isinstance(now, ViewState)
    proxy.expect(POST_V, before=lambda: drop(rest_world.catalog, V))
    with pytest.raises(CommitConflict, match="dropped"):
        _put(world, _next(now, "SELECT 3 AS a"))

    def again() -> None:
        drop(rest_world.catalog, V)
        _put(rest_world, view_commit("mart.v", "SELECT 4 AS a"))

    now = _put(world, view_commit("mart.v", "SELECT 1 AS a"))
    proxy.expect(POST_V, before=again)
    with pytest.raises(CommitConflict, match="changed"):
        _put(world, _next(now, "SELECT 3 AS a"))


def test_of_eight_that_replace_a_view_one_wins(rest_world: World, view: ViewState) -> None:
    def attempt(number: int) -> bool:
        try:
            rest_world.catalog.commit([_next(view, f"SELECT {number} AS a", schema=schema(**{f"c{number % 3}": "int"}))])
        except CommitConflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(8)))
    assert sum(won) == 1
    (state,) = rest_world.catalog.load([V]).values()
    assert isinstance(state, ViewState)
    assert state.representations == {"spark": f"SELECT {won.index(True)} AS a"}


def test_the_server_chooses_the_uuid_of_a_new_view(rest_world: World) -> None:
    wished = "11111111-2222-3333-4444-555555555555"
    table = rest_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    record = {f"iceberg.child.view.version.{wished}": "1", "of": f"[{wished}]", "other": "x"}
    done = rest_world.catalog.commit([table_commit(table, set_properties=record), view_commit("mart.v", uuid=wished)])
    view, state = done[V], done[table.identifier]
    assert isinstance(view, ViewState)
    assert isinstance(state, TableState)
    assert view.uuid != wished
    assert {k: v for k, v in state.properties.items() if k in ("of", "other") or "child" in k} == {
        f"iceberg.child.view.version.{view.uuid}": "1",
        "of": f"[{view.uuid}]",
        "other": "x",
    }


def _convert(table: TableState, view: ViewState) -> ConvertCommit:
    return ConvertCommit(view=view, storage=table, to="metadata-file", storage_name=table.identifier)


@pytest.mark.parametrize(
    "ask",
    [
        lambda c, t, v: c.new_storage(V, layout(id="long"), {}),
        lambda c, t, v: c.commit([table_commit(t, of_view=V)]),
        lambda c, t, v: c.commit([_convert(t, v)]),
    ],
)
def test_the_metadata_file_format_needs_a_view_that_is_compared(rest_world: World, view: ViewState, ask: Callable[..., object]) -> None:
    table = rest_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    with pytest.raises(CatalogError, match="replaces a view without comparing it"):
        ask(rest_world.catalog, table, view)
