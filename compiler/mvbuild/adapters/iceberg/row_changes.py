"""rows to remove, by position, and rows to add -> one snapshot of a table, written in this process.

Only where it is what Spark would write: format 2, Parquet, no partitions, no sort order, deletes merged on read, and no property that asks
the writer for more. Everything else, and every error, is left to the engine: nothing refers to files that were written until the commit.
"""

from __future__ import annotations

import uuid
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg import tables
from mvbuild.adapters.iceberg.altered import target
from mvbuild.adapters.iceberg.exact_files import Inexact
from mvbuild.adapters.iceberg.failures import OWN_BUGS
from mvbuild.adapters.iceberg.file_rows import fitted, is_readable
from mvbuild.adapters.iceberg.live_positions import deleted_in
from mvbuild.adapters.iceberg.manifests import read_entries, read_manifests
from mvbuild.adapters.iceberg.metadata import current_schema
from mvbuild.adapters.iceberg.private_pyiceberg import delete_manifest_writer, written_files
from mvbuild.adapters.iceberg.written_rows import position_deletes, with_nan_counts
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import Table

    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.ports.changes import RowChange

MAX_MANIFESTS = 90
"""From a hundred manifests on, Iceberg's own writers merge them: such a commit is left to the engine."""
MAX_FILES = 1000
"""The limit of data files in the manifests that are read to find a few of them."""
MAX_ALTERED = 50
"""The limit of data files from which rows are removed: each gets a file with its deletes."""
_FORMAT = 2
_WRITER = ("write.", "encryption.")
"""Prefixes of the properties that say how files are written."""
_KNOWN = {
    "write.delete.mode": {"merge-on-read"},
    "write.update.mode": None,
    "write.merge.mode": None,
    "write.metadata.delete-after-commit.enabled": None,
    "write.metadata.previous-versions-max": None,
    "write.format.default": {"parquet"},
    "write.delete.format.default": {"parquet"},
    "write.delete.granularity": {"file"},
    "write.distribution-mode": None,
    "write.target-file-size-bytes": None,
    "write.parquet.compression-codec": {"zstd", "gzip", "snappy", "uncompressed"},
    "write.data.path": None,
    "write.metadata.path": None,
}
"""Property -> the values with which this process writes what Spark writes; None: all."""


def is_writable(raw: Raw, *, removes: bool) -> bool:
    """Whether rows can be written here; `removes`: also removed."""
    properties = raw.get("properties") or {}
    asked = {key: value for key, value in properties.items() if key.startswith(_WRITER)}
    if removes and properties.get("write.delete.mode") != "merge-on-read":
        return False
    return (
        raw["format-version"] == _FORMAT
        and [spec["fields"] for spec in raw["partition-specs"]] == [[]]
        and raw["default-sort-order-id"] == 0
        and all(is_readable(one) and "write-default" not in one for one in current_schema(raw)["fields"])
        and all(_is_known(key, value) for key, value in asked.items() if removes or key != "write.delete.mode")
    )


def _is_known(key: str, value: str) -> bool:
    return key in _KNOWN and (_KNOWN[key] is None or value.lower() in (_KNOWN[key] or ()))


def row_change(table: Table, raw: Raw, head: Raw, change: RowChange, summary: Mapping[str, str]) -> Raw | None:
    """The JSON of a snapshot on top of `head`, whose files are all written; None if that is not possible."""
    made = _Files(table.io, head)
    try:
        made.read()
        made.remove(table, _positions(change.removed))
        added = _fitted(change.added, table)
        if added.num_rows:
            made.added += [with_nan_counts(file, added) for file in written_files(table.metadata, added, table.io, uuid.uuid4())]
        return made.snapshot(table, raw, summary)
    except OWN_BUGS:
        raise
    except Exception:  # noqa: BLE001  values whose statistics PyIceberg cannot compute, a full disk: the engine writes or reports it
        return None


def _positions(rows: pa.Table) -> dict[str, np.ndarray]:
    """Data file -> ascending positions."""
    import numpy as np

    found: dict[str, list[int]] = {}
    for path, position in zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True):
        found.setdefault(path, []).append(position)
    return {path: np.array(sorted(positions), dtype=np.int64) for path, positions in found.items()}


