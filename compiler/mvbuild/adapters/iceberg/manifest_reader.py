"""snapshot id -> its manifests and their live files; each manifest is read at most once, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.equal_keys import has_nested_key
from mvbuild.adapters.iceberg.manifests import read_entries, read_manifests
from mvbuild.dataclass import dataclass
from mvbuild.formats.metadata_rules import field_ids
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.ports.catalog import ChangeRefused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile

    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.names import TableIdentifier


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests of one snapshot."""

    data: tuple[ManifestFile, ...] = ()
    deletes: tuple[ManifestFile, ...] = ()


class ManifestReader:
    """Reads the manifests of one table. Raises ChangeRefused if they are gone."""

    def __init__(self, io: FileIO, raw: Raw, table: TableIdentifier) -> None:
        self.io = io
        self._table = table
        self._snapshots = {s["snapshot-id"]: s for s in raw.get("snapshots") or ()}
        self._lists: dict[int, Manifests] = {NO_SNAPSHOT: Manifests()}
        self._entries: dict[str, list[FileEntry]] = {}
        self._without_column = frozenset(_specs_without_column(raw))
        self.manifests_read = 0
        self.bytes_read = 0

    def manifests(self, snapshot_id: int) -> Manifests:
        if snapshot_id not in self._lists:
            self._lists[snapshot_id] = self._listed(snapshot_id)
        return self._lists[snapshot_id]

    def entries(self, manifests: Sequence[ManifestFile], without: Collection[str] = ()) -> list[FileEntry]:
        """The live files of some manifests, except those whose path is in `without`."""
        return [entry for manifest in manifests if manifest.manifest_path not in without for entry in self._read(manifest)]

    def refuse_dropped_columns(self, changed: Iterable[ManifestFile], deletes: Iterable[ManifestFile]) -> None:
        """Raise ChangeRefused if deletes may have another partition than the files that they apply to: when Iceberg rewrites a manifest, it
        gives columns that were dropped the value NULL, and leaves the manifest of the deletes as it was."""
        of_deletes = {manifest.partition_spec_id for manifest in deletes} & self._without_column
        if any(manifest.partition_spec_id in of_deletes for manifest in changed):
            message = f"a former partition column of {self._table} was dropped, and the change includes files written before the drop"
            raise ChangeRefused("partition-column-dropped", message)

    def refuse_nested_keys(self, snapshot_id: int, deletes: Sequence[ManifestFile]) -> None:
        """Raise ChangeRefused if an equality delete of the snapshot has a key inside a struct."""
        if not deletes or (self._snapshots[snapshot_id].get("summary") or {}).get("total-equality-deletes") == "0":
            return
        if any(delete.is_equality and has_nested_key(delete) for delete in self.entries(deletes)):
            raise ChangeRefused("equality-deletes", f"{self._table} has equality deletes by a field of a struct")

    def _listed(self, snapshot_id: int) -> Manifests:
        from pyiceberg.manifest import ManifestContent

        snapshot = self._snapshots.get(snapshot_id)
        if snapshot is None:
            raise ChangeRefused("snapshot-expired", f"Snapshot {snapshot_id} of {self._table} has expired.")
        if "manifest-list" not in snapshot:
            raise ChangeRefused("files-missing", f"Snapshot {snapshot_id} of {self._table} has no manifest list.")
        try:
            found = read_manifests(self.io, snapshot["manifest-list"])
        except FileNotFoundError:
            raise self._missing(snapshot["manifest-list"]) from None
        deletes = tuple(m for m in found if m.content == ManifestContent.DELETES)
        return Manifests(tuple(m for m in found if m.content == ManifestContent.DATA), deletes)

    def _read(self, manifest: ManifestFile) -> list[FileEntry]:
        path = manifest.manifest_path
        if path not in self._entries:
            try:
                self._entries[path] = read_entries(self.io, manifest)
            except FileNotFoundError:
                raise self._missing(path) from None
            self.manifests_read += 1
            self.bytes_read += manifest.manifest_length
        return self._entries[path]

    def _missing(self, location: str) -> ChangeRefused:
        return ChangeRefused("files-missing", f"A manifest of {self._table} is missing: {location}")


def _specs_without_column(raw: Raw) -> Iterator[int]:
    """The ids of the partition specs with a source column that the current schema does not have."""
    schemas = raw.get("schemas") or [raw["schema"]]
    current = next((s for s in schemas if s.get("schema-id") == raw.get("current-schema-id")), schemas[-1])
    ids = {id for _, id in field_ids(current)}
    for spec in raw.get("partition-specs") or ():
        used = (field for field in spec["fields"] if field["transform"] != "void")
        if any(id not in ids for field in used for id in field.get("source-ids") or (field["source-id"],)):
            yield spec["spec-id"]
