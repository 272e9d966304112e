"""a kind of change -> a table of ten thousand data files of which ten changed, and the time to find them. The data files do not exist."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus, ManifestFile, ManifestWriterV2

from behaviour.manifests_of import DeleteWriter, file, manifest_of, with_snapshot
from behaviour.world import embedded, layout, name
from mvbuild.adapters.iceberg.manifests import read_manifests
from mvbuild.ports.changes import TableChange
from mvbuild.ports.states import Partition, TableState

MANIFESTS, FILES = 200, 50
CHANGED = 10
_PLACE = 120
"""The manifest, and partition, whose files change."""


def timed(root: Path, how: str) -> tuple[float, TableChange, int]:
    """Seconds, the change, and the bytes of all manifests."""
    world = embedded(root)
    world.catalog.ensure_namespace(("mart",))
    partitioned = layout(id="long", n="int")
    partitioned = type(partitioned)(schema=partitioned.schema, partition_by=(Partition(column="n", transform="identity"),))
    created = world.catalog.create_table(name("mart.big"), partitioned, {})
    old = with_snapshot(world, created, lambda table, at: [manifest_of(table, at, _data(part)) for part in range(MANIFESTS)])
    manifests = _manifests(world, old)
    place = manifests[_PLACE]
    changes = {
        "append": lambda: with_snapshot(world, old, lambda table, at: [manifest_of(table, at, _data(1000)[:CHANGED])]),
        "rewrite": lambda: with_snapshot(
            world,
            old,
            lambda table, at: [_without(table, at, place), manifest_of(table, at, _data(_PLACE, "new")[:CHANGED])],
            without=[place.manifest_path],
        ),
        "delete": lambda: with_snapshot(world, old, lambda table, at: [manifest_of(table, at, _deletes(), DeleteWriter)]),
    }
    new = changes[how]()
    total = sum(m.manifest_length for m in {m.manifest_path: m for m in [*manifests, *_manifests(world, new)]}.values())
    start = perf_counter()
    change = world.catalog.changes.between(new, old.current_snapshot_id or 0, new.current_snapshot_id or 0)
    seconds = perf_counter() - start
    world.close()
    return seconds, change, total


def _data(part: int, prefix: str = "old") -> list[DataFile]:
    return [file(DataFileContent.DATA, f"s3://nowhere/data/{prefix}-{part}-{at}.parquet", [part]) for at in range(FILES)]


def _deletes() -> list[DataFile]:
    found = []
    for data in _data(_PLACE)[:CHANGED]:
        bounds = {2147483546: data.file_path.encode()}
        path = data.file_path.replace("old", "delete")
        found.append(file(DataFileContent.POSITION_DELETES, path, [_PLACE], lower_bounds=bounds, upper_bounds=bounds))
    return found


def _without(table: Any, snapshot_id: int, manifest: ManifestFile) -> ManifestFile:
    """A manifest with ten of its files removed, as a rewrite of it has them."""
    out = table.io.new_output(f"{table.location()}/metadata/rewritten.avro")
    entries: Sequence[ManifestEntry] = manifest.fetch_manifest_entry(table.io)
    with ManifestWriterV2(table.spec(), table.schema(), out, snapshot_id, "deflate") as writer:
        for at, entry in enumerate(entries):
            status = ManifestEntryStatus.DELETED if at < CHANGED else ManifestEntryStatus.EXISTING
            numbers = {"sequence_number": entry.sequence_number, "file_sequence_number": entry.file_sequence_number}
            writer.add_entry(ManifestEntry.from_args(status=status, snapshot_id=snapshot_id, data_file=entry.data_file, **numbers))
    return writer.to_manifest_file()


def _manifests(world: Any, table: TableState) -> list[ManifestFile]:
    from behaviour.manifests_of import files_of, load_file_io

    location, _ = files_of(table)
    return read_manifests(load_file_io({}, location), location)
