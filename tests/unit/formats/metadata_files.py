"""Metadata files for tests: one with every field, and a strategy for all possible arguments of compose()."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from mvbuild.adapters.iceberg import tables
from mvbuild.formats import metadata_file
from mvbuild.formats.metadata_fields import FILE, NESTED_TYPES
from mvbuild.formats.record import BaseTable, ChildView, RefreshRecord
from mvbuild.formats.shapes import ColumnType, Field, ListOf, MapOf, Shape, Struct, Tagged
from mvbuild.names import TableIdentifier
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import Partition, Sort

MV = TableIdentifier("lake", ("mart",), "daily")
CHILD = "7f0d6c1e-0000-4000-8000-00000000000c"
NAMES = st.text(min_size=1, max_size=8)
PARTS = st.text(max_size=4) | st.sampled_from(["a", "a.b", "select", "`", "``.", " "])
SNAPSHOTS = st.integers(-1, 2**63 - 1)
UUIDS = st.uuids().map(str)
CATALOG_TABLES = st.builds(
    BaseTable,
    uuid=UUIDS | st.just(""),
    snapshot_id=SNAPSHOTS,
    catalog=st.none() | PARTS,
    namespace=st.lists(PARTS, max_size=3).map(tuple),
    name=PARTS.filter(bool),
    ref=st.none() | NAMES,
)
PATH_TABLES = st.builds(
    BaseTable,
    uuid=UUIDS | st.just(""),
    snapshot_id=SNAPSHOTS,
    type=st.sampled_from(["iceberg-filesystem", "deltalake-filesystem"]),
    catalog=st.none() | PARTS,
    name=st.builds("{}/{}".format, st.sampled_from(["", "s3://b", "a"]), NAMES),
    ref=st.none() | NAMES,
)
VIEWS = st.builds(
    ChildView,
    uuid=UUIDS,
    version_id=st.integers(1, 1000),
    catalog=st.none() | PARTS,
    namespace=st.lists(PARTS, max_size=2).map(tuple),
    name=PARTS,
)


def identity(table: BaseTable) -> str:
    """The key that the table has in `base-tables`."""
    name = table.name if table.type != "iceberg-metastore" else None
    return name or ".".join(
        "`" + p.replace("`", "``") + "`" for p in (*([table.catalog] if table.catalog is not None else []), *table.namespace, table.name)
    )


RECORDS = st.builds(
    RefreshRecord,
    view_version_id=st.integers(1, 2**31 - 1),
    base_tables=st.lists(CATALOG_TABLES | PATH_TABLES, max_size=4, unique_by=identity).map(tuple),
    child_views=st.lists(VIEWS, max_size=3, unique_by=lambda v: v.uuid).map(tuple),
    refresh_start_ms=st.none() | st.integers(0, 2**63 - 1),
)
"""What the metadata file can hold: every table has a name, and is there once; a path has a slash and no namespace; every child view has one version."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What compose() is given."""

    view: dict[str, Any]
    table: dict[str, Any]
    record: RefreshRecord | None

    def compose(self) -> metadata_file.MvMetadata:
        number = self.table["last-sequence-number"]
        refreshes = [] if self.record is None else [metadata_file.encode_refresh(self.record, refresh_id=4, sequence_number=number)]
        return metadata_file.compose(
            view=self.view,
            table=self.table,
            refreshes=refreshes,
            current_refresh_id=4 if refreshes else metadata_file.NO_REFRESH,
            storage_metadata_location="/lake/mart/daily/metadata/7.metadata.json",
            metadata_log=[{"timestamp-ms": 5, "metadata-file": "/lake/mart/daily/metadata/v1.mv.metadata.json"}],
            now_ms=9,
            child_views=self.record.child_views if self.record else (),
            refresh_start_ms=self.record.refresh_start_ms if self.record else None,
        )


def column(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "required": False, "type": kind, **more}


def table_of(fields: list[dict[str, Any]], properties: dict[str, str], snapshots: int = 0, **layout: Any) -> dict[str, Any]:
    raw = tables.new_table("/lake/mart/daily", TableLayout(schema={"type": "struct", "fields": fields}, **layout), properties)
    for number in range(1, snapshots + 1):
        snapshot = {**tables.empty_snapshot(raw, f"/lake/mart/daily/snap-{number}.avro", number * 11)}
        if number > 1:
            snapshot["parent-snapshot-id"] = (number - 1) * 11
        raw = tables.with_main(tables.with_snapshots(raw, [snapshot], None), number * 11, MV)
        raw["last-updated-ms"] = raw["snapshot-log"][-1]["timestamp-ms"]
    return raw


