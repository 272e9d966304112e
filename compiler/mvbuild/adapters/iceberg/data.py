"""column values -> data files and a snapshot; table metadata -> rows. By PyIceberg and PyArrow, which are imported on first use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from mvbuild.adapters.iceberg.metadata import Raw, current_schema
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table


class IcebergData:
    """Files of tables, wherever the catalog's properties lead to."""

    def __init__(self, io: Callable[[str], FileIO]) -> None:
        self._io = io

    def empty_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> None:
        from pyiceberg.manifest import write_manifest_list

        # Every reader of format 3 reads a list of format 2, and PyIceberg writes no newer one; an empty list has no row ids to lose.
        version: Literal[1, 2] = 1 if raw["format-version"] == 1 else 2
        number = raw.get("last-sequence-number", 0) + 1
        with write_manifest_list(version, self._io(location).new_output(location), snapshot_id, None, number, "deflate"):
            pass

    def overwrite(self, raw: Raw, columns: Mapping[str, Sequence[Any]]) -> Raw:
        if raw["format-version"] > 2:
            raise CatalogError("PyIceberg cannot write data to a table of format version 3 yet; use format version 2.")
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import _dataframe_to_data_files
        from pyiceberg.table import Transaction
        from pyiceberg.table.update import AddSnapshotUpdate

        table = self._table(raw, "")
        rows = arrow_table(table.schema(), columns)
        transaction = Transaction(table, autocommit=False)
        # Not Transaction.overwrite: that makes two snapshots, a delete and an append, and between them the table would be empty.
        with transaction.update_snapshot().overwrite() as update:
            update.delete_by_predicate(AlwaysTrue())
            for task in table.scan().plan_files():
                update.delete_data_file(task.file)
            if rows.num_rows:
                for file in _dataframe_to_data_files(table.metadata, rows, table.io, update.commit_uuid):
                    update.append_data_file(file)
        (snapshot,) = [u.snapshot for u in transaction._updates if isinstance(u, AddSnapshotUpdate)]
        dumped = json.loads(snapshot.model_dump_json(by_alias=True, exclude_none=True))
        if raw["format-version"] == 1:
            dumped.pop("sequence-number", None)
        return dict(dumped)

    def rows(self, raw: Raw, location: str, limit: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        names = tuple(field["name"] for field in current_schema(raw)["fields"])
        if limit == 0:
            return names, []
        return names, scanned(self._table(raw, location), limit)

    def _table(self, raw: Raw, location: str) -> Table:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.table import Table
        from pyiceberg.table.metadata import TableMetadataUtil

        metadata = TableMetadataUtil.parse_raw(json.dumps(raw))
        return Table(("table",), metadata, location, self._io(raw["location"]), NoopCatalog("none"))


def arrow_table(schema: Schema, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """The columns with exactly the types of the schema; one that is not given is null."""
    import pyarrow as pa
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    target = schema_to_pyarrow(schema)
    height = max((len(values) for values in columns.values()), default=0)
    unknown = set(columns) - set(target.names)
    if unknown:
        raise CatalogError(f"The table has no column '{min(unknown)}'.")
    arrays = [_array(columns.get(field.name, [None] * height), field) for field in target]
    return pa.table(arrays, schema=target)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, type=field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
        raise CatalogError(f"A value of column '{field.name}' is not a {field.type}: {error}") from None


def scanned(table: Table, limit: int) -> list[tuple[Any, ...]]:
    """Rows of the current snapshot as Python values."""
    found = table.scan(limit=limit).to_arrow()
    columns = [column.to_pylist() for column in found.columns]
    return list(zip(*columns, strict=True))[:limit]
