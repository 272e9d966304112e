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
from mvbuild.ports.changes import Comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO

    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.ports.changes import TableChange, ValueRange

MAX_VALUES = 24_000_000
"""The limit of values in the row groups that may have such rows: an engine reads more of them faster, with all its processors."""
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
    if fields[column]["type"] not in _TYPES or not change.is_insert_only or len(change.parts) != 1:
        return None
    files = matching_files(change, (Comparison(column, ">=", found.low), Comparison(column, "<=", found.high)))
    if len(files) > MAX_FILES or any(entry.file.file_format.value != "PARQUET" for entry in files):
        return None
    within = Within(id=fields[column]["id"], low=_number(found.low), high=_number(found.high), left=MAX_VALUES)
    try:
        rows = RowReader(io, raw, [fields[name] for name in columns]).table(_rows(io, change, files, within))
    except OWN_BUGS:
        raise
    except Exception:  # noqa: BLE001  a file that is missing or damaged: the engine reports it
        return None
    return rows if rows.num_rows <= MAX_NET_ROWS and rows.nbytes <= MAX_NET_BYTES else None


def _rows(io: FileIO, change: TableChange, files: Sequence[FileEntry], within: Within) -> list[FileRows]:
    deleted = deleted_in(io, change.parts[0].files.new_deletes, files)
    return [FileRows(entry=entry, without=positions, within=within) for entry, positions in zip(files, deleted, strict=True)]


def _number(value: int | date) -> int:
    """A date as files have it, in days."""
    return (value - _EPOCH).days if isinstance(value, date) else value
