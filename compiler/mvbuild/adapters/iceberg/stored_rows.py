"""snapshot of a small table -> its rows; rows to remove and to add, by their values -> the positions of the former in its files.

An engine takes a statement, and a join with the whole table, to find a few rows in a small one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mvbuild.adapters.iceberg.cancel import cancelled, equal_pairs, without
from mvbuild.adapters.iceberg.exact_files import Inexact
from mvbuild.adapters.iceberg.failures import OWN_BUGS
from mvbuild.adapters.iceberg.file_rows import FileRows, RowReader, fitted, is_readable
from mvbuild.adapters.iceberg.live_positions import deleted_in
from mvbuild.adapters.iceberg.manifests import read_entries, read_manifests
from mvbuild.adapters.iceberg.metadata import current_schema
from mvbuild.dataclass import dataclass
from mvbuild.ports.changes import RowChange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile

    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw

MAX_FILES = 100
"""The limit of data files: an engine reads many of them in parallel."""
_PLACE = ("_file", "_pos")
_Found = TypeVar("_Found")


def positions(io: FileIO, raw: Raw, snapshot_id: int | None, minus: pa.Table, plus: pa.Table) -> RowChange | None:
    """See `TableChanges.positions`."""

    def found() -> RowChange | None:
        snapshot = _Snapshot.of(io, raw, snapshot_id)
        new, old = cancelled(fitted(plus, snapshot.reader.schema), fitted(minus, snapshot.reader.schema))
        places = snapshot.places(old)
        return RowChange(removed=places, added=new) if places.num_rows == old.num_rows else None

    return _unless_it_fails(found)


def stored_rows(io: FileIO, raw: Raw, snapshot_id: int | None) -> pa.Table | None:
    """See `TableChanges.stored_rows`."""
    return _unless_it_fails(lambda: _Snapshot.of(io, raw, snapshot_id).rows())


def replaced(stored: pa.Table, rows: pa.Table) -> RowChange | None:
    """See `TableChanges.replaced`."""

    def found() -> RowChange:
        values = stored.drop_columns(list(_PLACE))
        new = fitted(rows, values.schema)
        kept, same = equal_pairs(values, new)
        return RowChange(removed=without(stored.select(_PLACE), kept), added=without(new, same))

    return _unless_it_fails(found)


def _unless_it_fails(find: Callable[[], _Found]) -> _Found | None:
    """None for values that do not fit, and for files that are missing or damaged: the engine finds them or reports it."""
    try:
        return find()
    except OWN_BUGS:
        raise
    except Exception:  # noqa: BLE001  libraries raise what they like
        return None


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A snapshot, and how its rows are read."""

    io: FileIO
    reader: RowReader
    manifest_list: str

    @classmethod
    def of(cls, io: FileIO, raw: Raw, snapshot_id: int | None) -> _Snapshot:
        """Raises Inexact."""
        fields = current_schema(raw)["fields"]
        if not all(map(is_readable, fields)):
            raise Inexact("types")
        snapshot = next(s for s in raw["snapshots"] if s["snapshot-id"] == snapshot_id)
        return cls(io, RowReader(io, raw, fields), snapshot["manifest-list"])

    def rows(self) -> pa.Table:
        """All of them, each with its place. Raises Inexact."""
        import numpy as np
        import pyarrow as pa

        entries, deleted = self._files()
        rows = self.reader.table([FileRows(entry=entry, without=gone) for entry, gone in zip(entries, deleted, strict=True)])
        live = [_live(entry, gone) for entry, gone in zip(entries, deleted, strict=True)]
        files = [path for entry, at in zip(entries, live, strict=True) for path in [entry.path] * len(at)]
        places = pa.array(files, pa.string()), pa.array(np.concatenate([np.empty(0, dtype=np.int64), *live]))
        return pa.table([*rows.columns, *places], names=[*rows.column_names, *_PLACE])

    def places(self, wanted: pa.Table) -> pa.Table:
        """Data file and position of each of the wanted rows. Raises Inexact."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc  # type: ignore[import-untyped]

        schema = pa.schema(zip(_PLACE, (pa.string(), pa.int64()), strict=True))
        if not wanted.num_rows:
            return schema.empty_table()
        key = _key(wanted)
        files, places = [], []
        for entry, deleted in zip(*self._files(), strict=True):
            rows, live = self.reader.table([FileRows(entry=entry, without=deleted)]), _live(entry, deleted)
            if key is not None:
                candidates = pc.is_in(rows[key], value_set=wanted[key].combine_chunks())
                rows, live = rows.filter(candidates), live[candidates.to_numpy().astype(bool)]
            left, right = equal_pairs(rows, wanted)
            files += [entry.path] * len(left)
            places.append(live[left])
            wanted = without(wanted, right)
            if not wanted.num_rows:
                break
        return pa.table([pa.array(files, pa.string()), pa.array(np.concatenate(places))], schema=schema) if files else schema.empty_table()

    def _files(self) -> tuple[list[FileEntry], list[np.ndarray]]:
        """The data files, and the positions that are deleted in each."""
        from pyiceberg.manifest import DataFileContent, ManifestContent

        manifests = read_manifests(self.io, self.manifest_list)
        deletes = [one for one in manifests if one.content == ManifestContent.DELETES]
        if any(entry.file.content == DataFileContent.EQUALITY_DELETES for one in deletes for entry in read_entries(self.io, one)):
            raise Inexact("equality deletes")
        data: Sequence[ManifestFile] = [one for one in manifests if one.content == ManifestContent.DATA]
        if sum((one.added_files_count or 0) + (one.existing_files_count or 0) for one in data) > MAX_FILES:
            raise Inexact("many files")
        entries = [entry for one in data for entry in read_entries(self.io, one)]
        return entries, deleted_in(self.io, deletes, entries)


def _live(entry: FileEntry, deleted: np.ndarray) -> np.ndarray:
    """The positions of a file that are not deleted."""
    import numpy as np

    return np.setdiff1d(np.arange(entry.file.record_count, dtype=np.int64), deleted, assume_unique=True)


def _key(wanted: pa.Table) -> str | None:
    """The column with the most values, of those in which equal values are the same bits: other rows need not be compared."""
    import pyarrow as pa

    of = [field.name for field in wanted.schema if pa.types.is_integer(field.type) or pa.types.is_date(field.type)]
    return max(of, key=lambda name: len(wanted[name].unique()), default=None)
