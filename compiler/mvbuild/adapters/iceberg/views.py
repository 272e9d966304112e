"""view metadata JSON + ViewCommit -> new view metadata JSON, by the Iceberg view specification."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from mvbuild import __version__
from mvbuild.adapters.iceberg.tables import now_ms
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.commits import OWN_CATALOG, ViewCommit
from mvbuild.ports.states import Schema

if TYPE_CHECKING:
    from mvbuild.adapters.iceberg.metadata import Raw

_HISTORY = "version.history.num-entries"
# Spark's notes about the query that it wrote last. With the columns of another query, they make Spark refuse the view.
_STALE = ("spark.query-column-names",)


def changed(raw: Raw, change: ViewCommit) -> Raw:
    """With the properties of the commit, and its version if it has one."""
    kept = {name: value for name, value in (raw.get("properties") or {}).items() if name not in change.remove_properties}
    raw = {**raw, "properties": {**kept, **change.properties}}
    return raw if change.version_id is None else with_version(raw, change, change.version_id)


def new_view(change: ViewCommit, location: str) -> Raw:
    if change.version_id is None:
        raise CommitConflict(f"View {change.identifier} was dropped by another process.")
    raw: Raw = {
        "view-uuid": change.uuid or str(uuid.uuid4()),
        "format-version": 1,
        "location": location,
        "schemas": [],
        "versions": [],
        "version-log": [],
        "properties": {},
    }
    return with_version(raw, change, change.version_id)


def with_version(raw: Raw, change: ViewCommit, version_id: int) -> Raw:
    """Add a new current version; older ones drop out of a full history."""
    if any(v["version-id"] >= version_id for v in raw["versions"]):
        raise CommitConflict(f"View {change.identifier} already has a version {version_id}.")
    kept_properties = {name: value for name, value in (raw.get("properties") or {}).items() if name not in _STALE}
    properties = {**kept_properties, **change.properties}
    schema = _schema(raw["schemas"], change.schema)
    version = _version(change, version_id, schema["schema-id"])
    versions = [*raw["versions"], version][-max(1, int(properties.get(_HISTORY, "10"))) :]
    used = {v["schema-id"] for v in versions}
    known = [s for s in raw["schemas"] if s["schema-id"] in used and s["schema-id"] != schema["schema-id"]]
    kept = {v["version-id"] for v in versions}
    log = [entry for entry in raw["version-log"] if entry["version-id"] in kept]
    return {
        **raw,
        "schemas": [*known, schema],
        "versions": versions,
        "current-version-id": version_id,
        "version-log": [*log, {"timestamp-ms": version["timestamp-ms"], "version-id": version_id}],
        "properties": properties,
    }


def _version(change: ViewCommit, version_id: int, schema_id: int) -> Raw:
    version: Raw = {
        "version-id": version_id,
        "timestamp-ms": now_ms(),
        "schema-id": schema_id,
        "summary": {"engine-name": "mvbuild", "engine-version": __version__},
        "default-catalog": change.identifier.catalog if change.default_catalog == OWN_CATALOG else change.default_catalog,
        "default-namespace": list(change.default_namespace),
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect} for dialect, sql in change.representations.items()],
    }
    if change.default_catalog is None:
        del version["default-catalog"]
    table = change.storage_table
    if table:
        version["storage-table"] = {"catalog": table.catalog, "namespace": list(table.namespace), "name": table.name}
    return version


def _schema(known: list[Raw], wanted: Schema) -> Raw:
    fields = {key: value for key, value in wanted.items() if key != "schema-id"}
    for schema in known:
        if {key: value for key, value in schema.items() if key != "schema-id"} == fields:
            return schema
    return {**fields, "schema-id": max((s["schema-id"] for s in known), default=-1) + 1}
