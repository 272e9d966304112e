"""Staged layouts and pinned schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from behaviour.world import World, layout, name, schema, table_commit
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import Partition, Sort, TableState

SCRATCH = name("mvbuild_scratch.s1")
WIDER = TableLayout(
    schema=schema(id="long", note="string", n="long"),
    partition_by=(Partition(column="id", transform="identity"),),
    sort_by=(Sort(column="id", descending=False, nulls_first=True),),
)


def _table(world: World) -> TableState:
    world.catalog.create_table(name("mart.t"), layout(id="long", n="int", gone="string"), {"p": "1"})
    return world.write(name("mart.t"), {"id": [1], "n": [2], "gone": ["x"]}, "main")


def test_stage_write_commit(world: World) -> None:
    table = _table(world)
    staged = world.catalog.stage(table, WIDER, SCRATCH)
    assert world.catalog.load([table.identifier])[table.identifier] == table
    # Spark takes a table of a file-system warehouse only at the place of its name; its data still goes to the base table.
    assert table.location in (staged.location, staged.properties.get("write.data.path", "").removesuffix("/data"))
    assert staged.uuid != table.uuid
    assert [(f["id"], f["name"], f["type"]) for f in staged.schema["fields"]] == [
        (1, "id", "long"),
        (4, "note", "string"),
        (2, "n", "long"),
    ]
    written = world.write(SCRATCH, {"id": [7], "note": ["é"], "n": [8]}, "main")
    change = table_commit(table, staged=SCRATCH, set_snapshot_id=written.current_snapshot_id, set_properties={"q": "2"})
    state = world.catalog.commit([change])[table.identifier]
    assert isinstance(state, TableState)
    world.catalog.drop_scratch(SCRATCH)
    assert state == world.catalog.load([table.identifier])[table.identifier]
    assert (state.uuid, state.properties["p"], state.properties["q"]) == (table.uuid, "1", "2")
    assert "gc.enabled" not in state.properties
    assert state.schema["fields"] == staged.schema["fields"]
    assert (7, "é", 8) in world.catalog.files.rows(state, 9)[1]
    old = state.snapshots[table.current_snapshot_id or 0]
    assert state.schemas[old.schema_id or 0]["fields"][2]["name"] == "gone"
    if world.pyiceberg:
        other = world.pyiceberg().load_table("mart.t")
        assert other.scan(snapshot_id=old.snapshot_id).to_arrow().to_pylist() == [{"id": 1, "n": 2, "gone": "x"}]
        assert [field.name for field in other.spec().fields] == ["id"]
        assert len(other.sort_order().fields) == 1
        other.catalog.close()
    again = world.write(table.identifier, {"id": [9], "note": [None], "n": [1]}, "main")
    assert again.current_snapshot
    assert again.current_snapshot.parent_id == state.current_snapshot_id


def test_the_same_layout_adds_no_schema(world: World) -> None:
    table = _table(world)
    staged = world.catalog.stage(table, layout(id="long", n="int", gone="string"), SCRATCH)
    assert staged.schemas == table.schemas
    back = world.catalog.stage(staged, layout(id="long"), name("mvbuild_scratch.s2"))
    assert set(back.schemas) == {0, 1}
    again = world.catalog.stage(back, layout(id="long", n="int", gone="string"), name("mvbuild_scratch.s3"))
    assert again.current_schema_id == 1 + 1  # columns that were dropped get new ids when they come back


def test_types_that_cannot_be_promoted_get_new_columns(world: World) -> None:
    world.catalog.create_table(
        name("mart.t"), layout(a="decimal(9, 2)", b="string", c={"type": "list", "element-id": 9, "element": "int"}), {}
    )
    (table,) = world.catalog.load([name("mart.t")]).values()
    assert isinstance(table, TableState)
    ids = {f["name"]: f["id"] for f in table.schema["fields"]}
    wanted = layout(a="decimal(12, 2)", b="int", c={"type": "list", "element-id": 5, "element": "long", "element-required": False})
    staged = world.catalog.stage(table, wanted, SCRATCH)
    fields = {f["name"]: f for f in staged.schema["fields"]}
    assert (fields["a"]["id"], fields["c"]["id"]) == (ids["a"], ids["c"])
    assert fields["b"]["id"] > 4
    assert fields["c"]["type"]["element-id"] == table.schema["fields"][2]["type"]["element-id"]


def test_a_layout_that_changed_meanwhile_is_a_conflict(world: World) -> None:
    table = _table(world)
    for scratch, of in ((SCRATCH, "date"), (name("mvbuild_scratch.s2"), "string")):
        world.catalog.stage(table, layout(id="long", added=of), scratch)
    first = world.write(SCRATCH, {"id": [1], "added": [None]}, "main")
    other = world.write(name("mvbuild_scratch.s2"), {"id": [1], "added": [None]}, "main")
    world.catalog.commit([table_commit(table, staged=SCRATCH, set_snapshot_id=first.current_snapshot_id)])
    with pytest.raises(CommitConflict):
        world.catalog.commit([table_commit(table, staged=other.identifier, set_snapshot_id=other.current_snapshot_id)])


def test_stage_an_empty_table(world: World) -> None:
    table = world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    staged = world.catalog.stage(table, WIDER, SCRATCH)
    assert staged.current_snapshot_id is None
    written = world.write(SCRATCH, {"id": [7], "note": ["a"], "n": [8]}, "main")
    done = world.catalog.commit([table_commit(table, staged=SCRATCH, set_snapshot_id=written.current_snapshot_id)])[table.identifier]
    assert isinstance(done, TableState)
    assert world.catalog.files.rows(done, 1) == (("id", "note", "n"), [(7, "a", 8)])


def test_a_table_that_moved_after_it_was_staged_is_a_conflict(world: World) -> None:
    table = _table(world)
    world.catalog.stage(table, WIDER, SCRATCH)
    written = world.write(SCRATCH, {"id": [7], "note": ["a"], "n": [8]}, "main")
    now = world.write(table.identifier, {"id": [2], "n": [2], "gone": ["y"]}, "main")
    with pytest.raises(CommitConflict):
        world.catalog.commit([table_commit(table, staged=SCRATCH, set_snapshot_id=written.current_snapshot_id)])
    assert world.catalog.load([table.identifier])[table.identifier] == now


def test_pin_schema(world: World) -> None:
    table = _table(world)
    world.catalog.stage(table, layout(id="long", n="long", later="string"), SCRATCH)
    written = world.write(SCRATCH, {"id": [3], "n": [4], "later": ["z"]}, "main")
    change = table_commit(table, staged=SCRATCH, set_snapshot_id=written.current_snapshot_id)
    now = world.catalog.commit([change])[table.identifier]
    assert isinstance(now, TableState)
    pinned = world.catalog.pin_schema(now, table.current_snapshot_id or 0, name("mvbuild_scratch.p"))
    assert list(pinned.snapshots) == [table.current_snapshot_id]
    assert pinned.current_snapshot
    assert pinned.current_snapshot.schema_id == now.current_schema_id
    assert pinned.location != table.location
    assert world.catalog.files.rows(pinned, 9) == (("id", "n", "later"), [(1, 2, None)])
    with pytest.raises(CatalogError, match="no snapshot 1"):
        world.catalog.pin_schema(now, 1, name("mvbuild_scratch.q"))
    world.catalog.drop_scratch(pinned.identifier)
    assert world.catalog.load([pinned.identifier]) == {}
    assert len(world.catalog.files.rows(now, 9)[1]) > 0


def test_scratch_names(world: World) -> None:
    table = _table(world)
    world.catalog.drop_scratch(SCRATCH)
    world.catalog.stage(table, WIDER, SCRATCH)
    with pytest.raises(AlreadyExists):
        world.catalog.stage(table, WIDER, SCRATCH)
    world.catalog.drop_scratch(SCRATCH)
    world.catalog.drop_scratch(SCRATCH)
    assert world.catalog.list_names(SCRATCH.namespace) == ()
    with pytest.raises(CatalogError, match="not a scratch table"):
        world.catalog.drop_scratch(table.identifier)
    assert world.catalog.files.rows(table, 9)[1] == [(1, 2, "x")]


def test_a_dropped_scratch_table_leaves_no_directory(file_world: World, tmp_path: Path) -> None:
    table = _table(file_world)
    pinned = file_world.catalog.pin_schema(table, table.current_snapshot_id or 0, SCRATCH)
    staged = file_world.catalog.stage(table, WIDER, name("mvbuild_scratch.s2"))
    assert list(tmp_path.rglob("mvbuild_scratch/*"))
    # Hadoop's checksum of a file that was deleted by a writer that does not know about checksums.
    metadata = Path(pinned.metadata_location.removeprefix("file://")).parent
    (metadata / ".version-hint.text.crc").write_bytes(b"crc")
    for scratch in (pinned, staged):
        file_world.catalog.drop_scratch(scratch.identifier)
    assert list(tmp_path.rglob("mvbuild_scratch/*")) == []
    assert file_world.catalog.files.rows(table, 9)[1] == [(1, 2, "x")]
