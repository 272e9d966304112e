"""Records of mvbuild, read by a reader that knows only the three freshness rules of the property-based specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

import spec_reader
from mvbuild.freshness.rules import judge
from mvbuild.ports.commits import DropCommit, TableCommit, ViewCommit
from mvbuild.ports.states import TableState, ViewState
from unit.worlds import Shop, append, base_table, name, shop

CHAIN = {
    "mvbuild.yml": "name: shop\n",
    "models/clean.sql": "{{ config(materialized='view') }}\nSELECT id FROM raw.orders\n",
    "models/up.sql": "SELECT id FROM clean\n",
    "models/mid.sql": "SELECT id FROM up\n",
    "models/dn.sql": "SELECT id FROM mid\n",
    "models/plain.sql": "SELECT id FROM raw.customers\n",
    "models/joined.sql": "SELECT id FROM raw.customers JOIN clean USING (id)\n",
}
"""raw.orders -> view clean -> MV up -> MV mid -> MV dn, and MVs of one table and of a join."""
ALL = {"up", "mid", "dn", "plain", "joined"}


def entries(of: Shop) -> list[spec_reader.Entry]:
    found = []
    for namespace in ("main", "raw"):
        states = of.catalog.load(of.catalog.list_names((namespace,)))
        for identifier, state in states.items():
            if isinstance(state, TableState):
                current = -1 if state.current_snapshot_id is None else state.current_snapshot_id
            else:
                assert isinstance(state, ViewState)
                current = state.version_id
            found.append(
                spec_reader.Entry(
                    name=identifier.dotted,
                    uuid=state.uuid,
                    properties=state.properties,
                    current=current,
                    is_view=isinstance(state, ViewState),
                )
            )
    return found


def fresh(of: Shop) -> set[str]:
    """What such a reader calls fresh. Nothing of it may be stale."""
    found = entries(of)
    told = {mv.removeprefix("main.") for mv in spec_reader.mvs(found) if spec_reader.fresh(found, mv)}
    stale = {id.rpartition(".")[2] for id, freshness in judge(of.world()).items() if freshness.state == "stale"}
    assert not told & stale, f"stale, and fresh for a reader of the specification: {told & stale}"
    return told


def view(of: Shop, text: str) -> ViewState:
    state = of.catalog.load([name(text)])[name(text)]
    assert isinstance(state, ViewState)
    return state


def version(of: ViewState, sql: str, *, location: str | None = None, number: int | None = None) -> ViewCommit:
    """Another writer's next version of a view."""
    return ViewCommit(
        identifier=of.identifier,
        expect_metadata_location=location,
        version_id=number or of.last_version_id + 1,
        schema=of.schema,
        representations={"spark": sql},
        default_namespace=of.default_namespace,
        properties=dict(of.properties),
        uuid=str(uuid4()) if location is None else None,
    )


@pytest.fixture
def built(tmp_path: Path) -> Shop:
    made = shop(tmp_path, CHAIN)
    assert made.run().ok
    return made


def test_everything_is_fresh_after_a_run(built: Shop) -> None:
    assert fresh(built) == ALL
    assert set(built.actions().values()) == {"reuse"}


def test_mvs_over_an_mv_are_stale_when_its_base_table_changes(built: Shop) -> None:
    append(built.catalog, "raw.orders")
    assert fresh(built) == {"plain"}
    assert built.run().ok
    assert fresh(built) == ALL


def test_mvs_over_an_mv_are_stale_when_its_definition_changes(built: Shop) -> None:
    up = view(built, "main.up")
    built.catalog.commit([version(up, "SELECT id + 1 AS id FROM lake.main.clean", location=up.metadata_location)])
    assert fresh(built) == {"plain", "joined"}


def test_mvs_over_an_mv_are_stale_when_a_child_view_of_it_changes(built: Shop) -> None:
    clean = view(built, "main.clean")
    built.catalog.commit([version(clean, "SELECT id FROM lake.raw.orders WHERE id > 1", location=clean.metadata_location)])
    assert fresh(built) == {"plain"}


