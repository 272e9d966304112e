"""An MV in the metadata-file format from its first refresh to its end; each step is one swap."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from behaviour.mvs import LAYOUT, MV, created, embedded_commit, loaded, record, redefined, refreshed, written
from behaviour.world import layout, name, schema, table_commit, view_commit
from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.formats import metadata_file
from mvbuild.formats.metadata_file import METADATA_LOCATION
from mvbuild.formats.properties import STORAGE_TABLE
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict
from mvbuild.ports.commits import ConvertCommit, DropCommit, Refresh, ViewCommit
from mvbuild.ports.states import TableState, ViewState
from other_programs import drop

if TYPE_CHECKING:
    from behaviour.world import World
    from mvbuild.ports.catalog import Catalog


def _rows(catalog: Catalog, storage: TableState | None, snapshot_id: int | None = None) -> list[tuple[object, ...]]:
    assert storage is not None
    return sorted(catalog.files.rows(storage, 99, snapshot_id)[1])


def _appended(world: World, *values: int) -> list[tuple[object, ...]]:
    """What several writes leave: in memory each is the whole content."""
    return [(value,) for value in (values[-1:] if isinstance(world.catalog, MemoryCatalog) else values)]


def _needs_views(world: World) -> None:
    if not world.views:
        pytest.skip("a file-system warehouse has no views")


def test_create(mv_world: World) -> None:
    view = created(mv_world, {"a": [1, 2]})
    state, storage = loaded(mv_world)
    assert state == view
    assert storage.mv
    assert (storage.identifier, storage.of_view, storage.uuid) == (MV, MV, storage.mv.uuid)
    assert _rows(mv_world.catalog, storage) == [(1,), (2,)]
    assert mv_world.catalog.list_names(("mart",)) == (MV,)
    assert mv_world.catalog.list_names(("mvbuild_scratch",)) == ()
    assert mv_world.catalog.list_views() == (MV,)
    assert metadata_file.current_record(storage.mv) == replace(record(), base_tables=storage_record(storage))
    assert storage.mv.current_refresh
    assert storage.current_snapshot
    assert storage.mv.current_refresh["sequence-number"] == storage.current_snapshot.sequence_number
    if mv_world.views:
        assert view.properties["materialized-view.uuid"] == storage.uuid
    with pytest.raises(CommitConflict):
        created(mv_world)


def storage_record(storage: TableState) -> tuple[object, ...]:
    """What the format keeps of the base tables: it has no field for a uuid."""
    assert storage.mv
    found = metadata_file.current_record(storage.mv)
    assert found
    assert [(t.name, t.snapshot_id) for t in found.base_tables] == [("orders", 1)]
    return found.base_tables


def test_refreshes_and_their_history(mv_world: World) -> None:
    view = created(mv_world)
    for number in range(2, 5):
        view = refreshed(mv_world, number, {"a": [number]}, keep=3)
    storage = view.storage
    assert storage
    assert storage.mv
    assert [r["refresh-id"] for r in storage.mv.refreshes] == [2, 3, 4]
    assert len(storage.snapshots) == 4
    assert len(storage.mv.raw["metadata-log"]) == 3
    assert [snapshot for _, snapshot in storage.snapshot_log] == list(storage.snapshots)
    assert _rows(mv_world.catalog, storage) == _appended(mv_world, 1, 2, 3, 4)
    view = refreshed(mv_world, 5, {"a": [5]}, keep=None)
    assert view.storage
    assert view.storage.mv
    assert [r["refresh-id"] for r in view.storage.mv.refreshes] == [2, 3, 4, 5]
    view = refreshed(mv_world, 6, {"a": [6]}, keep=1)
    assert view.storage
    assert view.storage.mv
    assert [r["refresh-id"] for r in view.storage.mv.refreshes] == [6]
    earlier = Refresh(refresh_id=5, record=record(5), keep=2)
    back = mv_world.catalog.commit([embedded_commit(view.storage, refresh=earlier)])[MV]
    assert isinstance(back, ViewState)
    assert back.storage
    assert back.storage.mv
    assert [r["refresh-id"] for r in back.storage.mv.refreshes] == [5, 6]
    assert back.storage.mv.raw["current-refresh-id"] == 5


def test_another_layout_and_the_rows_of_an_old_refresh(mv_world: World) -> None:
    first = created(mv_world)
    view = refreshed(mv_world, 2, {"a": [2], "b": ["x"]}, layout(a="long", b="string"), keep=2)
    assert view.storage
    assert [f["name"] for f in view.storage.schema["fields"]] == ["a", "b"]
    assert first.storage
    old = first.storage.current_snapshot_id
    assert mv_world.catalog.files.rows(view.storage, 9, old) == (("a",), [(1,)])
    for own, names in ((True, ("a",)), (False, ("a", "b"))):
        pinned = mv_world.catalog.pin_schema(view.storage, old or 0, name(f"mvbuild_scratch.p{own:d}"), own_schema=own)
        assert mv_world.catalog.files.rows(pinned, 9)[0] == names
        assert pinned.location != view.storage.location
        mv_world.catalog.drop_scratch(pinned.identifier)
    back = mv_world.catalog.commit(
        [embedded_commit(view.storage, set_snapshot_id=old, schema_id=0, refresh=Refresh(refresh_id=3, record=record(), keep=3))]
    )[MV]
    assert isinstance(back, ViewState)
    assert back.storage
    assert mv_world.catalog.files.rows(back.storage, 9) == (("a",), [(1,)])


def test_definition_change(mv_world: World) -> None:
    view = created(mv_world)
    changed = mv_world.catalog.commit([redefined(view, schema=schema(a="int", z="string"))])[MV]
    assert isinstance(changed, ViewState)
    assert (changed.version_id, changed.representations) == (2, {"spark": "SELECT 2 AS a"})
    assert changed.storage
    assert changed.storage.mv
    assert changed.storage.mv.raw["current_version_id"] == 2
    assert [e["version-id"] for e in changed.storage.mv.raw["version_log"]] == [1, 2]
    assert changed.storage.mv.current_refresh
    assert changed.storage.mv.current_refresh["version-id"] == 1
    assert changed.storage.current_snapshot_id == (view.storage.current_snapshot_id if view.storage else 0)
    assert [f["name"] for f in changed.storage.schema["fields"]] == ["a"]
    with pytest.raises(CommitConflict, match="changed"):
        mv_world.catalog.commit([redefined(view)])
    with pytest.raises(CommitConflict):
        mv_world.catalog.commit([redefined(view), embedded_commit(changed.storage, set_properties={"a": "b"})])
    both = mv_world.catalog.commit([redefined(changed, "SELECT 3 AS a"), embedded_commit(changed.storage, set_properties={"p": "1"})])
    state = both[MV]
    assert isinstance(state, ViewState)
    assert (state.version_id, list(both)) == (3, [MV])
    assert state.storage
    assert state.storage.properties["p"] == "1"


def test_properties_of_both_sides(mv_world: World) -> None:
    view = created(mv_world, properties={"old": "1"})
    assert view.storage
    change = ViewCommit(
        identifier=MV,
        expect_metadata_location=view.metadata_location,
        version_id=None,
        schema={},
        representations={},
        default_namespace=(),
        properties={"comment": "é"},
        remove_properties=("iceberg.materialized.view",),
    )
    mv_world.catalog.commit([change, embedded_commit(view.storage, set_properties={"new": "2"}, remove_properties=("old",))])
    state, storage = loaded(mv_world)
    assert (state.version_id, state.last_version_id) == (1, 1)
    assert {k: v for k, v in state.properties.items() if not k.startswith("materialized-view.")} == {"comment": "é"}
    assert storage.properties == {"new": "2"}


def test_restate(mv_world: World) -> None:
    view = created(mv_world, {"a": [1, 2]})
    assert view.storage
    change = embedded_commit(view.storage, restate={"refresh-state": "{}"}, refresh=Refresh(refresh_id=2, record=record(7)))
    state = mv_world.catalog.commit([change])[MV]
    assert isinstance(state, ViewState)
    assert state.storage
    snapshot = state.storage.current_snapshot
    assert snapshot
    assert (snapshot.operation, snapshot.parent_id) == ("replace", view.storage.current_snapshot_id)
    assert {snapshot.summary[k] for k in ("added-records", "deleted-records", "added-data-files", "deleted-data-files")} == {"0"}
    assert snapshot.summary["total-records"] == "2"
    assert snapshot.summary["refresh-state"] == "{}"
    assert _rows(mv_world.catalog, state.storage) == [(1,), (2,)]
    assert state.storage.mv
    assert state.storage.mv.current_refresh
    assert state.storage.mv.current_refresh["sequence-number"] == snapshot.sequence_number
    reached = mv_world.catalog.files.of(state.storage)
    assert len([f for f in reached if "/snap-" in f]) == 2


def test_expire(mv_world: World) -> None:
    first = created(mv_world)
    for number in (2, 3):
        refreshed(mv_world, number, {"a": [number]}, keep=2)
    _, storage = loaded(mv_world)
    one, two, three = storage.snapshots
    with pytest.raises(CatalogError, match="refresh 2 is kept"):
        mv_world.catalog.commit([embedded_commit(storage, expire=frozenset({two}))])
    with pytest.raises(CatalogError, match="'main' refers to it"):
        mv_world.catalog.commit([embedded_commit(storage, expire=frozenset({three}))])
    before = mv_world.catalog.files.of(storage)
    done = mv_world.catalog.commit([embedded_commit(storage, expire=frozenset({one}))])[MV]
    assert isinstance(done, ViewState)
    assert done.storage
    assert list(done.storage.snapshots) == [two, three]
    assert [snapshot for _, snapshot in done.storage.snapshot_log] == [two, three]
    after = mv_world.catalog.files.of(done.storage)
    gone = {f for f in before - after if not f.endswith(".json")}
    listed = {f for f, _ in mv_world.catalog.files.below(storage.location)}
    if "memory:" not in storage.location:
        assert after <= listed
        assert gone <= listed
        assert len(gone) == 1  # the manifest list: appended rows are still in the later snapshots
        assert mv_world.catalog.files.delete([*gone, "file:/nowhere/x"]) == len(gone)
    assert _rows(mv_world.catalog, done.storage) == _appended(mv_world, 1, 2, 3)
    assert first.storage


def test_two_refreshes_at_once(mv_world: World) -> None:
    view = created(mv_world)
    assert view.storage
    one, two = (written(mv_world, view.storage, {"a": [n]}, LAYOUT, n) for n in (7, 8))
    for scratch, number in ((one, 2), (two, 3)):
        change = embedded_commit(
            view.storage,
            staged=scratch.identifier,
            set_snapshot_id=scratch.current_snapshot_id,
            refresh=Refresh(refresh_id=number, record=record()),
        )
        if scratch is one:
            mv_world.catalog.commit([change])
        else:
            with pytest.raises(CommitConflict):
                mv_world.catalog.commit([change])
    assert _rows(mv_world.catalog, loaded(mv_world)[1]) == _appended(mv_world, 1, 7)


def test_rename_and_drop(mv_world: World) -> None:
    view = created(mv_world)
    assert view.storage
    other = name("mart.renamed")
    change = embedded_commit(view.storage, rename_to=other)
    if not mv_world.views:
        with pytest.raises(CatalogError, match="cannot be renamed"):
            mv_world.catalog.commit([change])
        other = MV
    else:
        mv_world.catalog.create_table(name("mart.taken"), layout(id="long"), {})
        with pytest.raises(AlreadyExists, match=r"mart\.taken"):
            mv_world.catalog.commit([replace(change, rename_to=name("mart.taken"))])
        with pytest.raises(CatalogError, match="nowhere"):
            mv_world.catalog.commit([replace(change, rename_to=name("nowhere.v"))])
        assert list(mv_world.catalog.commit([change])) == [other]
        drop(mv_world.catalog, name("mart.taken"))
    state, storage = loaded(mv_world, other)
    assert storage.identifier == storage.of_view == other
    assert (storage.uuid, _rows(mv_world.catalog, storage)) == (view.storage.uuid, [(1,)])
    assert mv_world.catalog.list_names(("mart",)) == (other,)
    with pytest.raises(CommitConflict):
        mv_world.catalog.commit([DropCommit(identifier=other, expect_metadata_location="elsewhere")])
    mv_world.catalog.commit([DropCommit(identifier=other, expect_metadata_location=state.metadata_location)])
    assert mv_world.catalog.list_names(("mart",)) == ()
    assert mv_world.catalog.load([MV, other]) == {}
    if mv_world.views:
        assert created(mv_world).storage


def test_convert_there_and_back(mv_world: World) -> None:
    _needs_views(mv_world)
    catalog = mv_world.catalog
    table = catalog.create_table(name("mart.daily_store"), LAYOUT, {"kept": "1", "iceberg.view.version": "1"})
    table = mv_world.write(table.identifier, {"a": [1]}, "main")
    table = mv_world.write(table.identifier, {"a": [2]}, "main")
    marks = {"iceberg.materialized.view": "true", STORAGE_TABLE: "mart.daily_store"}
    view = catalog.commit([view_commit("mart.daily", properties=marks)])[MV]
    assert isinstance(view, ViewState)
    there = ConvertCommit(
        view=view,
        storage=table,
        to="metadata-file",
        storage_name=table.identifier,
        refresh=Refresh(refresh_id=1, record=record()),
        remove_properties=("iceberg.view.version",),
    )
    done = catalog.commit([there])
    assert list(done) == [MV]
    state, storage = loaded(mv_world)
    assert done[MV] == state
    assert catalog.list_names(("mart",)) == (MV,)
    assert (storage.uuid, storage.current_snapshot_id) == (table.uuid, table.current_snapshot_id)
    assert list(storage.snapshots.values()) == list(table.snapshots.values())
    assert storage.snapshot_log == table.snapshot_log
    assert storage.properties == {"kept": "1"}
    assert STORAGE_TABLE not in state.properties
    assert METADATA_LOCATION in state.properties
    assert _rows(catalog, storage) == _appended(mv_world, 1, 2)
    with pytest.raises(CommitConflict):
        catalog.commit([there])
    back = ConvertCommit(
        view=state, storage=storage, to="table-properties", storage_name=table.identifier, set_properties={"iceberg.view.version": "1"}
    )
    done = catalog.commit([back])
    assert set(done) == {MV, table.identifier}
    again = done[table.identifier]
    assert isinstance(again, TableState)
    assert (again.uuid, again.location, again.properties) == (table.uuid, table.location, table.properties)
    assert list(again.snapshots.values()) == list(table.snapshots.values())
    assert _rows(catalog, again) == _appended(mv_world, 1, 2)
    plain = done[MV]
    assert isinstance(plain, ViewState)
    assert plain.storage is None
    assert plain.properties == marks
    assert plain.version_id == 1
    written_on = mv_world.write(table.identifier, {"a": [3]}, "main")
    assert _rows(catalog, written_on) == _appended(mv_world, 1, 2, 3)


def test_any_iceberg_reader_opens_the_storage(sql_world: World) -> None:
    view = created(sql_world, {"a": [1, 2]})
    assert view.storage
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(view.storage.metadata_location)
    assert table.scan().to_arrow().to_pydict() == {"a": [1, 2]}
    assert str(table.metadata.table_uuid) == view.storage.uuid
    folder = Path(view.location.removeprefix("file:")) / "metadata"
    assert view.storage.metadata_location.startswith(view.location)
    pointer = view.properties[METADATA_LOCATION]
    raw = json.loads(Path(pointer.removeprefix("file:")).read_text())
    assert raw["uuid"] == view.storage.uuid
    assert Path(pointer.removeprefix("file:")).parent == Path("/" + str(folder).lstrip("/"))


def test_old_files_are_deleted_as_the_properties_say(sql_world: World) -> None:
    limits = {"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"}
    view = created(sql_world, properties=limits)
    for number in range(5):
        assert view.storage
        done = sql_world.catalog.commit([embedded_commit(view.storage, set_properties={"n": str(number)})])[MV]
        assert isinstance(done, ViewState)
        view = done
    assert view.storage
    assert view.storage.mv
    log = [entry["metadata-file"] for entry in view.storage.mv.raw["metadata-log"]]
    assert len(log) == 2
    reached = sql_world.catalog.files.of(view.storage)
    assert {view.metadata_location, view.properties[METADATA_LOCATION], view.storage.metadata_location, *log} <= reached
    assert reached == sql_world.catalog.files.of(loaded(sql_world)[1])
    listed = {f for f, _ in sql_world.catalog.files.below(view.location)}
    assert len([f for f in listed if f.endswith(".mv.metadata.json")]) == 3
    assert reached <= listed


def test_commits_that_make_no_sense(mv_world: World) -> None:
    view = created(mv_world)
    assert view.storage
    with pytest.raises(CatalogError, match="is not the name"):
        mv_world.catalog.commit([replace(embedded_commit(view.storage), of_view=name("mart.other"))])
    with pytest.raises(CommitConflict):
        mv_world.catalog.commit([table_commit(view.storage, set_properties={"a": "b"})])
    with pytest.raises(CommitConflict):
        mv_world.catalog.commit([replace(embedded_commit(view.storage), identifier=name("mart.x"), of_view=name("mart.x"))])
    bad = replace(record(), view_version_id=None)
    with pytest.raises(CatalogError, match="version-id"):
        mv_world.catalog.commit([embedded_commit(view.storage, refresh=Refresh(refresh_id=2, record=bad))])
