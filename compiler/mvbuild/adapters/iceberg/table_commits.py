"""table metadata JSON + TableCommit -> new table metadata JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.layout import fitted, with_layout
from mvbuild.adapters.iceberg.metadata import Raw, current_snapshot_id, schemas
from mvbuild.adapters.iceberg.tables import (
    adopted,
    check,
    manifest_list_location,
    new_snapshot_id,
    require_snapshot,
    restating_snapshot,
    with_main,
    with_snapshots,
)
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from mvbuild.adapters.iceberg.publisher import Data
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.commits import TableCommit

Restate = Callable[[Raw, Mapping[str, str]], Raw]
"""(table, summary) -> the snapshot that repeats the current one; its manifest list is written."""


def restating(data: Data) -> Restate:
    def restate(raw: Raw, summary: Mapping[str, str]) -> Raw:
        snapshot_id = new_snapshot_id()
        location = data.repeated_manifest_list(manifest_list_location(raw, snapshot_id), raw, snapshot_id)
        return restating_snapshot(raw, location, snapshot_id, summary)

    return restate


def committed(raw: Raw, change: TableCommit, staged: Raw | None, restate: Restate) -> Raw:
    """The metadata after the commit. Raises CommitConflict if an expectation does not hold."""
    identifier = change.identifier
    check(raw, identifier, change.expect_uuid, change.expect_snapshot_id)
    if staged is not None:
        raw = adopted(raw, staged, change.set_snapshot_id, identifier)
    if change.set_snapshot_id is not None:
        raw = with_main(raw, change.set_snapshot_id, identifier)
    if change.layout is not None:
        raw = with_layout(raw, change.layout)
    if change.schema_id is not None:
        raw = _with_schema_id(raw, change.schema_id, identifier)
    if change.restate is not None:
        raw = _restated(raw, change.restate, identifier, restate)
    raw = {**raw, "refs": _refs(raw, change)}
    kept = {key: value for key, value in (raw.get("properties") or {}).items() if key not in change.remove_properties}
    raw = {**raw, "properties": {**kept, **change.set_properties}}
    return _expired(raw, change.expire, identifier) if change.expire else raw


def _refs(raw: Raw, change: TableCommit) -> Raw:
    refs = dict(raw.get("refs") or {})
    if change.create_branch:
        branch, snapshot_id = change.create_branch
        require_snapshot(raw, snapshot_id, change.identifier)
        refs[branch] = {"snapshot-id": snapshot_id, "type": "branch"}
    for branch in change.drop_branches:
        if branch != "main" and refs.get(branch, {}).get("type", "branch") == "branch":
            refs.pop(branch, None)
    return refs


def _with_schema_id(raw: Raw, schema_id: int, identifier: TableIdentifier) -> Raw:
    known = schemas(raw)
    if all(schema["schema-id"] != schema_id for schema in known):
        raise CatalogError(f"Table {identifier} has no schema {schema_id}.")
    return fitted({**raw, "schemas": known, "current-schema-id": schema_id})


def _restated(raw: Raw, summary: Mapping[str, str], identifier: TableIdentifier, restate: Restate) -> Raw:
    if current_snapshot_id(raw) is None:
        raise CatalogError(f"Table {identifier} has no snapshot to restate.")
    snapshot = restate(raw, summary)
    return with_main(with_snapshots(raw, [snapshot], raw.get("next-row-id")), snapshot["snapshot-id"], identifier)


def _expired(raw: Raw, gone: frozenset[int], identifier: TableIdentifier) -> Raw:
    held = {ref["snapshot-id"]: name for name, ref in (raw.get("refs") or {}).items()}
    current = current_snapshot_id(raw)
    if current is not None:
        held[current] = "main"
    for snapshot_id in sorted(gone & held.keys()):
        raise CatalogError(f"Snapshot {snapshot_id} of table {identifier} cannot expire: '{held[snapshot_id]}' refers to it.")
    raw = {**raw, "snapshots": [s for s in raw.get("snapshots") or [] if s["snapshot-id"] not in gone]}
    raw["snapshot-log"] = _log_after(raw.get("snapshot-log") or [], gone)
    for of in ("statistics", "partition-statistics"):
        if raw.get(of):
            raw[of] = [one for one in raw[of] if one["snapshot-id"] not in gone]
    return raw


def _log_after(log: list[Raw], gone: frozenset[int]) -> list[Raw]:
    """The log after the last entry of a removed snapshot: a history with gaps would show states that never existed."""
    last = max((at for at, entry in enumerate(log) if entry["snapshot-id"] in gone), default=-1)
    return log[last + 1 :]
