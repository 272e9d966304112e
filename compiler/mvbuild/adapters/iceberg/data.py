"""column values -> data files and a snapshot; table metadata -> rows. With PyIceberg and PyArrow, which are imported on first use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from mvbuild.adapters.iceberg.manifests import read_entries, read_manifests
from mvbuild.adapters.iceberg.metadata import Raw, current_schema, schemas
from mvbuild.adapters.iceberg.net_rows import net_rows
from mvbuild.adapters.iceberg.private_pyiceberg import updates_of, written_files
from mvbuild.adapters.iceberg.tables import current, without_snapshots
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

    from mvbuild.adapters.iceberg.change_tables import Subset
    from mvbuild.ports.changes import NetRows, RowChange, TableChange, ValueRange
    from mvbuild.ports.states import TableState


class IcebergData:
    """Files of tables, wherever the properties of the catalog lead."""

    def __init__(self, io: Callable[[str], FileIO]) -> None:
        self._io = io

    def empty_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> None:
        from pyiceberg.manifest import write_manifest_list

        # Every reader of format 3 reads a manifest list of format 2, and PyIceberg writes no newer one. An empty list has no row ids to
        # lose.
        version: Literal[1, 2] = 1 if raw["format-version"] == 1 else 2
        number = raw.get("last-sequence-number", 0) + 1
        with write_manifest_list(version, self._io(location).new_output(location), snapshot_id, None, number, "deflate"):
            pass

    def repeated_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> str | None:  # noqa: ARG002
        # A byte-for-byte copy: its entries name manifests and not the snapshot, and PyIceberg would lose fields of format 3. Not the same
        # file, because expiring a snapshot deletes its manifest list.
        old = (current(raw) or {}).get("manifest-list")
        if old is None:
            return None
        with self._io(old).new_input(old).open() as source:
            content = source.read()
        with self._io(location).new_output(location).create() as target:
            target.write(content)
        return location

    def reached(self, raw: Raw) -> set[str]:
        io = self._io(raw["location"])
        statistics = {one["statistics-path"] for of in ("statistics", "partition-statistics") for one in raw.get(of) or ()}
        lists = {s["manifest-list"] for s in raw.get("snapshots") or () if s.get("manifest-list")}
        manifests = {m.manifest_path: m for one in lists for m in read_manifests(io, one)}
        files = {entry.path for m in manifests.values() for entry in read_entries(io, m)}
        return statistics | lists | manifests.keys() | files

    def change(self, raw: Raw, table: TableState, old: int, new: int) -> TableChange:
        from mvbuild.adapters.iceberg.change import table_change

        return table_change(raw, table, old, new, self._io(raw["location"]))

    def net_rows(self, raw: Raw, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        return net_rows(self._io(raw["location"]), raw, change, columns)

    def rows_within(self, raw: Raw, change: TableChange, columns: Sequence[str], wanted: tuple[str, ValueRange]) -> pa.Table | None:
        from mvbuild.adapters.iceberg.rows_within import rows_within

        return rows_within(self._io(raw["location"]), raw, change, columns, wanted)

    def positions(self, raw: Raw, snapshot_id: int | None, minus: pa.Table, plus: pa.Table) -> RowChange | None:
        from mvbuild.adapters.iceberg.stored_rows import positions

        return positions(self._io(raw["location"]), raw, snapshot_id, minus, plus)

    def stored_rows(self, raw: Raw, snapshot_id: int | None) -> pa.Table | None:
        from mvbuild.adapters.iceberg.stored_rows import stored_rows

        return stored_rows(self._io(raw["location"]), raw, snapshot_id)

    def row_change(self, raw: Raw, head: Raw, change: RowChange, summary: Mapping[str, str]) -> Raw | None:
        from mvbuild.adapters.iceberg.row_changes import is_writable, row_change

        if not is_writable(raw, removes=change.removed.num_rows > 0):
            return None
        return row_change(self._table(without_snapshots(raw), ""), raw, head, change, summary)

    def with_subset(self, pinned: Raw, subset: Subset) -> Raw:
        from mvbuild.adapters.iceberg.subset import with_subset

        return with_subset(pinned, subset, self._io(pinned["location"]))

    def overwrite(self, raw: Raw, columns: Mapping[str, Sequence[Any]]) -> Raw:
        if raw["format-version"] > 2:
            raise CatalogError("PyIceberg cannot write data to a table of format version 3 yet; use format version 2.")
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.table import Transaction
        from pyiceberg.table.update import AddSnapshotUpdate

        table = self._table(raw, "")
        rows = arrow_table(table.schema(), columns)
        transaction = Transaction(table, autocommit=False)
        # Not Transaction.overwrite, which makes two snapshots, a delete and an append: the table would be empty in between.
        with transaction.update_snapshot().overwrite() as update:
            update.delete_by_predicate(AlwaysTrue())
            for task in table.scan().plan_files():
                update.delete_data_file(task.file)
            if rows.num_rows:
                for file in written_files(table.metadata, rows, table.io, update.commit_uuid):
                    update.append_data_file(file)
        (snapshot,) = [u.snapshot for u in updates_of(transaction) if isinstance(u, AddSnapshotUpdate)]
        dumped = json.loads(snapshot.model_dump_json(by_alias=True, exclude_none=True))
        if raw["format-version"] == 1:
            dumped.pop("sequence-number", None)
        return dict(dumped)

    def rows(self, raw: Raw, location: str, limit: int, snapshot_id: int | None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        names = column_names(raw, snapshot_id)
        if limit == 0:
            return names, []
        return names, scanned(self._table(raw, location), limit, snapshot_id)

    def _table(self, raw: Raw, location: str) -> Table:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.table import Table
        from pyiceberg.table.metadata import TableMetadataUtil

        metadata = TableMetadataUtil.parse_raw(json.dumps(raw))
        return Table(("table",), metadata, location, self._io(raw["location"]), NoopCatalog("none"))


def arrow_table(schema: Schema, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """The columns with exactly the types of the schema; missing columns are null."""
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


def column_names(raw: Raw, snapshot_id: int | None) -> tuple[str, ...]:
    """The column names of the schema that a snapshot is read with: its own, or the current one for the current snapshot."""
    schema = current_schema(raw)
    if snapshot_id is not None:
        own = next((s.get("schema-id") for s in raw.get("snapshots") or () if s["snapshot-id"] == snapshot_id), None)
        schema = next((s for s in schemas(raw) if s["schema-id"] == own), schema)
    return tuple(field["name"] for field in schema["fields"])


def scanned(table: Table, limit: int, snapshot_id: int | None = None) -> list[tuple[Any, ...]]:
    """Rows of the current snapshot, or of another under its own schema, as Python values."""
    found = table.scan(limit=limit, snapshot_id=snapshot_id).to_arrow()
    columns = [column.to_pylist() for column in found.columns]
    return list(zip(*columns, strict=True))[:limit]
