"""A catalog -> which MVs are fresh, for a reader that knows the property-based specification and nothing else. Nothing of mvbuild is used.

    found = read(catalog)              # of PyIceberg: every table and view, with UUID, properties, and current snapshot or version
    fresh(found, "main.revenue")       # the three rules of the specification

The specification names tables by UUID alone. A reader finds one by looking through the catalog: "the current snapshot of T" is that of every table
with that UUID, since a table can be registered under two names. A table or view that is not found is not at its recorded state.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import text

IS_MV, STORAGE = "iceberg.materialized.view", "iceberg.materialized.view.storage.table"
VERSION, BASE, CHILD = "iceberg.view.version", "iceberg.base.snapshot.", "iceberg.child.view.version."
NO_SNAPSHOT = -1
"""Iceberg's own id for "no snapshot" in table metadata."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A table or view of the catalog."""

    name: str
    """namespace.name"""
    uuid: str
    properties: Mapping[str, str]
    current: int
    """The current snapshot of a table, the current version of a view."""
    is_view: bool


def fresh(entries: Iterable[Entry], view_name: str) -> bool:
    """Whether the storage table of an MV is fresh by the specification."""
    return not why_not(list(entries), view_name)


def mvs(entries: Iterable[Entry]) -> list[str]:
    """The names of the MVs."""
    return [e.name for e in entries if e.is_view and e.properties.get(IS_MV) == "true"]


def why_not(entries: Sequence[Entry], view_name: str) -> str:
    """Empty for a fresh one."""
    view = next((e for e in entries if e.is_view and e.name == view_name), None)
    if view is None or view.properties.get(IS_MV) != "true":
        return f"{view_name} is no MV"
    storage = next((e for e in entries if not e.is_view and e.name == view.properties.get(STORAGE)), None)
    if storage is None:
        return "its storage table does not exist"
    if storage.properties.get(VERSION) != str(view.current):
        return f"version {view.current} of the view, {storage.properties.get(VERSION)} recorded"
    for key, value in storage.properties.items():
        for prefix, is_view in ((BASE, False), (CHILD, True)):
            if key.startswith(prefix):
                found = [e for e in entries if e.is_view == is_view and e.uuid == key.removeprefix(prefix)]
                if not found or any(str(e.current) != value for e in found):
                    return f"{key} = {value}, and now {[(e.name, e.current) for e in found]}"
    return ""


def read(catalog: Catalog) -> list[Entry]:
    """Everything that a catalog has."""
    if isinstance(catalog, SqlCatalog):
        return _read_sql(catalog)
    entries = []
    for namespace in catalog.list_namespaces():
        for identifier in catalog.list_tables(namespace):
            metadata = catalog.load_table(identifier).metadata
            entries.append(_table(".".join(identifier), metadata.model_dump(by_alias=True, mode="json")))
        for identifier in catalog.list_views(namespace):
            view = catalog.load_view(identifier).metadata
            entries.append(_view(".".join(identifier), view.model_dump(by_alias=True, mode="json")))
    return entries


def _read_sql(catalog: SqlCatalog) -> list[Entry]:
    """PyIceberg's SQL catalog has no views; they are in the same database table, each with its metadata file."""
    query = "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE catalog_name = :catalog"
    with catalog.engine.connect() as connection:
        rows = connection.execute(text(query), {"catalog": catalog.name}).all()
    entries = []
    for namespace, name, location in rows:
        metadata = _json(catalog, location)
        made = _view if "view-uuid" in metadata else _table
        entries.append(made(f"{namespace}.{name}", metadata))
    return entries


def _json(catalog: SqlCatalog, location: str) -> dict[str, Any]:
    with catalog._load_file_io(location=location).new_input(location).open() as file:
        content = file.read()
    return json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)  # type: ignore[no-any-return]


def _table(name: str, metadata: Mapping[str, Any]) -> Entry:
    current = metadata.get("current-snapshot-id")
    return Entry(
        name=name,
        uuid=str(metadata["table-uuid"]),
        properties=metadata.get("properties") or {},
        current=NO_SNAPSHOT if current is None else current,
        is_view=False,
    )


def _view(name: str, metadata: Mapping[str, Any]) -> Entry:
    return Entry(
        name=name,
        uuid=str(metadata["view-uuid"]),
        properties=metadata.get("properties") or {},
        current=metadata["current-version-id"],
        is_view=True,
    )
