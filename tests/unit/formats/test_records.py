"""Records as the two specifications write them, and back."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvbuild.formats import properties, refresh_state
from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, ChildView, RecordError, RefreshRecord
from mvbuild.names import TableIdentifier

UUIDS = st.uuids().map(str)
IDS = st.integers(min_value=0, max_value=2**63 - 1)
NAMES = st.text(min_size=1, max_size=8)
TABLES = st.builds(
    BaseTable,
    uuid=UUIDS,
    snapshot_id=IDS,
    catalog=st.none() | NAMES,
    namespace=st.lists(NAMES, max_size=2).map(tuple),
    name=NAMES,
    ref=st.none() | NAMES,
)
VIEWS = st.builds(
    ChildView,
    uuid=UUIDS,
    version_id=st.integers(1, 1000),
    catalog=st.none() | NAMES,
    namespace=st.lists(NAMES, max_size=2).map(tuple),
    name=NAMES,
)
RECORDS = st.builds(
    RefreshRecord,
    view_version_id=st.integers(1, 1000),
    base_tables=st.lists(TABLES, max_size=4, unique_by=lambda t: t.uuid).map(tuple),
    child_views=st.lists(VIEWS, max_size=3, unique_by=lambda v: v.uuid).map(tuple),
    refresh_start_ms=IDS,
)

PROPERTY_RECORDS = st.builds(
    RefreshRecord,
    view_version_id=st.integers(1, 1000),
    base_tables=st.dictionaries(UUIDS, IDS | st.just(NO_SNAPSHOT)).map(
        lambda ids: tuple(BaseTable(uuid=uuid, snapshot_id=ids[uuid]) for uuid in sorted(ids))
    ),
    child_views=st.dictionaries(UUIDS, st.integers(1, 1000)).map(
        lambda ids: tuple(ChildView(uuid=uuid, version_id=ids[uuid]) for uuid in sorted(ids))
    ),
)
"""What the properties can hold: one id for each UUID and no name, no order, no time."""
STATE_RECORDS = st.builds(
    RefreshRecord,
    view_version_id=st.integers(1, 1000),
    base_tables=st.lists(TABLES, max_size=4).map(tuple),
    child_views=st.lists(VIEWS, max_size=3).map(tuple),
    refresh_start_ms=IDS,
)
"""What `refresh-state` can hold: every state of tables of a catalog that have a snapshot, and always a time."""

RECORD = RefreshRecord(
    view_version_id=3,
    base_tables=(BaseTable(uuid="aaaa", snapshot_id=7, namespace=("raw",), name="orders"),),
    child_views=(ChildView(uuid="bbbb", version_id=2, namespace=("staging",), name="customers"),),
    refresh_start_ms=1000,
)


def test_property_names_and_values_are_those_of_the_specification() -> None:
    assert properties.encode(RECORD) == {
        "iceberg.view.version": "3",
        "iceberg.base.snapshot.aaaa": "7",
        "iceberg.child.view.version.bbbb": "2",
    }
    assert properties.view_properties(TableIdentifier("lake", ("mart",), "daily__storage")) == {
        "iceberg.materialized.view": "true",
        "iceberg.materialized.view.storage.table": "mart.daily__storage",
    }


def test_refresh_state_has_the_fields_of_the_draft() -> None:
    assert json.loads(refresh_state.encode(RECORD)) == {
        "view-version-id": 3,
        "source-states": [
            {"type": "table", "name": "orders", "namespace": ["raw"], "uuid": "aaaa", "snapshot-id": 7},
            {"type": "view", "name": "customers", "namespace": ["staging"], "uuid": "bbbb", "version-id": 2},
        ],
        "refresh-start-timestamp-ms": 1000,
    }


@given(RECORDS)
def test_properties_are_read_back(record: RefreshRecord) -> None:
    read = properties.decode(properties.encode(record))
    assert read is not None
    assert read.view_version_id == record.view_version_id
    assert {(t.uuid, t.snapshot_id) for t in read.base_tables} == {(t.uuid, t.snapshot_id) for t in record.base_tables}
    assert {(v.uuid, v.version_id) for v in read.child_views} == {(v.uuid, v.version_id) for v in record.child_views}


@given(PROPERTY_RECORDS)
def test_every_record_that_properties_can_hold_is_read_back(record: RefreshRecord) -> None:
    assert properties.decode(properties.encode(record)) == record


@given(STATE_RECORDS)
def test_refresh_state_is_read_back(record: RefreshRecord) -> None:
    assert refresh_state.decode(refresh_state.encode(record)) == record


def test_a_table_at_a_path_is_a_name_in_the_state() -> None:
    path = BaseTable(uuid="", snapshot_id=3, type="deltalake-filesystem", name="/data/items")
    value = refresh_state.encode(RefreshRecord(view_version_id=1, base_tables=(path,), refresh_start_ms=1))
    state = {"type": "table", "name": "/data/items", "namespace": [], "uuid": "", "snapshot-id": 3}
    assert json.loads(value)["source-states"] == [state]
    assert refresh_state.decode(value).base_tables == (BaseTable(uuid="", snapshot_id=3, name="/data/items"),)


def test_records_of_other_writers_are_not_written() -> None:
    foreign = RefreshRecord(view_version_id=None)
    incomplete = RefreshRecord(view_version_id=1, incomplete=True)
    with pytest.raises(RecordError, match="view-version-id"):
        refresh_state.encode(foreign)
    with pytest.raises(RecordError, match="source-states"):
        refresh_state.encode(incomplete)
    with pytest.raises(RecordError, match=r"iceberg\.view\.version"):
        properties.encode(foreign)
    with pytest.raises(RecordError, match=r"iceberg\.base\.snapshot"):
        properties.encode(incomplete)


def test_a_table_without_uuid_has_no_property() -> None:
    tables = (BaseTable(uuid="aaaa", snapshot_id=1, name="items"), BaseTable(uuid="", snapshot_id=1, namespace=("raw",), name="orders"))
    with pytest.raises(RecordError, match=r"iceberg\.base\.snapshot\..*raw\.orders$"):
        properties.encode(RefreshRecord(view_version_id=1, base_tables=tables))


def test_older_names_of_the_state_are_read() -> None:
    value = {
        "refresh-version-id": 3,
        "source-table-states": [{"name": "orders", "namespace": ["raw"], "uuid": "aaaa", "snapshot-id": 7}],
        "source-view-states": [{"name": "customers", "namespace": ["staging"], "uuid": "bbbb", "version-id": 2}],
        "refresh-start-timestamp-ms": 1000,
    }
    assert refresh_state.decode(json.dumps(value)) == RECORD


def test_a_table_without_snapshots_is_kept_in_the_properties_alone() -> None:
    record = RefreshRecord(
        view_version_id=1, base_tables=(BaseTable(uuid="aaaa", snapshot_id=NO_SNAPSHOT, name="orders"),), refresh_start_ms=1
    )
    assert properties.encode(record)["iceberg.base.snapshot.aaaa"] == "-1"
    assert json.loads(refresh_state.encode(record))["source-states"] == []


def test_of_a_table_read_twice_the_property_keeps_main() -> None:
    tables = (BaseTable(uuid="aaaa", snapshot_id=5, name="o", ref="v1"), BaseTable(uuid="aaaa", snapshot_id=9, name="o"))
    record = RefreshRecord(view_version_id=1, base_tables=tables, refresh_start_ms=1)
    assert properties.encode(record)["iceberg.base.snapshot.aaaa"] == "9"
    assert len(json.loads(refresh_state.encode(record))["source-states"]) == 2


def test_properties_of_an_earlier_refresh_are_removed() -> None:
    stored = {"iceberg.base.snapshot.aaaa": "1", "iceberg.base.snapshot.gone": "1", "iceberg.child.view.version.old": "1", "owner": "x"}
    assert sorted(properties.stale_keys(stored, RECORD)) == ["iceberg.base.snapshot.gone", "iceberg.child.view.version.old"]


@pytest.mark.parametrize(
    ("stored", "field"),
    [
        ({"iceberg.view.version": "x"}, "iceberg.view.version"),
        ({"iceberg.view.version": "1", "iceberg.base.snapshot.a": "new"}, "iceberg.base.snapshot.a"),
        ({"iceberg.base.snapshot.a": "1"}, "iceberg.view.version"),
    ],
)
def test_a_broken_property_is_named(stored: dict[str, str], field: str) -> None:
    with pytest.raises(RecordError) as caught:
        properties.decode(stored)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("{", "refresh-state"),
        ("[]", "refresh-state"),
        ('{"source-states": []}', "view-version-id"),
        ('{"view-version-id": 1, "source-states": {}}', "source-states"),
        ('{"view-version-id": 1, "source-states": [{"type": "file"}]}', "source-states.type"),
        ('{"view-version-id": 1, "source-states": [{"type": "table", "snapshot-id": 1}]}', "uuid"),
        ('{"view-version-id": 1, "source-states": [{"type": "table", "uuid": "a"}]}', "snapshot-id"),
    ],
)
def test_a_broken_state_is_named(value: str, field: str) -> None:
    with pytest.raises(RecordError) as caught:
        refresh_state.decode(value)
    assert caught.value.field == field


@given(st.text())
def test_no_text_breaks_the_reader(value: str) -> None:
    with suppress(RecordError):
        refresh_state.decode(value)
