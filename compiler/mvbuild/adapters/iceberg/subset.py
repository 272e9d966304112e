"""metadata of a pinned scratch table + Subset -> the same over new manifests that list only those files."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Literal

from mvbuild.adapters.iceberg.manifests import by_header, write_entries
from mvbuild.adapters.iceberg.scratch import with_files
from mvbuild.adapters.iceberg.tables import metadata_folder

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

    from mvbuild.adapters.iceberg.change_tables import Subset
    from mvbuild.adapters.iceberg.metadata import Raw


def with_subset(pinned: Raw, subset: Subset, io: FileIO) -> Raw:
    """The delete manifests are those of the base table: deletes of other files have no effect."""
    from pyiceberg.manifest import write_manifest_list

    folder, (snapshot,) = metadata_folder(pinned), pinned["snapshots"]
    number = snapshot.get("sequence-number", 0)
    manifests = [
        write_entries(io, f"{folder}/{uuid.uuid4()}-m{at}.avro", entries, subset.snapshot_id, number)
        for at, entries in enumerate(by_header(subset.files))
    ]
    list_location = f"{folder}/snap-{subset.snapshot_id}-0-{uuid.uuid4()}.avro"
    # Every reader of format 3 reads a list of format 2. It lacks row ids, which a scratch table does not need.
    version: Literal[1, 2] = 1 if pinned["format-version"] == 1 else 2
    with write_manifest_list(version, io.new_output(list_location), subset.snapshot_id, None, number, "deflate") as writer:
        writer.add_manifests([*manifests, *subset.deletes])
    files = [manifest.manifest_path for manifest in manifests]
    return with_files(with_snapshot(pinned, subset, {"manifest-list": list_location}), [*files, list_location])


def with_snapshot(pinned: Raw, subset: Subset, changes: Raw) -> Raw:
    """Replace the one snapshot, with the totals that Spark uses to plan joins."""
    (snapshot,) = pinned["snapshots"]
    kept = {key: value for key, value in snapshot.items() if key not in ("manifests", "parent-snapshot-id")}
    of = subset.group
    totals = {"total-data-files": str(of.files), "total-records": str(of.rows), "total-files-size": str(of.bytes)}
    summary = {"operation": "append", **totals}
    return {**pinned, "snapshots": [{**kept, "summary": summary, **changes}]}