@pytest.mark.parametrize("number", [1, 2])
def test_an_mv_whose_view_was_dropped_and_created_with_the_same_version_is_stale(built: Shop, number: int) -> None:
    if number == 2:
        built.write({"models/up.sql": "SELECT id FROM clean WHERE id > 0\n"})
        assert built.run().ok
    up = view(built, "main.up")
    assert up.version_id == number
    built.catalog.commit([DropCommit(identifier=up.identifier, expect_metadata_location=up.metadata_location)])
    built.catalog.commit([version(up, "SELECT 7 AS id", number=number)])
    assert view(built, "main.up").version_id == number
    assert fresh(built) == {"plain", "joined"}


def test_a_view_that_was_created_again_with_the_new_definition_is_stale_for_mvbuild_too(built: Shop) -> None:
    """Its version is the recorded one, and its text is the project's."""
    up = view(built, "main.up")
    sql = up.representations["spark"] + " WHERE id > 5"
    built.write({"models/up.sql": "SELECT id FROM clean WHERE id > 5\n"})
    built.catalog.commit([DropCommit(identifier=up.identifier, expect_metadata_location=up.metadata_location)])
    built.catalog.commit([version(up, sql, number=1)])
    found = judge(built.world())["model.shop.up"]
    assert [r.code for r in found.reasons] == ["view-recreated"]
    assert built.run().ok
    assert fresh(built) == ALL


def test_a_new_text_of_an_upstream_view_with_the_same_meaning_leaves_everything_fresh(built: Shop) -> None:
    built.write({"models/up.sql": "SELECT\n  id\nFROM clean\n"})
    assert built.actions() == {"clean": "reuse", "up": "alter", "mid": "record", "dn": "record", "plain": "reuse", "joined": "reuse"}
    built.engine.executed.clear()
    assert set(built.statuses().values()) == {"reused"}
    assert built.engine.executed == []
    assert fresh(built) == ALL
    assert set(built.actions().values()) == {"reuse"}


def test_a_compacted_base_table_of_an_upstream_mv_leaves_everything_fresh(built: Shop) -> None:
    append(built.catalog, "raw.orders", operation="replace")
    assert set(built.statuses().values()) == {"reused"}
    assert fresh(built) == ALL
    assert set(built.actions().values()) == {"reuse"}


@pytest.mark.parametrize("of", ["up", "mid", "dn"])
def test_an_upstream_mv_that_is_behind_makes_what_reads_the_same_table_stale(built: Shop, of: str) -> None:
    """`both` reads orders as they are, and an MV that was made of older ones."""
    built.write({"models/both.sql": f"SELECT id FROM {of} JOIN raw.orders USING (id)\n"})
    append(built.catalog, "raw.orders")
    assert built.run("both").ok
    assert "both" not in fresh(built)
    assert built.run().ok
    assert fresh(built) == {*ALL, "both"}


def _branch(of: Shop, text: str, branch: str) -> None:
    state = of.table(text)
    assert state.current_snapshot_id is not None
    of.catalog.commit(
        [
            TableCommit(
                identifier=state.identifier,
                expect_uuid=state.uuid,
                expect_snapshot_id=state.current_snapshot_id,
                create_branch=(branch, state.current_snapshot_id),
            )
        ]
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM raw.orders VERSION AS OF 'b'\n",
        "SELECT o.id FROM raw.orders o JOIN raw.orders VERSION AS OF 'b' AS p ON o.id = p.id\n",
    ],
    ids=["branch", "main and branch"],
)
def test_an_mv_that_reads_a_branch_is_never_fresh_for_such_a_reader(built: Shop, query: str) -> None:
    """The branch starts at the snapshot of `main`, and moves without it."""
    _branch(built, "raw.orders", "b")
    built.write({"models/at_branch.sql": query, "models/over.sql": "SELECT id FROM at_branch\n"})
    assert built.run().ok
    assert set(built.actions().values()) == {"reuse"}
    assert fresh(built) == ALL
    built.catalog.append_snapshot(name("raw.orders"), {"id": [9]}, branch="b")
    assert fresh(built) == ALL


