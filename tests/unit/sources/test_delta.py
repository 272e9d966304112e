"""Tables that `deltalake` wrote -> their states."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mvbuild.adapters.sources import OpenedSources
from mvbuild.adapters.sources.delta import Versions, iceberg_schema
from mvbuild.names import TableIdentifier
from mvbuild.ports.sources import SourceError, SourceLocation
from mvbuild.ports.states import Snapshot, TableState
from mvbuild.storage.stored import replaced_since


def location(path: Path | str, **options: str) -> SourceLocation:
    return SourceLocation(identifier=TableIdentifier("", (), str(path)), type="deltalake-filesystem", options=options)


def loaded(path: Path) -> TableState:
    (state,) = OpenedSources({}).load([location(path)]).values()
    return state


def write(path: Path, *ids: int, **options: Any) -> None:
    write_deltalake(path, pa.table({"id": pa.array(ids, pa.int64())}), mode=options.pop("mode", "append"), **options)


def operations(path: Path) -> list[str]:
    return [snapshot.operation for snapshot in loaded(path).snapshots.values()]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "a table"
    write(path, 1, 2)
    write(path, 3)
    return path


def test_a_table_as_it_is(table: Path) -> None:
    state = loaded(table)
    delta = DeltaTable(table)
    assert (state.type, state.uuid, state.current_snapshot_id) == ("deltalake-filesystem", str(delta.metadata().id), 1)
    assert list(state.snapshots) == [0, 1]
    assert state.current_snapshot == state.snapshots[1]
    assert (state.snapshots[1].parent_id, state.snapshots[0].parent_id) == (0, None)
    assert state.snapshots[1].timestamp_ms == delta.history(1)[0]["timestamp"]
    assert [id for _, id in state.snapshot_log] == [0, 1]
    assert state.schema["fields"] == [{"id": 1, "name": "id", "required": False, "type": "long"}]


def test_what_each_commit_did(table: Path) -> None:
    DeltaTable(table).delete("id = 1")
    DeltaTable(table).optimize.compact()
    DeltaTable(table).alter.set_table_properties({"delta.appendOnly": "false"})
    DeltaTable(table).vacuum(0, enforce_retention_duration=False, dry_run=False)
    DeltaTable(table).restore(3)
    write(table, 9, mode="overwrite")
    found = operations(table)
    assert found[:5] == ["append", "append", "overwrite", "replace", "replace"]
    assert set(found[5:-2]) <= {"replace"}
    assert found[-1] == "overwrite"


def test_compaction_changes_no_rows_and_a_new_schema_does(table: Path) -> None:
    DeltaTable(table).optimize.compact()
    assert replaced_since(loaded(table), 1)
    assert not replaced_since(loaded(table), 0)
    from deltalake import Field
    from deltalake.schema import PrimitiveType

    DeltaTable(table).alter.add_columns([Field("note", PrimitiveType("string"))])
    state = loaded(table)
    assert state.snapshots[3].operation == "overwrite"
    assert not replaced_since(state, 1)
    assert [f["name"] for f in state.schema["fields"]] == ["id", "note"]


def test_a_checkpoint_in_place_of_old_commits(table: Path) -> None:
    DeltaTable(table).create_checkpoint()
    write(table, 4)
    for version in (0, 1):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    state = loaded(table)
    assert (state.current_snapshot_id, list(state.snapshots)) == (2, [2])


def test_a_table_made_anew_has_another_id(table: Path, tmp_path: Path) -> None:
    before = loaded(table).uuid
    table.rename(tmp_path / "old")
    write(table, 1)
    assert loaded(table).uuid != before


def test_no_table(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert OpenedSources({}).load([location(tmp_path / "gone"), location(tmp_path / "empty")]) == {}


def test_a_table_that_cannot_be_read(table: Path) -> None:
    (table / "_delta_log" / f"{1:020}.json").write_text("nothing of Delta's")
    with pytest.raises(SourceError, match=r"a table cannot be read: ") as caught:
        OpenedSources({}).load([location(table, AWS_SECRET_ACCESS_KEY="nothing")])
    assert caught.value.code == "catalog-error"
    assert "nothing" not in str(caught.value)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(SourceError, match="is a Delta table") as caught:
        OpenedSources({}).load([location(tmp_path)])
    assert (caught.value.code, caught.value.help) == ("missing-package", "pip install 'mvbuild[delta]'")


class FakeLog:
    def __init__(self, commits: Mapping[int, list[dict[str, Any]]]) -> None:
        self._commits = commits

    def commits(self) -> Mapping[int, int]:
        return dict.fromkeys(self._commits, 1)

    def read(self, version: int) -> bytes:
        if version not in self._commits:
            raise FileNotFoundError(str(version))
        return "\n".join(map(json.dumps, self._commits[version])).encode()


FIRST = [{"metaData": {"id": "x", "schemaString": "s", "partitionColumns": []}}]


@pytest.mark.parametrize(
    ("actions", "operation"),
    [
        ([{"add": {"path": "a", "dataChange": True}}], "append"),
        ([{"add": {"path": "a"}}], "append"),
        ([{"remove": {"path": "a", "dataChange": True}}], "overwrite"),
        ([{"add": {"path": "a", "dataChange": False}}, {"remove": {"path": "b", "dataChange": True}}], "overwrite"),
        ([{"add": {"path": "a", "dataChange": False}}, {"remove": {"path": "b", "dataChange": False}}], "replace"),
        ([{"txn": {"appId": "x"}}, {"commitInfo": {}}], "replace"),
        ([{"metaData": {"id": "x", "schemaString": "s", "partitionColumns": [], "configuration": {"a": "b"}}}], "replace"),
        ([{"metaData": {"id": "x", "schemaString": "t", "partitionColumns": []}}], "overwrite"),
        ([{"metaData": {"id": "x", "schemaString": "s", "partitionColumns": ["d"]}}], "overwrite"),
        ([], "overwrite"),
    ],
)
def test_words_for_commits(actions: list[dict[str, Any]], operation: str) -> None:
    assert snapshot({0: FIRST, 1: [{"commitInfo": {}}], 2: actions}).operation == operation


def snapshot(commits: Mapping[int, list[dict[str, Any]]]) -> Snapshot:
    log = FakeLog(commits)
    return Versions(log, log.commits())[max(commits)]


def test_a_schema_that_is_known_no_more_is_taken_for_changed() -> None:
    assert snapshot({5: [{"commitInfo": {}}], 6: FIRST}).operation == "overwrite"
    assert Versions(FakeLog({}), {3: 1})[3].operation == "overwrite"


def test_types() -> None:
    def field(name: str, of: Any) -> dict[str, Any]:
        return {"name": name, "type": of, "nullable": True, "metadata": {}}

    nested = {"type": "struct", "fields": [field("x", "short"), field("at", "timestamp_ntz")]}
    delta = {
        "type": "struct",
        "fields": [
            field("a", {"type": "array", "elementType": "integer", "containsNull": False}),
            field("m", {"type": "map", "keyType": "string", "valueType": nested, "valueContainsNull": True}),
            field("d", "decimal(10,2)") | {"nullable": False, "metadata": {"comment": "paid"}},
            field("t", "timestamp"),
        ],
    }
    a, m, d, t = iceberg_schema(delta)["fields"]
    assert a["type"] == {"type": "list", "element-id": 2, "element": "int", "element-required": True}
    assert [f["type"] for f in m["type"]["value"]["fields"]] == ["int", "timestamp"]
    assert (d["type"], d["required"], d["doc"], t["type"]) == ("decimal(10,2)", True, "paid", "timestamptz")
    ids = [int(word) for word in json.dumps(iceberg_schema(delta)).replace(",", " ").replace("}", " ").split() if word.isdigit()]
    assert len(ids) >= len({*ids}) >= 9
