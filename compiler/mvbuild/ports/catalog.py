"""The Iceberg catalog as mvbuild needs it: states to read, commits to make. No PyIceberg types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from mvbuild.names import TableIdentifier
from mvbuild.ports.changes import FileGroup, NetRows, Predicate, Side, StagedChange, TableChange, ValueRange
from mvbuild.ports.commits import Change, TableLayout
from mvbuild.ports.states import State, TableState, ViewState


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

    def compares(self, change: TableChange, columns: Sequence[str]) -> bool:
        """Whether files were written again, and `net_rows` can read and compare these columns, as far as metadata tells. Reads nothing."""

    def net_rows(self, change: TableChange, columns: Sequence[str]) -> NetRows | None:
        """Columns for which `compares` holds, read and compared in this process, under the table's current schema; None where they cannot
        be read, or too many rows differ: the engine does it then."""

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
