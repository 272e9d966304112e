"""Names that are looked up again with what the catalog said of them before: the same answers, with less to read."""

from __future__ import annotations

from behaviour.world import World, layout, name, view_commit
from mvbuild.adapters.iceberg.remote_lookup import origin_of, tag_of
from other_programs import drop
from servers.proxy import Proxy

TABLES = [name(f"mart.t{number}") for number in range(3)]
VIEW, MISSING = name("mart.v"), name("mart.nothing")
NAMES = [*TABLES, VIEW, MISSING]


def filled(world: World) -> None:
    for at, table in enumerate(TABLES):
        world.catalog.create_table(table, layout(id="long"), {})
        world.write(table, {"id": [at]}, "main")
    if world.catalog.has_views:
        world.catalog.commit([view_commit("mart.v")])


def test_a_lookup_has_what_a_load_has(world: World) -> None:
    filled(world)
    lookup = world.catalog.look_up(NAMES, {})
    again = world.catalog.look_up(NAMES, lookup.tags)
    states = world.catalog.load(NAMES)
    for one in (lookup, again):
        assert one.load(NAMES) == states
        assert one.stamps.keys() == states.keys()
        assert one.views == ({VIEW} if world.catalog.has_views else set())
        assert one.stamps == lookup.stamps
        assert one.tags == lookup.tags


def test_what_changed_has_another_stamp(world: World) -> None:
    filled(world)
    lookup = world.catalog.look_up(NAMES, {})
    world.write(TABLES[0], {"id": [9]}, "main")
    drop(world.catalog, TABLES[1])
    again = world.catalog.look_up(NAMES, lookup.tags)
    assert again.load(NAMES) == world.catalog.load(NAMES)
    assert again.stamps[TABLES[0]] is None or again.stamps[TABLES[0]] != lookup.stamps[TABLES[0]]
    assert TABLES[1] not in again.stamps
    assert again.stamps[TABLES[2]] == lookup.stamps[TABLES[2]]


def test_a_state_is_that_of_the_lookup(world: World) -> None:
    """Whatever happened since: what is remembered of it counts for the metadata that the lookup found."""
    filled(world)
    tags, states = world.catalog.look_up(NAMES, {}).tags, world.catalog.load(NAMES)
    lookup = world.catalog.look_up(NAMES, tags)
    world.write(TABLES[0], {"id": [9]}, "main")
    assert lookup.load(NAMES) == states


def test_a_server_with_etags_sends_only_what_changed(proxied: tuple[World, Proxy]) -> None:
    world, proxy = proxied
    filled(world)
    lookup = world.catalog.look_up(NAMES, {})
    world.write(TABLES[0], {"id": [9]}, "main")
    proxy.seen.clear()
    proxy.statuses.clear()
    again = world.catalog.look_up(NAMES, lookup.tags)
    assert sorted(proxy.statuses) == [200, 200, 304, 304, 404, 404]  # a table and the view; two tables; neither table nor view
    assert proxy.counted("GET /v1/namespaces/mart/tables/v") == 0
    assert again.load(NAMES) == world.catalog.load(NAMES)


def test_a_view_that_became_a_table(proxied: tuple[World, Proxy]) -> None:
    world, _ = proxied
    filled(world)
    lookup = world.catalog.look_up(NAMES, {})
    drop(world.catalog, VIEW)
    world.catalog.create_table(VIEW, layout(id="long"), {})
    again = world.catalog.look_up(NAMES, lookup.tags)
    assert again.views == frozenset()
    assert again.load([VIEW]) == world.catalog.load([VIEW])


def test_a_table_that_was_dropped_since_is_unreadable(proxied: tuple[World, Proxy]) -> None:
    world, _ = proxied
    filled(world)
    lookup = world.catalog.look_up(NAMES, world.catalog.look_up(NAMES, {}).tags)
    drop(world.catalog, TABLES[0])
    state = lookup.load([TABLES[0]])[TABLES[0]]
    assert "no longer exists" in getattr(state, "reason", "")


def test_a_tag_of_another_catalog_is_none(proxied: tuple[World, Proxy]) -> None:
    world, _ = proxied
    filled(world)
    text = world.catalog.look_up(NAMES, {}).tags[str(TABLES[0])]
    assert tag_of(text, "another") is None
    assert tag_of(None, "another") is None
    one = {"uri": "http://a", "warehouse": "w"}
    assert (
        len(
            {origin_of(one), origin_of({**one, "uri": "http://b"}), origin_of({**one, "warehouse": "x"}), origin_of({**one, "prefix": "p"})}
        )
        == 4
    )
    assert origin_of({**one, "token": "secret"}) == origin_of(one)
