"""Publisher -> TableChanges: the difference of two snapshots, a function of the table's metadata, whatever catalog has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg import change_tables, file_matching, net_rows, value_ranges
from mvbuild.adapters.iceberg import scratch as scratches
from mvbuild.adapters.iceberg.scratch_tables import drop_scratch
from mvbuild.ports.changes import NetRows, StagedChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa  # type: ignore[import-untyped]

    from mvbuild.adapters.iceberg.change_tables import Subset
    from mvbuild.adapters.iceberg.publisher import Publisher
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.changes import FileGroup, Predicate, RowChange, Side, TableChange, ValueRange
    from mvbuild.ports.states import TableState


class MetadataChanges:
    """The changes of the tables that a publisher can read."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def between(self, table: TableState, old: int, new: int) -> TableChange:
        with self._publisher.guard():
            change_tables.require_change(table, old, new)
            found = self._publisher.read_state(table)
            return found.data.change(found.raw, table, old, new)

    def may_match(self, change: TableChange, conjunctions: Sequence[tuple[Predicate, ...]]) -> bool:
        return file_matching.may_match(change, conjunctions)

    def has_replaced_text(self, change: TableChange) -> bool:
        return file_matching.has_replaced_text(change)

    def matching(self, change: TableChange, predicates: Sequence[Predicate]) -> FileGroup:
        return file_matching.matching(change, predicates)

    def value_ranges(self, change: TableChange, side: Side, columns: Iterable[str]) -> Mapping[str, ValueRange]:
        return value_ranges.value_ranges(change, side, columns)

    def reads_here(self, change: TableChange, columns: Sequence[str]) -> bool:
        return net_rows.is_read(change, columns)

    def net_rows(self, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        with self._publisher.guard():
            found = self._publisher.read_state(change.table)
            return found.data.net_rows(found.raw, change, columns)

    def rows_within(self, change: TableChange, columns: Sequence[str], wanted: tuple[str, ValueRange]) -> pa.Table | None:
        with self._publisher.guard():
            found = self._publisher.read_state(change.table)
            return found.data.rows_within(found.raw, change, columns, wanted)

    def positions(self, table: TableState, minus: pa.Table, plus: pa.Table) -> RowChange | None:
        with self._publisher.guard():
            found = self._publisher.read_state(table)
            return found.data.positions(found.raw, table.current_snapshot_id, minus, plus)

    def stored_rows(self, table: TableState) -> pa.Table | None:
        with self._publisher.guard():
            found = self._publisher.read_state(table)
            return found.data.stored_rows(found.raw, table.current_snapshot_id)

    def replaced(self, stored: pa.Table, rows: pa.Table) -> RowChange | None:
        from mvbuild.adapters.iceberg import stored_rows

        return stored_rows.replaced(stored, rows)

    def stage(self, change: TableChange, new_scratch: Callable[[], TableIdentifier]) -> StagedChange:
        if change.is_empty:
            return StagedChange(parts=())
        publisher = self._publisher
        with publisher.guard():
            found = publisher.read_state(change.table)

            def register(subset: Subset, scratch: TableIdentifier) -> None:
                location = publisher.scratch_location(change.table, scratch)
                made = found.data.with_subset(scratches.pinned(found.raw, change.table, subset.snapshot_id, location), subset)
                try:
                    publisher.register(scratch, made)
                except BaseException:
                    publisher.files.delete_all(list(scratches.own_files(made, "")[1:]))
                    raise

            return change_tables.stage(change, new_scratch, register, lambda scratch: drop_scratch(publisher, scratch))
