"""What a kind of catalog provides, as Protocols: reading metadata and making new metadata current. `MetadataCatalog` does the rest.

There are two implementations. `PointerPublisher` writes a metadata file and swaps the pointer to it: SQL catalogs, file-system warehouses,
Hive metastores, Glue, memory. `RemotePublisher` sends requirements and updates: REST, and whatever else PyIceberg loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mvbuild.adapters.iceberg.change_tables import Subset
    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.catalog import Lookup
    from mvbuild.ports.changes import NetRows, RowChange, TableChange, ValueRange
    from mvbuild.ports.commits import Change, TableLayout
    from mvbuild.ports.states import State, TableState, ViewState


class Data(Protocol):
    """The content of tables, as opposed to their metadata."""

    def empty_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> None:
        """Write the manifest list of a snapshot without files to `location`."""

    def repeated_manifest_list(self, location: str, raw: Raw, snapshot_id: int) -> str | None:
        """Write another manifest list with the files of the current snapshot; None for a snapshot of format 1 without a manifest list."""

    def overwrite(self, raw: Raw, columns: Mapping[str, Sequence[Any]]) -> Raw:
        """Write the files of a snapshot whose content is `columns`, on top of the current one; returns its JSON."""

    def rows(self, raw: Raw, location: str, limit: int, snapshot_id: int | None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Column names and rows of the current snapshot, or of another under its own schema."""

    def change(self, raw: Raw, table: TableState, old: int, new: int) -> TableChange:
        """The difference between two snapshots."""

    def net_rows(self, raw: Raw, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        """The rows of a change that are not on both sides."""

    def rows_within(self, raw: Raw, change: TableChange, columns: Sequence[str], wanted: tuple[str, ValueRange]) -> Any | None:
        """`TableChanges.rows_within`."""

    def positions(self, raw: Raw, snapshot_id: int | None, minus: Any, plus: Any) -> RowChange | None:
        """`TableChanges.positions` in a snapshot."""

    def stored_rows(self, raw: Raw, snapshot_id: int | None) -> Any | None:
        """See `TableChanges.stored_rows`."""

    def row_change(self, raw: Raw, head: Raw, change: RowChange, summary: Mapping[str, str]) -> Raw | None:
        """Write the files of a snapshot on top of `head`; returns its JSON, or None if only an engine can write them."""

    def with_subset(self, pinned: Raw, subset: Subset) -> Raw:
        """The metadata of a scratch table that has only some files of its snapshot; writes new manifests."""

    def reached(self, raw: Raw) -> set[str]:
        """Manifest lists, manifests, data and delete files of all snapshots, and statistics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """The metadata of a table, read from the catalog."""

    raw: Raw
    location: str
    """Of the metadata file."""
    data: Data
    """Reads and writes its files: the catalog may have issued credentials for this table."""


class Publisher(Protocol):
    """One catalog, or one branch of it. Methods may raise whatever their libraries raise, inside `guard`."""

    name: str

    def guard(self) -> AbstractContextManager[None]:
        """No exception of a library leaves this block, see `failures`."""

    @property
    def atomic(self) -> bool:
        """See `Catalog.atomic`."""

    @property
    def has_views(self) -> bool:
        """See `Catalog.has_views`."""

    @property
    def spark_reads_views(self) -> bool:
        """See `Catalog.spark_reads_views`."""

    @property
    def files(self) -> Files:
        """Where metadata files are stored."""

    def on_branch(self, branch: str) -> Publisher:
        """The same catalog as an Iceberg branch sees it."""

    def load(self, identifiers: Sequence[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        """The states of these different names, as far as they exist."""

    def look_up(self, identifiers: Sequence[TableIdentifier], tags: Mapping[str, str]) -> Lookup:
        """The same names, whose states are read on request. `tags`: see `Catalog.look_up`."""

    def stamps(self, identifiers: Sequence[TableIdentifier]) -> Mapping[TableIdentifier, str]:
        """See `Catalog.stamps`."""

    def read(self, identifier: TableIdentifier) -> TableMetadata | None:
        """The table of this name now; None if there is none."""

    def read_state(self, table: TableState) -> TableMetadata:
        """The metadata that a state was made from, or newer metadata of the same table that still has its snapshots."""

    def metadata_files(self, table: TableState, found: TableMetadata) -> set[str]:
        """The metadata files of an entry: the current one, those in its log, and hints."""

    def names(self, namespace: tuple[str, ...]) -> Iterable[TableIdentifier]:
        """The tables and views of a namespace, as the catalog spells them; none if it does not exist."""

    def views(self) -> Iterable[TableIdentifier]:
        """The views (and MVs) of all namespaces."""

    def add_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace and its parents, as far as they do not exist."""

    def scratch_location(self, table: TableState, scratch: TableIdentifier) -> str:
        """The location of a scratch table, made from `table`, that is only read."""

    def staging_location(self, table: TableState, scratch: TableIdentifier) -> str | None:
        """The location of a scratch table that an engine writes to; None if it is that of its base `table`."""

    def create(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        """Create a table without snapshots. Raises AlreadyExists if the name is taken."""

    def register(self, scratch: TableIdentifier, raw: Raw) -> TableState:
        """Create a table, and its namespace if needed, with this metadata. Raises AlreadyExists if the name is taken."""

    def new_storage(self, view: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        """See `Catalog.new_storage`."""

    def edit(self, identifier: TableIdentifier, make: Callable[[Raw, Data], Raw]) -> TableState:
        """Publish what `make` returns for the current metadata of a table. After a lost race, `make` gets the newer metadata."""

    def commit(self, changes: Sequence[Change]) -> Mapping[TableIdentifier, TableState | ViewState]:
        """See `Catalog.commit`."""

    def remove(self, identifier: TableIdentifier, location: str) -> bool:
        """Remove the entry of a table, if its metadata is still at `location` (REST: whatever it is). False if it is not."""

    def below(self, location: str) -> Iterable[tuple[str, int]]:
        """Every file below a location of a table, and those that engines wrote for it elsewhere."""

    def close(self) -> None:
        """Close connections. The publisher can still be used, and opens new ones."""