def view_of(definitions: list[list[dict[str, Any]]], properties: dict[str, str]) -> dict[str, Any]:
    """View metadata with a version for each list of columns. A view numbers its columns from 1 in each schema."""
    versions: list[dict[str, Any]] = []
    for number in range(1, len(definitions) + 1):
        version = {
            "version-id": number,
            "timestamp-ms": 100_000 * number,
            "schema-id": number - 1,
            "summary": {"engine-name": "mvbuild"},
            "default-catalog": MV.catalog,
            "default-namespace": list(MV.namespace),
            "representations": [{"type": "sql", "sql": f"select {number}", "dialect": dialect} for dialect in ("spark", "trino")],
            "storage-table": {"catalog": MV.catalog, "namespace": list(MV.namespace), "name": "daily__storage"},
        }
        versions.append(version)
    schemas = [
        {"type": "struct", "schema-id": at, "fields": [{**field, "id": number} for number, field in enumerate(fields, 1)]}
        for at, fields in enumerate(definitions)
    ]
    return {
        "view-uuid": "0c7d3b6a-1111-4222-8333-444455556666",
        "format-version": 1,
        "location": "/lake/mart/daily_view",
        "schemas": schemas,
        "current-version-id": len(versions),
        "versions": versions,
        "version-log": [{"timestamp-ms": v["timestamp-ms"], "version-id": v["version-id"]} for v in versions],
        "properties": properties,
    }


COLUMNS = st.lists(
    st.builds(column, st.sampled_from(["a", "b", "c"]), st.sampled_from(["int", "string", "decimal(9, 2)", "timestamptz"])),
    min_size=1,
    max_size=3,
    unique_by=lambda c: c["name"],
)
PROPERTIES = st.dictionaries(st.sampled_from(["comment", "owner", "write.format.default", "view.x"]), st.text(max_size=5))


@st.composite
def parts(draw: st.DrawFn) -> Parts:
    fields = draw(COLUMNS)
    count = draw(st.integers(0, 3))
    definitions = draw(st.lists(COLUMNS | st.just(fields), min_size=1, max_size=3))
    record = replace(draw(RECORDS), view_version_id=draw(st.integers(1, len(definitions)))) if count else None
    return Parts(
        view=view_of(definitions, draw(PROPERTIES)),
        table=table_of(fields, draw(PROPERTIES), count),
        record=record,
    )


def everything() -> dict[str, Any]:
    """The JSON of a file in which no field is missing."""
    nested = [
        column("id", "long", doc="key", required=True, **{"initial-default": 1, "write-default": 2}),
        column("day", "date"),
        column("price", "decimal(9,2)"),
        column("who", {"type": "struct", "fields": [column("name", "string"), column("code", "fixed[4]")]}),
        column("tags", {"type": "list", "element": "string"}),
        column("counts", {"type": "map", "key": "string", "value": {"type": "list", "element": "int"}}),
    ]
    table = table_of(
        nested,
        {"owner": "x"},
        2,
        partition_by=(Partition(column="id", transform="bucket[4]"), Partition(column="day", transform="month")),
        sort_by=(Sort(column="price", descending=True, nulls_first=False), Sort(column="day", descending=False, nulls_first=True)),
    )
    table["schemas"][0]["identifier-field-ids"] = [1]
    table["refs"]["main"] |= {"min-snapshots-to-keep": 2, "max-snapshot-age-ms": 5000}
    table["refs"]["first"] = {"type": "tag", "snapshot-id": 11, "max-ref-age-ms": 10000}
    blob = {"type": "ndv", "snapshot-id": 11, "sequence-number": 1, "fields": [1], "properties": {"ndv": "3"}}
    table["statistics"] = [
        {
            "snapshot-id": 11,
            "statistics-path": "/lake/s.puffin",
            "file-size-in-bytes": 9,
            "file-footer-size-in-bytes": 3,
            "key-metadata": "k",
            "blob-metadata": [blob],
        }
    ]
    sources = (
        BaseTable(uuid="u1", snapshot_id=5, catalog="lake", namespace=("raw",), name="orders", ref="audit"),
        BaseTable(uuid="u2", snapshot_id=6, type="iceberg-filesystem", name="/data/items"),
        BaseTable(uuid="u3", snapshot_id=0, type="deltalake-filesystem", name="/data/delta"),
    )
    record = RefreshRecord(
        view_version_id=2, base_tables=sources, child_views=(ChildView(uuid=CHILD, version_id=3, name="c"),), refresh_start_ms=8
    )
    view = view_of([[column("old", "string")], nested_view(table)], {"comment": "sales"})
    raw = json.loads(metadata_file.write(Parts(view=view, table=table, record=record).compose()))
    raw["refreshes"].insert(0, {**copy.deepcopy(raw["refreshes"][0]), "refresh-id": 3, "sequence-number": 1})
    raw["metadata-log"].append({"timestamp-ms": 70_000, "metadata-file": "v2"})
    return dict(raw)


def nested_view(table: dict[str, Any]) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = table["schemas"][0]["fields"]
    return fields


@dataclass(frozen=True, kw_only=True)
class Place:
    """A field that is there in a file."""

    owner: dict[str, Any]
    struct: Struct
    field: Field


def places(value: Any, shape: Shape = FILE) -> Iterator[Place]:
    """Every stated field of a file, at any depth."""
    if isinstance(shape, ListOf):
        for inner in value:
            yield from places(inner, shape.of)
    elif isinstance(shape, MapOf):
        for inner in value.values():
            yield from places(inner, shape.of)
    elif isinstance(shape, Tagged):
        yield from places(value, shape.variants[value["type"]])
    elif isinstance(shape, ColumnType) and isinstance(value, dict):
        yield from places(value, NESTED_TYPES[value["type"]])
    elif isinstance(shape, Struct):
        for field in shape.fields:
            if field.name in value:
                yield Place(owner=value, struct=shape, field=field)
                yield from places(value[field.name], field.shape)
