"""Files that break a rule: what is still read of them, what is not, and that nothing wrong ever is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from mvbuild.formats import metadata_file
from mvbuild.formats.metadata_file import MvMetadata
from mvbuild.formats.record import RecordError, RefreshRecord
from unit.formats.metadata_files import CHILD, everything
from unit.formats.test_metadata_check import damaged

Change = Callable[[dict[str, Any]], Any]


WHOLE = everything()


def read(raw: Any) -> MvMetadata:
    return metadata_file.read(json.dumps(raw).encode())


def at(*path: Any, to: Any) -> Change:
    def change(raw: dict[str, Any]) -> None:
        place: Any = raw
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def without(*path: Any) -> Change:
    def change(raw: dict[str, Any]) -> None:
        place: Any = raw
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


def renamed(key: str, to: str, *, uuid: bool = True) -> Change:
    def change(raw: dict[str, Any]) -> None:
        tables = raw["refreshes"][1]["base-tables"]
        tables[to] = tables.pop(key)
        if not uuid:
            tables[to]["properties"].pop("uuid")

    return change


def expired(raw: dict[str, Any]) -> None:
    """As a writer leaves it that forgets the logs, the tag and the statistics."""
    del raw["snapshots"][0]


RECORD, NO_RECORD = True, False
CERTAIN: list[tuple[str, Change, bool]] = [
    ("snapshot-log[0].snapshot-id", expired, RECORD),
    ("snapshot-log[0]", at("snapshot-log", 0, to="x"), RECORD),
    ("snapshot-log", at("snapshot-log", to={}), RECORD),
    ("snapshot-log[1].snapshot-id", at("snapshot-log", 1, "snapshot-id", to=11), RECORD),
    ("snapshot-log[0].timestamp-ms", at("snapshot-log", 0, "timestamp-ms", to=2**60), RECORD),
    ("snapshot-log[1].timestamp-ms", at("last-updated-ms", to=0), RECORD),
    ("version_log[0].version-id", at("version_log", 0, "version-id", to=7), RECORD),
    ("version_log[1].timestamp-ms", at("version_log", 1, "timestamp-ms", to=2**60), RECORD),
    ("version_log", without("version_log"), RECORD),
    ("version_log", at("version_log", to=[]), RECORD),
    ("metadata-log", at("metadata-log", to="x"), RECORD),
    ("metadata-log[1].timestamp-ms", at("metadata-log", 1, "timestamp-ms", to=2**60), RECORD),
    ("statistics[0].snapshot-id", at("statistics", 0, "snapshot-id", to=5), RECORD),
    ("statistics[0].file-size-in-bytes", at("statistics", 0, "file-size-in-bytes", to=None), RECORD),
    ("refs.first.snapshot-id", at("refs", "first", "snapshot-id", to=5), RECORD),
    ("refs.first.type", at("refs", "first", "type", to="label"), RECORD),
    ("refs.main.type", at("refs", "main", "type", to="tag"), RECORD),
    ("refs.main.min-snapshots-to-keep", at("refs", "main", "min-snapshots-to-keep", to=0), RECORD),
    ("refs.main", without("refs", "main"), RECORD),
    ("default-sort-order-id", at("default-sort-order-id", to=9), RECORD),
    ("sort-orders", at("sort-orders", to=[]), RECORD),
    ("sort-orders[1].fields", at("sort-orders", 1, "fields", 0, "source-id", to=99), RECORD),
    ("default-spec-id", at("default-spec-id", to=9), RECORD),
    ("schemas[0].identifier-field-ids", at("schemas", 0, "identifier-field-ids", to=[99]), RECORD),
    ("last-column-id", at("last-column-id", to=1), RECORD),
    ("last-partition-id", at("last-partition-id", to=1), RECORD),
    ("last-sequence-number", at("last-sequence-number", to=1), RECORD),
    ("snapshots[1].summary.operation", at("snapshots", 1, "summary", "operation", to="rewrite"), RECORD),
    ("snapshots[1].summary.rows", at("snapshots", 1, "summary", "rows", to=7), RECORD),
    ("properties.owner", at("properties", "owner", to=7), RECORD),
    ("properties.owner", at("properties", "owner", to={}), RECORD),
    ("properties.mvbuild.refresh-start", at("properties", "mvbuild.refresh-start-timestamp-ms", to="soon"), RECORD),
    ("versions[0].representations", at("versions", 0, "representations", to=[]), RECORD),
    ("versions[1].storage-table.namespace", at("versions", 1, "storage-table", "namespace", to="mart"), RECORD),
    ("versions[1].summary", without("versions", 1, "summary"), RECORD),
    ("versions[1].representations", at("versions", 1, "representations", 1, "sql", to=None), RECORD),
    ("refreshes[0].version-id", at("refreshes", 0, "version-id", to="x"), RECORD),
    ("base-tables.raw.orders.identifier", renamed("lake.raw.orders", "raw.orders"), RECORD),
    ("base-tables.RAW.`orders`.identifier", renamed("lake.raw.orders", "RAW.`orders`", uuid=False), RECORD),
    ("base-tables.anything.identifier", renamed("lake.raw.orders", "anything"), RECORD),
    ("base-tables.raw.customers.identifier", renamed("lake.raw.orders", "raw.customers", uuid=False), NO_RECORD),
    ("refreshes[1].version-id", at("refreshes", 1, "version-id", to=3), NO_RECORD),
    ("refreshes[1].sequence-number", at("refreshes", 1, "sequence-number", to=9), NO_RECORD),
    ("refreshes[1].sequence-number", at("refreshes", 1, "sequence-number", to=0), NO_RECORD),
    ("refreshes[1].base-tables", without("refreshes", 1, "base-tables"), NO_RECORD),
    ("current-refresh-id", at("current-refresh-id", to=9), NO_RECORD),
    ("current-refresh-id", without("current-refresh-id"), NO_RECORD),
    ("refreshes", at("refreshes", to={}), NO_RECORD),
    (f"child.view.version.{CHILD}", at("properties", f"iceberg.child.view.version.{CHILD}", to="new"), NO_RECORD),
    ("child.view.version.c", at("properties", "iceberg.child.view.version.c", to="1"), NO_RECORD),
]


@pytest.mark.parametrize(
    ("field", "change", "has_record"), CERTAIN, ids=[f"{number} {field}" for number, (field, _, _) in enumerate(CERTAIN)]
)
def test_what_is_certain_is_read_with_a_warning(field: str, change: Change, has_record: bool) -> None:
    raw = copy.deepcopy(WHOLE)
    change(raw)
    with pytest.raises(RecordError):
        metadata_file.check(raw)
    mv = read(raw)
    assert any(field in problem for problem in mv.problems), mv.problems
    whole = read(copy.deepcopy(WHOLE))
    assert meaning(mv) == meaning(whole)
    own = metadata_file.current_record(mv)
    assert (own is not None) == has_record
    before = metadata_file.current_record(whole)
    assert before is not None
    if own is not None:
        assert {(t.namespace, t.name, t.snapshot_id, t.ref) for t in own.base_tables} == {
            (t.namespace, t.name, t.snapshot_id, t.ref) for t in before.base_tables
        }
    metadata_file.check(mv.raw)
    assert read(mv.raw) == MvMetadata(raw=mv.raw)


@pytest.mark.parametrize(
    "change",
    [
        at("format-version", to=2),
        at("uuid", to="x"),
        at("current_version_id", to=1),
        at("current_version_id", to=7),
        at("version_log", 1, "version-id", to=1),
        at("version_log", 1, "version-id", to=7),
        at("versions", 1, "representations", to=[]),
        at("versions", 1, "schema-id", to=9),
        at("versions", 1, "representations", 1, to={"type": "sql", "dialect": "spark", "sql": "select 7"}),
        at("current-schema-id", to=9),
        at("schemas", 0, "fields", 1, "name", to="id"),
        at("schemas", 0, "fields", 1, "id", to=1),
        at("partition-specs", 0, "fields", 0, "source-id", to=99),
        at("current-snapshot-id", to=11),
        at("current-snapshot-id", to=5),
        at("current-snapshot-id", to=None),
        at("refs", "main", "snapshot-id", to=11),
        at("snapshots", 1, "manifest-list", to=None),
        at("snapshots", 1, "schema-id", to=9),
        at("snapshots", 0, "parent-snapshot-id", to=22),
    ],
)
def test_what_contradicts_itself_is_refused(change: Change) -> None:
    raw = copy.deepcopy(WHOLE)
    change(raw)
    with pytest.raises(RecordError):
        read(raw)


def test_a_log_says_nothing_of_the_time_before_a_gap() -> None:
    raw = copy.deepcopy(WHOLE)
    log = [{"timestamp-ms": raw["snapshot-log"][0]["timestamp-ms"], "snapshot-id": id} for id in (11, 99, 22)]
    assert read({**raw, "snapshot-log": log}).raw["snapshot-log"] == log[2:]


def test_a_name_that_is_there_twice_with_the_same_value_is_no_contradiction() -> None:
    content = metadata_file.write(metadata_file.check(copy.deepcopy(WHOLE)))
    assert (
        metadata_file.read(content.replace(b'{\n  "format-version": 1', b'{\n  "format-version": 1,\n  "format-version": 1', 1)).problems
        == ()
    )
    with pytest.raises(RecordError, match="duplicate"):
        metadata_file.read(content.replace(b'{\n  "format-version": 1', b'{\n  "format-version": 1,\n  "format-version": 2', 1))


@pytest.mark.proof
def test_no_damage_makes_a_reader_read_something_else() -> None:
    """One thing in the file is replaced, left out, said twice or added, in each place. What breaks a rule then gives the same definition,
    columns and rows as before, the same record or none, and nothing that was not there."""
    whole, given = metadata_file.check(copy.deepcopy(WHOLE)), 0
    for raw in damaged(copy.deepcopy(WHOLE)):
        try:
            raw = json.loads(json.dumps(raw))
            metadata_file.check(raw)
        except RecordError:
            pass
        except TypeError:
            continue
        else:
            continue
        try:
            mv = read(raw)
        except RecordError:
            continue
        if type((raw.get("properties") or {}).get(f"iceberg.child.view.version.{CHILD}")) is int:
            continue  # the number of another version, which is a statement like any other
        given += 1
        assert mv.problems
        assert meaning(mv) == meaning(whole), mv.problems
        record, before = metadata_file.current_record(mv), metadata_file.current_record(whole)
        assert record is None or what_was_read(record) == what_was_read(before), mv.problems
        log, known = mv.raw.get("snapshot-log") or [], whole.raw["snapshot-log"]
        assert log == known[len(known) - len(log) :] or "snapshot-log" not in str(mv.problems)
        assert {name: ref["snapshot-id"] for name, ref in mv.raw["refs"].items()}.items() <= {
            name: ref["snapshot-id"] for name, ref in whole.raw["refs"].items()
        }.items()
    assert given > 500


def what_was_read(record: RefreshRecord | None) -> Any:
    assert record is not None
    return record.view_version_id, record.base_tables, [(view.uuid, view.version_id) for view in record.child_views]


def meaning(mv: MvMetadata) -> Any:
    """What a reader gets: the definition, and the rows under the names of their columns."""
    raw = mv.raw
    version = next(v for v in raw["versions"] if v["version-id"] == raw["current_version_id"])
    spark = [text["sql"] for text in version["representations"] if text["dialect"] == "spark"]
    schemas = {s["schema-id"]: s["fields"] for s in raw["schemas"]}
    snapshot = next(s for s in raw["snapshots"] if s["snapshot-id"] == raw["current-snapshot-id"])
    rows = (snapshot["manifest-list"], snapshot["sequence-number"], schemas[raw["current-schema-id"]])
    return mv.uuid, version["version-id"], spark, version["default-namespace"], schemas[version["schema-id"]], rows, raw["partition-specs"]
