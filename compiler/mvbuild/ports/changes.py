"""What differs between two snapshots of a table, in files and bytes; what is asked of it; and where it is staged for an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mvbuild.names import TableIdentifier
from mvbuild.ports.states import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Data files, counted from metadata."""

    files: int = 0
    rows: int = 0
    """Record counts of the data files: deletes are not subtracted."""
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
    """Data files that `new` has and `old` has not."""
    removed: FileGroup
    """Data files that `old` has and `new` has not."""
    altered: FileGroup
    """In both, and their deletes differ: whole files."""
    only_deletes: bool
    """No altered file can have got rows back; False if that is not known."""
    had_deletes: bool
    """An altered file may have had deletes at `old`; False only if none had."""
    deleted_rows: int
    """What `new` deletes in altered files, for estimates: by how many records the new deletes of a file (or partition) are more than those
    that they replace."""
    files: Any = field(repr=False, compare=False)
    """The adapter's own: manifest entries, for staging and for relevance."""

    @property
    def bytes(self) -> int:
        """Size of the files that hold the change."""
        return self.added.bytes + self.removed.bytes + self.altered.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """The exact change of a table between two snapshots: T(new) = T(old) - minus + plus, as bags."""

    table: TableState
    old: int
    new: int
    parts: tuple[ChangePart, ...]
    """The change is their sum, as bags: a row may be added by one and removed by a later one. None is without files."""
    manifests_read: int
    manifest_bytes_read: int

    @property
    def is_empty(self) -> bool:
        return not self.parts

    @property
    def may_restore(self) -> bool:
        """Whether rows that deletes hid may have come back."""
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
        """About how many rows the change has on both sides."""
        return self.added.rows + self.removed.rows + sum(part.deleted_rows for part in self.parts)

    @property
    def bytes(self) -> int:
        """Size of the files that hold the change; altered files may be read twice."""
        return sum(part.bytes for part in self.parts)


Operator = Literal["=", "<", "<=", ">", ">=", "is null", "is not null", "in", "starts with"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column of the table's current schema and a constant. NULL meets none but `is null`."""

    column: str
    operator: Operator
    value: Any = None
    """Of the column's type: int, Decimal with its scale, str, bool, date, or datetime without a zone. For `in` a tuple of them."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of these conjunctions."""

    branches: tuple[tuple[Predicate, ...], ...]


Predicate = Comparison | AnyOf


Side = Literal["plus", "minus"]
"""The rows that came, or those that went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRange:
    """Of a column in some rows. No row has a value outside; without bounds, no row has a value at all."""

    type: str
    """Iceberg's: int, long, date, string or a decimal."""
    low: Any
    high: Any
    has_null: bool
    """False only if no row is NULL."""
    values: tuple[Any, ...] = ()
    """Every value, where the rows were read and are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """Rows that were read outside of the engine."""

    count: int
    ranges: Mapping[str, ValueRange]
    """Of the columns whose values have an order that all agree on."""
    data: Any = field(repr=False, compare=False)
    """The adapter's own, for `Engine.supply`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetRows:
    """The rows of a change without those that it has on both sides: T(new) = T(old) - minus + plus, as bags."""

    plus: ReadRows
    minus: ReadRows


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPart:
    """Scratch tables with the files of one part; None where there are no files."""

    added: TableIdentifier | None = None
    """As of the part's `new`."""
    removed: TableIdentifier | None = None
    """As of the part's `old`."""
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
        """Every scratch table, each to be dropped with `Catalog.drop_scratch`."""
        found = (table for part in self.parts for table in (part.added, part.removed, part.altered_old, part.altered_new))
        return tuple(table for table in found if table is not None)
