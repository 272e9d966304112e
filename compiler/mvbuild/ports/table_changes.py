"""Two snapshots of a table -> their difference, what metadata shows of it, and scratch tables with its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from mvbuild.names import TableIdentifier
from mvbuild.ports.changes import FileGroup, NetRows, Predicate, RowChange, Side, StagedChange, TableChange, ValueRange
from mvbuild.ports.states import TableState


class TableChanges(Protocol):
    """What changed between snapshots. Every method may raise CatalogError."""

    def between(self, table: TableState, old: int, new: int) -> TableChange:
        """The difference between any two snapshots (NO_SNAPSHOT: the empty table), from metadata only. Raises ChangeRefused if metadata
        does not show it."""

    def may_match(self, change: TableChange, conjunctions: Sequence[tuple[Predicate, ...]]) -> bool:
        """Whether metadata allows a row of the change to satisfy all predicates of one of the conjunctions. Reads no data."""

    def has_replaced_text(self, change: TableChange) -> bool:
        """Whether the metadata of added files shows a text in which bytes that are not valid UTF-8 may have been replaced. Engines read it
        in place of the text in the file. Reads no data."""

    def matching(self, change: TableChange, predicates: Sequence[Predicate]) -> FileGroup:
        """The added files in which, by their metadata, a row can satisfy all predicates. Reads no data."""

    def value_ranges(self, change: TableChange, side: Side, columns: Iterable[str]) -> Mapping[str, ValueRange]:
        """The ranges of columns in the rows that were added or removed, for columns whose range the metadata shows. Reads no data."""

    def reads_here(self, change: TableChange, columns: Sequence[str]) -> bool:
        """Whether, as far as metadata shows, `net_rows` can read these columns and has less to do than an engine. Reads no data."""

    def net_rows(self, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        """Read columns for which `reads_here` holds in this process, under the table's current schema, without rows that are on both sides.
        None if they cannot be read or there are too many; then the engine does it."""

    def rows_within(self, change: TableChange, columns: Sequence[str], wanted: tuple[str, ValueRange]) -> Any | None:
        """The added rows of a change in which a column, an int, a long or a date, has a value in a range and is not NULL, read in this
        process for `Engine.supply`. From the empty table, these are the rows of a snapshot. None if much must be read to find them, if they
        are many, or cannot be read here."""

    def positions(self, table: TableState, minus: Any, plus: Any) -> RowChange | None:
        """The change of a table's current snapshot by rows that were fetched from an engine: where the rows of `minus` are, and the rows of
        `plus`, without those on both sides. Rows are the same if all values are, bit by bit. None if the table does not have all of them,
        or cannot be read in this process."""

    def stored_rows(self, table: TableState) -> Any | None:
        """All rows of a small table at its current snapshot, read in this process for `Engine.supply`: its columns, in order, and where
        each row is, in `_file` and `_pos`. None if they cannot be read here."""

    def replaced(self, stored: Any, rows: Any) -> RowChange | None:
        """The change that turns stored rows into rows that were fetched from an engine. Rows are the same if all values are, bit by bit.
        None if the values do not fit into the table."""

    def stage(self, change: TableChange, new_scratch: Callable[[], TableIdentifier]) -> StagedChange:
        """Register scratch tables, made of metadata only, that show the rows of a change under the table's current schema."""
