"""TableChange + columns -> the rows that were added and removed, without those on both sides, read in this process.

A DELETE of a few rows by position takes an engine four statements over scratch tables to read; here it is the positions, and the columns
of the row groups that have them. A copy-on-write DELETE of a few rows rewrites millions. To find the few, an engine shuffles all of them;
here both sides are read column by column, and compared in memory (`cancel`).
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.cancel import cancelled
from mvbuild.adapters.iceberg.equal_keys import EqualKeys
from mvbuild.adapters.iceberg.failures import OWN_BUGS
from mvbuild.adapters.iceberg.file_rows import FileRows, RowReader, is_readable
from mvbuild.adapters.iceberg.live_positions import deleted_in
from mvbuild.ports.changes import TEXTS, NetRows, ReadRows, ValueRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO

    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.ports.changes import ChangePart, TableChange

MAX_VALUES = 32_000_000
"""The limit of values read on both sides: about 1 GB of memory, and seconds of one processor. An engine does larger comparisons."""
MAX_TEXT = 128 * 1024 * 1024
"""The limit of bytes of text in the files, as compressed there."""
MAX_NET_ROWS = 250_000
"""The limit of rows passed to the engine, which reads more rows faster by itself."""
MAX_NET_BYTES = 32 * 1024 * 1024
"""The limit of their bytes: they are sent in one message over Spark Connect."""
MAX_PLAIN_ROWS = 100_000
"""The limit of rows if there is nothing to compare: 60,000 take 0.1 s here and 0.6 s in an engine. More were not measured."""
FEW = 200
"""The limit of rows whose values are listed individually."""
_ORDERED = ("int", "long", "date", "string")
"""With decimals, the types whose order and text mean the same everywhere."""


def is_read(change: TableChange, columns: Sequence[str]) -> bool:
    """Whether, as far as metadata shows, `net_rows` can read these columns and has less to do than an engine."""
    if not columns or change.is_empty:
        return False
    fields = {field["name"]: field for field in change.table.schema["fields"]}
    used = [fields[name] for name in columns if name in fields]
    files = [entry.file for entry in _entries(change)]
    texts = [field["id"] for field in used if field["type"] in TEXTS]
    rows = change.added.rows + change.removed.rows + change.altered.rows
    is_compared = bool(change.added.files and change.removed.files)
    return (
        len(used) == len(columns)
        and all(map(is_readable, used))
        and all(file.file_format.value == "PARQUET" for file in files)
        and (is_compared or change.rows <= MAX_PLAIN_ROWS)
        and rows * len(columns) <= MAX_VALUES
        and sum((file.column_sizes or {}).get(id_, file.file_size_in_bytes) for file in files for id_ in texts) <= MAX_TEXT
    )


def _entries(change: TableChange) -> Iterator[FileEntry]:
    for part in change.parts:
        yield from (*part.files.added, *part.files.removed, *part.files.altered)


def net_rows(io: FileIO, raw: Raw, change: TableChange, columns: Sequence[str]) -> NetRows | None:
    fields = {field["name"]: field for field in change.table.schema["fields"]}
    try:
        reader = RowReader(io, raw, [fields[name] for name in columns])
        keys = EqualKeys(io, raw)
        sides = [_Sides(io, part, keys) for part in change.parts]
        plus, minus = reader.tables(*([rows for one in sides for rows in getattr(one, side)()] for side in ("plus", "minus")))
        plus, minus = cancelled(plus, minus)
    except OWN_BUGS:
        raise
    except Exception:  # noqa: BLE001  a file that is missing or damaged: the engine reports it
        return None
    if plus.num_rows + minus.num_rows > MAX_NET_ROWS or plus.nbytes + minus.nbytes > MAX_NET_BYTES:
        return None
    types = {name: field["type"] for name, field in fields.items()}
    plus, minus = (ReadRows(count=rows.num_rows, ranges=_ranges(rows, types), data=rows) for rows in (plus, minus))
    return NetRows(plus=plus, minus=minus)


class _Sides:
    """Where the rows of a part are."""

    def __init__(self, io: FileIO, part: ChangePart, keys: EqualKeys) -> None:
        files = part.files
        self._part = part
        self._at_old = deleted_in(io, files.old_deletes, (*files.removed, *files.altered), keys)
        self._at_new = deleted_in(io, files.new_deletes, (*files.added, *files.altered), keys)

    def plus(self) -> list[FileRows]:
        """Rows of added files, and rows of altered files whose deletes are gone."""
        return list(self._rows(self._part.files.added, self._at_new, self._at_old))

    def minus(self) -> list[FileRows]:
        """Rows of removed files, and rows of altered files that are deleted now."""
        return list(self._rows(self._part.files.removed, self._at_old, self._at_new))

    def _rows(self, whole: Sequence[FileEntry], deleted: Sequence[Any], other: Sequence[Any]) -> Iterator[FileRows]:
        """The live rows of whole files; of altered ones, the rows that are only deleted on the other side."""
        import numpy as np

        altered = self._part.files.altered
        for entry, positions in zip(whole, deleted[: len(whole)], strict=True):
            yield FileRows(entry=entry, without=positions)
        here, there = (deletes[len(deletes) - len(altered) :] for deletes in (deleted, other))
        for entry, positions in zip(altered, starmap(np.setdiff1d, zip(there, here, strict=True)), strict=True):
            if len(positions):
                yield FileRows(entry=entry, positions=positions)


def _ranges(rows: pa.Table, types: dict[str, Any]) -> dict[str, ValueRange]:
    found = {}
    for name in rows.column_names:
        if types[name] in _ORDERED or types[name].startswith("decimal"):
            try:
                found[name] = _range(rows[name], types[name])
            except (UnicodeDecodeError, OverflowError, ValueError):
                continue  # bytes that are not text are not valid in text; a date may be in a year that Python does not have
    return found


def _range(column: pa.ChunkedArray, type_: str) -> ValueRange:
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    ends = pc.min_max(column).as_py()
    values = sorted({value for value in column.to_pylist() if value is not None}) if len(column) <= FEW else ()
    return ValueRange(type=type_, low=ends["min"], high=ends["max"], has_null=bool(column.null_count), values=tuple(values))
