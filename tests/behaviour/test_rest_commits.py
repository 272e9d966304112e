"""Several tables of a REST catalog in one request."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.world import World, layout, name, table_commit, view_commit
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.states import TableState, ViewState
from other_programs import drop
from servers.proxy import Proxy

TRANSACTION = "POST /v1/transactions/commit"


def staged(world: World, *names: str) -> list[TableState]:
    """Tables with one snapshot on main and another on the branch `audit`."""
    found = []
    for text in names:
        table = world.catalog.create_table(name(text), layout(id="long"), {})
        table = world.write(table.identifier, {"id": [1]}, "main")
        world.catalog.create_branch(table, "audit")
        found.append(world.write(table.identifier, {"id": [2]}, "audit"))
    return found


def publish(table: TableState, **changes: Any) -> Any:
    given: dict[str, Any] = {"set_properties": {"by": "me"}, **changes}
    return table_commit(table, set_snapshot_id=table.refs["audit"], drop_branches=("audit",), **given)


def states(world: World, *tables: TableState) -> dict[Any, Any]:
    return dict(world.catalog.load([table.identifier for table in tables]))


def test_several_tables_are_one_request(proxied: tuple[World, Proxy]) -> None:
    world, proxy = proxied
    assert world.catalog.atomic
    tables = staged(world, "mart.a", "mart.b", "mart.c")
    proxy.seen.clear()
    done = world.catalog.commit([publish(table) for table in tables])
    assert [one for one in proxy.seen if one.startswith("POST")] == [TRANSACTION]
    assert done == states(world, *tables)
    for table in tables:
        state = done[table.identifier]
        assert isinstance(state, TableState)
        assert (state.refs, state.properties["by"]) == ({"main": table.refs["audit"]}, "me")


@pytest.mark.proof
@pytest.mark.parametrize("faster", [0, 1, 2])
def test_a_conflict_in_one_of_them_moves_nothing(proxied: tuple[World, Proxy], rest_world: World, faster: int) -> None:
    world, proxy = proxied
    tables = staged(world, "mart.a", "mart.b", "mart.c")
    proxy.expect(TRANSACTION, before=lambda: rest_world.write(tables[faster].identifier, {"id": [9]}, "main"))
    with pytest.raises(CommitConflict, match=str(tables[faster].identifier)):
        world.catalog.commit([publish(table) for table in tables])
    assert proxy.counted(TRANSACTION) == 1
    found = states(world, *tables)
    for at, table in enumerate(tables):
        state = found[table.identifier]
        assert (state == table) == (at != faster)
        assert "by" not in state.properties
        assert state.refs["audit"] == table.refs["audit"]


@pytest.mark.proof
def test_a_table_that_was_dropped_meanwhile(proxied: tuple[World, Proxy], rest_world: World) -> None:
    world, proxy = proxied
    one, two = staged(world, "mart.a", "mart.b")
    proxy.expect(TRANSACTION, before=lambda: drop(rest_world.catalog, two.identifier))
    with pytest.raises(CommitConflict, match="no longer exists"):
        world.catalog.commit([publish(one), publish(two)])
    assert states(world, one) == {one.identifier: one}


def test_a_change_that_leaves_the_expectations_is_no_conflict(proxied: tuple[World, Proxy], rest_world: World) -> None:
    world, proxy = proxied
    one, two = staged(world, "mart.a", "mart.b")

    def others() -> None:
        rest_world.catalog.commit([table_commit(one, set_properties={"theirs": "1"})])

    proxy.expect(TRANSACTION, before=others)
    proxy.expect(TRANSACTION, before=others)
    done = world.catalog.commit([publish(one), publish(two, create_branch=("b", two.current_snapshot_id))])
    assert done[one.identifier].properties.items() >= {"theirs": "1", "by": "me"}.items()


def test_a_branch_of_an_empty_table_beside_another_that_is_written(proxied: tuple[World, Proxy], rest_world: World) -> None:
    world, proxy = proxied
    table = world.catalog.create_table(name("mart.a"), layout(id="long"), {})

    def others() -> None:
        rest_world.catalog.create_branch(table, "theirs")
        rest_world.write(table.identifier, {"id": [1]}, "theirs")

    proxy.expect("POST /v1/namespaces/mart/tables/a", before=others)
    made = world.catalog.create_branch(table, "mine")
    assert set(made.refs) == {"mine", "theirs"}
    numbers = {id: snapshot.sequence_number for id, snapshot in made.snapshots.items()}
    assert numbers[made.refs["mine"]] > numbers[made.refs["theirs"]]
    assert world.write(table.identifier, {"id": [2]}, "mine").current_snapshot_id is None


def test_a_conflict_shows_before_a_view_is_changed(rest_world: World) -> None:
    one, two = staged(rest_world, "mart.a", "mart.b")
    (view,) = rest_world.catalog.commit([view_commit("mart.v")]).values()
    assert isinstance(view, ViewState)
    rest_world.write(two.identifier, {"id": [9]}, "main")
    changes = [
        view_commit("mart.v", "SELECT 2", expect=view.metadata_location, version=2),
        view_commit("mart.w"),
        publish(one),
        publish(two),
    ]
    with pytest.raises(CommitConflict, match=r"mart\.b"):
        rest_world.catalog.commit(changes)
    assert rest_world.catalog.load([one.identifier, view.identifier, name("mart.w")]) == {one.identifier: one, view.identifier: view}


@pytest.mark.proof
def test_views_that_were_changed_before_the_conflict_are_told(proxied: tuple[World, Proxy], rest_world: World) -> None:
    world, proxy = proxied
    one, two = staged(world, "mart.a", "mart.b")
    proxy.expect(TRANSACTION, before=lambda: rest_world.write(two.identifier, {"id": [9]}, "main"))
    with pytest.raises(CommitConflict, match=r"mart\.b was changed.*views of the same commit were already changed: lake\.mart\.v"):
        world.catalog.commit([view_commit("mart.v"), publish(one), publish(two)])
    assert states(world, one) == {one.identifier: one}


def test_one_table_twice(rest_world: World) -> None:
    (table,) = staged(rest_world, "mart.a")
    with pytest.raises(CatalogError, match="only once"):
        rest_world.catalog.commit([publish(table), publish(table)])


def test_layouts_and_renames_among_others(rest_world: World) -> None:
    one, two = staged(rest_world, "mart.a", "mart.b")
    rest_world.catalog.ensure_namespace(("größe", "a b"))
    to = two.identifier._replace(namespace=("größe", "a b"), name="日 本")
    done = rest_world.catalog.commit([publish(one, layout=layout(id="long", n="string")), publish(two, rename_to=to)])
    first, second = done[one.identifier], done[to]
    assert isinstance(first, TableState)
    assert isinstance(second, TableState)
    assert [f["name"] for f in first.schema["fields"]] == ["id", "n"]
    assert (second.uuid, second.current_snapshot_id) == (two.uuid, two.refs["audit"])
    assert rest_world.catalog.load([two.identifier]) == {}


def test_the_third_format(rest_world: World) -> None:
    tables = []
    for text in ("mart.a", "mart.b"):
        table = rest_world.catalog.create_table(name(text), layout(id="long"), {"format-version": "3"})
        tables.append(rest_world.catalog.create_branch(table, "audit"))
    done = rest_world.catalog.commit([publish(table) for table in tables])
    for table in tables:
        state = done[table.identifier]
        assert isinstance(state, TableState)
        assert (state.format_version, state.current_snapshot_id) == (3, table.refs["audit"])
    (one, *_) = done.values()
    assert isinstance(one, TableState)
    rest_world.catalog.commit([table_commit(one, restate={"k": "v"})])


def test_a_server_that_tells_of_no_transactions(rest_world: World) -> None:
    tables = staged(rest_world, "mart.a", "mart.b")
    catalog: Any = rest_world.catalog
    known = catalog._publisher.catalog()._supported_endpoints
    known -= {one for one in known if one.path.endswith("transactions/commit")}
    assert not catalog.atomic
    done = catalog.commit([publish(table) for table in tables])
    assert [done[table.identifier].properties["by"] for table in tables] == ["me", "me"]
    known -= {one for one in known if "views" in one.path}
    assert not catalog.has_views
    with pytest.raises(CatalogError, match="does not announce views"):
        catalog.commit([view_commit("mart.v")])
