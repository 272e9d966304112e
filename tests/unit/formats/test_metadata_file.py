"""View metadata + table metadata + refreshes -> the MV metadata file, and what is refused."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mvbuild.formats import metadata_file
from mvbuild.formats.base_tables import join_parts, split_parts
from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, ChildView, RecordError, RefreshRecord
from unit.formats.metadata_files import CHILD, PARTS, RECORDS, Parts, column, everything, parts, table_of, view_of

SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
ORDERS = BaseTable(uuid="aaaa", snapshot_id=7, catalog="lake", namespace=("raw",), name="orders")
RECORD = RefreshRecord(view_version_id=1, base_tables=(ORDERS,))
UNKNOWN = 987_654
START = "mvbuild.refresh-start-timestamp-ms"


def small(record: RefreshRecord | None = RECORD, **properties: str) -> Parts:
    fields = [column("a", "int")]
    return Parts(view=view_of([fields], properties), table=table_of(fields, {}, 1 if record else 0), record=record)


def without_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [without_ids(inner) for inner in value]
    if isinstance(value, dict):
        return {k: without_ids(v) for k, v in value.items() if k not in ("id", "schema-id", "element-id", "key-id", "value-id")}
    return value


@SLOW
@given(parts())
def test_a_written_file_is_read_back(given_parts: Parts) -> None:
    mv = given_parts.compose()
    content = metadata_file.write(mv)
    assert metadata_file.read(content, expect_uuid=given_parts.table["table-uuid"]) == mv
    assert content.endswith(b"}\n")
    assert metadata_file.write(metadata_file.read(content)) == content


@SLOW
@given(parts())
def test_the_table_is_given_back(given_parts: Parts) -> None:
    table, view = given_parts.table, given_parts.view
    back = metadata_file.table_metadata(given_parts.compose())
    assert back["schemas"][: len(table["schemas"])] == table["schemas"]
    added = back["schemas"][len(table["schemas"]) :]
    assert all(without_ids(s)["fields"] in [without_ids(own)["fields"] for own in view["schemas"]] for s in added)
    changed = ("schemas", "last-column-id") if added else ()
    assert {k: v for k, v in back.items() if k not in changed} == {k: v for k, v in table.items() if k not in changed}


@SLOW
@given(parts())
def test_the_view_is_given_back(given_parts: Parts) -> None:
    view = given_parts.view
    mv = given_parts.compose()
    back = metadata_file.view_metadata(mv)
    assert back["view-uuid"] == mv.uuid == given_parts.table["table-uuid"]
    for key in ("current-version-id", "version-log", "properties", "format-version"):
        assert back[key] == view[key]
    assert [without_ids(v) for v in back["versions"]] == [without_ids(v) for v in view["versions"]]
    for version, before in zip(back["versions"], view["versions"], strict=True):
        assert fields_of(back, version) == fields_of(view, before)


def fields_of(view: dict[str, Any], version: dict[str, Any]) -> Any:
    fields: list[dict[str, Any]] = next(s["fields"] for s in view["schemas"] if s["schema-id"] == version["schema-id"])
    return [{**without_ids(f), "type": f["type"].replace(" ", "")} for f in fields]


@SLOW
@given(parts())
def test_the_record_is_given_back(given_parts: Parts) -> None:
    assert metadata_file.current_record(metadata_file.read(metadata_file.write(given_parts.compose()))) == given_parts.record


@given(RECORDS)
def test_every_record_that_the_format_can_hold_is_read_back(record: RefreshRecord) -> None:
    refresh = json.loads(json.dumps(metadata_file.encode_refresh(record, refresh_id=1, sequence_number=None)))
    read = metadata_file.decode_refresh(refresh, {})
    assert (read.view_version_id, read.base_tables) == (record.view_version_id, record.base_tables)
    assert all(key == table["identifier"] for key, table in refresh["base-tables"].items())


@given(st.lists(PARTS))
def test_the_parts_of_a_name_are_read_back(names: list[str]) -> None:
    assert split_parts(join_parts(names)) == tuple(names)


def test_the_names_are_those_of_the_draft() -> None:
    raw = everything()
    assert list(raw) == [
        *("format-version", "uuid", "location", "versions", "current_version_id", "version_log", "last-sequence-number"),
        *("last-updated-ms", "last-column-id", "schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id"),
        *("sort-orders", "default-sort-order-id", "refreshes", "current-refresh-id", "snapshots", "current-snapshot-id", "snapshot-log"),
        *("properties", "metadata-log", "refs", "statistics"),
    ]
    assert raw["refreshes"][1] == {
        "refresh-id": 4,
        "version-id": 2,
        "base-tables": {
            "lake.raw.orders": {
                "type": "iceberg-metastore",
                "identifier": "lake.raw.orders",
                "snapshot-reference": 5,
                "properties": {"uuid": "u1", "ref": "audit"},
            },
            "/data/items": {
                "type": "iceberg-filesystem",
                "identifier": "/data/items",
                "snapshot-reference": 6,
                "properties": {"uuid": "u2"},
            },
            "/data/delta": {
                "type": "deltalake-filesystem",
                "identifier": "/data/delta",
                "snapshot-reference": 0,
                "properties": {"uuid": "u3"},
            },
        },
        "sequence-number": 2,
    }
    assert raw["properties"] == {
        "owner": "x",
        "materialized-view.view.comment": "sales",
        "materialized-view.storage.metadata-location": "/lake/mart/daily/metadata/7.metadata.json",
        f"iceberg.child.view.version.{CHILD}": "3",
        f"mvbuild.child.view.name.{CHILD}": "c",
        "mvbuild.refresh-start-timestamp-ms": "8",
    }


def test_what_other_writers_write_is_read() -> None:
    foreign = {"type": "iceberg-metastore", "identifier": "lake.raw.orders", "snapshot-reference": "7"}
    refresh = {"version-id": 1, "base-tables": {foreign["identifier"]: foreign}}
    table = BaseTable(uuid="", snapshot_id=7, catalog="lake", namespace=("raw",), name="orders")
    assert metadata_file.decode_refresh(refresh, {}).base_tables == (table,)
    foreign["identifier"] = "raw.orders"
    assert metadata_file.decode_refresh(refresh, {}).base_tables[0].namespace == ("raw",)
    foreign["identifier"] = "orders"
    assert metadata_file.decode_refresh(refresh, {}).base_tables[0].name == "orders"


def test_before_the_first_refresh_there_is_no_record() -> None:
    mv = small(record=None).compose()
    assert (mv.raw["current-refresh-id"], mv.refreshes, mv.current_refresh, mv.current_snapshot_id) == (-1, (), None, None)
    assert metadata_file.current_record(mv) is None
    assert "current-snapshot-id" not in metadata_file.table_metadata(mv)


def test_properties_of_a_file() -> None:
    given_parts = small(comment="sales", **{"materialized-view.metadata-location": "v6.mv.metadata.json"})
    mv = given_parts.compose()
    assert mv.storage_metadata_location == "/lake/mart/daily/metadata/7.metadata.json"
    assert mv.location == "/lake/mart/daily"
    assert mv.current_snapshot_id == 11
    assert metadata_file.view_metadata(mv)["properties"] == {"comment": "sales"}
    assert metadata_file.table_metadata(mv)["properties"] == {}


@pytest.mark.parametrize(("of_table", "of_view", "kept"), [("", "", 10), ("3", "5", 3), ("", "2", 2), ("0", "", 1)])
def test_the_history_keeps_so_many_versions(of_table: str, of_view: str, kept: int) -> None:
    fields = [column("a", "int")]
    view = view_of([fields] * 10, {})
    view["versions"] = [{**view["versions"][0], "version-id": number} for number in range(1, 13)]
    view["version-log"] = [{"timestamp-ms": 5, "version-id": number} for number in range(1, 13)]
    view["version-log"].append({"timestamp-ms": 6, "version-id": 2})
    view["properties"] = {metadata_file.HISTORY: of_view} if of_view else {}
    view["current-version-id"] = 2
    table = table_of(fields, {metadata_file.HISTORY: of_table} if of_table else {})
    raw = Parts(view=view, table=table, record=None).compose().raw
    newest = list(range(12, 0, -1))
    newest.remove(2)
    assert [v["version-id"] for v in raw["versions"]] == sorted([2, *newest[: kept - 1]])
    assert [e["version-id"] for e in raw["version_log"]] == [*(v["version-id"] for v in raw["versions"]), 2]


def test_a_version_shares_the_current_schema_of_the_table() -> None:
    fields = [column("a", "decimal(9, 2)"), column("l", {"type": "list", "element-id": 9, "element": "int", "element-required": False})]
    table = table_of([column("a", "decimal(9,2)"), fields[1]], {})
    old = {**table["schemas"][0], "schema-id": 0}
    table |= {"schemas": [old, {**old, "schema-id": 1}], "current-schema-id": 1}
    mv = Parts(view=view_of([fields], {}), table=table, record=None).compose()
    assert (mv.raw["schemas"], mv.raw["versions"][0]["schema-id"]) == (table["schemas"], 1)


def test_a_schema_that_the_table_lacks_gets_ids_of_its_own() -> None:
    nested = {"type": "struct", "fields": [{**column("y", "date"), "id": 7}]}
    fields = [
        column("x", {"type": "map", "key-id": 5, "key": "int", "value-id": 6, "value": nested, "value-required": True}),
        column("a", "int"),
    ]
    table = table_of([column("a", "int")], {})
    mv = Parts(view=view_of([fields, [column("a", "int")]], {}), table=table, record=None).compose()
    assert [v["schema-id"] for v in mv.raw["versions"]] == [1, 0]
    added = mv.raw["schemas"][1]
    assert [f["id"] for f in added["fields"]] == [2, 6]
    assert (added["fields"][0]["type"]["key-id"], added["fields"][0]["type"]["value-id"]) == (3, 4)
    assert mv.raw["last-column-id"] == 6
    assert mv.raw["current-schema-id"] == 0


def test_snapshots_from_before_sequence_numbers_have_zero() -> None:
    given_parts = small()
    del given_parts.table["snapshots"][0]["sequence-number"]
    given_parts.table["last-sequence-number"] = 0
    assert given_parts.compose().raw["snapshots"][0]["sequence-number"] == 0


def test_the_time_of_a_file_is_never_before_that_of_its_table() -> None:
    given_parts = small()
    given_parts.table["last-updated-ms"] += 5000
    assert given_parts.compose().raw["last-updated-ms"] == given_parts.table["last-updated-ms"]


@pytest.mark.parametrize("version", [1, 3])
def test_only_tables_of_format_version_2_are_embedded(version: int) -> None:
    given_parts = small()
    given_parts.table["format-version"] = version
    with pytest.raises(RecordError, match="format-version"):
        given_parts.compose()


@pytest.mark.parametrize(
    ("side", "keys"),
    [
        ("view", ("versions", "current-version-id", "version-log", "schemas")),
        ("table", ("format-version", "table-uuid", "last-sequence-number", "last-updated-ms", "last-column-id", "last-partition-id")),
        ("table", ("schemas", "current-schema-id", "partition-specs", "default-spec-id", "sort-orders", "default-sort-order-id")),
    ],
)
def test_incomplete_sides_are_refused(side: str, keys: tuple[str, ...]) -> None:
    for key in keys:
        for wrong in (None, "x", [], [5], {"x": 1}):
            given_parts = small()
            getattr(given_parts, side)[key] = wrong
            with pytest.raises(RecordError):
                given_parts.compose()


@pytest.mark.parametrize(
    "tables",
    [
        (ORDERS, BaseTable(uuid="aaaa", snapshot_id=8, catalog="lake", namespace=("raw",), name="orders")),
        (ORDERS, BaseTable(uuid="aaaa", snapshot_id=7, catalog="lake", namespace=("raw",), name="orders", ref="v1")),
        (ORDERS, BaseTable(uuid="bbbb", snapshot_id=7, type="iceberg-filesystem", name="lake.raw.orders")),
        (BaseTable(uuid="aaaa", snapshot_id=7),),
        (BaseTable(uuid="aaaa", snapshot_id=7, type="deltalake-filesystem", namespace=("raw",), name="/data"),),
        (BaseTable(uuid="aaaa", snapshot_id=7, type="iceberg-filesystem", name="orders"),),
    ],
    ids=["two snapshots", "two references", "two kinds", "no name", "a path in a namespace", "no path"],
)
def test_what_the_format_cannot_hold_is_refused(tables: tuple[BaseTable, ...]) -> None:
    with pytest.raises(RecordError) as caught:
        metadata_file.encode_refresh(RefreshRecord(view_version_id=1, base_tables=tables), refresh_id=1, sequence_number=1)
    assert caught.value.field == "base-tables"


def test_a_table_that_is_there_twice_in_one_state_is_written_once() -> None:
    record = RefreshRecord(view_version_id=1, base_tables=(ORDERS, ORDERS))
    assert len(metadata_file.encode_refresh(record, refresh_id=1, sequence_number=1)["base-tables"]) == 1


def test_records_of_other_writers_are_not_written() -> None:
    with pytest.raises(RecordError, match="version-id"):
        metadata_file.encode_refresh(RefreshRecord(view_version_id=None), refresh_id=1, sequence_number=1)
    with pytest.raises(RecordError, match="base-tables"):
        metadata_file.encode_refresh(RefreshRecord(view_version_id=1, incomplete=True), refresh_id=1, sequence_number=1)


def test_a_child_view_has_one_version() -> None:
    children = (ChildView(uuid="v", version_id=1, name="c"), ChildView(uuid="v", version_id=2, name="c"))
    with pytest.raises(RecordError, match=r"iceberg\.child\.view\.version\.v"):
        small(RefreshRecord(view_version_id=1, child_views=children)).compose()


def test_a_broken_property_of_the_record_is_named() -> None:
    raw = everything()
    for name, value in ((f"iceberg.child.view.version.{CHILD}", "new"), ("iceberg.child.view.version.v", "1"), (START, "soon")):
        changed = {**raw, "properties": {**raw["properties"], name: value}}
        with pytest.raises(RecordError) as caught:
            metadata_file.check(changed)
        assert caught.value.field == f"properties.{name}"


def test_a_table_without_snapshots_is_recorded() -> None:
    record = RefreshRecord(view_version_id=1, base_tables=(BaseTable(uuid="u", snapshot_id=NO_SNAPSHOT, name="t"),))
    refresh = metadata_file.encode_refresh(record, refresh_id=1, sequence_number=1)
    assert refresh["base-tables"]["t"]["snapshot-reference"] == -1
    assert metadata_file.decode_refresh(refresh, {}) == record


def of(*path: Any, to: Any = UNKNOWN) -> Callable[[dict[str, Any]], None]:
    """Sets a value in a file."""

    def change(raw: dict[str, Any]) -> None:
        at: Any = raw
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to

    return change


def refused(raw: dict[str, Any], *names: str) -> None:
    """The first name is that of the field."""
    with pytest.raises(RecordError) as caught:
        metadata_file.check(raw)
    assert names[0] in caught.value.field
    for name in names:
        assert name in str(caught.value)


@dataclass(frozen=True)
class Reference:
    """A change that breaks a reference, and what the error names."""

    change: Callable[[dict[str, Any]], Any]
    names: tuple[str, ...]
    holds: Callable[[Mapping[str, Any]], Any] = lambda _: True


def has_data(raw: Mapping[str, Any]) -> bool:
    return bool(raw["snapshots"])


def has_refresh(raw: Mapping[str, Any]) -> bool:
    return bool(raw["refreshes"])


def has_tables(raw: Mapping[str, Any]) -> bool:
    return any(refresh["base-tables"] for refresh in raw["refreshes"])


def each(listed: str, name: str, to: Any = UNKNOWN) -> Callable[[dict[str, Any]], None]:
    """Sets a field in the last element of a list."""
    return of(listed, -1, name, to=to)


def renamed_key(raw: dict[str, Any]) -> None:
    tables = raw["refreshes"][0]["base-tables"]
    key = next(iter(tables))
    tables[key + "x"] = tables.pop(key)


def doubled_column(raw: dict[str, Any]) -> None:
    raw["last-column-id"] += 1
    fields = raw["schemas"][-1]["fields"]
    fields.append({**fields[0], "id": raw["last-column-id"]})


LAST, LATE = "last-updated-ms", 2**62
REFERENCES = (
    Reference(each("versions", "version-id"), ("current_version_id", "versions[].version-id")),
    Reference(of("current_version_id"), ("current_version_id", "versions[].version-id")),
    Reference(each("version_log", "version-id"), ("version_log", "versions[].version-id")),
    Reference(each("version_log", "version-id", to=1), ("version-id", "current_version_id"), lambda raw: raw["current_version_id"] > 1),
    Reference(of("version_log", to=[]), ("version_log",)),
    Reference(each("versions", "representations", to=[]), ("representations",)),
    Reference(each("versions", "schema-id"), ("versions", "schemas[].schema-id")),
    Reference(of("current-schema-id"), ("current-schema-id", "schemas[].schema-id")),
    Reference(doubled_column, ("name",)),
    Reference(of("default-spec-id"), ("default-spec-id", "partition-specs[].spec-id")),
    Reference(of("default-sort-order-id"), ("default-sort-order-id", "sort-orders[].order-id")),
    Reference(of("current-refresh-id"), ("current-refresh-id", "refreshes[].refresh-id")),
    Reference(each("refreshes", "version-id", to=2**31 - 1), ("version-id", "versions[].version-id"), has_refresh),
    Reference(each("refreshes", "sequence-number", to=0), ("sequence-number", "snapshots[].sequence-number"), has_refresh),
    Reference(each("refreshes", "sequence-number"), ("sequence-number", "last-sequence-number"), has_refresh),
    Reference(
        lambda raw: (of("last-sequence-number")(raw), each("refreshes", "sequence-number")(raw)),
        ("sequence-number", "snapshots[].sequence-number", "current-refresh-id"),
        has_refresh,
    ),
    Reference(renamed_key, ("identifier", "base-tables"), has_tables),
    Reference(each("snapshots", "sequence-number", to=1), ("snapshots", "sequence-number"), lambda raw: len(raw["snapshots"]) > 1),
    Reference(each("snapshots", "snapshot-id"), ("current-snapshot-id", "snapshots[].snapshot-id"), has_data),
    Reference(of("current-snapshot-id"), ("current-snapshot-id", "snapshots[].snapshot-id"), has_data),
    Reference(of("current-snapshot-id", to=-1), ("current-snapshot-id", "refs.main"), has_data),
    Reference(of("current-snapshot-id", to=None), ("current-snapshot-id", "refs.main"), has_data),
    Reference(lambda raw: raw.pop("current-snapshot-id"), ("current-snapshot-id", "refs.main"), has_data),
    Reference(of("current-snapshot-id", to=11), ("current-snapshot-id", "refs.main"), lambda raw: len(raw["snapshots"]) > 1),
    Reference(of("refs", "main", "snapshot-id", to=11), ("refs.main", "current-snapshot-id"), lambda raw: len(raw["snapshots"]) > 1),
    Reference(of("refs", to={}), ("refs.main", "current-snapshot-id"), has_data),
    Reference(of("refs", "main", "snapshot-id"), ("refs.main.snapshot-id", "snapshots[].snapshot-id"), has_data),
    Reference(each("snapshot-log", "snapshot-id", to=11), ("snapshot-log", "current-snapshot-id"), lambda raw: len(raw["snapshots"]) > 1),
    Reference(of(LAST, to=0), (LAST, "version_log")),
    Reference(each("version_log", "timestamp-ms", to=LATE), (LAST, "version_log")),
    Reference(each("metadata-log", "timestamp-ms", to=LATE), (LAST, "metadata-log")),
    Reference(each("snapshot-log", "timestamp-ms", to=LATE), (LAST, "snapshot-log"), has_data),
)

BROKEN: list[tuple[str, Callable[[dict[str, Any]], None]]] = [
    ("current_version_id", of("current_version_id")),
    ("versions[0].schema-id", of("versions", 0, "schema-id")),
    ("version_log[1].version-id", of("version_log", 1, "version-id")),
    ("version_log[1].version-id", of("version_log", 1, "version-id", to=1)),
    ("version_log", of("version_log", to=[])),
    ("versions[1].representations", of("versions", 1, "representations", to=[])),
    ("refreshes[1].version-id", of("refreshes", 1, "version-id")),
    ("refreshes[1].base-tables./data/items.identifier", of("refreshes", 1, "base-tables", "/data/items", "identifier", to="/data/item")),
    ("refreshes[0].sequence-number", of("refreshes", 0, "sequence-number", to=0)),
    ("refreshes[1].sequence-number", of("refreshes", 1, "sequence-number", to=0)),
    ("snapshots[1].sequence-number", of("snapshots", 1, "sequence-number", to=1)),
    ("snapshots[0].parent-snapshot-id", of("snapshots", 0, "parent-snapshot-id", to=11)),
    ("snapshots[0].parent-snapshot-id", of("snapshots", 0, "parent-snapshot-id", to=22)),
    ("schemas[0].fields[1].name", of("schemas", 0, "fields", 1, "name", to="id")),
    ("schemas[0].fields[3].type.fields[1].name", of("schemas", 0, "fields", 3, "type", "fields", 1, "name", to="name")),
    ("schemas[0].fields[2].type", of("schemas", 0, "fields", 2, "type", to="decimal(3,4)")),
    ("metadata-log[0].metadata-file", of("metadata-log", 0, "metadata-file", to="")),
    ("location", of("location", to="mart/daily")),
    ("last-updated-ms", of("last-updated-ms", to=-1)),
    ("refs.main", of("refs", to={})),
    ("version_log[1].timestamp-ms", of("version_log", 1, "timestamp-ms", to=5)),
    ("current-schema-id", of("current-schema-id")),
    ("schemas[0].identifier-field-ids", of("schemas", 0, "identifier-field-ids", to=[UNKNOWN])),
    ("schemas[0].fields[4].type.element-id", of("schemas", 0, "fields", 4, "type", "element-id", to=1)),
    ("last-column-id", of("last-column-id", to=3)),
    ("default-spec-id", of("default-spec-id")),
    ("partition-specs[0].fields[1].source-id", of("partition-specs", 0, "fields", 1, "source-id")),
    ("last-partition-id", of("last-partition-id", to=1000)),
    ("default-sort-order-id", of("default-sort-order-id")),
    ("sort-orders[1].fields[0].source-id", of("sort-orders", 1, "fields", 0, "source-id")),
    ("snapshots[1].schema-id", of("snapshots", 1, "schema-id")),
    ("snapshots[0].sequence-number", of("snapshots", 0, "sequence-number")),
    ("last-sequence-number", of("last-sequence-number", to=1)),
    ("current-snapshot-id", of("current-snapshot-id")),
    ("current-snapshot-id", of("current-snapshot-id", to=11)),
    ("current-snapshot-id", of("current-snapshot-id", to=-1)),
    ("current-snapshot-id", of("current-snapshot-id", to=None)),
    ("snapshots", of("snapshots", to=[])),
    ("refs.main.snapshot-id", of("refs", "main", "snapshot-id")),
    ("refs.main.snapshot-id", of("refs", "main", "snapshot-id", to=11)),
    ("refs.main.type", of("refs", "main", "type", to="tag")),
    ("refs.main", lambda raw: raw["refs"].pop("main")),
    ("refs.first.snapshot-id", of("refs", "first", "snapshot-id")),
    ("snapshot-log[0].snapshot-id", of("snapshot-log", 0, "snapshot-id")),
    ("snapshot-log[1].snapshot-id", of("snapshot-log", 1, "snapshot-id", to=11)),
    ("snapshot-log[1].timestamp-ms", of("snapshot-log", 1, "timestamp-ms", to=5)),
    ("metadata-log[1].timestamp-ms", of("metadata-log", 0, "timestamp-ms", to=1_000_000)),
    ("statistics[0].snapshot-id", of("statistics", 0, "snapshot-id")),
    ("current-refresh-id", of("current-refresh-id")),
    ("current-refresh-id", of("refreshes", to=[])),
    ("refreshes[0].sequence-number", of("refreshes", 0, "sequence-number")),
    ("format-version", of("format-version", to=2)),
    ("format-version", of("format-version", to=0)),
    ("uuid", of("uuid", to="12")),
]


@pytest.mark.parametrize(("field", "change"), BROKEN, ids=[f"{at} {field}" for at, (field, _) in enumerate(BROKEN)])
def test_a_broken_reference_is_named(field: str, change: Callable[[dict[str, Any]], None]) -> None:
    raw = everything()
    change(raw)
    with pytest.raises(RecordError) as caught:
        metadata_file.check(raw)
    assert field in str(caught.value)


def test_what_expired_may_be_referred_to() -> None:
    raw = everything()
    raw["snapshots"][1]["parent-snapshot-id"] = UNKNOWN
    del raw["versions"][0], raw["version_log"][0]
    raw["refreshes"][0]["version-id"] = 1
    del raw["refs"]["first"], raw["snapshots"][0], raw["snapshot-log"][0], raw["statistics"]  # the snapshot of refresh 3
    raw["snapshot-log"][0]["timestamp-ms"] = raw["last-updated-ms"] + 1000  # another clock
    metadata_file.check(raw)


def test_a_refresh_of_rewritten_files_stays_current() -> None:
    """Rewriting files keeps the rows, and then the snapshot of the refresh may expire."""
    raw = everything()
    del raw["refreshes"][0]
    raw["refreshes"][0]["sequence-number"] = 1
    del raw["refs"]["first"], raw["snapshots"][0], raw["snapshot-log"][0], raw["statistics"]
    raw["snapshots"][0]["summary"]["operation"] = "replace"
    metadata_file.check(raw)
    raw["snapshots"][0]["summary"]["operation"] = "append"
    refused(raw, "refreshes[0].sequence-number", "snapshots[].sequence-number")


def test_snapshots_of_format_version_1_share_a_number() -> None:
    raw = everything()
    for entry in (*raw["snapshots"], *raw["refreshes"]):
        entry["sequence-number"] = 0
    metadata_file.check(raw)


def test_a_history_of_one_version_may_be_of_an_older_one() -> None:
    raw = everything()
    del raw["versions"][1], raw["version_log"][1]
    raw["current_version_id"] = 1
    refused(raw, "refreshes[0].version-id", "versions[].version-id")
    raw["properties"][metadata_file.HISTORY] = "1"
    metadata_file.check(raw)


def test_references_may_be_absent() -> None:
    raw = everything()
    metadata_file.check({**raw, "refs": None})
    del raw["refs"], raw["snapshot-log"]
    metadata_file.check(raw)
    del raw["snapshots"], raw["current-snapshot-id"], raw["statistics"]
    metadata_file.check({**raw, "refs": {}})
    raw["refreshes"][1]["sequence-number"] = 1
    metadata_file.check(raw)


def test_a_table_without_references_gets_main() -> None:
    given_parts = small()
    main = given_parts.table["refs"]["main"]
    for refs in ({}, None):
        given_parts.table["refs"] = refs
        assert given_parts.compose().raw["refs"] == {"main": main}


def test_a_file_is_not_older_than_what_other_clocks_logged() -> None:
    given_parts = small()
    later = given_parts.table["last-updated-ms"] + 10**6
    given_parts.view["version-log"][0]["timestamp-ms"] = later
    assert given_parts.compose().raw["last-updated-ms"] == later


@SLOW
@given(parts(), st.data())
def test_broken_references_in_any_file_are_named_at_both_ends(given_parts: Parts, data: st.DataObject) -> None:
    mv = given_parts.compose().raw
    cases = [case for case in REFERENCES if case.holds(mv)]
    case = data.draw(st.sampled_from(cases))
    raw = copy.deepcopy(dict(mv))
    case.change(raw)
    refused(raw, *case.names)


@SLOW
@given(parts(), st.data())
def test_the_order_of_snapshots_in_any_file(given_parts: Parts, data: st.DataObject) -> None:
    raw = copy.deepcopy(dict(given_parts.compose().raw))
    count = len(raw["snapshots"])
    for snapshot in raw["snapshots"]:
        parent = data.draw(st.sampled_from([None, UNKNOWN, *(s["snapshot-id"] for s in raw["snapshots"])]))
        snapshot["parent-snapshot-id"] = parent
    parents = {s["snapshot-id"]: s["parent-snapshot-id"] for s in raw["snapshots"]}
    ends = []
    for at in parents:
        found: int | None = at
        for _ in range(count + 1):
            found = parents.get(found) if found is not None else None
        ends.append(found)
    if any(end is not None for end in ends):
        refused(raw, "parent-snapshot-id")
    else:
        metadata_file.check(raw)


def test_a_later_format_is_refused_with_what_is_supported() -> None:
    content = json.dumps({"format-version": 2}).encode()
    with pytest.raises(RecordError, match=r"format-version: 2 is not supported; the highest supported version is 1"):
        metadata_file.read(content)


def test_the_file_of_another_view_is_refused() -> None:
    mv = small().compose()
    assert metadata_file.read(metadata_file.write(mv), expect_uuid=mv.uuid.upper()) == mv
    with pytest.raises(RecordError, match=f"^uuid: {mv.uuid}"):
        metadata_file.read(metadata_file.write(mv), expect_uuid="5f2b0a3e-0000-0000-0000-000000000000")


FILE = metadata_file.write(metadata_file.check(everything()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "metadata"),
        (b"[]", "JSON object"),
        (b"\xff\xfe", "UTF-8"),
        (b"\xef\xbb\xbf" + FILE, "metadata"),
        (gzip.compress(FILE), "UTF-8"),
        (FILE[:-3], "metadata"),
        (b'{"format-version": NaN}', "NaN"),
        (b'{"format-version": -Infinity}', "Infinity"),
        (b'{"format-version": 1e400}', "format-version"),
        (b'{"format-version": ' + b"9" * 5000 + b"}", "metadata"),
        (b'{"format-version": ' + b"9" * 50 + b"}", "format-version"),
        (b'{"format-version": true}', "format-version"),
        (b'{"format-version": 1, "format-version": 2}', "format-version: is a duplicate key"),
        (b'{"format-version": 1, "uuid": ' + b"[" * 100_000, "metadata"),
        (b'{"a":' * 100_000, "metadata"),
    ],
)
def test_what_is_not_a_file_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        metadata_file.read(content)


def test_types_nested_without_end_are_refused() -> None:
    raw = everything()
    kind: Any = "int"
    for number in range(100, 3000):
        kind = {"type": "list", "element-id": number, "element-required": False, "element": kind}
    raw["schemas"][0]["fields"][0]["type"] = kind
    with pytest.raises(RecordError, match="nested too deeply"):
        metadata_file.check(raw)


def test_odd_text_is_written_and_read() -> None:
    raw = everything()
    raw["properties"]["odd"] = 'ü\ud800 "\n'
    mv = metadata_file.check(raw)
    assert "ü".encode() in metadata_file.write(mv)
    assert metadata_file.read(metadata_file.write(mv)) == mv


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "fields", "schema-id", "x"]) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.binary())
def test_no_bytes_break_the_reader(content: bytes) -> None:
    with suppress(RecordError):
        metadata_file.read(content)


@pytest.mark.proof
@given(JSON)
def test_no_json_breaks_the_reader(value: Any) -> None:
    whole = json.loads(FILE)
    for raw in (value, *({**whole, key: value} for key in whole)):
        with suppress(RecordError):
            metadata_file.check(raw)
        with suppress(RecordError):
            metadata_file.read(json.dumps(raw).encode())


@given(st.integers(0, len(FILE) - 1), st.binary(max_size=3))
def test_no_damage_breaks_the_reader(at: int, patch: bytes) -> None:
    with suppress(RecordError):
        metadata_file.read(FILE[:at] + patch + FILE[at + len(patch) :])
