"""The Iceberg catalog as mvbuild needs it: names, states to read, commits to make. No PyIceberg types.

`Catalog.changes` has the difference of two snapshots, and `Catalog.files` the files of tables. Both are functions of metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from mvbuild.names import TableIdentifier
from mvbuild.ports.changes import RowChange
from mvbuild.ports.commits import Change, TableLayout
from mvbuild.ports.states import State, TableState, ViewState
from mvbuild.ports.table_changes import TableChanges
from mvbuild.ports.table_files import TableFiles


class CatalogError(Exception):
    """The catalog could not do what was asked. `unreachable` distinguishes a lost connection from a refusal."""

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


class CommitConflict(CatalogError):
    """Something that a commit expected is no longer true. Nothing was changed."""


class AlreadyExists(CatalogError):
    """A table or view has that name."""


RefusedChange = Literal["snapshot-expired", "equality-deletes", "partition-column-dropped", "non-iceberg-source", "files-missing"]


class ChangeRefused(CatalogError):
    """The change of a table cannot be determined from its metadata; `code` says why."""

    def __init__(self, code: RefusedChange, message: str) -> None:
        super().__init__(message)
        self.code = code


class Lookup(Protocol):
    """What a catalog has under some names at one time. Metadata is read when it is asked for, from where it was at that time."""

    @property
    def stamps(self) -> Mapping[TableIdentifier, str | None]:
        """For each name that exists, a text that differs if its state does. None if the catalog cannot say."""

    @property
    def views(self) -> frozenset[TableIdentifier]:
        """The names of views, with or without an embedded storage."""

    @property
    def tags(self) -> Mapping[str, str]:
        """Full name -> a text for the next `look_up`, with which the catalog can report that nothing changed, without returning metadata.
        Empty if it has a cheaper way."""

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        """The states of some of the names."""

    def stamp(self, location: str) -> str | None:
        """A text that differs if the metadata file there does; None if it does not exist, or nothing shows that it is still the same."""


class Catalog(Protocol):
    """A catalog of Iceberg tables and views. Every method may raise CatalogError."""

    name: str

    @property
    def changes(self) -> TableChanges:
        """What changed between snapshots of tables. Of the branch, after `on_branch`."""

    @property
    def files(self) -> TableFiles:
        """The rows and files of tables. Of the branch, after `on_branch`."""

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

    @property
    def spark_reads_views(self) -> bool:
        """Whether Spark finds the views by name."""

    def on_branch(self, branch: str) -> Catalog:
        """The same catalog as an Iceberg branch sees it: if a table has the branch, its current state is that of the branch, and commits
        change only the branch. A branch is ignored if the table's `main` changed after the branch was built."""

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        """The tables and views of these names (exact case). Names that do not exist are left out."""

    def look_up(self, identifiers: Iterable[TableIdentifier], tags: Mapping[str, str]) -> Lookup:
        """Like `load`, without reading more metadata than the catalog itself returns with its names. `tags`: those of an earlier lookup."""

    def stamps(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, str]:
        """For each name that exists, a text that differs if its state does. Reads as little as possible: most catalogs have only to look up
        where the metadata is."""

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

    def drop_scratch(self, identifier: TableIdentifier) -> None:
        """Remove the entry and metadata files of a scratch table, but no data file. Does nothing if the table does not exist."""

    def commit(self, changes: Sequence[Change]) -> Mapping[TableIdentifier, TableState | ViewState]:
        """Make all changes or none (see `atomic`), and return the new states. Raises CommitConflict if an expectation does not hold.

        A TableCommit with `of_view` and the ViewCommit of that view are one swap; the returned state of the view includes the storage.
        """

    def change_rows(self, identifier: TableIdentifier, branch: str | None, change: RowChange, summary: Mapping[str, str]) -> bool:
        """Remove and add rows of a table, or of an existing branch of it, in one snapshot with `summary` entries, without an engine.

        False, and nothing is changed, if an engine would write more or something else than this process can. Raises CommitConflict if
        another commit comes first.
        """

    def replace_rows(
        self, identifier: TableIdentifier, layout: TableLayout, columns: Mapping[str, Sequence[Any]], properties: Mapping[str, str]
    ) -> TableState:
        """Create the table if needed, give it `layout`, and replace its content with `columns` (name -> values), in one snapshot of
        main."""
