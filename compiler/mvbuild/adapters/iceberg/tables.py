"""table metadata JSON -> table metadata JSON with one addition. Works on every format version, because all fields are preserved."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.layout import with_layout
from mvbuild.adapters.iceberg.metadata import Raw, comparable, current_snapshot_id
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.commits import TableLayout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mvbuild.names import TableIdentifier

_LOG_LIMIT = "write.metadata.previous-versions-max"
_LOG_DEFAULT = 100
_DELETE_DROPPED = "write.metadata.delete-after-commit.enabled"
_TOTALS = (
    "total-data-files",
    "total-delete-files",
    "total-records",
    "total-files-size",
    "total-position-deletes",
    "total-equality-deletes",
)
_COUNTERS = ("added-data-files", "deleted-data-files", "added-records", "deleted-records")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def new_snapshot_id() -> int:
    return uuid.uuid4().int >> 65


def new_table(location: str, layout: TableLayout, properties: Mapping[str, str]) -> Raw:
    """`format-version` among the properties chooses the format and is not stored, as in Iceberg's own writers."""
    version = properties.get("format-version", "2")
    if version not in ("1", "2", "3"):
        raise CatalogError(f"Unknown format-version '{version}'; choose 2, or 3 if every reader supports it.")
    raw: Raw = {
        "format-version": int(version),
        "table-uuid": str(uuid.uuid4()),
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": now_ms(),
        "last-column-id": 0,
        "schemas": [],
        "partition-specs": [],
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {key: value for key, value in properties.items() if key != "format-version"},
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {},
    }
    if version == "1":
        del raw["last-sequence-number"]
    if version == "3":
        raw["next-row-id"] = 0
    return with_layout(raw, layout)


def check(raw: Raw, identifier: TableIdentifier, expect_uuid: str, expect_snapshot_id: int | None) -> None:
    if raw.get("table-uuid", "") != expect_uuid:
        raise CommitConflict(f"Table {identifier} was replaced by another table with the same name.")
    if current_snapshot_id(raw) != expect_snapshot_id:
        found, expected = current_snapshot_id(raw), expect_snapshot_id
        raise CommitConflict(f"Table {identifier} was changed by another process: snapshot {found} is current, not {expected}.")


def with_main(raw: Raw, snapshot_id: int, identifier: TableIdentifier) -> Raw:
    require_snapshot(raw, snapshot_id, identifier)
    if current_snapshot_id(raw) == snapshot_id:
        return raw
    refs = raw.get("refs") or {}
    main = {**refs.get("main", {"type": "branch"}), "snapshot-id": snapshot_id}
    entry = {"timestamp-ms": max(now_ms(), raw["last-updated-ms"]), "snapshot-id": snapshot_id}
    return {
        **raw,
        "current-snapshot-id": snapshot_id,
        "refs": {**refs, "main": main},
        "snapshot-log": [*(raw.get("snapshot-log") or []), entry],
    }


def with_branch(raw: Raw, branch: str, snapshot: Raw | None) -> Raw:
    """Add a branch at `snapshot`, which is new, or otherwise at the current snapshot."""
    if snapshot is not None:
        raw = with_snapshots(raw, [snapshot], raw.get("next-row-id"))
    snapshot_id = snapshot["snapshot-id"] if snapshot else current_snapshot_id(raw)
    return {**raw, "refs": {**(raw.get("refs") or {}), branch: {"snapshot-id": snapshot_id, "type": "branch"}}}


def with_snapshots(raw: Raw, snapshots: list[Raw], next_row_id: int | None) -> Raw:
    """Add snapshots without moving a reference."""
    raw = {**raw, "snapshots": [*(raw.get("snapshots") or []), *snapshots]}
    if raw["format-version"] > 1:
        numbers = [s.get("sequence-number", 0) for s in snapshots]
        raw["last-sequence-number"] = max([raw["last-sequence-number"], *numbers])
    if next_row_id is not None:
        raw["next-row-id"] = max(next_row_id, raw.get("next-row-id") or 0)
    return raw


def adopted(raw: Raw, staged: Raw, snapshot_id: int | None, identifier: TableIdentifier) -> Raw:
    """Take over the layout of a staged copy and its new snapshots up to `snapshot_id`. Raises CommitConflict if the table's layout has
    changed in the meantime."""
    for key, name in (("schemas", "schema-id"), ("partition-specs", "spec-id"), ("sort-orders", "order-id")):
        copied = {entry[name]: comparable({name: 0, **entry}) for entry in staged[key]}
        if any(copied.get(entry.get(name, 0)) != comparable({name: 0, **entry}) for entry in raw.get(key) or []):
            raise CommitConflict(f"The layout of table {identifier} was changed by another process.")
    keys = (
        *("schemas", "current-schema-id", "partition-specs", "default-spec-id", "sort-orders", "default-sort-order-id"),
        *("last-column-id", "last-partition-id", "schema", "partition-spec"),
    )
    merged = {**raw, **{key: staged[key] for key in keys if key in staged}}
    return with_snapshots(merged, _new_snapshots(raw, staged, snapshot_id, identifier), staged.get("next-row-id"))


def _new_snapshots(raw: Raw, staged: Raw, snapshot_id: int | None, identifier: TableIdentifier) -> list[Raw]:
    known = {s["snapshot-id"] for s in raw.get("snapshots") or []}
    by_id = {s["snapshot-id"]: s for s in staged.get("snapshots") or []}
    found: list[Raw] = []
    while snapshot_id is not None and snapshot_id not in known and snapshot_id in by_id:
        found.insert(0, by_id[snapshot_id])
        snapshot_id = by_id[snapshot_id].get("parent-snapshot-id")
    if raw["format-version"] > 2 and any(s.get("first-row-id", 0) < (raw.get("next-row-id") or 0) for s in found):
        raise CommitConflict(f"Rows were added to table {identifier} by another process: its row ids would no longer be unique.")
    return found