def _fitted(rows: pa.Table, table: Table) -> pa.Table:
    """With the names, types and field ids of the table."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return fitted(rows, schema_to_pyarrow(table.schema()))


@dataclass
class _Files:
    """The files of a snapshot, and how they differ from those of the snapshot before."""

    io: FileIO
    head: Raw
    added: list[DataFile] = field(default_factory=list)
    deletes: list[DataFile] = field(default_factory=list)
    gone: dict[int, FileEntry] = field(default_factory=dict)
    """Data and delete files that are not in the new snapshot, by identity."""
    live: dict[str, list[FileEntry]] = field(default_factory=dict)
    """Manifest -> its live files, of those that were read."""

    manifests: list[ManifestFile] = field(default_factory=list)

    def read(self) -> None:
        found = read_manifests(self.io, self.head["manifest-list"])
        # Manifests without live files only list what an earlier snapshot removed.
        self.manifests = [m for m in found if m.has_added_files() or m.has_existing_files()]
        if len(self.manifests) > MAX_MANIFESTS:
            raise Inexact(f"{len(self.manifests)} manifests")

    def _of(self, *, deletes: bool) -> list[ManifestFile]:
        from pyiceberg.manifest import ManifestContent

        return [m for m in self.manifests if (m.content == ManifestContent.DELETES) is deletes]

    def _read(self, manifests: Sequence[ManifestFile]) -> list[FileEntry]:
        if sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in manifests) > MAX_FILES:
            raise Inexact("many files")
        for manifest in manifests:
            self.live.setdefault(manifest.manifest_path, read_entries(self.io, manifest))
        return [entry for manifest in manifests for entry in self.live[manifest.manifest_path]]

    def remove(self, table: Table, removed: Mapping[str, np.ndarray]) -> None:
        """Files of which no row remains go as a whole. The others get one file with all their deletes, as from Iceberg's own writers."""
        import numpy as np

        if len(removed) > MAX_ALTERED:
            raise Inexact(f"{len(removed)} files")
        if not removed:
            return
        by_path: dict[str, list[FileEntry]] = {}
        for entry in self._read(self._of(deletes=False)):
            by_path.setdefault(entry.path, []).append(entry)
        if any(len(by_path.get(path, ())) != 1 for path in removed):
            raise Inexact("a file that is not in the table, or twice")
        manifests = self._of(deletes=True)
        deletes: dict[str | None, list[FileEntry]] = {}
        for delete in self._read(manifests):
            deletes.setdefault(target(delete), []).append(delete)
        before = deleted_in(self.io, manifests, [by_path[path][0] for path in removed])
        for (path, positions), known in zip(removed.items(), before, strict=True):
            (entry,) = by_path[path]
            together = np.union1d(positions, known)
            if len(together) != len(positions) + len(known) or (len(together) and together[-1] >= entry.file.record_count):
                raise Inexact("a row that is not in the table")
            if len(together) == entry.file.record_count:
                self.gone[id(entry)] = entry
            else:
                self.deletes.append(position_deletes(table, path, together))
            self.gone.update({id(delete): delete for delete in deletes.get(path, ())})

    def snapshot(self, table: Table, raw: Raw, summary: Mapping[str, str]) -> Raw:
        from pyiceberg.manifest import ManifestWriterV2, write_manifest_list

        snapshot_id, number = tables.new_snapshot_id(), raw["last-sequence-number"] + 1
        manifests: list[ManifestFile] = []
        for writer, of_deletes, added in ((ManifestWriterV2, False, self.added), (delete_manifest_writer(), True, self.deletes)):
            old = self._of(deletes=of_deletes)
            touched = [m for m in old if any(id(entry) in self.gone for entry in self.live.get(m.manifest_path, ()))]
            if added or touched:
                entries = [entry for m in touched for entry in self.live[m.manifest_path]]
                manifests.append(self._manifest(writer, table, snapshot_id, added, entries))
            manifests += [m for m in old if m not in touched]
        location = tables.manifest_list_location({**raw, "table-uuid": str(uuid.uuid4())}, snapshot_id)
        with write_manifest_list(2, self.io.new_output(location), snapshot_id, self.head["snapshot-id"], number, "deflate") as listed:
            listed.add_manifests(manifests)
        return {
            "snapshot-id": snapshot_id,
            "parent-snapshot-id": self.head["snapshot-id"],
            "sequence-number": number,
            "timestamp-ms": max(tables.now_ms(), raw["last-updated-ms"]),
            "manifest-list": location,
            "summary": self._summary(table, summary),
            "schema-id": raw["current-schema-id"],
        }

    def _manifest(
        self, writer: Any, table: Table, snapshot_id: int, added: Sequence[DataFile], entries: Sequence[FileEntry]
    ) -> ManifestFile:
        """One manifest with new files, and with what was in others that had files which are gone."""
        from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus

        output = table.io.new_output(table.location_provider().new_metadata_location(f"{uuid.uuid4()}-m0.avro"))
        with writer(table.spec(), table.schema(), output, snapshot_id, "deflate") as open_:
            for file in added:
                open_.add_entry(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=file))
            for entry in entries:
                (open_.delete if id(entry) in self.gone else open_.existing)(entry.entry)
        manifest: ManifestFile = open_.to_manifest_file()
        return manifest

    def _summary(self, table: Table, summary: Mapping[str, str]) -> dict[str, str]:
        from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries

        collected = SnapshotSummaryCollector()
        for file in (*self.added, *self.deletes):
            collected.add_file(file, table.schema())
        for entry in self.gone.values():
            collected.remove_file(entry.file, table.schema())
        operation = Operation.OVERWRITE if self.gone or self.deletes else Operation.APPEND
        given = {key.lower(): value for key, value in summary.items()}
        found = update_snapshot_summaries(Summary(operation, **collected.build(), **given), self.head.get("summary") or {})
        return {"operation": operation.value, **found.additional_properties}
