"""The Iceberg catalog as mvbuild needs it: states to read, commits to make. No PyIceberg types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from mvbuild.names import TableIdentifier
from mvbuild.ports.changes import FileGroup, NetRows, Predicate, Side, StagedChange, TableChange, ValueRange
from mvbuild.ports.commits import Change, TableLayout
from mvbuild.ports.states import State, TableState, ViewState


class CatalogError(Exception):
    """The catalog could not do what was asked. `unreachable` distinguishes a lost connection from a refusal."""

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


class CommitConflict(CatalogError):
    """Something that a commit expected is no longer true. Nothing was changed."""


class AlreadyExists(CatalogError):
    """A table or view has that name."""


RefusedChange = Literal["snapshot-expired", "equality-deletes", "non-iceberg-source", "files-missing"]


class ChangeRefused(CatalogError):
    """The change of a table cannot be determined from its metadata; `code` says why."""

    def __init__(self, code: RefusedChange, message: str) -> None:
        super().__init__(message)
        self.code = code


class Catalog(Protocol):
    """A catalog of Iceberg tables and views. Every method may raise CatalogError."""

    name: str

    @property
    def atomic(self) -> bool:
        """Whether `commit` changes all tables in one step, and views as well if the catalog stores them like tables. A REST catalog commits
        views separately, and they go first. If False, commits are made in the given order, views first."""

    @property
    def has_views(self) -> bool:
        """Whether it has views. A catalog without views (a file-system warehouse) can hold MVs in the metadata-file format only."""

    @property
    def has_branches(self) -> bool:
        """Whether it supports `on_branch` and BranchCommit."""

    def on_branch(self, branch: str) -> Catalog:
        """The same catalog as an Iceberg branch sees it: if a table has the branch, its current state is that of the branch, and commits
        change only the branch. A branch is ignored if the table's `main` changed after the branch was built."""

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        """The tables and views of these names (exact case). Names that do not exist are left out."""

    def list_names(self, namespace: tuple[str, ...]) -> tuple[TableIdentifier, ...]:
        """All tables and views of a namespace; empty if it does not exist."""

    def list_views(self) -> tuple[TableIdentifier, ...]:
        """All views (and MVs in the metadata-file format) of all namespaces, except mvbuild's scratch namespace."""

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create the namespace and its parents if they do not exist."""

    def create_table(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        """Create a table without snapshots. Raises AlreadyExists if the name is taken."""

    def create_branch(self, table: TableState, branch: str) -> TableState:
        """Create a branch at the current snapshot of main. If the table has no snapshot, the branch gets a new, empty one that main does
        not have."""

    def stage(self, table: TableState, layout: TableLayout, scratch: TableIdentifier) -> TableState:
        """Register a scratch table that shares the table's snapshots and location, with `layout` as its current schema, spec and order.

        A TableCommit with `staged` publishes what is written there; until then the table itself is not changed.
        """

    def new_storage(self, view: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        """Write the table metadata of an MV in the metadata-file format that was never refreshed: a file that nothing refers to yet."""

    def pin_schema(self, table: TableState, snapshot_id: int, scratch: TableIdentifier, *, own_schema: bool = False) -> TableState:
        """Register a scratch table whose only snapshot is `snapshot_id` of `table`, read with the table's *current* schema or its own."""

    def change(self, table: TableState, old: int, new: int) -> TableChange:
        """The difference between any two snapshots (NO_SNAPSHOT: the empty table), from metadata only. Raises ChangeRefused if metadata
        does not show it."""

    def may_match(self, change: TableChange, conjunctions: Sequence[tuple[Predicate, ...]]) -> bool:
        """Whether metadata allows a row of the change to satisfy all predicates of one of the conjunctions. Reads no data."""

    def matching(self, change: TableChange, predicates: Sequence[Predicate]) -> FileGroup:
        """The added files in which, by their metadata, a row can satisfy all predicates. Reads no data."""

    def value_ranges(self, change: TableChange, side: Side, columns: Iterable[str]) -> Mapping[str, ValueRange]:
        """The ranges of columns in the rows that were added or removed, for columns whose range the metadata shows. Reads no data."""

    def compares(self, change: TableChange, columns: Sequence[str]) -> bool:
        """Whether files were rewritten and, as far as metadata shows, `net_rows` can read and compare these columns. Reads no data."""

    def net_rows(self, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        """Read and compare columns for which `compares` holds in this process, under the table's current schema. None if they cannot be
        read or too many rows differ; then the engine does it."""

    def stage_change(self, change: TableChange, new_scratch: Callable[[], TableIdentifier]) -> StagedChange:
        """Register scratch tables, made of metadata only, that show the rows of a change under the table's current schema."""

    def drop_scratch(self, identifier: TableIdentifier) -> None:
        """Remove the entry and metadata files of a scratch table, but no data file. Does nothing if the table does not exist."""

    def commit(self, changes: Sequence[Change]) -> Mapping[TableIdentifier, TableState | ViewState]:
        """Make all changes or none (see `atomic`), and return the new states. Raises CommitConflict if an expectation does not hold.

        A TableCommit with `of_view` and the ViewCommit of that view are one swap; the returned state of the view includes the storage.
        """

    def replace_rows(
        self, identifier: TableIdentifier, layout: TableLayout, columns: Mapping[str, Sequence[Any]], properties: Mapping[str, str]
    ) -> TableState:
        """Create the table if needed, give it `layout`, and replace its content with `columns` (name -> values), in one snapshot of
        main."""

    def rows(self, table: TableState, limit: int, snapshot_id: int | None = None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Column names and up to `limit` rows of the current snapshot, or of another one under its own schema, read without Spark."""

    def drop(self, identifier: TableIdentifier) -> None:
        """Drop the entry of a table or view, but keep its files."""

    def files(self, table: TableState) -> frozenset[str]:
        """Every file that the table's metadata refers to: its logged metadata files, manifest lists, manifests, data and delete files of
        all snapshots, and statistics."""

    def spelled(self, location: str) -> str:
        """The spelling of a location that `files` and `list_files` use: engines write file:/x, file:///x and /x."""

    def list_files(self, location: str) -> tuple[tuple[str, int], ...]:
        """(file, modification time in ms since the epoch) of everything below a location, spelled as in `files`."""

    def delete_files(self, files: Iterable[str]) -> int:
        """Delete files, and local directories that become empty. Returns how many files there were; missing files are ignored."""