def renewed(raw: Raw, old: Raw, old_location: str) -> tuple[Raw, tuple[str, ...]]:
    """Update the fields that change with every metadata file. Returns also the old files that the log no longer names, if the table wants
    them deleted."""
    entry = {"timestamp-ms": old["last-updated-ms"], "metadata-file": old_location}
    log, dropped = bounded([*(raw.get("metadata-log") or []), entry], raw.get("properties") or {})
    raw = {**raw, "metadata-log": log, "last-updated-ms": max(now_ms(), old["last-updated-ms"])}
    return raw, dropped


def bounded(log: list[Raw], properties: Mapping[str, str]) -> tuple[list[Raw], tuple[str, ...]]:
    """The entries of a log of metadata files that the properties allow, and the files to delete."""
    limit = properties.get(_LOG_LIMIT, "")
    # A limit that is not a number must not block the commit that corrects it.
    kept = max(1, int(limit)) if limit.isdecimal() else _LOG_DEFAULT
    dropped = log[:-kept] if properties.get(_DELETE_DROPPED, "false").lower() == "true" else []
    return log[-kept:], tuple(entry["metadata-file"] for entry in dropped)


def metadata_folder(raw: Raw) -> str:
    folder = (raw.get("properties") or {}).get("write.metadata.path")
    return str(folder).rstrip("/") if folder else f"{raw['location'].rstrip('/')}/metadata"


def manifest_list_location(raw: Raw, snapshot_id: int) -> str:
    return f"{metadata_folder(raw)}/snap-{snapshot_id}-0-{raw['table-uuid']}.avro"


def empty_snapshot(raw: Raw, manifest_list: str, snapshot_id: int) -> Raw:
    """An append without files and without a parent."""
    snapshot: Raw = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": max(now_ms(), raw["last-updated-ms"]),
        "summary": {"operation": "append", **dict.fromkeys(_TOTALS, "0")},
        "manifest-list": manifest_list,
        "schema-id": raw.get("current-schema-id", 0),
    }
    if raw["format-version"] > 1:
        snapshot["sequence-number"] = raw["last-sequence-number"] + 1
    if raw["format-version"] > 2:
        snapshot |= {"first-row-id": raw.get("next-row-id") or 0, "added-rows": 0}
    return snapshot


def restating_snapshot(raw: Raw, manifest_list: str | None, snapshot_id: int, summary: Mapping[str, str]) -> Raw:
    """A `replace` of the current snapshot with the same files."""
    main = current(raw)
    assert main is not None
    before = main.get("summary") or {}
    totals = {key: before[key] for key in _TOTALS if key in before}
    kept: Raw = {key: main[key] for key in ("schema-id", "manifests") if key in main}
    snapshot: Raw = {
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": main["snapshot-id"],
        "timestamp-ms": max(now_ms(), raw["last-updated-ms"]),
        **kept,
        "summary": {"operation": "replace", **dict.fromkeys(_COUNTERS, "0"), **totals, **summary},
    }
    if manifest_list is not None:
        snapshot["manifest-list"] = manifest_list
    if raw["format-version"] > 1:
        snapshot["sequence-number"] = raw["last-sequence-number"] + 1
    if raw["format-version"] > 2:
        snapshot |= {"first-row-id": raw.get("next-row-id") or 0, "added-rows": 0}
    return snapshot


def without_snapshots(raw: Raw) -> Raw:
    """The metadata without its history, which may be long, for readers that need only the layout."""
    lists = ("snapshots", "snapshot-log", "metadata-log", "statistics", "partition-statistics")
    return {**raw, **{key: [] for key in lists}, "current-snapshot-id": -1, "refs": {}}


def with_head(raw: Raw, snapshot: Raw, branch: str | None, identifier: TableIdentifier) -> Raw:
    """Add a snapshot on top of the branch, or of `main`. Raises CommitConflict if another snapshot came first."""
    if head_of(raw, branch) != snapshot["parent-snapshot-id"] or raw["last-sequence-number"] >= snapshot["sequence-number"]:
        raise CommitConflict(f"Table {identifier} was changed by another process while rows were written.")
    raw = with_snapshots(raw, [snapshot], raw.get("next-row-id"))
    if branch is None:
        return with_main(raw, snapshot["snapshot-id"], identifier)
    return {**raw, "refs": {**raw["refs"], branch: {**raw["refs"][branch], "snapshot-id": snapshot["snapshot-id"]}}}


def head_of(raw: Raw, branch: str | None) -> int | None:
    """The snapshot that a branch refers to; None: `main`."""
    if branch is None:
        return current_snapshot_id(raw)
    found: int | None = ((raw.get("refs") or {}).get(branch) or {}).get("snapshot-id")
    return found


def current(raw: Raw) -> Raw | None:
    """The current snapshot."""
    snapshot_id = current_snapshot_id(raw)
    return next((s for s in raw.get("snapshots") or [] if s["snapshot-id"] == snapshot_id), None)


def require_snapshot(raw: Raw, snapshot_id: int, identifier: TableIdentifier) -> None:
    if all(s["snapshot-id"] != snapshot_id for s in raw.get("snapshots") or []):
        raise CatalogError(f"Table {identifier} has no snapshot {snapshot_id}.")
