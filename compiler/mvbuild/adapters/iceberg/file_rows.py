"""Parquet file + columns + positions -> its rows, read in this process; only files that PyArrow reads as Spark does (`exact_files`)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.cancel import without
from mvbuild.adapters.iceberg.exact_files import Inexact, exact_columns
from mvbuild.adapters.iceberg.row_groups import Within, rows_within_range, with_positions
from mvbuild.dataclass import dataclass
from mvbuild.ports.changes import TEXTS, is_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO

    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """Rows of one data file."""

    entry: FileEntry
    positions: np.ndarray | None = None
    """Only the rows at these positions, in ascending order; None: all of them."""
    without: np.ndarray | None = None
    """But not the rows at these positions, in ascending order."""
    within: Within | None = None
    """Only the rows in this range."""


class RowReader:
    """Reads some columns of files of one table, under its current schema."""

    def __init__(self, io: FileIO, raw: Raw, fields: Sequence[Raw]) -> None:
        from pyiceberg.io.pyarrow import schema_to_pyarrow
        from pyiceberg.schema import Schema

        self._io = io
        self._wanted = {field["id"]: str(field["type"]) for field in fields}
        # As optional columns, even if the schema says otherwise: files may be older than that.
        optional = [{**field, "required": False} for field in fields]
        schema = Schema.model_validate({"type": "struct", "schema-id": 0, "fields": optional})
        self.schema: pa.Schema = schema_to_pyarrow(schema, include_field_ids=False)
        self._constants = {
            spec["spec-id"]: {field["source-id"] for field in spec["fields"] if field["transform"] == "identity" and "source-id" in field}
            for spec in raw.get("partition-specs") or ()
        }

    def table(self, files: Sequence[FileRows]) -> pa.Table:
        """The rows, file by file and in the order of the files. Raises Inexact, or what a missing or damaged file raises."""
        return self.tables(files)[0]

    def tables(self, *sides: Sequence[FileRows]) -> list[pa.Table]:
        """The same for several lists of files, which are read at once."""
        import pyarrow as pa
        from pyiceberg.utils.concurrent import ExecutorFactory

        found = ExecutorFactory.get_or_create().map(self._of_file, [file for files in sides for file in files])
        return [pa.concat_tables([self.schema.empty_table(), *islice(found, len(files))]) for files in sides]

    def _of_file(self, rows: FileRows) -> pa.Table:
        from pyarrow.parquet import ParquetFile

        with self._io.new_input(rows.entry.path).open() as source:
            file = ParquetFile(source, pre_buffer=True)
            names = exact_columns(file, self._wanted, self._constants.get(rows.entry.spec_id, ()))
            if names is None or rows.entry.has_replaced_text or file.metadata.num_rows != rows.entry.file.record_count:
                raise Inexact(rows.entry.path)
            texts = [names[id_] for id_, type_ in self._wanted.items() if id_ in names and type_ in TEXTS]
            if rows.within is not None:
                # Texts as they are stored, each once, until few rows are left.
                coded = ParquetFile(source, metadata=file.metadata, read_dictionary=texts, pre_buffer=True)
                return self._fitted(rows_within_range(coded, names, rows.within, rows.without), names)
            if not names:
                return self._without_values(rows)
            groups, positions = with_positions(file, rows.positions)
            if coded := _coded(file, texts):
                file = ParquetFile(source, metadata=file.metadata, read_dictionary=coded, pre_buffer=True)
            table = file.read_row_groups(groups, columns=list(names.values()))
        return self._fitted(_picked(table, positions, rows.without), names)

    def _without_values(self, rows: FileRows) -> pa.Table:
        """Rows of a file that has none of the columns. PyArrow loses count of them: a table without columns has no rows after `take`."""
        import numpy as np
        import pyarrow as pa

        hidden = np.unique(rows.without) if rows.without is not None else ()
        count = len(rows.positions) if rows.positions is not None else rows.entry.file.record_count - len(hidden)
        return pa.table([pa.nulls(count, field.type) for field in self.schema], schema=self.schema)

    def _fitted(self, table: pa.Table, names: dict[int, str]) -> pa.Table:
        """With the names and types of the table's schema; a column that the file lacks is NULL."""
        import pyarrow as pa

        columns = []
        for id_, field in zip(self._wanted, self.schema, strict=True):
            if id_ in names:
                columns.append(table.column(names[id_]).cast(field.type))
            else:
                columns.append(pa.nulls(table.num_rows, field.type))
        return pa.table(columns, schema=self.schema)


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of an engine, column by column, with the names and types of a schema. Raises Inexact, or PyArrow's error for values that do not
    fit."""
    import pyarrow as pa

    if any(
        pa.types.is_timestamp(one.type) and (one.type.tz is None) != (to.type.tz is None)
        for one, to in zip(rows.schema, schema, strict=True)
    ):
        raise Inexact("a timestamp with and one without a zone")
    return pa.table([column.cast(field.type) for column, field in zip(rows.columns, schema, strict=True)], schema=schema)


def _coded(file: ParquetFile, texts: Sequence[str]) -> list[str]:
    """The text columns that are dictionary-encoded everywhere: PyArrow reads them as dictionaries and decodes these in half the time."""
    groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)] if texts else []
    chunks = [group.column(at) for group in groups for at in range(group.num_columns)]
    # Some writers also list the encoding of the dictionary itself, PLAIN. Their columns are read as usual.
    other = {chunk.path_in_schema for chunk in chunks if "PLAIN_DICTIONARY" not in chunk.encodings or "PLAIN" in chunk.encodings}
    return [name for name in texts if name not in other]


def _picked(table: pa.Table, positions: np.ndarray | None, hidden: np.ndarray | None) -> pa.Table:
    import pyarrow as pa

    if positions is not None:
        return table.take(pa.array(positions))
    return table if hidden is None or not len(hidden) else without(table, hidden)


def is_readable(field: dict[str, Any]) -> bool:
    """Whether a column has a type that this process reads. A column that a file lacks is NULL, unless the schema has an initial default
    for it."""
    return is_plain(field["type"]) and "initial-default" not in field
