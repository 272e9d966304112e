"""TableChange whose files were rewritten + columns -> the rows that were added and removed, without those on both sides.

A copy-on-write DELETE of a few rows rewrites millions. To find the few, an engine shuffles all of them; here PyIceberg reads both sides
column by column, and they are compared in memory (`cancel`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.cancel import cancelled
from mvbuild.adapters.iceberg.exact_files import are_exact
from mvbuild.ports.changes import NetRows, ReadRows, ValueRange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from mvbuild.ports.changes import TableChange

MAX_VALUES = 32_000_000
"""The limit of values read on both sides: about 1 GB of memory, and seconds of one processor. An engine does larger comparisons."""
MAX_TEXT = 128 * 1024 * 1024
"""The limit of bytes of text in the files, as compressed there."""
MAX_NET_ROWS = 250_000
"""The limit of rows passed to the engine, which reads more rows faster by itself."""
MAX_NET_BYTES = 32 * 1024 * 1024
"""The limit of their bytes: they are sent in one message over Spark Connect."""
FEW = 200
"""The limit of rows whose values are listed individually."""
_TEXTS = ("string", "binary")
_TYPES = ("boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", *_TEXTS)
_ORDERED = ("int", "long", "date", "string")
"""With decimals, the types whose order and text mean the same everywhere."""


def compares(change: TableChange, columns: Sequence[str]) -> bool:
    if not (columns and change.added.files and change.removed.files):
        return False
    fields = {field["name"]: field for field in change.table.schema["fields"]}
    used = [fields[name] for name in columns if name in fields]
    files = _files(change)
    texts = [field["id"] for field in used if field["type"] in _TEXTS]
    return (
        len(used) == len(columns)
        and all(map(_is_readable, used))
        and not any(part.altered.files or part.files.old_deletes or part.files.new_deletes for part in change.parts)
        and all(file.file_format.value == "PARQUET" for file in files)
        and (change.added.rows + change.removed.rows) * len(columns) <= MAX_VALUES
        and sum((file.column_sizes or {}).get(id_, file.file_size_in_bytes) for file in files for id_ in texts) <= MAX_TEXT
    )


def _files(change: TableChange) -> list[DataFile]:
    return [entry.file for part in change.parts for entry in (*part.files.added, *part.files.removed)]


def _is_readable(field: dict[str, Any]) -> bool:
    """A column that a file lacks is null, unless the schema has an initial default for it."""
    type_ = field["type"]
    return isinstance(type_, str) and (type_ in _TYPES or type_.startswith("decimal")) and "initial-default" not in field


def net_rows(table: Callable[[], Table], change: TableChange, columns: Sequence[str]) -> NetRows | None:
    try:
        opened = table()
        if not are_exact(opened, _files(change), columns):
            return None
        plus, minus = cancelled(*(_read(opened, change, columns, side) for side in ("added", "removed")))
    except Exception:  # noqa: BLE001  a type that PyIceberg does not know, a missing file: the engine reports it
        return None
    if plus.num_rows + minus.num_rows > MAX_NET_ROWS or plus.nbytes + minus.nbytes > MAX_NET_BYTES:
        return None
    types = {field["name"]: field["type"] for field in change.table.schema["fields"]}
    plus, minus = (ReadRows(count=rows.num_rows, ranges=_ranges(rows, types), data=rows) for rows in (plus, minus))
    return NetRows(plus=plus, minus=minus)


def _read(table: Table, change: TableChange, columns: Sequence[str], side: str) -> pa.Table:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
    from pyiceberg.table import FileScanTask

    schema = table.schema().select(*columns)
    tasks = [FileScanTask(entry.file) for part in change.parts for entry in getattr(part.files, side)]
    rows = ArrowScan(table.metadata, table.io, schema, AlwaysTrue()).to_table(tasks)
    # A column may arrive as one text type from files that have it, and as another from files that do not.
    return rows.cast(schema_to_pyarrow(schema, include_field_ids=False)).select(list(columns))


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
