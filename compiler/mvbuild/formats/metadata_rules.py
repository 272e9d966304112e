"""JSON object of an MV metadata file, each field of its shape -> RecordError where one part refers to another that is not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mvbuild.formats.record import RecordError

NO_REFRESH = -1
_SKEW_MS = 60_000
"""Iceberg's own writers forgive clocks that differ by a minute, and so leave logs that are out of order by as much."""


def check(raw: Mapping[str, Any]) -> None:
    """RecordError names the first field that breaks a rule. Parents of snapshots and versions of refreshes may be gone: both expire."""
    for rule in _RULES:
        rule(raw)


def current_snapshot_id(raw: Mapping[str, Any]) -> int | None:
    found = raw.get("current-snapshot-id")
    return None if found is None or found == -1 else found


def field_ids(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int]]:
    """Path and id of every field of a schema or struct, nested ones too."""
    for at, field in enumerate(schema["fields"]):
        yield f"{path}.fields[{at}].id", field["id"]
        yield from _inner_ids(field["type"], f"{path}.fields[{at}].type")


def _inner_ids(kind: Any, path: str) -> Iterator[tuple[str, int]]:
    if not isinstance(kind, dict):
        return
    if kind["type"] == "struct":
        yield from field_ids(kind, path)
        return
    for part in ("element",) if kind["type"] == "list" else ("key", "value"):
        yield f"{path}.{part}-id", kind[f"{part}-id"]
        yield from _inner_ids(kind[part], f"{path}.{part}")


def _versions(raw: Mapping[str, Any]) -> None:
    known = {version["version-id"] for version in raw["versions"]}
    schemas = {schema["schema-id"] for schema in raw["schemas"]}
    _known("current_version_id", raw["current_version_id"], known, "versions")
    for at, version in enumerate(raw["versions"]):
        _known(f"versions[{at}].schema-id", version["schema-id"], schemas, "schemas")
    for at, entry in enumerate(raw["version_log"]):
        _known(f"version_log[{at}].version-id", entry["version-id"], known, "versions")
    _ascending("version_log", raw["version_log"])


def _schemas(raw: Mapping[str, Any]) -> None:
    _known("current-schema-id", raw["current-schema-id"], {schema["schema-id"] for schema in raw["schemas"]}, "schemas")
    for at, schema in enumerate(raw["schemas"]):
        seen: set[int] = set()
        for path, field_id in field_ids(schema, f"schemas[{at}]"):
            if field_id in seen:
                raise RecordError(path, f"{field_id} is there twice")
            seen.add(field_id)
            if field_id > raw["last-column-id"]:
                raise RecordError("last-column-id", f"{raw['last-column-id']} is less than {path}, {field_id}")
        for field_id in schema.get("identifier-field-ids") or ():
            _known(f"schemas[{at}].identifier-field-ids", field_id, seen, f"schemas[{at}]")


def _layout(raw: Mapping[str, Any]) -> None:
    columns = {field_id for schema in raw["schemas"] for _, field_id in field_ids(schema)}
    _known("default-spec-id", raw["default-spec-id"], {spec["spec-id"] for spec in raw["partition-specs"]}, "partition-specs")
    _known("default-sort-order-id", raw["default-sort-order-id"], {order["order-id"] for order in raw["sort-orders"]}, "sort-orders")
    for listed in ("partition-specs", "sort-orders"):
        for at, entry in enumerate(raw[listed]):
            for column, field in enumerate(entry["fields"]):
                _known(f"{listed}[{at}].fields[{column}].source-id", field["source-id"], columns, "schemas")
    for at, spec in enumerate(raw["partition-specs"]):
        for column, field in enumerate(spec["fields"]):
            if field["field-id"] > raw["last-partition-id"]:
                path = f"partition-specs[{at}].fields[{column}].field-id"
                raise RecordError("last-partition-id", f"{raw['last-partition-id']} is less than {path}, {field['field-id']}")


def _snapshots(raw: Mapping[str, Any]) -> None:
    schemas = {schema["schema-id"] for schema in raw["schemas"]}
    for at, snapshot in enumerate(raw.get("snapshots") or ()):
        if snapshot.get("schema-id") is not None:
            _known(f"snapshots[{at}].schema-id", snapshot["schema-id"], schemas, "schemas")
        _at_most_last(raw, f"snapshots[{at}].sequence-number", snapshot["sequence-number"])


def _references(raw: Mapping[str, Any]) -> None:
    known = {snapshot["snapshot-id"] for snapshot in raw.get("snapshots") or ()}
    current = current_snapshot_id(raw)
    refs = raw.get("refs") or {}
    if current is not None:
        _known("current-snapshot-id", current, known, "snapshots")
    for name, ref in refs.items():
        _known(f"refs.{name}.snapshot-id", ref["snapshot-id"], known, "snapshots")
    if refs.get("main", {"type": "branch"})["type"] != "branch":
        raise RecordError("refs.main.type", "must be 'branch'")
    main = refs["main"]["snapshot-id"] if "main" in refs else None
    if main != current and (refs or main is not None):
        raise RecordError("refs.main.snapshot-id", f"{main} is not the current-snapshot-id, {current}")
    for at, entry in enumerate(raw.get("statistics") or ()):
        _known(f"statistics[{at}].snapshot-id", entry["snapshot-id"], known, "snapshots")


def _snapshot_log(raw: Mapping[str, Any]) -> None:
    log = raw.get("snapshot-log") or []
    known = {snapshot["snapshot-id"] for snapshot in raw.get("snapshots") or ()}
    for at, entry in enumerate(log):
        _known(f"snapshot-log[{at}].snapshot-id", entry["snapshot-id"], known, "snapshots")
    if log and log[-1]["snapshot-id"] != current_snapshot_id(raw):
        raise RecordError(f"snapshot-log[{len(log) - 1}].snapshot-id", f"must be the current-snapshot-id, {current_snapshot_id(raw)}")
    _ascending("snapshot-log", log)
    _ascending("metadata-log", raw.get("metadata-log") or [])


def _refreshes(raw: Mapping[str, Any]) -> None:
    known = {refresh["refresh-id"] for refresh in raw["refreshes"]}
    if known or raw["current-refresh-id"] != NO_REFRESH:
        _known("current-refresh-id", raw["current-refresh-id"], known, "refreshes")
    for at, refresh in enumerate(raw["refreshes"]):
        if refresh.get("sequence-number") is not None:
            _at_most_last(raw, f"refreshes[{at}].sequence-number", refresh["sequence-number"])


_RULES = (_versions, _schemas, _layout, _snapshots, _references, _snapshot_log, _refreshes)


def _known(path: str, wanted: int, known: set[int], where: str) -> None:
    if wanted not in known:
        raise RecordError(path, f"{wanted} is not in {where}")


def _at_most_last(raw: Mapping[str, Any], path: str, number: int) -> None:
    if number > raw["last-sequence-number"]:
        raise RecordError(path, f"{number} is more than last-sequence-number, {raw['last-sequence-number']}")


def _ascending(name: str, log: Sequence[Mapping[str, Any]]) -> None:
    for at in range(1, len(log)):
        before, after = log[at - 1]["timestamp-ms"], log[at]["timestamp-ms"]
        if after < before - _SKEW_MS:
            raise RecordError(f"{name}[{at}].timestamp-ms", f"{after} is before that of the entry above, {before}")
