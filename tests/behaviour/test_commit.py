"""Commits: what they change, and that they change nothing when an expectation fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from behaviour.world import World, layout, name, schema, table_commit, view_commit
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.states import TableState, ViewState
from other_programs import drop


def _written(world: World, text: str, branch: str = "main") -> TableState:
    table = world.catalog.create_table(name(text), layout(id="long"), {"old": "1", "kept": "2"})
    world.write(table.identifier, {"id": [1]}, "main")
    found = world.catalog.load([table.identifier])[table.identifier]
    assert isinstance(found, TableState)
    if branch != "main":
        world.catalog.create_branch(found, branch)
        found = world.write(table.identifier, {"id": [2]}, branch)
    return found


def test_publish_several_tables_and_a_view(world: World) -> None:
    tables = [_written(world, f"mart.t{n}", "audit") for n in range(3)]
    changes: list = [
        table_commit(
            t, set_snapshot_id=t.refs["audit"], drop_branches=("audit", "none"), set_properties={"new": "é"}, remove_properties=("old",)
        )
        for t in tables
    ]
    if world.views:
        changes.append(view_commit("mart.v", storage_table=name("mart.t0")))
    done = world.catalog.commit(changes)
    assert dict(done) == dict(world.catalog.load(list(done)))
    for table in tables:
        state = done[table.identifier]
        assert isinstance(state, TableState)
        assert state.current_snapshot_id == table.refs["audit"]
        assert state.refs == {"main": table.refs["audit"]}
        assert {key: state.properties.get(key) for key in ("old", "kept", "new")} == {"old": None, "kept": "2", "new": "é"}
        assert state.snapshot_log[-1][1] == table.refs["audit"]
        assert state.uuid == table.uuid


def test_a_conflict_leaves_everything_untouched(world: World) -> None:
    if not world.atomic:
        pytest.skip("not atomic")
    one, two = _written(world, "mart.one"), _written(world, "mart.two")
    world.write(two.identifier, {"id": [9]}, "main")
    before = world.catalog.load([one.identifier, two.identifier])
    changes = [view_commit("mart.v"), table_commit(one, set_properties={"a": "b"}), table_commit(two, set_properties={"a": "b"})]
    with pytest.raises(CommitConflict, match=r"mart\.two"):
        world.catalog.commit(changes)
    assert world.catalog.load([one.identifier, two.identifier, name("mart.v")]) == before


def test_expectations(world: World) -> None:
    table = _written(world, "mart.t")
    good = table_commit(table, set_properties={"a": "b"})
    for bad in (replace(good, expect_uuid="11111111-1111-1111-1111-111111111111"), replace(good, expect_snapshot_id=None)):
        with pytest.raises(CommitConflict):
            world.catalog.commit([bad])
    with pytest.raises(CommitConflict):
        world.catalog.commit([replace(good, identifier=name("mart.gone"))])
    with pytest.raises(CatalogError, match="no snapshot 42"):
        world.catalog.commit([replace(good, set_snapshot_id=42)])
    assert world.catalog.load([table.identifier])[table.identifier] == table
    drop(world.catalog, table.identifier)
    world.catalog.create_table(table.identifier, layout(id="long"), {})
    with pytest.raises(CommitConflict, match="replaced"):
        world.catalog.commit([good])


def test_an_unrelated_change_is_no_conflict(world: World) -> None:
    table = _written(world, "mart.t")
    world.catalog.commit([table_commit(table, set_properties={"other": "1"})])
    done = world.catalog.commit([table_commit(table, set_properties={"mine": "2"}, create_branch=("b", table.current_snapshot_id))])
    state = done[table.identifier]
    assert (state.properties["other"], state.properties["mine"]) == ("1", "2")
    assert isinstance(state, TableState)
    assert state.refs["b"] == table.current_snapshot_id


def test_nothing_to_commit(world: World) -> None:
    assert world.catalog.commit([]) == {}


def test_view_versions(world: World) -> None:
    if not world.views:
        pytest.skip("this catalog has no views")
    state = world.catalog.commit([view_commit("mart.v", "SELECT 0 AS a", properties={"kept": "1"})])[name("mart.v")]
    assert isinstance(state, ViewState)
    first = state
    for version in range(2, 14):
        change = view_commit(
            "mart.v",
            f"SELECT {version} AS a",
            expect=state.metadata_location,
            version=version,
            schema=schema(a="int", b="string") if version % 2 else schema(a="int"),
            representations={"spark": f"SELECT {version} AS a", "trino": "SELECT 't' a"},
            properties={"set": str(version)},
        )
        state = world.catalog.commit([change])[name("mart.v")]
        assert isinstance(state, ViewState)
        assert (state.version_id, state.last_version_id) == (version, version)
        assert len(state.schema["fields"]) == 1 + version % 2
    assert state.representations == {"spark": "SELECT 13 AS a", "trino": "SELECT 't' a"}
    assert (state.properties["kept"], state.properties["set"]) == ("1", "13")
    assert (state.uuid, state.location) == (first.uuid, first.location)
    assert (state.default_catalog, state.default_namespace) == ("lake", ("mart",))
    assert world.catalog.load([name("mart.v")])[name("mart.v")] == state


@pytest.mark.parametrize("catalog", ["iceberg", None])
def test_a_version_keeps_what_another_engine_said_and_the_names_that_complete_it(world: World, catalog: str | None) -> None:
    if not world.views:
        pytest.skip("this catalog has no views")
    state = world.catalog.commit([view_commit("mart.v")])[name("mart.v")]
    both, theirs = {"spark": "SELECT 1 AS a", "trino": "SELECT a FROM t"}, {"default_namespace": ("theirs",), "default_catalog": catalog}
    for version, texts in ((2, both), (3, {**both, "spark": "SELECT  1 AS a"})):
        assert isinstance(state, ViewState)
        change = view_commit("mart.v", expect=state.metadata_location, version=version, representations=texts, **theirs)
        state = world.catalog.commit([change])[name("mart.v")]
        assert isinstance(state, ViewState)
        assert (state.version_id, state.representations) == (version, texts)
        assert (state.default_catalog, state.default_namespace) == (catalog, ("theirs",))
    state = world.catalog.commit([view_commit("mart.v", "SELECT 2 AS a", expect=state.metadata_location, version=4)])[name("mart.v")]
    assert isinstance(state, ViewState)
    assert (state.version_id, state.representations) == (4, {"spark": "SELECT 2 AS a"})
    assert (state.default_catalog, state.default_namespace) == ("lake", ("mart",))
    assert world.catalog.load([name("mart.v")])[name("mart.v")] == state


def test_view_conflicts(world: World) -> None:
    if not world.views:
        with pytest.raises(CatalogError, match="has no views"):
            world.catalog.commit([view_commit("mart.v")])
        return
    state = world.catalog.commit([view_commit("mart.v")])[name("mart.v")]
    with pytest.raises(CommitConflict, match="created"):
        world.catalog.commit([view_commit("mart.v")])
    world.catalog.commit([view_commit("mart.v", expect=state.metadata_location, version=2)])
    with pytest.raises(CommitConflict, match="changed"):
        world.catalog.commit([view_commit("mart.v", expect=state.metadata_location, version=2)])
    with pytest.raises(CommitConflict, match="dropped"):
        world.catalog.commit([view_commit("mart.w", expect=state.metadata_location, version=2)])
    with pytest.raises(CatalogError, match="nowhere"):
        world.catalog.commit([view_commit("nowhere.v")])
    table = world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    with pytest.raises(CommitConflict, match="table"):
        world.catalog.commit([view_commit("mart.t", expect=table.metadata_location)])


def test_what_spark_noted_of_an_older_query_is_dropped(world: World) -> None:
    if not world.views:
        pytest.skip("this catalog has no views")
    noted = {"spark.query-column-names": "x,y", "k": "v"}
    state = world.catalog.commit([view_commit("mart.v", properties=noted)])[name("mart.v")]
    change = view_commit("mart.v", expect=state.metadata_location, version=2)
    assert world.catalog.commit([change])[name("mart.v")].properties == {"k": "v"}


def test_the_marks_of_an_mv_are_put_right_without_a_new_version(world: World) -> None:
    if not world.views:
        pytest.skip("this catalog has no views")
    wrong = {"iceberg.materialized.view": "false", "iceberg.materialized.view.storage.table": "raw.orders", "kept": "1"}
    view = world.catalog.commit([view_commit("mart.v", properties=wrong)])[name("mart.v")]
    assert isinstance(view, ViewState)
    right = {"iceberg.materialized.view": "true", "iceberg.materialized.view.storage.table": "mart.v__storage"}
    change = view_commit("mart.v", expect=view.metadata_location, properties=right)
    world.catalog.commit([replace(change, version_id=None)])
    found = world.catalog.load([name("mart.v")])[name("mart.v")]
    assert isinstance(found, ViewState)
    assert (found.version_id, found.uuid, found.properties) == (1, view.uuid, {**right, "kept": "1"})
    assert found.representations == view.representations
    gone = view_commit("mart.v", expect=found.metadata_location, properties={})
    world.catalog.commit([replace(gone, version_id=None, remove_properties=tuple(right))])
    found = world.catalog.load([name("mart.v")])[name("mart.v")]
    assert isinstance(found, ViewState)
    assert (found.version_id, found.properties) == (1, {"kept": "1"})
