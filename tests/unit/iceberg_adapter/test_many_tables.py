"""Catalogs of many tables and long histories: what a run reads of them, and that nothing is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mvbuild.adapters.iceberg import tables
from mvbuild.adapters.iceberg.catalog import MetadataCatalog
from mvbuild.adapters.iceberg.files import FileStore
from mvbuild.adapters.iceberg.metadata import serialize, table_state
from mvbuild.adapters.iceberg.pointer_publisher import PointerPublisher
from mvbuild.adapters.iceberg.pointers import SqlPointers, Swap
from mvbuild.adapters.iceberg.sql import SqliteDatabase
from mvbuild.names import TableIdentifier
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import TableState
from unit.worlds import SCHEMA

NAME = TableIdentifier("lake", ("raw",), "orders")


class CountingFiles(FileStore):
    """Counts how often each file is read, and how many are in memory at a time."""

    def __init__(self) -> None:
        super().__init__({})
        self.reads: Counter[str] = Counter()
        self.most = 0

    def read_all(self, locations: list[str]) -> list[bytes | Exception]:
        self.reads.update(locations)
        self.most = max(self.most, len(locations))
        return super().read_all(locations)


def pointers(path: Path) -> SqlPointers:
    return SqlPointers("lake", SqliteDatabase(path / "catalog.db", create=True))


def test_each_of_many_names_is_found_under_its_own_namespace_and_case(tmp_path: Path) -> None:
    found = pointers(tmp_path)
    keys = [(namespace, f"t{number}") for namespace in ("raw", "Raw", "mart.daily") for number in range(1000)]
    assert found.swap([Swap(key=key, kind="TABLE", old=None, new=f"/{key[0]}/{key[1]}") for key in keys])
    wanted = [*keys, ("RAW", "t1"), ("raw", "T1"), ("raw", "t1000"), ("other", "t1")]
    assert found.find(wanted) == {key: (f"/{key[0]}/{key[1]}", "TABLE") for key in keys}
    assert found.find([]) == {}


def test_many_files_are_read_once_each_and_not_all_at_a_time(tmp_path: Path) -> None:
    files, found = CountingFiles(), pointers(tmp_path)
    catalog = MetadataCatalog(PointerPublisher(name="lake", pointers=found, files=files, data=None))  # type: ignore[arg-type]
    raw = tables.new_table(str(tmp_path), TableLayout(schema=SCHEMA), {})
    content = serialize(raw, "t.metadata.json")
    swaps = []
    for number in range(600):
        location = f"{tmp_path}/{number}.metadata.json"
        files.write(location, content)
        swaps.append(Swap(key=("raw", f"t{number}"), kind="TABLE", old=None, new=location))
    assert found.swap(swaps)
    names = [TableIdentifier("lake", ("raw",), f"t{number}") for number in range(600)]
    states = catalog.load([*names, *names])
    assert list(states) == names
    assert all(isinstance(state, TableState) and state.uuid == raw["table-uuid"] for state in states.values())
    assert set(files.reads.values()) == {1}
    assert files.most < 600


def test_a_long_history_is_what_the_file_says() -> None:
    raw = tables.new_table("/orders", TableLayout(schema=SCHEMA), {"owner": "etl"})
    for number in range(200):
        snapshot = tables.empty_snapshot(raw, f"/orders/{number}.avro", number + 1)
        raw = tables.with_main(tables.with_snapshots(raw, [snapshot], None), number + 1, NAME)
    state = table_state(NAME, "/orders/metadata.json", raw)
    assert list(state.snapshots) == list(range(1, 201))
    assert [state.snapshots[id].timestamp_ms for id in state.snapshots] == [one["timestamp-ms"] for one in raw["snapshots"]]
    assert state.current_snapshot is not None
    assert state.current_snapshot.summary == raw["snapshots"][-1]["summary"]
    assert 200 in state.snapshots
    assert 201 not in state.snapshots
    assert state.snapshots.get(201) is None
    assert tuple(state.snapshot_log) == tuple((one["timestamp-ms"], one["snapshot-id"]) for one in raw["snapshot-log"])
    assert state.snapshot_log[198:] == (state.snapshot_log[198], state.snapshot_log[199])
    assert state.schema == raw["schemas"][0]
    assert state == table_state(NAME, "/orders/metadata.json", raw)
