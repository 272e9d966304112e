"""Rows removed by position and rows added, in one snapshot without an engine; and changes with deletes, read without one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from behaviour.world import World, layout, name
from mvbuild.adapters.iceberg import rows_within
from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.changes import RowChange, ValueRange
from mvbuild.ports.states import Partition, Sort, TableState

T = name("mart.t")
COLUMNS = {"id": "long", "s": "string", "f": "double"}
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}
NOTHING = pa.table({"file": pa.array([], pa.string()), "pos": pa.array([], pa.int64())})
Row = tuple[Any, ...]


def rows_of(ids: list[int]) -> pa.Table:
    values = [(one, None if one % 3 == 0 else f"row {one}", float("nan") if one % 5 == 0 else one / 2) for one in ids]
    return pa.table([pa.array(column) for column in zip(*values, strict=True)] if values else [[], [], []], names=["a", "b", "c"]).cast(
        pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
    )


@dataclass
class Table:
    """A table, and where each of its rows is."""

    world: World
    state: TableState
    places: dict[int, tuple[str, int]] = field(default_factory=dict)
    contents: dict[int, set[int]] = field(default_factory=lambda: {NO_SNAPSHOT: set()})
    """Snapshot -> the ids of its rows."""

    @property
    def snapshot(self) -> int:
        assert self.state.current_snapshot_id is not None
        return self.state.current_snapshot_id

    def change(self, removed: list[int], added: list[int]) -> bool:
        gone = [self.places[one] for one in removed]
        positions = pa.table([pa.array([f for f, _ in gone], pa.string()), pa.array([at for _, at in gone], pa.int64())], ["file", "pos"])
        if not self.world.catalog.change_rows(T, None, RowChange(removed=positions, added=rows_of(added)), {"Told": "x"}):
            return False
        for one in removed:
            del self.places[one]
        self.find(added)
        return True

    def find(self, added: list[int]) -> None:
        """After rows were added in one file."""
        found = self.world.catalog.load([T])[T]
        assert isinstance(found, TableState)
        self.state = found
        known = {path for path, _ in self.places.values()}
        (part,) = self.world.catalog.changes.between(found, NO_SNAPSHOT, self.snapshot).parts or [None]
        paths = [entry.path for entry in part.files.added if entry.path not in known] if part else []
        self.places |= {one: (path, at) for path in paths[:1] for at, one in enumerate(added)}
        assert len(paths) == bool(added)
        self.contents[self.snapshot] = set(self.places)

    def ids(self) -> list[int]:
        return sorted(row[0] for row in self.world.catalog.files.rows(self.state, 10_000)[1])


def made(world: World, properties: dict[str, str] = MERGE_ON_READ, **how: Any) -> Table:
    if isinstance(world.catalog, MemoryCatalog):
        pytest.skip("it has no files")
    wanted = layout(**COLUMNS)
    world.catalog.create_table(T, type(wanted)(schema=wanted.schema, **how), properties)
    first = list(range(40))
    written = world.write(T, dict(zip(COLUMNS, rows_of(first).to_pydict().values(), strict=True)), "main")
    table = Table(world, written)
    table.find(first)
    return table


def within(table: Table, low: int, high: int) -> pa.Table | None:
    """The rows with ids in a range, in the order of their ids."""
    whole = table.world.catalog.changes.between(table.state, NO_SNAPSHOT, table.snapshot)
    wanted = ValueRange(type="long", low=low, high=high, has_null=False)
    found = table.world.catalog.changes.rows_within(whole, list(COLUMNS), ("id", wanted))
    return found.sort_by("id") if found is not None else None


@pytest.mark.proof
def test_random_changes(world: World) -> None:
    random, table, next_id = Random(7), made(world), 100
    for _ in range(12):
        removed = random.sample(sorted(table.places), min(len(table.places), random.choice([0, 1, 3, 30])))
        added = list(range(next_id, next_id + random.choice([0, 1, 5])))
        next_id += 10
        if removed or added:
            assert table.change(removed, added)
            assert table.ids() == sorted(table.places)
        some = random.sample(sorted(table.places), min(len(table.places), 4))
        found = world.catalog.changes.positions(table.state, rows_of([*some, 900]), rows_of([900, 901]))
        assert found is not None
        assert Counter(zip(*found.removed.to_pydict().values(), strict=True)) == Counter(table.places[one] for one in some)
        assert found.added.to_pydict()["id"] == [901], "a row on both sides stays as it is"
        stored = world.catalog.changes.stored_rows(table.state)
        assert str(stored.select(list(COLUMNS)).sort_by("id").to_pylist()) == str(
            rows_of(sorted(table.places)).rename_columns(list(COLUMNS)).to_pylist()
        )
        assert table.places == {
            id_: (file, at) for id_, file, at in zip(*(stored[n].to_pylist() for n in ("id", "_file", "_pos")), strict=True)
        }
        kept = [one for one in table.places if one not in some]
        exchanged = world.catalog.changes.replaced(stored, rows_of([*kept, 902, 902]))
        assert exchanged is not None
        assert Counter(zip(*exchanged.removed.to_pydict().values(), strict=True)) == Counter(table.places[one] for one in some)
        assert exchanged.added.to_pydict()["id"] == [902, 902]
        low = random.randrange(-3, next_id)
        near = within(table, low, high := low + random.choice([0, 3, 40]))
        assert near is not None
        known = rows_of(sorted(one for one in table.places if low <= one <= high)).rename_columns(list(COLUMNS))
        assert str(near.to_pylist()) == str(known.to_pylist()), "with NaN"
    snapshots = list(table.contents)
    for old, new in [(random.choice(snapshots), random.choice(snapshots)) for _ in range(30)]:
        change = world.catalog.changes.between(table.state, old, new)
        if old == new or change.is_empty:
            continue
        assert world.catalog.changes.reads_here(change, ["id"])
        net = world.catalog.changes.net_rows(change, ["id"])
        assert net is not None
        before, after = table.contents[old], table.contents[new]
        assert set(net.plus.data["id"].to_pylist()) == after - before
        assert set(net.minus.data["id"].to_pylist()) == before - after
        assert (net.plus.count, net.minus.count) == (len(after - before), len(before - after))


def test_rows_in_a_range_that_are_many_are_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(world)
    monkeypatch.setattr(rows_within, "MAX_NET_ROWS", 10)
    of_ten, of_eleven = within(table, 5, 14), within(table, 5, 15)
    assert of_ten is not None
    assert (of_ten.num_rows, of_eleven) == (10, None)
    assert within(table, -50, 2) is not None
    monkeypatch.setattr(rows_within, "MAX_FILES", 0)
    assert within(table, 5, 14) is None


def test_positions_of_copies(world: World) -> None:
    """As many as are asked for; and none if the table has fewer, also after one was removed."""
    table = made(world)
    assert table.change([], [3, 5, 5, 5])
    state, positions = table.state, world.catalog.changes.positions
    found = positions(state, rows_of([5, 3, 5, 3]), rows_of([]))
    assert found is not None
    assert len(set(zip(*found.removed.to_pydict().values(), strict=True))) == 4
    assert positions(state, rows_of([5] * 4), rows_of([])) is not None
    assert positions(state, rows_of([5] * 5), rows_of([])) is None
    assert positions(state, rows_of([5] * 5), rows_of([5, 5])) is not None
    assert positions(state, rows_of([41]), rows_of([])) is None
    of_copies = positions(state, rows_of([3, 3, 5, 5]), rows_of([]))
    assert of_copies is not None
    assert world.catalog.change_rows(T, None, RowChange(removed=of_copies.removed, added=rows_of([])), {})
    left = world.catalog.load([T])[T]
    assert isinstance(left, TableState)
    assert positions(left, rows_of([3]), rows_of([])) is None
    assert positions(left, rows_of([5, 5]), rows_of([])) is not None
    assert positions(left, rows_of([5, 5, 5]), rows_of([])) is None


def test_rows_that_replace_copies(world: World) -> None:
    """As many copies as both have stay; values that do not fit are left to the engine."""
    table = made(world)
    assert table.change([], [3, 5, 5, 5])
    stored, replaced = world.catalog.changes.stored_rows(table.state), world.catalog.changes.replaced
    kept = list(table.places)
    fewer, more = replaced(stored, rows_of([*kept, 3, 5])), replaced(stored, rows_of([*kept, 3, 3, 5, 5, 5, 5]))
    assert fewer is not None
    assert (fewer.removed.num_rows, fewer.added.num_rows) == (2, 0)
    assert more is not None
    assert (more.removed.num_rows, more.added["id"].to_pylist()) == (0, [3, 5])
    nothing = replaced(stored, rows_of([]))
    assert nothing is not None
    assert (nothing.removed.num_rows, nothing.added.num_rows) == (44, 0)
    assert replaced(stored, rows_of([1]).set_column(0, "a", pa.array([2.5]))) is None


def test_one_file_has_all_deletes_of_a_data_file(world: World) -> None:
    table = made(world)
    for one in (3, 4, 5):
        assert table.change([one], [])
    summary = table.state.snapshots[table.snapshot].summary
    assert {
        key: summary[key] for key in ("total-delete-files", "total-position-deletes", "added-position-deletes", "removed-delete-files")
    } == {
        "total-delete-files": "1",
        "total-position-deletes": "3",
        "added-position-deletes": "3",
        "removed-delete-files": "1",
    }
    assert summary["told"] == "x"


def test_a_file_without_rows_goes_with_its_deletes(world: World) -> None:
    table = made(world)
    assert table.change([3], [50])
    assert table.change([one for one in range(40) if one != 3], [])
    summary = table.state.snapshots[table.snapshot].summary
    wanted = {"total-data-files": "1", "total-records": "1", "total-delete-files": "0", "total-position-deletes": "0"}
    assert {key: summary[key] for key in wanted} == wanted
    assert table.state.snapshots[table.snapshot].operation == "overwrite"
    assert table.ids() == [50]


def test_an_append(world: World) -> None:
    table = made(world, {})
    assert table.change([], [70])
    found = table.state.snapshots[table.snapshot]
    assert (found.operation, found.summary["added-records"], found.parent_id) == ("append", "1", list(table.contents)[1])


@pytest.mark.parametrize(
    ("properties", "how"),
    [
        ({"write.delete.mode": "copy-on-write"}, {}),
        ({}, {}),
        ({**MERGE_ON_READ, "write.wap.enabled": "true"}, {}),
        ({**MERGE_ON_READ, "write.parquet.compression-codec": "lz4"}, {}),
        ({**MERGE_ON_READ, "write.delete.granularity": "partition"}, {}),
        ({**MERGE_ON_READ, "format-version": "1"}, {}),
        (MERGE_ON_READ, {"partition_by": (Partition(column="s", transform="identity"),)}),
        (MERGE_ON_READ, {"sort_by": (Sort(column="id", descending=False, nulls_first=True),)}),
    ],
)
def test_what_is_left_to_the_engine(sql_world: World, properties: dict[str, str], how: dict[str, Any]) -> None:
    wanted = layout(**COLUMNS)
    sql_world.catalog.create_table(T, type(wanted)(schema=wanted.schema, **how), properties)
    written = sql_world.write(T, {"id": [1], "s": ["a"], "f": [0.5]}, "main")
    (part,) = sql_world.catalog.changes.between(written, NO_SNAPSHOT, written.current_snapshot_id or 0).parts
    removed = pa.table({"file": [part.files.added[0].path], "pos": [0]})
    assert not sql_world.catalog.change_rows(T, None, RowChange(removed=removed, added=rows_of([])), {})
    assert sql_world.catalog.load([T])[T] == written


@pytest.mark.parametrize("place", [("no such file", 0), (None, 40), (None, 3)])
def test_rows_that_are_not_there_are_left_to_the_engine(world: World, place: tuple[str | None, int]) -> None:
    table = made(world)
    file = table.places[7][0]
    assert table.change([3], [])
    removed = pa.table({"file": [place[0] or file], "pos": [place[1]]})
    assert not world.catalog.change_rows(T, None, RowChange(removed=removed, added=rows_of([1])), {})


def test_on_a_branch(world: World) -> None:
    table = made(world)
    world.catalog.create_branch(table.state, "audit")
    removed = pa.table({"file": [table.places[1][0]], "pos": [1]})
    assert world.catalog.change_rows(T, "audit", RowChange(removed=removed, added=rows_of([99])), {})
    found = world.catalog.load([T])[T]
    assert isinstance(found, TableState)
    assert found.current_snapshot_id == table.snapshot
    branch = sorted(row[0] for row in world.catalog.files.rows(found, 100, found.refs["audit"])[1])
    assert branch == [one for one in range(40) if one != 1] + [99]
    assert not world.catalog.change_rows(T, "none", RowChange(removed=NOTHING, added=rows_of([1])), {})


def test_another_commit_comes_first(sql_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(sql_world)
    catalog: Any = sql_world.catalog
    edit = type(catalog._publisher).edit

    def late(publisher: Any, identifier: Any, make: Any) -> Any:
        monkeypatch.undo()
        sql_world.write(T, {"id": [1], "s": ["a"], "f": [0.5]}, "main")
        return edit(publisher, identifier, make)

    monkeypatch.setattr(type(catalog._publisher), "edit", late)
    with pytest.raises(CommitConflict):
        table.change([3], [50])
    assert len(catalog.files.rows(catalog.load([T])[T], 100)[1]) == 41


def test_values_of_every_type(sql_world: World) -> None:
    noon = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
    types = {
        "b": "boolean", "i": "int", "l": "long", "f": "float", "d": "double", "m": "decimal(9, 2)", "w": "decimal(38, 10)",
        "day": "date", "t": "timestamp", "z": "timestamptz", "s": "string", "x": "binary",
    }  # fmt: skip
    columns = {
        "b": pa.array([True, None]), "i": pa.array([-1, None], pa.int16()), "l": pa.array([2**62, None]),
        "f": pa.array([-0.0, float("nan")], pa.float32()), "d": pa.array([float("inf"), float("nan")]),
        "m": pa.array([Decimal("-1.25"), None], pa.decimal128(9, 2)), "w": pa.array([Decimal("1e20"), None], pa.decimal128(38, 10)),
        "day": pa.array([date(1, 1, 1), None]), "t": pa.array([noon.replace(tzinfo=None), None], pa.timestamp("us")),
        "z": pa.array([noon, None], pa.timestamp("us", "Europe/Berlin")), "s": pa.array(["ö" * 20, None]),
        "x": pa.array([b"\xff" * 20, None]),
    }  # fmt: skip
    catalog = sql_world.catalog
    catalog.create_table(T, layout(**types), MERGE_ON_READ)
    sql_world.write(T, {name: [None] for name in types}, "main")
    assert catalog.change_rows(T, None, RowChange(removed=NOTHING, added=pa.table(columns)), {})
    state = catalog.load([T])[T]
    assert isinstance(state, TableState)
    (row,) = [row for row in catalog.files.rows(state, 9)[1] if row[0]]
    assert repr(row) == repr(
        (True, -1, 2**62, -0.0, float("inf"), Decimal("-1.25"), Decimal("100000000000000000000.0000000000"), date(1, 1, 1),
         noon.replace(tzinfo=None), row[9], "ö" * 20, b"\xff" * 20)
    )  # fmt: skip
    assert row[9] == noon
    (change,) = catalog.changes.between(state, next(iter(state.snapshots)), state.current_snapshot_id or 0).parts
    ids = {field["name"]: field["id"] for field in state.schema["fields"]}
    (file,) = [entry.file for entry in change.files.added]
    assert file.nan_value_counts == {ids["f"]: 1, ids["d"]: 1}
    assert ids["x"] not in file.upper_bounds  # no larger bytes of this length exist
    assert file.upper_bounds[ids["s"]].decode() == "ö" * 15 + "÷"
