"""bytes of a metadata file -> its JSON object -> TableState | ViewState, without PyIceberg's models.

A run that finds nothing to do reads nothing else. Importing PyIceberg's models and filling them would cost ten times as much.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from sys import intern
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.packed import PackedMapping, PackedSequence
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.states import Partition, Snapshot, Sort, TableState, ViewState

if TYPE_CHECKING:
    from mvbuild.names import TableIdentifier

Raw = dict[str, Any]
"""The JSON object of a metadata file, with the names of the Iceberg specification."""


TABLE_VERSIONS = (1, 2, 3)
CURRENT_LAYOUT = ("current-schema-id", "default-spec-id", "default-sort-order-id")
MAIN = "mvbuild.main"
"""Key for metadata as a branch sees it: the corresponding values of `main`. Never written to a file."""


class Snapshots(Mapping[int, Snapshot]):
    """Snapshot id -> Snapshot, built from the JSON on demand: histories are long and rarely read."""

    __slots__ = ("_raw",)

    def __init__(self, raw: list[Raw]) -> None:
        self._raw: Mapping[int, Raw] = PackedMapping({s["snapshot-id"]: s for s in raw})
        # Errors must appear now: later code does not expect a broken file.
        for snapshot in raw:
            if not isinstance(snapshot["timestamp-ms"], int) or not isinstance(snapshot.get("summary") or {}, dict):
                raise ValueError(f"snapshots: {snapshot['snapshot-id']} is incomplete")

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        return _snapshot(self._raw[snapshot_id])

    def __iter__(self) -> Iterator[int]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __contains__(self, snapshot_id: object) -> bool:
        return snapshot_id in self._raw


def parse(content: bytes, location: str) -> Raw:
    """Parse a metadata file. Raises ValueError or OSError if it does not contain the JSON object of one."""
    # Hadoop tables put the codec before ".metadata.json", older Java releases after it.
    if location.endswith((".gz.metadata.json", ".metadata.json.gz")):
        content = gzip.decompress(content)
    raw = json.loads(content)
    if not isinstance(raw, dict):
        raise ValueError("it is not a JSON object")
    return raw


def serialize(raw: Raw, location: str) -> bytes:
    content = json.dumps(raw, separators=(",", ":"), ensure_ascii=False).encode()
    return gzip.compress(content) if location.endswith(".gz.metadata.json") else content


def state(identifier: TableIdentifier, location: str, raw: Raw, *, is_view: bool) -> TableState | ViewState:
    """The state. Raises CatalogError if the JSON lacks something that a table or view must have."""
    try:
        return view_state(identifier, location, raw) if is_view else table_state(identifier, location, raw)
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        kind = "view" if is_view else "table"
        raise CatalogError(f"The metadata of {kind} {identifier} is incomplete: {location} ({rule_broken(error)}).") from None


def rule_broken(error: Exception) -> str:
    """The field and the rule that an error is about, as far as the error shows them."""
    if type(error) is ValueError:
        return str(error)
    return f"{error.args[0]}: is missing" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"


def table_state(identifier: TableIdentifier, location: str, raw: Raw) -> TableState:
    if raw["format-version"] not in TABLE_VERSIONS:
        raise ValueError(f"format-version: {raw['format-version']} is not supported; use 1, 2 or 3")
    current = current_snapshot_id(raw)
    refs = raw.get("refs") or {}
    by_id = {s["schema-id"]: s for s in schemas(raw)}
    listed = raw.get("snapshots") or []
    snapshots = Snapshots(listed)
    if current is not None and all(s["snapshot-id"] != current for s in listed):
        raise ValueError(f"current-snapshot-id: {current} is not among the snapshots")
    current_schema(raw)
    snapshot_ids = {name: ref["snapshot-id"] for name, ref in refs.items()}
    if current is not None:
        snapshot_ids.setdefault("main", current)
    return TableState(
        identifier=identifier,
        uuid=raw.get("table-uuid", ""),
        location=raw["location"],
        metadata_location=location,
        format_version=raw["format-version"],
        current_snapshot_id=current,
        current_schema_id=raw.get("current-schema-id", next(iter(by_id))),
        schemas=PackedMapping(by_id),
        partition_by=_partition_by(raw),
        sort_by=_sort_by(raw),
        snapshots=snapshots,
        snapshot_log=PackedSequence([(e["timestamp-ms"], e["snapshot-id"]) for e in raw.get("snapshot-log") or ()]),
        refs=snapshot_ids,
        branches=frozenset(name for name in snapshot_ids if refs.get(name, {}).get("type", "branch") == "branch"),
        properties=_properties(raw),
        is_held=has_other_layout(raw),
    )


def has_other_layout(raw: Raw) -> bool:
    """Whether metadata as a branch sees it has another current schema, partition spec or sort order than an engine sees in the table."""
    main = raw.get(MAIN)
    return main is not None and any(raw.get(key) != main.get(key) for key in CURRENT_LAYOUT)


def _partition_by(raw: Raw) -> tuple[Partition, ...]:
    spec = next((s["fields"] for s in raw.get("partition-specs") or () if s["spec-id"] == raw.get("default-spec-id", 0)), None)
    fields = raw.get("partition-spec") or [] if spec is None else spec
    return tuple(Partition(column=_path(raw, f["source-id"]), transform=f["transform"]) for f in fields if f["transform"] != "void")


def _sort_by(raw: Raw) -> tuple[Sort, ...]:
    order: list[Raw] = next((o["fields"] for o in raw.get("sort-orders") or () if o["order-id"] == raw.get("default-sort-order-id", 0)), [])
    return tuple(
        Sort(column=_sorted(raw, f), descending=f["direction"] == "desc", nulls_first=f["null-order"] == "nulls-first") for f in order
    )


def _sorted(raw: Raw, field: Raw) -> str:
    path = _path(raw, field["source-id"])
    return path if field["transform"] == "identity" else f"{field['transform']}({path})"


def _path(raw: Raw, field_id: int) -> str:
    """The dotted name of a column, by its id; empty if it was dropped."""
    return next((path for path, id_ in _paths(current_schema(raw)["fields"], "") if id_ == field_id), "")


def _paths(fields: list[Raw], prefix: str) -> Iterator[tuple[str, int]]:
    for field in fields:
        yield prefix + field["name"], field["id"]
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _paths(field["type"]["fields"], f"{prefix}{field['name']}.")


def view_state(identifier: TableIdentifier, location: str, raw: Raw) -> ViewState:
    if raw["format-version"] != 1:
        raise ValueError(f"format-version: {raw['format-version']} is not supported; use 1")
    version = current_version(raw)
    representations = [r for r in version["representations"] if r.get("type") == "sql"]
    return ViewState(
        identifier=identifier,
        uuid=raw["view-uuid"],
        location=raw["location"],
        metadata_location=location,
        version_id=version["version-id"],
        last_version_id=max(v["version-id"] for v in raw["versions"]),
        representations={r["dialect"].lower(): r["sql"] for r in representations},
        spark_versions={v["version-id"]: sql for v in raw["versions"] if (sql := _spark(v)) is not None},
        default_catalog=version.get("default-catalog"),
        default_namespace=tuple(version.get("default-namespace") or ()),
        schema=PackedMapping(_schema_of(raw, version)),
        properties=_properties(raw),
    )


def _properties(raw: Raw) -> dict[str, str]:
    """Intern the keys: the same few names are in every file."""
    return {intern(name): value for name, value in (raw.get("properties") or {}).items()}


def _spark(version: Raw) -> str | None:
    return next((r["sql"] for r in version["representations"] if r.get("dialect", "").lower() == "spark"), None)


def current_version(raw: Raw) -> Raw:
    found: Raw | None = next((v for v in raw["versions"] if v["version-id"] == raw["current-version-id"]), None)
    if found is None:
        raise ValueError(f"current-version-id: {raw['current-version-id']} is not among the versions")
    return found


def _schema_of(raw: Raw, version: Raw) -> Raw:
    found: Raw | None = next((s for s in raw["schemas"] if s.get("schema-id", 0) == version["schema-id"]), None)
    if found is None:
        raise ValueError(f"versions.schema-id: {version['schema-id']} is not among the schemas")
    return found


def current_snapshot_id(raw: Raw) -> int | None:
    found = raw.get("current-snapshot-id")
    # Writers of format 1 used -1 for a table without snapshots. The specification does not allow a `main` that is only in refs.
    return None if found is None or found == -1 else found


def schemas(raw: Raw) -> list[Raw]:
    """All schemas with their ids; format 1 may have only `schema`."""
    listed = raw.get("schemas") or [raw["schema"]]
    return [s if "schema-id" in s else {**s, "schema-id": 0} for s in listed]


def current_schema(raw: Raw) -> Raw:
    listed = schemas(raw)
    wanted = raw.get("current-schema-id", listed[0]["schema-id"])
    found = next((s for s in listed if s["schema-id"] == wanted), None)
    if found is None:
        raise ValueError(f"current-schema-id: {wanted} is not among the schemas")
    return found


def comparable(value: Any) -> Any:
    """Equal for JSON with the same meaning: writers differ in whether they write empty values, and in the spaces of a type."""
    if isinstance(value, dict):
        return {key: comparable(inner) for key, inner in value.items() if inner is not None and inner != []}
    if isinstance(value, list):
        return [comparable(inner) for inner in value]
    return value.replace(" ", "") if isinstance(value, str) and value.startswith("decimal(") else value


def _snapshot(raw: Raw) -> Snapshot:
    summary = raw.get("summary") or {}
    return Snapshot(
        snapshot_id=raw["snapshot-id"],
        parent_id=raw.get("parent-snapshot-id"),
        sequence_number=raw.get("sequence-number", 0),
        timestamp_ms=raw["timestamp-ms"],
        operation=summary.get("operation", ""),
        schema_id=raw.get("schema-id"),
        summary=summary,
    )
