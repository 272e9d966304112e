"""Loading, listing, creating and dropping."""

from __future__ import annotations

import pytest

from behaviour.world import World, layout, name, schema, table_commit, view_commit
from mvbuild.adapters.iceberg import pointers
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import Partition, Sort, TableState, ViewState
from other_programs import drop


def test_load_finds_tables_and_leaves_out_absent_names(world: World) -> None:
    made = world.catalog.create_table(name("mart.orders"), layout(id="long"), {"owner": "me"})
    found = world.catalog.load([name("mart.orders"), name("mart.nothing"), name("nowhere.orders"), name("mart.ORDERS")])
    assert list(found) == [name("mart.orders")]
    state = found[name("mart.orders")]
    assert isinstance(state, TableState)
    assert state == made
    assert state.properties["owner"] == "me"
    assert state.format_version == 2
    assert state.current_snapshot is None
    assert state.refs == {}
    assert [f["name"] for f in state.schema["fields"]] == ["id"]


def test_load_of_nothing(world: World) -> None:
    assert world.catalog.load([]) == {}
    assert world.catalog.load([TableIdentifier("other", ("mart",), "orders")]) == {}


@pytest.mark.parametrize(
    "text", ["größe", "日本", "with space", "se`lect", 'qu"ote', "semi;colon", "a'b", "50%", "x_y", "q?a", "h#b", "s/lash"]
)
def test_odd_names(world: World, text: str) -> None:
    if not world.atomic and not text.replace(" ", "").replace("_", "").isalnum():
        pytest.skip("PyIceberg's own locations do not take these")
    if set(text) & set(world.refused):
        pytest.skip("the server does not take these")
    identifier = TableIdentifier("lake", ("mart",), text)
    world.catalog.create_table(identifier, layout(id="long"), {})
    state = world.write(identifier, {"id": [1]}, "main")
    assert world.catalog.files.rows(state, 9) == (("id",), [(1,)])
    assert world.catalog.list_names(("mart",)) == (identifier,)
    similar = TableIdentifier("lake", ("mart",), text.replace("_", "a").replace("%", "b"))
    assert similar == identifier or not world.catalog.load([similar])


def test_nested_namespaces(world: World) -> None:
    world.catalog.ensure_namespace(("a", "b", "c"))
    world.catalog.ensure_namespace(("a", "b", "c"))
    world.catalog.create_table(name("a.b.c.t"), layout(id="long"), {})
    assert world.catalog.list_names(("a", "b", "c")) == (name("a.b.c.t"),)
    assert world.catalog.list_names(("a", "b")) == ()
    assert world.catalog.list_names(("absent",)) == ()


def test_create_refuses_taken_names_and_missing_namespaces(world: World) -> None:
    world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    with pytest.raises(AlreadyExists):
        world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    with pytest.raises(CatalogError, match="nowhere"):
        world.catalog.create_table(name("nowhere.t"), layout(id="long"), {})
    if world.views:
        world.catalog.commit([view_commit("mart.v")])
        with pytest.raises(AlreadyExists):
            world.catalog.create_table(name("mart.v"), layout(id="long"), {})


