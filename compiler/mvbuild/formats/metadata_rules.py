"""JSON object of an MV metadata file, each field with its shape -> RecordError if one part refers to another that does not exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mvbuild.formats.record import RecordError

HISTORY = "version.history.num-entries"
NO_REFRESH = -1
SKEW_MS = 60_000
"""Iceberg's own writers tolerate clocks that differ by a minute, so their logs can be out of order by as much."""
_VERSION, _SCHEMA, _SNAPSHOT = "versions[].version-id", "schemas[].schema-id", "snapshots[].snapshot-id"


def check(raw: Mapping[str, Any]) -> None:
    """Raise RecordError with the first field that breaks a rule. Parents of snapshots and versions of refreshes may be missing: both
    expire."""
    for rule in _RULES:
        rule(raw)


def current_snapshot_id(raw: Mapping[str, Any]) -> int | None:
    found = raw.get("current-snapshot-id")
    return None if found is None or found == -1 else found


def field_ids(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int]]:
    """Path and id of every field of a schema or struct, including nested ones."""
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
    known, log, current = _ids(raw, "versions", "version-id"), raw["version_log"], raw["current_version_id"]
    _known("current_version_id", current, known, _VERSION)
    for at, version in enumerate(raw["versions"]):
        _known(f"versions[{at}].schema-id", version["schema-id"], _ids(raw, "schemas", "schema-id"), _SCHEMA)
    for at, entry in enumerate(log):
        _known(f"version_log[{at}].version-id", entry["version-id"], known, _VERSION)
    if log[-1]["version-id"] != current:
        raise RecordError(f"version_log[{len(log) - 1}].version-id", f"{log[-1]['version-id']} is not the current_version_id, {current}")


def _schemas(raw: Mapping[str, Any]) -> None:
    _known("current-schema-id", raw["current-schema-id"], _ids(raw, "schemas", "schema-id"), _SCHEMA)
    for at, schema in enumerate(raw["schemas"]):
        _distinct_names(schema, f"schemas[{at}]")
        seen: set[int] = set()
        for path, field_id in field_ids(schema, f"schemas[{at}]"):
            if field_id in seen:
                raise RecordError(path, f"duplicate {field_id}")
            seen.add(field_id)
            if field_id > raw["last-column-id"]:
                raise RecordError("last-column-id", f"{raw['last-column-id']} is less than {path}, {field_id}")
        for field_id in schema.get("identifier-field-ids") or ():
            _known(f"schemas[{at}].identifier-field-ids", field_id, seen, f"schemas[{at}].fields[].id")


def _distinct_names(kind: Any, path: str) -> None:
    """No struct has two fields with the same name, at any depth."""
    if not isinstance(kind, dict):
        return
    if kind["type"] == "struct":
        seen: set[str] = set()
        for at, field in enumerate(kind["fields"]):
            if field["name"] in seen:
                raise RecordError(f"{path}.fields[{at}].name", f"duplicate {field['name']!r}")
            seen.add(field["name"])
            _distinct_names(field["type"], f"{path}.fields[{at}].type")
        return
    for part in ("element",) if kind["type"] == "list" else ("key", "value"):
        _distinct_names(kind[part], f"{path}.{part}")


def _layout(raw: Mapping[str, Any]) -> None:
    columns = {field_id for schema in raw["schemas"] for _, field_id in field_ids(schema)}
    specs, orders = _ids(raw, "partition-specs", "spec-id"), _ids(raw, "sort-orders", "order-id")
    _known("default-spec-id", raw["default-spec-id"], specs, "partition-specs[].spec-id")
    _known("default-sort-order-id", raw["default-sort-order-id"], orders, "sort-orders[].order-id")
    for listed in ("partition-specs", "sort-orders"):
        for at, entry in enumerate(raw[listed]):
            for column, field in enumerate(entry["fields"]):
                _known(f"{listed}[{at}].fields[{column}].source-id", field["source-id"], columns, "schemas[].fields[].id")
    for at, spec in enumerate(raw["partition-specs"]):
        for column, field in enumerate(spec["fields"]):
            if field["field-id"] > raw["last-partition-id"]:
                path = f"partition-specs[{at}].fields[{column}].field-id"
                raise RecordError("last-partition-id", f"{raw['last-partition-id']} is less than {path}, {field['field-id']}")


