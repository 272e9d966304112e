"""The columns and states by which the change of a table is found: what is refused, and what is kept separate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mvbuild.formats.record import BaseTable, RefreshRecord
from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.incremental.compared_columns import has_uuid
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.inputs import Input, Inputs, changes_of, recorded_at, shape_of_inputs
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.table_changes import Changes
from mvbuild.ports.changes import Comparison, FileGroup, Predicate, TableChange, ValueRange
from mvbuild.ports.states import TableState
from mvbuild.source import MappedText, SourceFile
from unit.freshness.other_hands import Fields, added, evolve, two
from unit.worlds import Shop, append, base_table

SQL = f"SELECT id, customer FROM {MARKER}0"


@pytest.fixture
def of(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    base_table(made.catalog, "raw.orders")
    evolve(made, two)
    append(made.catalog, "raw.orders")
    return made


def changed(of: Shop, sql: str, *, noted: bool = False) -> dict[int, TableChange]:
    """What changed since the last snapshot but one, if the schema of then was noted or not."""
    table = of.table("raw.orders")
    now = table.current_snapshot
    assert now is not None
    assert now.parent_id is not None
    pin = Pin(table=table, snapshot_id=now.snapshot_id, ref=None, moves=True)
    one = Input(leaf=Leaf(node="table.raw.orders"), pin=pin, old=now.parent_id, recorded_schema=table.schema if noted else None)
    given = Inputs(text=MappedText.of(SourceFile("m.sql", sql)), inputs=(one,))
    return changes_of(given, shape_of_inputs(given, None), Changes(of.catalog.changes))


def dropped_and_renamed(fields: Fields) -> Fields:
    """`customer` goes, and another column takes its name."""
    return [{**fields[0], "name": "customer"}]


def test_another_column_has_taken_the_name(of: Shop) -> None:
    evolve(of, dropped_and_renamed)
    append(of.catalog, "raw.orders", 5)
    with pytest.raises(Refused) as refused:
        changed(of, f"SELECT customer FROM {MARKER}0")
    assert refused.value.code == "column-changed"


def test_a_column_that_was_not_there(of: Shop) -> None:
    evolve(of, added)
    append(of.catalog, "raw.orders", 5)
    assert changed(of, SQL)
    with pytest.raises(Refused) as refused:
        changed(of, f"SELECT id, more FROM {MARKER}0")
    assert refused.value.code == "column-changed"


def test_a_column_that_was_there_when_it_was_read_though_no_row_had_it(of: Shop) -> None:
    evolve(of, added)
    append(of.catalog, "raw.orders", 5)
    assert changed(of, f"SELECT id, more FROM {MARKER}0", noted=True)


def state(snapshot_id: int, name: str = "orders", ref: str | None = None) -> BaseTable:
    return BaseTable(uuid="u", snapshot_id=snapshot_id, namespace=("raw",), name=name, ref=ref)


@pytest.mark.parametrize(
    ("states", "ref", "expected"),
    [
        ([state(1, "copied"), state(2)], None, 2),
        ([state(1, "renamed")], None, 1),
        ([state(1), state(2, ref="prod")], "prod", 2),
        ([state(1, ref="prod"), state(2)], None, 2),
    ],
)
def test_which_state_of_a_table_was_read(of: Shop, states: list[BaseTable], ref: str | None, expected: int) -> None:
    table = replace(of.table("raw.orders"), uuid="u")
    found = Pin(table=table, snapshot_id=9, ref=ref, moves=True)
    assert recorded_at(RefreshRecord(view_version_id=1, base_tables=tuple(states)), found) == expected


def test_the_state_of_another_branch_is_none(of: Shop) -> None:
    found = Pin(table=replace(of.table("raw.orders"), uuid="u"), snapshot_id=9, ref="prod", moves=True)
    record = RefreshRecord(view_version_id=1, base_tables=(state(1),))
    assert recorded_at(record, found) == 1
    with pytest.raises(Refused) as refused:
        recorded_at(record, found, of_several=True)
    assert refused.value.code == "record-incomplete"


def _shares(of: Shop, monkeypatch: pytest.MonkeyPatch) -> Changes:
    """By schema: all rows under the first one, none under the next."""

    def matching(change: TableChange, predicates: tuple[Predicate, ...]) -> FileGroup:
        assert all(isinstance(p, Comparison) for p in predicates)
        return change.added if change.table.current_schema_id == 1 else FileGroup()

    monkeypatch.setattr(of.catalog.changes, "matching", matching)
    return Changes(of.catalog.changes)


def test_shares_of_a_name_under_two_schemas(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, wanted = _shares(of, monkeypatch), ValueRange(type="long", low=1, high=2, has_null=False)

    def share(table: TableState) -> float:
        at = table.current_snapshot_id
        assert at is not None
        snapshot = replace(table.snapshots[at], summary={"total-data-files": "1"})
        return changes.share(replace(table, snapshots={**table.snapshots, at: snapshot}), at, "id", wanted)

    before = of.table("raw.orders")
    evolve(of, added)
    assert (before.current_schema_id, share(before), share(of.table("raw.orders"))) == (1, 1.0, 0.0)


def test_ranges_of_two_tables_of_one_uuid(of: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def ranges(change: TableChange, side: Any, columns: tuple[str, ...]) -> dict[str, ValueRange]:
        return {columns[0]: ValueRange(type=change.table.identifier.name, low=1, high=2, has_null=False)}

    monkeypatch.setattr(of.catalog.changes, "value_ranges", ranges)
    changes, table = Changes(of.catalog.changes), of.table("raw.orders")
    copy = replace(table, identifier=table.identifier._replace(name="copied"))
    whole = TableChange(table=table, old=1, new=2, parts=(), manifests_read=0, manifest_bytes_read=0)
    found = [changes.range(change, "plus", "id") for change in (whole, replace(whole, table=copy))]
    assert [one.type for one in found if one] == ["orders", "copied"]


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        ("uuid", True),
        ("string", False),
        ({"type": "list", "element-id": 1, "element": "uuid"}, True),
        ({"type": "map", "key-id": 1, "key": "uuid", "value-id": 2, "value": "int"}, True),
        ({"type": "struct", "fields": [{"id": 1, "name": "a", "type": {"type": "list", "element-id": 2, "element": "uuid"}}]}, True),
        ({"type": "struct", "fields": [{"id": 1, "name": "uuid", "type": "string", "doc": "a uuid"}]}, False),
    ],
)
def test_types_with_a_uuid(type_: Any, found: bool) -> None:
    assert has_uuid(type_) is found
