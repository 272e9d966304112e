"""N, a format, the shape of the tables -> a project of N fresh MVs over N base tables in an embedded catalog, made without Spark.

The metadata files are those that mvbuild's own functions write for a refresh; the data files that they name do not exist, and are never
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvbuild import api
from mvbuild.adapters.iceberg import tables, views
from mvbuild.adapters.iceberg.files import FileStore
from mvbuild.adapters.iceberg.pointers import SqlPointers
from mvbuild.adapters.iceberg.publish import Edit, Put, Storage, publish
from mvbuild.adapters.iceberg.sql import open_database
from mvbuild.api.sessions import catalog_of, observed
from mvbuild.formats import metadata_file, properties
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, ModelNode, TableNode
from mvbuild.names import TableIdentifier
from mvbuild.ports.commits import TableLayout
from mvbuild.refresh.pinned import pinned
from mvbuild.refresh.recording import record_of
from mvbuild.refresh.views import mv_commit
from mvbuild.storage.commits import summary_of
from mvbuild.storage.layout import storage_layout, storage_properties

BATCH = 500
STARTED_MS = 1_790_000_000_000
COUNTS = (
    "added-data-files added-records added-files-size changed-partition-count total-data-files total-delete-files total-records "
    "total-files-size total-position-deletes total-equality-deletes"
).split()


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What every table looks like."""

    columns: int = 5
    snapshots: int = 3


def write_project(root: Path, mvs: int, kind: str, shape: Shape) -> None:
    """Each MV groups one base table of its own by all of its columns."""
    columns = ", ".join(f"t.c{number}" for number in range(shape.columns))
    files = {"mvbuild.yml": f"name: wide\nmodels: {{+storage: {{format: {kind}}}}}\n"}
    for number in range(mvs):
        folder = f"models/layer{number % 20}"
        files[f"{folder}/m{number}.sql"] = (
            f"SELECT {columns}, count(*) AS n\nFROM raw.t{number} AS t\nWHERE t.c0 > {number}\nGROUP BY {columns}\n"
        )
        files[f"{folder}/m{number}.yml"] = (
            f"models: [{{name: m{number}, description: MV {number}., columns: [{{name: c0, data_tests: [not_null]}}]}}]\n"
        )
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def make(root: Path, mvs: int, kind: str, shape: Shape) -> None:
    """The project with its catalog; every MV of it is fresh."""
    write_project(root, mvs, kind, shape)
    graph = api.compile(root)
    target = graph.project.target
    files = FileStore(target.catalog)
    pointers = SqlPointers(target.catalog_name, open_database(target.catalog["uri"], create=True))
    for namespace in ("raw", "main"):
        pointers.add_namespace(namespace)
    warehouse = target.catalog["warehouse"]
    bases = [n.identifier for n in graph.nodes.values() if isinstance(n, TableNode)]
    for some in _batches(bases):
        publish(pointers, files, [_edit(_base(one, warehouse, shape)) for one in some])
    world = observed(graph, catalog_of(graph))
    for some in _batches(list(world.graph.views)):
        publish(pointers, files, [_edit(put) for node in some for put in _mv(world, node, warehouse, kind, shape)])


def storage_files(graph: Graph, root: Path) -> list[str]:
    """The table metadata files of embedded storages, for readers that know none of this."""
    world = observed(graph, catalog_of(graph))
    found = [world.observed.table(n.storage) for n in world.graph.views]
    return [one.metadata_location for one in found if one is not None and one.of_view is not None]


def _batches(some: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (some[at : at + BATCH] for at in range(0, len(some), BATCH))


def _edit(put: Put) -> Edit:
    return Edit(reads=(), make=lambda _: [put])


def _base(identifier: TableIdentifier, warehouse: str, shape: Shape) -> Put:
    raw = tables.new_table(_location(identifier, warehouse), TableLayout(schema=_schema(shape.columns)), {"owner": "etl"})
    return Put(identifier=identifier, kind="TABLE", raw=_with_history(raw, shape.snapshots, {}))


def _mv(world: World, node: ModelNode, warehouse: str, kind: str, shape: Shape) -> Iterator[Put]:
    read = pinned(world, node, STARTED_MS)
    record = record_of(read, 1)
    schema = _schema(shape.columns, "n")
    commit = mv_commit(world, node, schema)
    assert node.storage is not None
    assert commit is not None
    is_file = kind == "metadata-file"
    location = _location(node.identifier if is_file else node.storage, warehouse)
    raw = tables.new_table(location, storage_layout(node, schema), storage_properties(node))
    raw = _with_history(raw, shape.snapshots, summary_of(record, shape.snapshots, "full", read.definition_mark))
    head = {properties.REFRESH_SNAPSHOT: str(raw["current-snapshot-id"])}
    of_record = {} if is_file else properties.encode(record)
    raw = {**raw, "properties": {**raw["properties"], **read.schemas, **head, **of_record}}
    view = views.new_view(commit, _location(node.identifier, warehouse))
    yield Put(identifier=node.identifier, kind="VIEW", raw=view, storage=_embedded(raw, record, shape) if is_file else None)
    if not is_file:
        yield Put(identifier=node.storage, kind="TABLE", raw=raw)


def _embedded(raw: dict[str, Any], record: RefreshRecord, shape: Shape) -> Storage:
    refresh = metadata_file.encode_refresh(record, refresh_id=shape.snapshots, sequence_number=shape.snapshots)
    return Storage(table=raw, refreshes=(refresh,), current_refresh_id=shape.snapshots, refresh_start_ms=STARTED_MS)


def _location(identifier: TableIdentifier, warehouse: str) -> str:
    return "/".join((warehouse, *identifier.namespace, identifier.name))


def _schema(columns: int, *more: str) -> dict[str, Any]:
    names = [*(f"c{number}" for number in range(columns)), *more]
    return {"type": "struct", "fields": [{"id": at, "name": name, "type": "long", "required": False} for at, name in enumerate(names, 1)]}


def _with_history(raw: dict[str, Any], length: int, summary: dict[str, str]) -> dict[str, Any]:
    """Snapshots in sequence, as refreshes and writers of base tables make them; the last one also has the `summary`."""
    snapshots: list[dict[str, Any]] = []
    for number in range(1, length + 1):
        snapshot_id = tables.new_snapshot_id()
        counts = {key: str(number * 7919) for key in COUNTS}
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": number,
            "timestamp-ms": STARTED_MS - (length - number) * 3_600_000,
            "manifest-list": tables.manifest_list_location(raw, snapshot_id),
            "schema-id": 0,
            "summary": {
                "operation": "append",
                "spark.app.id": "local-1790000000000",
                "engine-name": "spark",
                **counts,
                **(summary if number == length else {}),
            },
        }
        snapshots.append(snapshot | ({"parent-snapshot-id": snapshots[-1]["snapshot-id"]} if snapshots else {}))
    log = [{"timestamp-ms": one["timestamp-ms"], "snapshot-id": one["snapshot-id"]} for one in snapshots]
    head = snapshots[-1]["snapshot-id"]
    raw = tables.with_snapshots(raw, snapshots, None)
    return {**raw, "current-snapshot-id": head, "snapshot-log": log, "refs": {"main": {"type": "branch", "snapshot-id": head}}}
