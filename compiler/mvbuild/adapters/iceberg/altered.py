"""deletes that differ + data files -> the data files that they apply to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.deleted_rows import delete_all_of
from mvbuild.adapters.iceberg.equal_keys import KeyBounds
from mvbuild.adapters.iceberg.manifest_pruning import matching_deletes, may_hold_data
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile

    from mvbuild.adapters.iceberg.manifest_reader import ManifestReader
    from mvbuild.adapters.iceberg.manifests import FileEntry

_FILE_PATH = 2147483546
"""The field id of `file_path` in a position delete file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """The delete files of two snapshots whose manifests differ."""

    gone: tuple[FileEntry, ...]
    fresh: tuple[FileEntry, ...]
    kept: tuple[FileEntry, ...]
    shared: tuple[ManifestFile, ...]
    """Manifests that are in both snapshots."""

    def only_more(self, altered: Sequence[FileEntry], *, had: bool, io: FileIO) -> bool:
        """Whether every row that was deleted in the altered files is still deleted."""
        index = FilesByDelete(altered)
        lost = [delete for delete in self.gone if index.matches(delete)]
        if had and any(delete.vector for delete in self.fresh):
            # A deletion vector replaces all position deletes of its file, and no equality deletes.
            if matching_deletes(self.shared, altered):
                return False
            lost += [delete for delete in self.kept if index.matches(delete) and not delete.is_equality]
        if any(delete.is_equality for delete in lost):
            return False
        fresh = [delete for delete in self.fresh if index.matches(delete) and not delete.is_equality]
        return not lost or delete_all_of(io, fresh, lost, {entry.path for entry in altered})

    def added_rows(self, altered: Sequence[FileEntry]) -> int:
        # Writers merge the old and the new deletes of a file into one: removed delete records are set off against added ones. A key of
        # an equality delete is expected to remove one row.
        index, net = FilesByDelete(altered), Counter[object]()
        for sign, deletes in ((1, self.fresh), (-1, self.gone)):
            for delete in deletes:
                if index.matches(delete):
                    of = target(delete) or (delete.spec_id, delete.partition, delete.is_equality)
                    net[of] += sign * delete.file.record_count
        return sum(rows for rows in net.values() if rows > 0)


class FilesByDelete:
    """Data files by the keys that deletes use for them."""

    def __init__(self, data: Iterable[FileEntry]) -> None:
        self._all = list(data)
        self._paths: dict[str, list[FileEntry]] = {}
        self._partitions: dict[tuple[Any, ...], list[FileEntry]] = {}
        self._bounds: dict[tuple[Any, ...] | None, KeyBounds] = {}
        for entry in self._all:
            self._paths.setdefault(entry.path, []).append(entry)
            self._partitions.setdefault((entry.spec_id, entry.partition), []).append(entry)

    def matches(self, delete: FileEntry) -> list[FileEntry]:
        """The data files that a delete applies to: a position delete or a deletion vector to those of its own commit too, an equality
        delete only to older ones (Iceberg's specification, "Scan Planning"). An equality delete may apply to fewer: bounds do not show all.
        """
        if delete.is_equality:
            place = None if delete.is_global else (delete.spec_id, delete.partition)
            if place not in self._bounds:
                self._bounds[place] = KeyBounds(self._all if place is None else self._partitions.get(place, []))
            return self._bounds[place].matches(delete)
        path = target(delete)
        found = self._partitions.get((delete.spec_id, delete.partition), []) if path is None else self._paths.get(path, [])
        return [entry for entry in found if entry.sequence_number <= delete.sequence_number]


def altered_files(reader: ManifestReader, deletes: Deletes, kept: Sequence[FileEntry], shared: Sequence[ManifestFile]) -> list[FileEntry]:
    """Data files of both snapshots to which a delete of only one of them applies; `kept` are those that are already known.

    The search goes on when the file of a delete was found: `add_files` can list a file several times, in several manifests.
    """
    differing = [*deletes.gone, *deletes.fresh]
    found = _hit(differing, kept)
    for manifest in shared:
        if any(may_hold_data(manifest, delete) for delete in differing):
            found += _hit(differing, reader.entries([manifest]))
    return found


def had_deletes(deletes: Deletes, altered: Sequence[FileEntry]) -> bool:
    """Whether an altered file may have had deletes before. Shared manifests may contain such deletes; they are not read for this."""
    return _hits((*deletes.gone, *deletes.kept), altered) or bool(matching_deletes(deletes.shared, altered))


def target(delete: FileEntry) -> str | None:
    """The data file that a delete file applies to; None if there may be several."""
    if delete.referenced is not None:
        return delete.referenced
    lower, upper = ((bounds or {}).get(_FILE_PATH) for bounds in (delete.file.lower_bounds, delete.file.upper_bounds))
    return lower.decode() if lower is not None and lower == upper else None


def _hits(deletes: Iterable[FileEntry], data: Sequence[FileEntry]) -> bool:
    index = FilesByDelete(data)
    return any(index.matches(delete) for delete in deletes)


def _hit(deletes: Iterable[FileEntry], data: Sequence[FileEntry]) -> list[FileEntry]:
    index = FilesByDelete(data)
    return list({id(entry): entry for delete in deletes for entry in index.matches(delete)}.values())
