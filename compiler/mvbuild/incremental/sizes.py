"""Inputs + changes + storage -> Sizes: the bytes and rows of every scan, and the cost of reading a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.incremental.algebra import Relation, Scan, walk
from mvbuild.incremental.inputs import Input, ReadChange, total
from mvbuild.incremental.stored_rows import STORAGE
from mvbuild.ports.changes import Side, TableChange, ValueRange, is_plain
from mvbuild.ports.states import TableState
from mvbuild.storage.history import ROWS_REMOVED

ROW, CELL, TEXT = 0.02, 0.03, 0.3
"""Microseconds to read a row, a value of it, and a value of variable length."""
COMPARED, COMPARED_HERE = 1.0, 0.1
"""Microseconds to search for a row of a rewritten file on the other side of the change: in the engine, and without it."""
DIFFER = 0.03
"""The assumed share of rows in rewritten files that changed: the number of updated rows is unknown. If there are fewer rows afterwards it
was most likely a DELETE, which touches no other rows."""
LITTLE = 32 * 1024 * 1024
"""Bytes that any refresh reads in about the time of its statements."""
FEW = 10_000
"""Up to this many changed rows, the rows that a refresh changes are fetched from the engine and written by mvbuild: many more are computed
and written faster where they are."""
FEW_STORED = FEW // 2
"""A storage with up to this many rows is expected to change in few, however many rows changed below: all of it may be replaced."""
FEW_LAST = FEW // 4
"""If up to this many rows of a storage changed with its last refresh, few are expected to change again."""
SEARCHED_BYTES, SEARCHED_VALUES = 16 * 1024 * 1024, 4_000_000
"""The limits of a storage in which the rows to remove are found without the engine: a tenth of a second of one processor."""
SUPPLIED_BYTES = 2 * 1024 * 1024
"""The limit of files whose rows are supplied to the engine: in memory, they may be ten times as large."""
READ_ONCE = 3_000_000
"""Up to this many rows of a large table are kept, to be read for both of its versions."""
MANY = 300_000
"""Up to this many changed rows are kept, and joined before other tables."""
SHUFFLE, WORTH_A_STATEMENT = 0.4, 500_000
"""Microseconds to move a row to another task; and those that a statement must save."""
_FIXED = ("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """The rows that a scan returns."""

    bytes: int
    rows: int
    read: int
    """Rows to read to find them."""
    of: int
    """Rows of the table that they belong to."""
    row_cost: float
    compared: int = 0
    """Rows to search for on the other side of the change."""
    here: bool = False
    """Whether that is done without an engine, for all of them, including those that the query filters out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSize:
    """The storage table."""

    table: TableState

    @property
    def bytes(self) -> int:
        return total(self.table, self.table.current_snapshot_id, "total-files-size")

    @property
    def rows(self) -> int:
        return total(self.table, self.table.current_snapshot_id, "total-records")

    @property
    def rewrites_files(self) -> bool:
        """Whether removing a row rewrites the rest of its file (copy-on-write)."""
        return self.table.format_version == 1 or self.table.properties.get("write.delete.mode") != "merge-on-read"

    @property
    def refuses_deletes(self) -> bool:
        """Version 1 of the format has no delete files, and Spark does not rewrite a file that is to be merged on read."""
        return self.table.format_version == 1 and self.table.properties.get("write.delete.mode") == "merge-on-read"

    @property
    def is_written_here(self) -> bool:
        """Whether few rows are written without the engine, as far as the state of the table shows."""
        table = self.table
        return table.format_version == 2 and not (table.partition_by or table.sort_by or self.rewrites_files)

    @property
    def is_fetched(self) -> bool:
        """Whether few rows are fetched from the engine: nested values are not."""
        return all(is_plain(field["type"]) for field in self.table.schema["fields"])

    def changes_in_few(self, changed: int) -> bool:
        """Whether few rows of it are expected to change, if this many are expected to differ below: these are few, or it has few, or few
        changed when it was written last. Not if the number of its rows is unknown."""
        return changed <= FEW or 0 < self.rows <= FEW_STORED or (changed <= MANY and self._changed_last <= FEW_LAST)

    @property
    def _changed_last(self) -> int:
        """How many rows the last write added and removed: all rows, if it was a full refresh. Many if it does not say."""
        snapshot = self.table.current_snapshot
        counts = [snapshot.summary[key] for key in ("added-records", ROWS_REMOVED) if key in snapshot.summary] if snapshot else []
        return sum(map(int, counts)) if counts and self.rows else MANY

    @property
    def is_searched_here(self) -> bool:
        """Whether this process finds the positions of a few rows, because reading the whole storage takes less than a statement."""
        return self.is_fetched and self.bytes <= SEARCHED_BYTES and self.rows * len(self.table.schema["fields"]) <= SEARCHED_VALUES

    @property
    def is_read_here(self) -> bool:
        """Whether this process reads all of its rows, to supply them to the engine: they are few and not long."""
        return 0 < self.rows <= FEW_STORED and self.bytes <= SUPPLIED_BYTES and self.is_searched_here

    @property
    def row_cost(self) -> float:
        return _row_cost(field["type"] for field in self.table.schema["fields"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of every table at both versions, of the changes, and of the storage."""

    inputs: Sequence[Input]
    changes: Mapping[int, TableChange]
    storage: StorageSize
    read: ReadChange
    moved: bool = False
    """Whether a clock moved: how many rows it lets in or out is not known."""
    rows_that_differ: int = field(init=False)
    """The expected number of rows of all changes, on both sides."""
    _found: dict[tuple[int, str, tuple[tuple[str, str], ...]], TableSize] = field(default_factory=dict, repr=False, compare=False)
    """What `of` found: choosing a strategy asks for the size of a scan a hundred times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows_that_differ", sum(map(rows_that_differ, self.changes.values())))

    @property
    def changes_in_few(self) -> bool:
        """Whether few rows of the storage are expected to change."""
        return not self.moved and self.storage.changes_in_few(self.rows_that_differ)

    @property
    def has_many_changes(self) -> bool:
        return self.rows_that_differ > MANY

    def is_large(self, relation: Relation) -> bool:
        """Whether moving all rows of its tables to other tasks takes longer than a statement that avoids it."""
        scans = [self.of(node) for node in walk(relation) if isinstance(node, Scan)]
        return not self.has_many_changes and sum(one.rows * (SHUFFLE + one.row_cost) for one in scans) > WORTH_A_STATEMENT

    def share(self, scan: Scan, wanted: Mapping[str, ValueRange]) -> float:
        """The share of a table's rows in files that may have the wanted values."""
        table, at = self._table(scan)
        if not wanted or table is None or self.of(scan).bytes < LITTLE:
            return 1.0
        types, sources = {field["name"]: field["type"] for field in table.schema["fields"]}, dict(scan.sources)
        columns = [(sources[name], found) for name, found in wanted.items() if types.get(sources[name]) == found.type]
        return min((self.read.share(table, at, column, found) for column, found in columns), default=1.0)

    def type_of(self, scan: Scan, name: str) -> Any:
        """The Iceberg type of a column of a table that is read under its current schema; None for other columns."""
        if scan.leaf == STORAGE or self.inputs[scan.leaf].leaf.travel is not None:
            return None
        source = dict(scan.sources).get(name)
        fields = self.inputs[scan.leaf].schema["fields"]
        return next((field["type"] for field in fields if field["name"] == source), None)

    def _table(self, scan: Scan) -> tuple[TableState | None, int]:
        """A whole table and its snapshot, if it is read under its current schema."""
        if scan.leaf == STORAGE:
            return self.storage.table, self.storage.table.current_snapshot_id or NO_SNAPSHOT
        one = self.inputs[scan.leaf]
        if scan.version not in ("old", "new") or one.leaf.travel is not None:
            return None, NO_SNAPSHOT
        return one.pin.table, one.old if scan.version == "old" else one.new

    def range(self, scan: Scan, name: str) -> ValueRange | None:
        """The range of a column in the rows that were added or removed."""
        change = self.changes.get(scan.leaf)
        if change is None or scan.version not in ("plus", "minus"):
            return None
        return self.read.range(change, scan.version, dict(scan.sources)[name])

    def of(self, scan: Scan) -> TableSize:
        key = (scan.leaf, scan.version, scan.sources)
        if key not in self._found:
            self._found[key] = self._of(scan)
        return self._found[key]

    def _of(self, scan: Scan) -> TableSize:
        if scan.leaf == STORAGE:
            held = self.storage
            return TableSize(bytes=held.bytes, rows=held.rows, read=held.rows, of=held.rows, row_cost=held.row_cost)
        one = self.inputs[scan.leaf]
        types = {field["name"]: field["type"] for field in one.schema["fields"]}
        cost = _row_cost(types.get(source, "") for _, source in scan.sources)
        change = self.changes.get(scan.leaf)
        if change is not None and scan.version in ("plus", "minus"):
            here = self.read.reads_here(change, sorted({source for _, source in scan.sources}))
            return replace(_of_change(change, scan.version, one.rows, cost), here=here)
        return TableSize(bytes=one.bytes, rows=one.rows, read=one.rows, of=one.rows, row_cost=cost)


def _of_change(change: TableChange, side: Side, of: int, cost: float) -> TableSize:
    added, removed, altered = change.added, change.removed, change.altered
    again, same = min(added.rows, removed.rows), _rewritten(change)
    if side == "plus":
        # Files whose deletes differ are read for rows that were hidden.
        compared = added.rows if again else 0
        return TableSize(bytes=added.bytes, rows=added.rows - same, read=added.rows, of=of, row_cost=cost, compared=compared)
    gone, read = change.rows - added.rows - same, removed.rows + altered.rows
    compared = read if again else 0
    return TableSize(bytes=removed.bytes + altered.bytes, rows=gone, read=read, of=of, row_cost=cost, compared=compared)


def rows_that_differ(change: TableChange) -> int:
    """The expected number of rows on both sides, without those that a rewritten file still has."""
    return change.rows - 2 * _rewritten(change)


def _rewritten(change: TableChange) -> int:
    """The expected number of rows that were removed with a file and added with another one."""
    again = min(change.added.rows, change.removed.rows)
    return again if change.removed.rows > change.added.rows else again - int(again * DIFFER)


def _row_cost(types: Iterable[Any]) -> float:
    return ROW + sum(CELL if type_ in _FIXED or str(type_).startswith("decimal") else TEXT for type_ in types)
