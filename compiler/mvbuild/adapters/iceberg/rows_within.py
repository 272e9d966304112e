"""TableChange + a range of a column -> the added rows in that range, read in this process from the row groups that may have them.

The few rows of a large table with the keys that changed are often neighbours. An engine takes a task for each file to find them, and a job.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.failures import OWN_BUGS
from mvbuild.adapters.iceberg.file_matching import matching_files
from mvbuild.adapters.iceberg.file_rows import FileRows, RowReader, is_readable
from mvbuild.adapters.iceberg.live_positions import deleted_in
from mvbuild.adapters.iceberg.net_rows import MAX_NET_BYTES, MAX_NET_ROWS
from mvbuild.adapters.iceberg.row_groups import Within
from mvbuild.adapters.iceberg.value_ranges import UNREADABLE, range_in
from mvbuild.ports.changes import Comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile

    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.ports.changes import TableChange, ValueRange

MAX_VALUES = 24_000_000
"""The limit of values in the row groups that may have such rows: an engine reads more of them faster, with all its processors."""
MAX_BYTES = 64 * 1024 * 1024
"""The limit of their bytes in the files, which may come through a slow network."""
MAX_FILES = 50
"""The limit of files that may have such rows."""
_TYPES = ("int", "long", "date")
_EPOCH = date(1970, 1, 1)


def rows_within(io: FileIO, raw: Raw, change: TableChange, columns: Sequence[str], wanted: tuple[str, ValueRange]) -> pa.Table | None:
    """See `TableChanges.rows_within`."""
    column, found = wanted
    fields = {field["name"]: field for field in change.table.schema["fields"]}
    if column not in columns or not all(name in fields and is_readable(fields[name]) for name in columns):
        return None
    if fields[column]["type"] not in _TYPES or not change.is_insert_only or len(change.parts) > 1:
        return None
    files = matching_files(change, (Comparison(column, ">=", found.low), Comparison(column, "<=", found.high)))
    if len(files) > MAX_FILES or any(entry.file.file_format.value != "PARQUET" for entry in files):
        return None
    if sum(_expected(entry.file, fields[column], found) for entry in files) > MAX_NET_ROWS:
        return None
    within = Within(id=fields[column]["id"], low=_number(found.low), high=_number(found.high), values=MAX_VALUES, bytes=MAX_BYTES)
    try:
        rows = RowReader(io, raw, [fields[name] for name in columns]).table(_rows(io, change, files, within))
    except OWN_BUGS:
        raise
    except Exception:  # noqa: BLE001  a file that is missing or damaged: the engine reports it
        return None
    return rows if rows.num_rows <= MAX_NET_ROWS and rows.nbytes <= MAX_NET_BYTES else None


def _expected(file: DataFile, column: Raw, wanted: ValueRange) -> float:
    """How many rows of a file are in the range if its values are spread evenly; all of them if its own range is not known."""
    try:
        own = range_in([file], column["id"], column["type"])
    except UNREADABLE:
        return file.record_count
    if own.low is None:
        return 0
    low, high, first, last = map(_number, (own.low, own.high, wanted.low, wanted.high))
    return file.record_count * max(0, min(high, last) - max(low, first) + 1) / (high - low + 1)


def _rows(io: FileIO, change: TableChange, files: Sequence[FileEntry], within: Within) -> list[FileRows]:
    deletes = [manifest for part in change.parts for manifest in part.files.new_deletes]
    deleted = deleted_in(io, deletes, files)
    return [FileRows(entry=entry, without=positions, within=within) for entry, positions in zip(files, deleted, strict=True)]


def _number(value: int | date) -> int:
    """A date as files have it, in days."""
    return (value - _EPOCH).days if isinstance(value, date) else value
