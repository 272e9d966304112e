"""Whether a change has rows that meet predicates: by the metadata of files, and in memory by the rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from behaviour.world import World, layout, name
from mvbuild.adapters.iceberg import net_rows
from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.ports.changes import AnyOf, Comparison, Predicate, TableChange
from mvbuild.ports.states import Partition, TableState

T = name("mart.t")
COLUMNS = {"id": "long", "s": "string", "d": "date", "m": "decimal(10, 2)", "b": "boolean", "e": "int"}
ROWS = {
    "id": [10, 20],
    "s": ["bear", "cat"],
    "d": [date(2026, 1, 1), date(2026, 1, 31)],
    "m": [Decimal("-1.50"), Decimal("2.25")],
    "b": [True, True],
    "e": [None, None],
}


def _change(world: World) -> TableChange:
    world.catalog.create_table(T, layout(**COLUMNS), {})
    table = world.write(T, ROWS, "main")
    assert table.current_snapshot_id is not None
    return world.catalog.changes.between(table, NO_SNAPSHOT, table.current_snapshot_id)


C = Comparison


def test_predicates_on_one_column(world: World) -> None:
    change = _change(world)
    meets = [
        C("id", "=", 10), C("id", ">=", 20), C("id", "<", 11), C("id", "in", (1, 20)), C("s", "starts with", "ca"), C("s", ">", "bz"),
        C("d", ">", date(2026, 1, 30)), C("m", "<", Decimal("-1.49")), C("m", "=", Decimal("2.25")), C("b", "=", True),
        C("e", "is null"), C("id", "is not null"),
    ]  # fmt: skip
    fails = [
        C("id", "=", 9), C("id", ">", 20), C("id", "<=", 9), C("id", "in", (1, 21)), C("s", "starts with", "d"), C("s", "<", "bea"),
        C("d", ">=", date(2026, 2, 1)), C("m", "<", Decimal("-1.50")), C("b", "=", False), C("e", "=", 1), C("e", "is not null"),
        C("id", "is null"),
    ]  # fmt: skip
    assert [p for p in meets if not world.catalog.changes.may_match(change, [(p,)])] == []
    assert [p for p in fails if world.catalog.changes.may_match(change, [(p,)])] == []


def test_and_or_and_several_scans(world: World) -> None:
    change = _change(world)
    yes, no = C("id", "=", 10), C("id", "=", 9)

    def may(*conjunctions: tuple[Predicate, ...]) -> bool:
        return world.catalog.changes.may_match(change, conjunctions)

    said = [may((yes,)), may(()), may((no,), (yes,)), may((AnyOf(((no,), (yes,))),)), may((no,), ())]
    assert said == [True] * 5
    said = [may((yes, no)), may((no,), (no, yes)), may((AnyOf(((no,), (no, yes))),))]
    assert said == [False] * 3


def test_no_change_has_no_rows(world: World) -> None:
    world.catalog.create_table(T, layout(**COLUMNS), {})
    table = world.write(T, ROWS, "main")
    assert table.current_snapshot_id is not None
    change = world.catalog.changes.between(table, table.current_snapshot_id, table.current_snapshot_id)
    assert not world.catalog.changes.may_match(change, [(C("id", "=", 10),)])


def test_rows_that_went(world: World) -> None:
    world.catalog.create_table(T, layout(**COLUMNS), {})
    old = world.write(T, ROWS, "main").current_snapshot_id
    new: TableState = world.catalog.replace_rows(T, layout(**COLUMNS), {**ROWS, "id": [50, 60]}, {})
    assert old is not None
    assert new.current_snapshot_id is not None
    change = world.catalog.changes.between(new, old, new.current_snapshot_id)
    assert world.catalog.changes.may_match(change, [(C("id", "=", 10),)])
    assert world.catalog.changes.may_match(change, [(C("id", "=", 60),)])
    assert not world.catalog.changes.may_match(change, [(C("id", "=", 70),)])


def test_a_partition(world: World) -> None:
    """Bounds say that both columns may match, the partition that no file has both."""
    shape = layout(id="long", s="string")
    parted = replace(shape, partition_by=(Partition(column="s", transform="identity"),))
    world.catalog.create_table(T, parted, {})
    table = world.catalog.replace_rows(T, parted, {"id": [1, 9, 5], "s": ["a", "a", "b"]}, {})
    assert table.current_snapshot_id is not None
    change = world.catalog.changes.between(table, NO_SNAPSHOT, table.current_snapshot_id)
    assert world.catalog.changes.may_match(change, [(C("id", "=", 5), C("s", "=", "b"))])
    assert not world.catalog.changes.may_match(change, [(C("id", "=", 9), C("s", "=", "b"))])
    assert not world.catalog.changes.may_match(change, [(C("s", "=", "c"),)])


def test_the_ranges_of_what_was_added(world: World) -> None:
    found = world.catalog.changes.value_ranges(_change(world), "plus", [*COLUMNS, "unknown"])
    assert (found["id"].low, found["id"].high, found["id"].has_null) == (10, 20, False)
    assert (found["s"].low, found["s"].high) == ("bear", "cat")
    assert (found["d"].low, found["d"].high) == (date(2026, 1, 1), date(2026, 1, 31))
    assert (found["m"].low, found["m"].high, found["m"].type) == (Decimal("-1.50"), Decimal("2.25"), "decimal(10, 2)")
    assert (found["e"].low, found["e"].high, found["e"].has_null) == (None, None, True)
    assert found.keys() == {"id", "s", "d", "m", "e"}


def test_the_files_that_match(world: World) -> None:
    change = _change(world)
    assert world.catalog.changes.matching(change, (C("id", ">=", 15), C("id", "<=", 30))).rows == 2
    assert world.catalog.changes.matching(change, (C("id", ">=", 21), C("id", "<=", 30))).files == 0
    assert world.catalog.changes.matching(change, ()).rows == 2


def test_the_ranges_of_what_went(world: World) -> None:
    world.catalog.create_table(T, layout(**COLUMNS), {})
    old = world.write(T, ROWS, "main").current_snapshot_id
    new: TableState = world.catalog.replace_rows(T, layout(**COLUMNS), {**ROWS, "id": [50, 60]}, {})
    assert old is not None
    assert new.current_snapshot_id is not None
    change = world.catalog.changes.between(new, old, new.current_snapshot_id)
    plus, minus = (world.catalog.changes.value_ranges(change, side, ["id"])["id"] for side in ("plus", "minus"))
    assert (plus.low, plus.high, minus.low, minus.high) == (50, 60, 10, 20)


def test_the_rows_that_are_on_one_side_only(world: World) -> None:
    world.catalog.create_table(T, layout(**COLUMNS), {})
    old = world.write(T, ROWS, "main").current_snapshot_id
    new: TableState = world.catalog.replace_rows(T, layout(**COLUMNS), {**ROWS, "id": [10, 60], "s": ["bear", None]}, {})
    assert old is not None
    assert new.current_snapshot_id is not None
    change = world.catalog.changes.between(new, old, new.current_snapshot_id)
    columns = ["e", "id", "m", "s"]
    assert world.catalog.changes.reads_here(change, columns) != isinstance(world.catalog, MemoryCatalog)
    if isinstance(world.catalog, MemoryCatalog):
        pytest.skip("it has no files")
    net = world.catalog.changes.net_rows(change, columns)
    assert net is not None
    assert (net.plus.data.to_pylist(), net.minus.data.to_pylist()) == (
        [{"e": None, "id": 60, "m": Decimal("2.25"), "s": None}],
        [{"e": None, "id": 20, "m": Decimal("2.25"), "s": "cat"}],
    )
    assert (net.plus.count, net.minus.count) == (1, 1)
    ranges = {name: (found.low, found.high, found.has_null, found.values) for name, found in net.minus.ranges.items()}
    assert ranges == {
        "e": (None, None, True, ()),
        "id": (20, 20, False, (20,)),
        "m": (Decimal("2.25"), Decimal("2.25"), False, (Decimal("2.25"),)),
        "s": ("cat", "cat", False, ("cat",)),
    }
    same = world.catalog.changes.net_rows(change, ["d"])
    assert same is not None
    assert (same.plus.count, same.minus.count) == (0, 0)
    added = world.catalog.changes.between(new, NO_SNAPSHOT, new.current_snapshot_id)
    assert world.catalog.changes.reads_here(added, columns)
    whole = world.catalog.changes.net_rows(added, ["id"])
    assert whole is not None
    assert (whole.plus.data.to_pydict(), whole.minus.count) == ({"id": [10, 60]}, 0)
    assert not world.catalog.changes.reads_here(change, ["id", "unknown"])


def test_files_that_cannot_be_read_are_left_to_the_engine(disk_world: World) -> None:
    disk_world.catalog.create_table(T, layout(**COLUMNS), {})
    old = disk_world.write(T, ROWS, "main").current_snapshot_id
    new: TableState = disk_world.catalog.replace_rows(T, layout(**COLUMNS), {**ROWS, "id": [10, 60]}, {})
    assert old is not None
    assert new.current_snapshot_id is not None
    change = disk_world.catalog.changes.between(new, old, new.current_snapshot_id)
    for part in change.parts:
        for entry in part.files.removed:
            Path(entry.path.removeprefix("file://")).unlink()
    assert disk_world.catalog.changes.net_rows(change, ["id"]) is None


def test_more_than_a_process_should_hold_is_left_to_the_engine(disk_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {**COLUMNS, "many": {"type": "list", "element-id": 99, "element": "int", "element-required": False}}
    disk_world.catalog.create_table(T, layout(**columns), {})
    old = disk_world.write(T, ROWS, "main").current_snapshot_id
    new: TableState = disk_world.catalog.replace_rows(T, layout(**columns), {**ROWS, "id": [50, 60]}, {})
    assert old is not None
    assert new.current_snapshot_id is not None
    change = disk_world.catalog.changes.between(new, old, new.current_snapshot_id)

    def reads(*names: str) -> bool:
        return disk_world.catalog.changes.reads_here(change, names)

    assert (reads("id"), reads("id", "s"), reads("id", "many"), reads()) == (True, True, False, False)
    for limit, value in (("MAX_NET_ROWS", 3), ("MAX_NET_BYTES", 31)):
        with monkeypatch.context() as smaller:
            assert disk_world.catalog.changes.net_rows(change, ["id"]) is not None
            smaller.setattr(net_rows, limit, value)
            assert disk_world.catalog.changes.net_rows(change, ["id"]) is None
    monkeypatch.setattr(net_rows, "MAX_VALUES", 7)
    assert (reads("id"), reads("id", "s")) == (True, False)
    monkeypatch.setattr(net_rows, "MAX_TEXT", 0)
    assert (reads("id"), reads("s")) == (True, False)