def test_a_self_join_with_time_travel_follows_the_table(built: Shop) -> None:
    at = built.table("raw.orders").current_snapshot_id
    query = f"SELECT o.id FROM raw.orders VERSION AS OF {at} AS p JOIN raw.orders o ON o.id = p.id\n"
    built.write({"models/since.sql": query})
    assert built.run().ok
    assert "since" in fresh(built)
    append(built.catalog, "raw.orders")
    assert "since" not in fresh(built)
    assert built.run("since").ok
    assert "since" in fresh(built)


def test_a_version_by_a_time_without_a_zone_is_never_fresh_for_such_a_reader(built: Shop) -> None:
    """In a session of another zone the text can mean another snapshot, and the reader knows of no sessions."""
    text = "SELECT x.id FROM raw.orders x JOIN raw.orders TIMESTAMP AS OF '2030-01-01 00:00:00{}' AS y ON x.id = y.id\n"
    built.write({"models/at_time.sql": text.format(""), "models/at_instant.sql": text.format(" UTC")})
    assert built.run().ok
    assert fresh(built) == {*ALL, "at_instant"}
    assert set(built.actions().values()) == {"reuse"}


def test_a_query_that_asks_the_clock_is_never_fresh_for_such_a_reader(built: Shop) -> None:
    built.write({"models/today.sql": "SELECT id FROM raw.customers WHERE current_date > DATE'2020-01-01'\n"})
    assert built.run().ok
    assert fresh(built) == ALL


def test_records_of_before_are_completed_by_the_next_run(built: Shop) -> None:
    """An MV over an MV whose record names only what the query itself reads."""
    _forget_indirect(built, "main.mid__storage")
    assert built.actions() == {"clean": "reuse", "up": "reuse", "mid": "record", "dn": "record", "plain": "reuse", "joined": "reuse"}
    assert set(built.statuses().values()) == {"reused"}
    assert set(built.actions().values()) == {"reuse"}
    append(built.catalog, "raw.orders")
    assert fresh(built) == {"plain"}


def _forget_indirect(of: Shop, text: str) -> None:
    state = of.table(text)
    indirect = state.properties["mvbuild.record.indirect"].split(",")
    gone = [key for key in state.properties if key.rpartition(".")[2] in indirect]
    of.catalog.commit(
        [
            TableCommit(
                identifier=state.identifier,
                expect_uuid=state.uuid,
                expect_snapshot_id=state.current_snapshot_id,
                remove_properties=(*gone, "mvbuild.record.indirect"),
            )
        ]
    )


def test_a_query_that_no_longer_reads_an_mv_forgets_what_that_was_made_of(built: Shop) -> None:
    built.write({"models/dn.sql": "SELECT id FROM raw.customers\n"})
    assert built.run().ok
    uuid = built.table("raw.orders").uuid
    assert f"iceberg.base.snapshot.{uuid}" not in built.table("main.dn__storage").properties
    append(built.catalog, "raw.orders")
    assert fresh(built) == {"dn", "plain"}


def test_a_table_with_two_names_is_current_only_if_both_are() -> None:
    """A reader cannot know which of the two was read."""
    table = spec_reader.Entry(name="raw.a", uuid="u", properties={}, current=1, is_view=False)
    storage = replace(table, name="main.m__storage", uuid="s", properties={"iceberg.view.version": "1", "iceberg.base.snapshot.u": "1"})
    marks: Mapping[str, str] = {"iceberg.materialized.view": "true", "iceberg.materialized.view.storage.table": "main.m__storage"}
    mv = spec_reader.Entry(name="main.m", uuid="v", properties=marks, current=1, is_view=True)
    assert spec_reader.fresh([table, storage, mv], "main.m")
    assert spec_reader.fresh([table, replace(table, name="raw.b"), storage, mv], "main.m")
    assert not spec_reader.fresh([table, replace(table, name="raw.b", current=2), storage, mv], "main.m")
    assert not spec_reader.fresh([storage, mv], "main.m")


def test_an_empty_base_table_is_followed(tmp_path: Path) -> None:
    made = shop(tmp_path, CHAIN)
    base_table(made.catalog, "raw.empty", rows=None)
    made.write({"models/of_empty.sql": "SELECT id FROM raw.empty\n"})
    assert made.run().ok
    assert "of_empty" in fresh(made)
    append(made.catalog, "raw.empty")
    assert "of_empty" not in fresh(made)
