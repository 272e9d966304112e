"""snapshot + rows to remove and to add, by their values -> the positions of the former in its files, found in this process.

An engine takes a statement, and a join with the whole table, to find a few rows in a small one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.cancel import cancelled, equal_pairs, without
from mvbuild.adapters.iceberg.exact_files import Inexact
from mvbuild.adapters.iceberg.failures import OWN_BUGS
from mvbuild.adapters.iceberg.file_rows import FileRows, RowReader, fitted, is_readable
from mvbuild.adapters.iceberg.live_positions import deleted_in
from mvbuild.adapters.iceberg.manifests import read_entries, read_manifests
from mvbuild.adapters.iceberg.metadata import current_schema
from mvbuild.ports.changes import RowChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile

    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw

MAX_FILES = 100
"""The limit of data files: an engine reads many of them in parallel."""


def positions(io: FileIO, raw: Raw, snapshot_id: int | None, minus: pa.Table, plus: pa.Table) -> RowChange | None:
    """See `TableChanges.positions`."""
    fields = current_schema(raw)["fields"]
    if not all(map(is_readable, fields)):
        return None
    try:
        reader = RowReader(io, raw, fields)
        plus, minus = cancelled(fitted(plus, reader.schema), fitted(minus, reader.schema))
        snapshot = next(s for s in raw["snapshots"] if s["snapshot-id"] == snapshot_id)
        found = _Search(io, reader).found(snapshot["manifest-list"], minus)
    except OWN_BUGS:
        raise
    except Exception:  # noqa: BLE001  values that do not fit, a file that is missing or damaged: the engine finds them or reports it
        return None
    return RowChange(removed=found, added=plus) if found.num_rows == minus.num_rows else None


class _Search:
    """All live rows of a snapshot, compared with others."""

    def __init__(self, io: FileIO, reader: RowReader) -> None:
        self._io = io
        self._reader = reader

    def found(self, manifest_list: str, wanted: pa.Table) -> pa.Table:
        """Data file and position of each row. Raises Inexact."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc  # type: ignore[import-untyped]

        schema = pa.schema([("file", pa.string()), ("position", pa.int64())])
        if not wanted.num_rows:
            return schema.empty_table()
        key = _key(wanted)
        entries, deletes = self._files(manifest_list)
        files, places = [], []
        for entry, deleted in zip(entries, deleted_in(self._io, deletes, entries), strict=True):
            rows = self._reader.table([FileRows(entry=entry, without=deleted)])
            live = np.setdiff1d(np.arange(entry.file.record_count, dtype=np.int64), deleted, assume_unique=True)
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

    def _files(self, manifest_list: str) -> tuple[list[FileEntry], list[ManifestFile]]:
        """The live data files, and the manifests of deletes."""
        from pyiceberg.manifest import DataFileContent, ManifestContent

        manifests = read_manifests(self._io, manifest_list)
        deletes = [one for one in manifests if one.content == ManifestContent.DELETES]
        if any(entry.file.content == DataFileContent.EQUALITY_DELETES for one in deletes for entry in read_entries(self._io, one)):
            raise Inexact("equality deletes")
        data: Sequence[ManifestFile] = [one for one in manifests if one.content == ManifestContent.DATA]
        if sum((one.added_files_count or 0) + (one.existing_files_count or 0) for one in data) > MAX_FILES:
            raise Inexact("many files")
        return [entry for one in data for entry in read_entries(self._io, one)], deletes


def _key(wanted: pa.Table) -> str | None:
    """The column with the most values, of those in which equal values are the same bits: other rows need not be compared."""
    import pyarrow as pa

    of = [field.name for field in wanted.schema if pa.types.is_integer(field.type) or pa.types.is_date(field.type)]
    return max(of, key=lambda name: len(wanted[name].unique()), default=None)
