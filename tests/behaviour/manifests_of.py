"""table + manifests made by hand -> snapshots that PyIceberg's own operations do not make: with delete files, or of ten thousand files."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyiceberg.io import load_file_io
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    read_manifest_list,
    write_manifest_list,
)
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record

from behaviour.world import World
from mvbuild.adapters.iceberg import tables
from mvbuild.ports.states import TableState

Manifests = Callable[[Any, int], list[ManifestFile]]
"""(PyIceberg's table, snapshot id) -> manifests to add."""


class DeleteWriter(ManifestWriterV2):
    """PyIceberg's writer, for delete files."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def files_of(table: TableState) -> tuple[str, list[str]]:
    """The manifest list of the current snapshot, and its manifests."""
    raw = json.loads(_path(table.metadata_location).read_text())
    location = tables.current(raw)["manifest-list"]  # type: ignore[index]
    return location, [m.manifest_path for m in read_manifest_list(load_file_io({}, location).new_input(location))]


def manifest_of(table: Any, snapshot_id: int, files: Sequence[DataFile], writer: type[ManifestWriterV2] = ManifestWriterV2) -> ManifestFile:
    """A manifest that adds files."""
    out = table.io.new_output(f"{table.location()}/metadata/{uuid.uuid4()}.avro")
    with writer(table.spec(), table.schema(), out, snapshot_id, "deflate") as open_:
        for file in files:
            open_.add_entry(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=file))
    return open_.to_manifest_file()


def file(content: DataFileContent, path: str, partition: Sequence[Any] = (), **more: Any) -> DataFile:
    bounds = {1: (1).to_bytes(8, "little"), 2: (2).to_bytes(4, "little")}
    given = {
        "value_counts": {1: 10, 2: 10},
        "null_value_counts": {1: 0, 2: 0},
        "column_sizes": {1: 99, 2: 50},
        "lower_bounds": bounds,
        "upper_bounds": bounds,
        **more,
    }
    return DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=10,
        file_size_in_bytes=1000,
        **given,
    )


def with_equality_delete(table: Any, snapshot_id: int) -> list[ManifestFile]:
    found = file(DataFileContent.EQUALITY_DELETES, f"{table.location()}/data/equal.parquet", equality_ids=[1])
    return [manifest_of(table, snapshot_id, [found], DeleteWriter)]


def with_snapshot(world: World, table: TableState, make: Manifests, *, without: Sequence[str] = ()) -> TableState:
    """A snapshot on top of the current one, committed as a foreign engine would; manifests in `without` are left out."""
    assert world.pyiceberg
    held = StaticTable.from_metadata(table.metadata_location)
    raw = json.loads(_path(table.metadata_location).read_text())
    snapshot_id, number, parent = tables.new_snapshot_id(), raw["last-sequence-number"] + 1, held.current_snapshot()
    before = [m for m in (parent.manifests(held.io) if parent else []) if m.manifest_path not in without]
    made = make(held, snapshot_id)
    location = f"{held.location()}/metadata/snap-{uuid.uuid4()}.avro"
    with write_manifest_list(2, held.io.new_output(location), snapshot_id, None, number, "deflate") as writer:
        writer.add_manifests([*made, *before])
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": number,
        "timestamp-ms": int(time.time() * 1000),
        "manifest-list": location,
        "summary": {"operation": "overwrite"},
        "schema-id": raw["current-schema-id"],
    }
    if parent:
        snapshot["parent-snapshot-id"] = parent.snapshot_id
    return _committed(world, table, snapshot)


def _committed(world: World, table: TableState, snapshot: dict[str, Any]) -> TableState:
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate

    assert world.pyiceberg
    other = world.pyiceberg()
    found = other.load_table((*table.identifier.namespace, table.identifier.name))
    new = Snapshot.model_validate(snapshot)
    ref = SetSnapshotRefUpdate(ref_name="main", type=SnapshotRefType.BRANCH, snapshot_id=new.snapshot_id)
    other.commit_table(found, (), (AddSnapshotUpdate(snapshot=new), ref))
    other.close()
    (state,) = world.catalog.load([table.identifier]).values()
    assert isinstance(state, TableState)
    return state


def _path(location: str) -> Path:
    return Path(location.removeprefix("file://").removeprefix("file:"))