def test_partitions_and_order(world: World) -> None:
    wanted = TableLayout(
        schema=schema(
            id="long", code="string", day="date", place={"type": "struct", "fields": [{"id": 9, "name": "at", "type": "timestamp"}]}
        ),
        partition_by=(
            *(Partition(column="day", transform="month"), Partition(column="id", transform="bucket[16]")),
            *(Partition(column="code", transform="truncate[4]"), Partition(column="code", transform="identity")),
            Partition(column="place.at", transform="hour"),
        ),
        sort_by=(Sort(column="id", descending=True, nulls_first=False),),
    )
    state = world.catalog.create_table(name("mart.t"), wanted, {})
    assert [f["name"] for f in state.schema["fields"]] == ["id", "code", "day", "place"]
    if world.pyiceberg:
        table = world.pyiceberg().load_table("mart.t")
        names = [field.name for field in table.spec().fields]
        assert names == ["day_month", "id_bucket_16", "code_trunc_4", "code", "place.at_hour"]
        assert str(table.sort_order().fields[0]) == "1 DESC NULLS LAST"
        table.catalog.close()


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        (Partition(column="nope", transform="identity"), "Unknown column 'nope'"),
        (Partition(column="id", transform="week"), "'week' is not a partition transform"),
        (Partition(column="id", transform="month"), "type long cannot be partitioned by month"),
    ],
)
def test_impossible_layouts(world: World, partition: Partition, expected: str) -> None:
    with pytest.raises(CatalogError, match=expected):
        world.catalog.create_table(name("mart.t"), TableLayout(schema=schema(id="long"), partition_by=(partition,)), {})
    sort = Sort(column="nope", descending=False, nulls_first=True)
    with pytest.raises(CatalogError, match="Unknown column 'nope'"):
        world.catalog.create_table(name("mart.t"), TableLayout(schema=schema(id="long"), sort_by=(sort,)), {})
    assert world.catalog.list_names(("mart",)) == ()


def test_drop_leaves_other_names(world: World) -> None:
    world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    world.catalog.create_table(name("mart.u"), layout(id="long"), {})
    drop(world.catalog, name("mart.t"))
    drop(world.catalog, name("mart.t"))
    assert world.catalog.list_names(("mart",)) == (name("mart.u"),)


def test_snapshots_of_a_foreign_writer(world: World) -> None:
    world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    first = world.write(name("mart.t"), {"id": [1]}, "main")
    second = world.write(name("mart.t"), {"id": [2]}, "main")
    snapshot = second.current_snapshot
    assert snapshot
    assert snapshot.parent_id == first.current_snapshot_id
    assert snapshot.operation == "append"
    assert snapshot.schema_id == second.current_schema_id
    assert (snapshot.sequence_number, len(second.snapshots)) == (2, 2)
    assert [entry[1] for entry in second.snapshot_log] == [first.current_snapshot_id, second.current_snapshot_id]
    assert second.refs == {"main": snapshot.snapshot_id}
    assert second.branches == {"main"}


def test_branch_on_a_table_with_a_snapshot(world: World) -> None:
    world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    table = world.write(name("mart.t"), {"id": [1]}, "main")
    branched = world.catalog.create_branch(table, "audit")
    assert branched.refs == {"main": table.current_snapshot_id, "audit": table.current_snapshot_id}


def test_branch_on_an_empty_table(world: World) -> None:
    table = world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    branched = world.catalog.create_branch(table, "audit")
    assert branched.current_snapshot_id is None
    assert set(branched.refs) == {"audit"}
    assert world.catalog.files.rows(branched, 9) == (("id",), [])
    written = world.write(name("mart.t"), {"id": [5]}, "audit")
    assert written.current_snapshot_id is None
    moved = world.catalog.commit([table_commit(written, set_snapshot_id=written.refs["audit"], drop_branches=("audit",))])
    state = moved[name("mart.t")]
    assert isinstance(state, TableState)
    assert world.catalog.files.rows(state, 9) == (("id",), [(5,)])
    assert set(state.refs) == {"main"}


def test_load_tells_views_from_tables(world: World) -> None:
    if not world.views:
        pytest.skip("this catalog has no views")
    world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    world.catalog.commit([view_commit("mart.v")])
    found = world.catalog.load([name("mart.v"), name("mart.t")])
    assert isinstance(found[name("mart.v")], ViewState)
    assert isinstance(found[name("mart.t")], TableState)
    assert world.catalog.list_names(("mart",)) == (name("mart.t"), name("mart.v"))


def test_many_names_of_a_namespace_are_found_like_few(sql_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in ("mart.a", "mart.b", "mart.c"):
        sql_world.catalog.create_table(name(one), layout(id="long"), {})
    asked = [name("mart.a"), name("mart.none"), name("mart.c")]
    few = sql_world.catalog.load(asked)
    monkeypatch.setattr(pointers, "_FEW", 1)
    assert few.keys() == sql_world.catalog.load(asked).keys() == {name("mart.a"), name("mart.c")}
