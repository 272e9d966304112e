"""The Iceberg catalog as mvbuild needs it: states to read, commits to make. No PyIceberg types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mvbuild.formats.record import RefreshRecord, TableType
from mvbuild.names import TableIdentifier

if TYPE_CHECKING:
    from mvbuild.formats.metadata_file import MvMetadata

Schema = Mapping[str, Any]
"""An Iceberg schema as its JSON form in the table specification: {"type": "struct", "schema-id": int, "fields": [...]}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One snapshot of a table, under the names of the Iceberg specification."""

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    operation: str
    """append, replace, overwrite or delete; empty where an old writer left it out."""
    schema_id: int | None
    summary: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A field of a partition spec: source column, transform as Iceberg writes it ("month", "bucket[16]", "identity")."""

    column: str
    transform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """A field of a sort order, by identity."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table as one metadata file gives it."""

    identifier: TableIdentifier
    uuid: str
    location: str
    metadata_location: str
    format_version: int
    current_snapshot_id: int | None
    current_schema_id: int
    schemas: Mapping[int, Schema]
    partition_by: tuple[Partition, ...]
    """The default partition spec."""
    sort_by: tuple[Sort, ...]
    """The default sort order; a field that is no plain column has its transform in `column`."""
    snapshots: Mapping[int, Snapshot]
    snapshot_log: Sequence[tuple[int, int]]
    """(timestamp-ms, snapshot id) of each change of the current snapshot, oldest first."""
    refs: Mapping[str, int]
    """Branches and tags -> snapshot id."""
    branches: frozenset[str]
    properties: Mapping[str, str]
    type: TableType = "iceberg-metastore"
    of_view: TableIdentifier | None = None
    """The MV that this storage is embedded in: it has no entry of its own in the catalog (metadata-file format)."""
    mv: MvMetadata | None = None
    """The metadata file that embeds it."""
    is_held: bool = False
    """The commit that makes this state current is held back: only the metadata file has it, not the entry of that name."""

    @property
    def current_snapshot(self) -> Snapshot | None:
        return None if self.current_snapshot_id is None else self.snapshots.get(self.current_snapshot_id)

    @property
    def schema(self) -> Schema:
        return self.schemas[self.current_schema_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """A view as one metadata file gives it; only the current version."""

    identifier: TableIdentifier
    uuid: str
    location: str
    metadata_location: str
    version_id: int
    last_version_id: int
    """The highest version id in the metadata: the next version gets this plus one."""
    representations: Mapping[str, str]
    """Dialect (lower case) -> SQL of the current version."""
    spark_versions: Mapping[int, str]
    """Version id -> SQL for Spark, of every version that is kept."""
    default_catalog: str | None
    default_namespace: tuple[str, ...]
    schema: Schema
    properties: Mapping[str, str]
    storage: TableState | None = None
    """The storage that an MV in the metadata-file format embeds. Its identifier is that of the view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A table or view whose metadata cannot be read or breaks a rule of its format; it stops nothing but what depends on it."""

    identifier: TableIdentifier
    reason: str
    """What is wrong, with the file, and the field where there is one."""
    metadata_location: str = ""


State = TableState | ViewState | Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRefresh:
    """A refresh that is not current, and whose data is kept in a snapshot of the storage."""

    refresh_id: int
    record: RefreshRecord
    sequence_number: int
    """Of that snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """The current entry for the `refreshes` of a metadata file, by the metadata-file draft."""

    refresh_id: int
    record: RefreshRecord
    keep: int | None = 1
    """How many refreshes the file holds afterwards, the newest; None holds all."""
    others: tuple[OtherRefresh, ...] = ()
    """Those that the file may not list yet, or not any more. One that the format cannot hold is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """What a table should look like. Field ids of `schema` are the catalog's to assign."""

    schema: Schema
    partition_by: tuple[Partition, ...] = ()
    sort_by: tuple[Sort, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """One change of one table: what must still be true, and what to set."""

    identifier: TableIdentifier
    expect_uuid: str
    expect_snapshot_id: int | None
    """`main` must point here (None: the table must have no snapshot on main)."""
    set_snapshot_id: int | None = None
    """Move `main` to this snapshot. None leaves it alone."""
    staged: TableIdentifier | None = None
    """Take `set_snapshot_id` and the layout from this scratch table, see `Catalog.stage`."""
    create_branch: tuple[str, int] | None = None
    drop_branches: tuple[str, ...] = ()
    set_properties: Mapping[str, str] = field(default_factory=dict)
    remove_properties: tuple[str, ...] = ()
    layout: TableLayout | None = None
    """Make this schema, partition spec and sort order current, without touching data."""
    schema_id: int | None = None
    """Make this schema current, which the table has already: for a rollback."""
    restate: Mapping[str, str] | None = None
    """Put a `replace` snapshot with the same files on top of `main`, whose summary has these entries: the record moves, the rows do not."""
    expire: frozenset[int] = frozenset()
    """Forget these snapshots. Files are left, see `Catalog.delete_files`."""
    rename_to: TableIdentifier | None = None
    of_view: TableIdentifier | None = None
    """The storage is embedded in this MV: the commit is one swap of the MV's metadata file, together with the MV's own ViewCommit."""
    refresh: Refresh | None = None
    """What the metadata file's `refreshes` gets; only with `of_view`."""
    new_storage: str | None = None
    """For the first refresh of an embedded storage: the table metadata file that `Catalog.new_storage` wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCommit:
    """Create a view, or give it a new version that becomes current."""

    identifier: TableIdentifier
    expect_metadata_location: str | None
    """The state that this commit was made from; None: the view must not exist."""
    version_id: int | None
    """1 for a new view, else `last_version_id` + 1. None changes properties alone: no new version."""
    schema: Schema
    representations: Mapping[str, str]
    default_namespace: tuple[str, ...]
    properties: Mapping[str, str]
    """Set, besides those that are there."""
    storage_table: TableIdentifier | None = None
    """The `storage-table` field of the draft upstream specification."""
    uuid: str | None = None
    """Of a new view, where something else in the same commit names it already."""
    remove_properties: tuple[str, ...] = ()
    rename_to: TableIdentifier | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCommit:
    """Drop an entry, together with the other changes of the commit."""

    identifier: TableIdentifier
    expect_metadata_location: str
    """Empty where the catalog cannot tell: of an `Unreadable` of some catalogs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertCommit:
    """Move an MV to the other format, in one step and without touching data.

    To `metadata-file`: the view gets a metadata file that embeds its storage table, whose entry goes. To `table-properties`: the embedded
    storage becomes the table `storage`, and the view points at that. `set_properties` are the record in the new encoding.
    """

    view: ViewState
    storage: TableState
    to: Literal["table-properties", "metadata-file"]
    storage_name: TableIdentifier
    """The storage's entry: the one that goes, or the one that comes."""
    refresh: Refresh | None = None
    set_properties: Mapping[str, str] = field(default_factory=dict)
    remove_properties: tuple[str, ...] = ()


BRANCH_PROPERTY = "mvbuild.branch."
"""Before a branch's name: the property of a table or view with what the branch has and Iceberg keeps once for all branches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchCommit:
    """Make what a branch has of a table or view current, or forget the branch. A view that only the branch has comes, or goes."""

    identifier: TableIdentifier
    branch: str
    to: Literal["publish", "drop"]


Change = TableCommit | ViewCommit | DropCommit | ConvertCommit | BranchCommit


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


class CatalogError(Exception):
    """The catalog could not do what was asked. `unreachable` tells a lost connection from a refusal."""

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


class CommitConflict(CatalogError):
    """What a commit expected is no longer true. Nothing was changed."""


class AlreadyExists(CatalogError):
    """A table or view has that name."""


RefusedChange = Literal["snapshot-expired", "equality-deletes", "non-iceberg-source", "files-missing"]


class ChangeRefused(CatalogError):
    """The change of a table cannot be told from its metadata; `code` says why."""

    def __init__(self, code: RefusedChange, message: str) -> None:
        super().__init__(message)
        self.code = code


class Catalog(Protocol):
    """A catalog of Iceberg tables and views. Every method may raise CatalogError."""

    name: str

    @property
    def atomic(self) -> bool:
        """Whether `commit` moves all its tables in one step, with its views where those are kept as tables are; a REST catalog has its own
        ways for views, and they go first. If False it goes in the order given, views first."""

    @property
    def has_views(self) -> bool:
        """Whether it keeps views. One that does not (a file-system warehouse) holds MVs in the metadata-file format only."""

    @property
    def has_branches(self) -> bool:
        """Whether `on_branch` and BranchCommit can be had."""

    def on_branch(self, branch: str) -> Catalog:
        """The same catalog as an Iceberg branch sees it: where a table has the branch, what is current is the branch's; and whatever is
        committed changes the branch alone. The branch of a table whose `main` moved on since it was built counts as none."""

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        """The tables and views of that name (exact case); names that do not exist are left out."""

    def list_names(self, namespace: tuple[str, ...]) -> tuple[TableIdentifier, ...]:
        """All tables and views of a namespace; empty if it does not exist."""

    def list_views(self) -> tuple[TableIdentifier, ...]:
        """All views (and MVs in the metadata-file format) of all namespaces, mvbuild's scratch namespace aside."""

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create the namespace (and its parents) unless it is there."""

    def create_table(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        """A new table without snapshots. AlreadyExists if the name is taken."""

    def create_branch(self, table: TableState, branch: str) -> TableState:
        """A branch at the current snapshot of main; for a table without snapshots at a new, empty snapshot that main does not have."""

    def stage(self, table: TableState, layout: TableLayout, scratch: TableIdentifier) -> TableState:
        """Register a scratch table that shares the table's snapshots and location, with `layout` as its current schema, spec and order.

        What is written there becomes the table's by a TableCommit with `staged`; the table itself is untouched until then.
        """

    def new_storage(self, view: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        """Table metadata for an MV in the metadata-file format that was never refreshed: a file that nothing points at yet."""

    def pin_schema(self, table: TableState, snapshot_id: int, scratch: TableIdentifier, *, own_schema: bool = False) -> TableState:
        """Register a scratch table whose only snapshot is `snapshot_id` of `table`, read with the table's *current* schema or its own."""

    def change(self, table: TableState, old: int, new: int) -> TableChange:
        """What differs between any two snapshots (NO_SNAPSHOT: the empty table), by metadata alone. ChangeRefused if it cannot be told."""

    def may_match(self, change: TableChange, conjunctions: Sequence[tuple[Predicate, ...]]) -> bool:
        """Whether a row of the change can meet all predicates of one of the conjunctions, as far as metadata tells. Reads nothing."""

    def matching(self, change: TableChange, predicates: Sequence[Predicate]) -> FileGroup:
        """The files that were added in which a row can meet all predicates, as far as metadata tells. Reads nothing."""

    def value_ranges(self, change: TableChange, side: Side, columns: Iterable[str]) -> Mapping[str, ValueRange]:
        """The ranges of columns in the rows that came or went, of those columns for which metadata tells one. Reads nothing."""

    def stage_change(self, change: TableChange, new_scratch: Callable[[], TableIdentifier]) -> StagedChange:
        """Register scratch tables of metadata alone that show the rows of a change, under the table's current schema."""

    def drop_scratch(self, identifier: TableIdentifier) -> None:
        """Remove a scratch table's entry and metadata files, never a data file. Nothing happens if it does not exist."""

    def commit(self, changes: Sequence[Change]) -> Mapping[TableIdentifier, TableState | ViewState]:
        """All changes or none (see `atomic`); CommitConflict if an expectation does not hold. Gives the new states.

        A TableCommit with `of_view` and the ViewCommit of that view are one swap; the state of the view that is given has the storage.
        """

    def replace_rows(
        self, identifier: TableIdentifier, layout: TableLayout, columns: Mapping[str, Sequence[Any]], properties: Mapping[str, str]
    ) -> TableState:
        """Create the table if need be, give it `layout`, and make `columns` (name -> values) its whole content, in one snapshot of main."""

    def rows(self, table: TableState, limit: int, snapshot_id: int | None = None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Column names and up to `limit` rows of the current snapshot, or of another under its own schema, read without Spark."""

    def drop(self, identifier: TableIdentifier) -> None:
        """Drop a table or view entry, leaving its files."""

    def files(self, table: TableState) -> frozenset[str]:
        """Every file that the table's metadata reaches: metadata files of its log, manifest lists, manifests, data and delete files of all
        snapshots, statistics."""

    def spelled(self, location: str) -> str:
        """The one spelling that `files` and `list_files` have for a location: engines differ in file:/x, file:///x and /x."""

    def list_files(self, location: str) -> tuple[tuple[str, int], ...]:
        """(file, time of its last change in ms since the epoch) of everything below a location; spelled as `files` spells them."""

    def delete_files(self, files: Iterable[str]) -> int:
        """Delete files, and the local directories that become empty; how many there were. Missing ones do not matter."""