def _snapshots(raw: Mapping[str, Any]) -> None:
    schemas = _ids(raw, "schemas", "schema-id")
    seen: set[int] = set()
    for at, snapshot in enumerate(raw.get("snapshots") or ()):
        if snapshot.get("schema-id") is not None:
            _known(f"snapshots[{at}].schema-id", snapshot["schema-id"], schemas, _SCHEMA)
        number = snapshot["sequence-number"]
        _at_most_last(raw, f"snapshots[{at}].sequence-number", number)
        # All snapshots from before the table had format version 2 have the number 0.
        if number and number in seen:
            raise RecordError(f"snapshots[{at}].sequence-number", f"duplicate {number}")
        seen.add(number)


def _ancestors(raw: Mapping[str, Any]) -> None:
    snapshots = raw.get("snapshots") or ()
    parents = {snapshot["snapshot-id"]: snapshot.get("parent-snapshot-id") for snapshot in snapshots}
    checked: set[int] = set()
    for at, snapshot in enumerate(snapshots):
        line: set[int] = set()
        found = snapshot["snapshot-id"]
        while found in parents and found not in checked:
            if found in line:
                path = f"snapshots[{at}].parent-snapshot-id"
                raise RecordError(path, f"{snapshot['parent-snapshot-id']} makes a snapshot-id, {found}, its own ancestor")
            line.add(found)
            found = parents[found]
        checked |= line


def _references(raw: Mapping[str, Any]) -> None:
    known = _ids(raw, "snapshots", "snapshot-id")
    current = current_snapshot_id(raw)
    refs = raw.get("refs")
    if current is not None:
        _known("current-snapshot-id", current, known, _SNAPSHOT)
    for name, ref in (refs or {}).items():
        _known(f"refs.{name}.snapshot-id", ref["snapshot-id"], known, _SNAPSHOT)
    if refs is not None:
        _main(raw, refs.get("main"), current)
    for at, entry in enumerate(raw.get("statistics") or ()):
        _known(f"statistics[{at}].snapshot-id", entry["snapshot-id"], known, _SNAPSHOT)


def _main(raw: Mapping[str, Any], main: Mapping[str, Any] | None, current: int | None) -> None:
    """If there is a current snapshot, the branch `main` exists and points to it."""
    if main is None:
        if current is not None:
            raise RecordError("refs.main", f"is missing beside the current-snapshot-id, {current}")
        return
    if main["type"] != "branch":
        raise RecordError("refs.main.type", "must be 'branch'")
    if current is None:
        raise RecordError("current-snapshot-id", f"is missing beside refs.main.snapshot-id, {main['snapshot-id']}")
    if main["snapshot-id"] == current:
        return
    last = (raw.get("snapshot-log") or [{}])[-1].get("snapshot-id")
    if last == main["snapshot-id"]:
        raise RecordError("current-snapshot-id", f"{current} differs from refs.main.snapshot-id and from the snapshot-log, {last}")
    raise RecordError("refs.main.snapshot-id", f"{main['snapshot-id']} is not the current-snapshot-id, {current}")


def _snapshot_log(raw: Mapping[str, Any]) -> None:
    log, current = raw.get("snapshot-log") or [], current_snapshot_id(raw)
    known = _ids(raw, "snapshots", "snapshot-id")
    for at, entry in enumerate(log):
        _known(f"snapshot-log[{at}].snapshot-id", entry["snapshot-id"], known, _SNAPSHOT)
    if log and log[-1]["snapshot-id"] != current:
        shown = "none" if current is None else current
        raise RecordError(f"snapshot-log[{len(log) - 1}].snapshot-id", f"{log[-1]['snapshot-id']} is not the current-snapshot-id, {shown}")


