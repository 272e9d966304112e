"""The difference between two snapshots of a table, in files and bytes; questions about it; and where it is staged for an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import TableState

TEXTS = ("string", "binary")
"""Iceberg's types of variable length."""
_PLAIN = ("boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", *TEXTS)


def is_plain(type_: Any) -> bool:
    """Whether values of an Iceberg type (in JSON form) are the same in files, in memory and in an engine, bit by bit: only these are read
    and written without an engine. Nested values are not among them: writers disagree on the names and ids of their parts."""
    return isinstance(type_, str) and (type_ in _PLAIN or type_.startswith("decimal"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Data files, counted from metadata."""

    files: int = 0
    rows: int = 0
    """The record counts of the data files; deletes are not subtracted."""
    bytes: int = 0

    def __add__(self, other: FileGroup) -> FileGroup:
        return FileGroup(files=self.files + other.files, rows=self.rows + other.rows, bytes=self.bytes + other.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePart:
    """The change between two snapshots, by files."""

    old: int
    """NO_SNAPSHOT for the empty table."""
    new: int
    added: FileGroup
    """Data files in `new` that are not in `old`."""
    removed: FileGroup
    """Data files in `old` that are not in `new`."""
    altered: FileGroup
    """Files in both whose deletes differ: the whole files."""
    only_deletes: bool
    """No altered file can have rows that were restored; False if that is not known."""
    had_deletes: bool
    """An altered file may have had deletes at `old`; False only if none had."""
    deleted_rows: int
    """The rows that `new` deletes in altered files, for estimates: by how many records the new deletes of a file (or partition) exceed
    those that they replace."""
    files: Any = field(repr=False, compare=False)
    """The adapter's own manifest entries, for staging and relevance."""

    @property
    def bytes(self) -> int:
        """The size of the files with the change."""
        return self.added.bytes + self.removed.bytes + self.altered.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """The exact change of a table between two snapshots: T(new) = T(old) - minus + plus, as bags."""

    table: TableState
    old: int
    new: int
    parts: tuple[ChangePart, ...]
    """The change is the sum of the parts, as bags: one part may add a row that a later one removes. Every part has files."""
    manifests_read: int
    manifest_bytes_read: int

    @property
    def is_empty(self) -> bool:
        return not self.parts

    @property
    def may_restore(self) -> bool:
        """Whether deleted rows may have been restored."""
        return any(part.altered.files and part.had_deletes and not part.only_deletes for part in self.parts)

    @property
    def is_insert_only(self) -> bool:
        return not self.removed.files and not self.altered.files

    @property
    def added(self) -> FileGroup:
        return sum((part.added for part in self.parts), FileGroup())

    @property
    def removed(self) -> FileGroup:
        return sum((part.removed for part in self.parts), FileGroup())

    @property
    def altered(self) -> FileGroup:
        return sum((part.altered for part in self.parts), FileGroup())

    @property
    def rows(self) -> int:
        """The approximate number of rows of the change, on both sides."""
        return self.added.rows + self.removed.rows + sum(part.deleted_rows for part in self.parts)

    @property
    def bytes(self) -> int:
        """The size of the files with the change. Altered files may be read twice."""
        return sum(part.bytes for part in self.parts)


Operator = Literal["=", "<", "<=", ">", ">=", "is null", "is not null", "in", "starts with"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column of the table's current schema and a constant. NULL satisfies only `is null`."""

    column: str
    operator: Operator
    value: Any = None
    """A value of the column's type: int, Decimal with its scale, str, bool, date, or datetime without a zone. For `in`, a tuple of values.
    """


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Satisfied by one of these conjunctions."""

    branches: tuple[tuple[Predicate, ...], ...]


Predicate = Comparison | AnyOf


Side = Literal["plus", "minus"]
"""The rows that were added, or those that were removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRange:
    """The range of a column in some rows. No row has a value outside; without bounds, every value is NULL."""

    type: str
    """Iceberg's type: int, long, date, string or a decimal."""
    low: Any
    high: Any
    has_null: bool
    """False only if no row is NULL."""
    values: tuple[Any, ...] = ()
    """Every value, if the rows were read and are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """Rows that were read outside the engine."""

    count: int
    ranges: Mapping[str, ValueRange]
    """The ranges of columns whose values have an order that all systems agree on."""
    data: Any = field(repr=False, compare=False)
    """The adapter's own data, for `Engine.supply`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetRows:
    """The rows of a change, without those on both sides: T(new) = T(old) - minus + plus, as bags."""

    plus: ReadRows
    minus: ReadRows


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """Rows that were fetched from an engine (`Engine.fetch`), to be removed from a table and added to it."""

    removed: Any
    """Two columns: the data file of each row, and its position there."""
    added: Any
    """The columns of the table, in order, under any names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPart:
    """Scratch tables with the files of one part; None for a side without files."""

    added: TableIdentifier | None = None
    """At the part's `new`."""
    removed: TableIdentifier | None = None
    """At the part's `old`."""
    altered_old: TableIdentifier | None = None
    altered_new: TableIdentifier | None = None
    only_deletes: bool = True
    had_deletes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedChange:
    """A change as tables that an engine can read, under the current schema of the table."""

    parts: tuple[StagedPart, ...]

    @property
    def tables(self) -> tuple[TableIdentifier, ...]:
        """Every scratch table; drop each one with `Catalog.drop_scratch`."""
        found = (table for part in self.parts for table in (part.added, part.removed, part.altered_old, part.altered_new))
        return tuple(table for table in found if table is not None)
