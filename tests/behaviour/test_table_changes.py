"""Changes of ordinary tables and views other than refreshes: layout, old schemas, restating, expiry, names; in every catalog that supports
them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from behaviour.world import embedded, layout, name, table_commit, view_commit
from mvbuild.adapters.iceberg.retries import retries
from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict
from mvbuild.ports.commits import ConvertCommit, DropCommit, TableLayout, ViewCommit
from mvbuild.ports.states import Partition, Sort, TableState, ViewState
from other_programs import drop

if TYPE_CHECKING:
    from pathlib import Path

    from behaviour.world import World

T = name("mart.t")


def _table(world: World, writes: int = 1) -> TableState:
    world.catalog.create_table(T, layout(id="long", day="date"), {})
    for number in range(writes):
        world.write(T, {"id": [number], "day": [None]}, "main")
    found = world.catalog.load([T])[T]
    assert isinstance(found, TableState)
    return found


def _done(world: World, table: TableState, **changes: object) -> TableState:
    found = world.catalog.commit([table_commit(table, **changes)])
    state = found[changes.get("rename_to", table.identifier)]  # type: ignore[index]
    assert isinstance(state, TableState)
    return state


def test_layout_and_back(world: World) -> None:
    table = _table(world)
    wanted = TableLayout(
        schema=layout(id="long", note="string").schema,
        partition_by=(Partition(column="note", transform="identity"),),
        sort_by=(Sort(column="id", descending=True, nulls_first=False),),
    )
    new = _done(world, table, layout=wanted)
    assert [f["name"] for f in new.schema["fields"]] == ["id", "note"]
    assert (new.partition_by, new.sort_by) == (wanted.partition_by, wanted.sort_by)
    assert new.current_snapshot_id == table.current_snapshot_id
    assert world.catalog.files.rows(new, 9) == (("id", "note"), [(0, None)])
    assert world.catalog.files.rows(new, 9, table.current_snapshot_id) == (("id", "day"), [(0, None)])
    with pytest.raises(CatalogError, match="no schema 9"):
        _done(world, new, schema_id=9)
    with pytest.raises(CatalogError, match="no snapshot 9"):
        world.catalog.files.rows(new, 9, 9)


def test_an_old_schema(world: World) -> None:
    table = _table(world)
    new = _done(world, table, layout=layout(id="long", note="string"))
    old = _done(world, new, schema_id=table.current_schema_id)
    assert old.schema["fields"] == table.schema["fields"]
    assert set(old.schemas) == set(new.schemas)


def test_an_old_schema_without_the_columns_of_the_partitioning(sql_world: World) -> None:
    table = _table(sql_world)
    wanted = TableLayout(schema=layout(note="string").schema, partition_by=(Partition(column="note", transform="identity"),))
    new = _done(sql_world, table, layout=wanted)
    old = _done(sql_world, new, schema_id=table.current_schema_id)
    assert old.partition_by == ()
    assert sql_world.catalog.files.rows(old, 9) == (("id", "day"), [(0, None)])


def test_restate(world: World) -> None:
    table = _table(world)
    new = _done(world, table, restate={"refresh-state": "{}"})
    snapshot = new.current_snapshot
    assert snapshot
    assert (snapshot.operation, snapshot.parent_id, snapshot.schema_id) == ("replace", table.current_snapshot_id, table.current_schema_id)
    assert (snapshot.summary["refresh-state"], snapshot.summary["total-records"]) == ("{}", "1")
    assert world.catalog.files.rows(new, 9) == world.catalog.files.rows(table, 9)
    gone = _done(world, new, expire=frozenset({table.current_snapshot_id or 0}))
    assert list(gone.snapshots) == [snapshot.snapshot_id]
    world.catalog.files.delete(f for f in world.catalog.files.of(new) - world.catalog.files.of(gone) if f.endswith(".avro"))
    assert world.catalog.files.rows(gone, 9)[1] == [(0, None)]
    empty = world.catalog.create_table(name("mart.empty"), layout(id="long"), {})
    with pytest.raises(CatalogError, match="no snapshot"):
        _done(world, empty, restate={})


def test_expire(world: World) -> None:
    table = _table(world, 3)
    one, two, three = table.snapshots
    tagged = _done(world, table, create_branch=("kept", one))
    for refused in (one, three):
        with pytest.raises(CatalogError, match="cannot expire"):
            _done(world, tagged, expire=frozenset({refused}))
    after = _done(world, tagged, expire=frozenset({two, 12345}))
    assert set(after.snapshots) == {one, three}
    if world.swaps:  # a remote catalog keeps the log in its own way
        assert [snapshot for _, snapshot in after.snapshot_log] == [three]
    last = _done(world, after, drop_branches=("kept",), expire=frozenset({one}))
    assert set(last.snapshots) == {three}


def test_files_and_orphans(world: World) -> None:
    table = _table(world, 2)
    reached = world.catalog.files.of(table)
    assert table.metadata_location.rpartition("/")[2] in {file.rpartition("/")[2] for file in reached}
    listed = dict(world.catalog.files.below(table.location))
    assert all(abs(time.time() * 1000 - at) < 600_000 for at in listed.values())
    if isinstance(world.catalog, MemoryCatalog):
        return
    assert reached <= set(listed)
    assert {file for file in set(listed) - reached if not file.endswith(".json")} == set()
    assert world.catalog.files.below(f"{table.location}/nowhere") == ()
    drop(world.catalog, T)
    assert world.catalog.files.delete(reached) >= len(reached) - 4  # a file-system warehouse dropped the numbered files itself
    assert world.catalog.files.below(table.location) == ()
    assert world.catalog.files.delete(reached) == 0


def test_names_of_tables(world: World) -> None:
    table = _table(world)
    other = name("mart.other")
    if not (world.atomic or world.catalog.has_views or not world.swaps):
        with pytest.raises(CatalogError, match="cannot be renamed"):
            _done(world, table, rename_to=other)
        return
    world.catalog.create_table(name("mart.taken"), layout(id="long"), {})
    with pytest.raises(AlreadyExists, match="taken"):
        _done(world, table, rename_to=name("mart.taken"))
    new = _done(world, table, rename_to=other, set_properties={"a": "b"})
    assert (new.identifier, new.uuid, new.properties["a"]) == (other, table.uuid, "b")
    assert world.catalog.list_names(("mart",)) == (other, name("mart.taken"))
    assert world.catalog.files.rows(new, 9) == world.catalog.files.rows(new, 9, table.current_snapshot_id)


def test_drop_with_other_changes(world: World) -> None:
    table = _table(world)
    with pytest.raises(CommitConflict):
        world.catalog.commit([DropCommit(identifier=T, expect_metadata_location="elsewhere")])
    world.catalog.commit([DropCommit(identifier=T, expect_metadata_location=table.metadata_location)])
    assert world.catalog.load([T]) == {}
    with pytest.raises(CommitConflict):
        world.catalog.commit([DropCommit(identifier=T, expect_metadata_location=table.metadata_location)])


def test_views_are_renamed_and_keep_their_version(world: World) -> None:
    if not world.views:
        assert world.catalog.list_views() == ()
        pytest.skip("this catalog has no views")
    (view,) = world.catalog.commit([view_commit("mart.v", properties={"a": "1", "b": "2"})]).values()
    assert isinstance(view, ViewState)
    change = ViewCommit(
        identifier=view.identifier,
        expect_metadata_location=view.metadata_location,
        version_id=None,
        schema={},
        representations={},
        default_namespace=(),
        properties={"c": "3"},
        remove_properties=("a",),
        rename_to=name("mart.w"),
    )
    done = world.catalog.commit([change])
    new = done[name("mart.w")]
    assert new == world.catalog.load([name("mart.w")])[name("mart.w")]
    assert isinstance(new, ViewState)
    assert (new.version_id, new.properties, new.uuid) == (1, {"b": "2", "c": "3"}, view.uuid)
    assert world.catalog.list_views() == (name("mart.w"),)
    assert world.catalog.load([name("mart.v")]) == {}
    with pytest.raises(CommitConflict, match="dropped"):
        world.catalog.commit([replace(change, identifier=name("mart.x"), expect_metadata_location=None, rename_to=None)])


def test_what_a_remote_catalog_cannot(world: World) -> None:
    if world.atomic or world.swaps:
        pytest.skip("it can")
    table = _table(world)
    view = ViewState(
        identifier=name("mart.v"),
        uuid="u",
        location="x",
        metadata_location="x",
        version_id=1,
        last_version_id=1,
        spark_versions={},
        representations={},
        default_catalog=None,
        default_namespace=(),
        schema={},
        properties={},
    )
    with pytest.raises(CatalogError, match="metadata-file format"):
        world.catalog.new_storage(name("mart.v"), layout(id="long"), {})
    with pytest.raises(CatalogError, match="metadata-file format"):
        world.catalog.commit([table_commit(table, of_view=T)])
    with pytest.raises(CatalogError, match="cannot be converted"):
        world.catalog.commit([ConvertCommit(view=view, storage=table, to="metadata-file", storage_name=T)])


def test_how_often_a_commit_is_tried(tmp_path: Path) -> None:
    assert retries({}).number == 11
    assert retries({"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "x"}) == replace(retries({}), number=2)
    made = embedded(tmp_path)
    made.catalog.ensure_namespace(("mart",))
    table = made.catalog.create_table(T, layout(id="long"), {"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "1"})
    made.catalog._publisher.pointers.swap = lambda swaps: False  # type: ignore[attr-defined]
    with pytest.raises(CommitConflict, match=r"3 times in a row; 'commit\.retry\.num-retries'"):
        made.catalog.commit([table_commit(table, set_properties={"a": "b"})])
    with pytest.raises(CommitConflict, match="1 times"):
        made.catalog.commit([table_commit(table, set_properties={"commit.retry.total-timeout-ms": "0"})])
    made.close()