def _times(raw: Mapping[str, Any]) -> None:
    updated = raw["last-updated-ms"]
    for name in ("version_log", "snapshot-log", "metadata-log"):
        log: Sequence[Mapping[str, Any]] = raw.get(name) or ()
        for at in range(1, len(log)):
            before, after = log[at - 1]["timestamp-ms"], log[at]["timestamp-ms"]
            if after < before - SKEW_MS:
                raise RecordError(f"{name}[{at}].timestamp-ms", f"{after} is before that of the entry above, {before}")
        if log and updated < log[-1]["timestamp-ms"] - SKEW_MS:
            path = f"{name}[{len(log) - 1}].timestamp-ms"
            raise RecordError("last-updated-ms", f"{updated} is before {path}, {log[-1]['timestamp-ms']}")


def _refreshes(raw: Mapping[str, Any]) -> None:
    current = raw["current-refresh-id"]
    if current != NO_REFRESH:
        _known("current-refresh-id", current, _ids(raw, "refreshes", "refresh-id"), "refreshes[].refresh-id")
    for at, refresh in enumerate(raw["refreshes"]):
        path = f"refreshes[{at}]"
        check_refresh(raw, refresh, path, is_current=refresh["refresh-id"] == current)
        for key, table in refresh["base-tables"].items():
            if key != table["identifier"]:
                raise RecordError(
                    f"{path}.base-tables.{key}.identifier", f"{table['identifier']!r} differs from its key in base-tables, {key!r}"
                )


def check_refresh(raw: Mapping[str, Any], refresh: Mapping[str, Any], path: str, *, is_current: bool) -> None:
    """Check that the versions and snapshots of the file agree with a refresh."""
    highest = max(_ids(raw, "versions", "version-id"))
    if refresh["version-id"] > highest and not _keeps_one_version(raw):
        raise RecordError(f"{path}.version-id", f"{refresh['version-id']} is greater than the highest of {_VERSION}, {highest}")
    if refresh.get("sequence-number") is not None:
        _refreshed(raw, refresh, f"{path}.sequence-number", is_current=is_current)


def _keeps_one_version(raw: Mapping[str, Any]) -> bool:
    """A history of one has only the current version, which after a rollback is not the highest ever."""
    properties = raw.get("properties") or {}
    return any(name.endswith(HISTORY) and value in ("0", "1") for name, value in properties.items())


def _refreshed(raw: Mapping[str, Any], refresh: Mapping[str, Any], path: str, *, is_current: bool) -> None:
    number = refresh["sequence-number"]
    _at_most_last(raw, path, number)
    snapshots = {snapshot["sequence-number"]: snapshot for snapshot in raw.get("snapshots") or ()}
    if not snapshots or number in snapshots:
        return
    if number == 0:
        raise RecordError(path, "0 is not a snapshots[].sequence-number; a refresh makes a snapshot, and sequence numbers start at 1")
    if is_current and not _rewritten_since(raw, number):
        raise RecordError(path, f"{number} of the current-refresh-id, {refresh['refresh-id']}, is not in snapshots[].sequence-number")


def _rewritten_since(raw: Mapping[str, Any], number: int) -> bool:
    """Whether the current snapshot has the same rows in other files, so that the refresh's own snapshot may have expired."""
    current = current_snapshot_id(raw)
    return any(
        snapshot["snapshot-id"] == current and snapshot["summary"]["operation"] == "replace" and snapshot["sequence-number"] > number
        for snapshot in raw.get("snapshots") or ()
    )


_RULES = (_versions, _schemas, _layout, _snapshots, _ancestors, _references, _snapshot_log, _times, _refreshes)


def _ids(raw: Mapping[str, Any], listed: str, name: str) -> set[int]:
    return {entry[name] for entry in raw.get(listed) or ()}


def _known(path: str, wanted: int, known: set[int], where: str) -> None:
    if wanted not in known:
        raise RecordError(path, f"{wanted} is not in {where}")


def _at_most_last(raw: Mapping[str, Any], path: str, number: int) -> None:
    if number > raw["last-sequence-number"]:
        raise RecordError(path, f"{number} is greater than last-sequence-number, {raw['last-sequence-number']}")
