"""The changes that a catalog is asked to make to tables and views, and what must still be true for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import RefreshRecord, StorageFormat
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import Partition, Schema, Sort, TableState, ViewState


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRefresh:
    """A refresh that is not current, and whose data is still in a snapshot of the storage."""

    refresh_id: int
    record: RefreshRecord
    sequence_number: int
    """The sequence number of that snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """The current entry in the `refreshes` of a metadata file, as the metadata-file draft defines it."""

    refresh_id: int
    record: RefreshRecord
    keep: int | None = 1
    """How many refreshes the file keeps, newest first; None keeps all."""
    others: tuple[OtherRefresh, ...] = ()
    """Further refreshes for the list, which the file may not have yet or not any more. Those that the format cannot represent are left out.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """The layout that a table should have. The catalog assigns the field ids of `schema`."""

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
    """Move `main` to this snapshot. None leaves it unchanged."""
    staged: TableIdentifier | None = None
    """Take `set_snapshot_id` and the layout from this scratch table, see `Catalog.stage`."""
    create_branch: tuple[str, int] | None = None
    drop_branches: tuple[str, ...] = ()
    set_properties: Mapping[str, str] = field(default_factory=dict)
    remove_properties: tuple[str, ...] = ()
    layout: TableLayout | None = None
    """Make this schema, partition spec and sort order current, without rewriting data."""
    schema_id: int | None = None
    """Make this schema of the table current again, for a rollback."""
    restate: Mapping[str, str] | None = None
    """Add a `replace` snapshot with the same files to `main`, whose summary has these entries: the record moves, the rows do not."""
    expire: frozenset[int] = frozenset()
    """Remove these snapshots. Their files remain, see `TableFiles.delete`."""
    rename_to: TableIdentifier | None = None
    of_view: TableIdentifier | None = None
    """The storage is embedded in this MV: the commit is one swap of the MV's metadata file, together with the MV's ViewCommit."""
    refresh: Refresh | None = None
    """The entry for the `refreshes` of the metadata file; only with `of_view`."""
    new_storage: str | None = None
    """For the first refresh of an embedded storage: the table metadata file that `Catalog.new_storage` wrote."""


OWN_CATALOG = ""
"""As a default catalog: the catalog that has the view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCommit:
    """Create a view, or give it a new version that becomes current."""

    identifier: TableIdentifier
    expect_metadata_location: str | None
    """The state that this commit is based on; None: the view must not exist."""
    version_id: int | None
    """1 for a new view, otherwise `last_version_id` + 1. None changes only properties and makes no new version."""
    schema: Schema
    representations: Mapping[str, str]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = OWN_CATALOG
    """Together with the namespace, it completes names in the SQL. None if there is no default."""
    properties: Mapping[str, str]
    """Properties to set, in addition to the existing ones."""
    storage_table: TableIdentifier | None = None
    """The `storage-table` field of the draft upstream specification."""
    uuid: str | None = None
    """The UUID for a new view, if something else in the same commit refers to it."""
    remove_properties: tuple[str, ...] = ()
    rename_to: TableIdentifier | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCommit:
    """Drop an entry, together with the other changes of the commit."""

    identifier: TableIdentifier
    expect_metadata_location: str
    """Empty if the catalog does not show it, as some catalogs do for an `Unreadable`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertCommit:
    """Move an MV to the other format, in one step and without touching data.

    To `metadata-file`: the view gets a metadata file that embeds its storage table, whose entry is removed. To `table-properties`: the
    embedded storage becomes the table `storage`, and the view points to it. `set_properties` are the record in the new encoding.
    """

    view: ViewState
    storage: TableState
    to: StorageFormat
    storage_name: TableIdentifier
    """The entry of the storage table: the one that is removed, or the one that is created."""
    refresh: Refresh | None = None
    set_properties: Mapping[str, str] = field(default_factory=dict)
    remove_properties: tuple[str, ...] = ()


BRANCH_PROPERTY = "mvbuild.branch."
"""The prefix of a branch's name: the property of a table or view that stores what the branch has and Iceberg keeps once for all branches.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchCommit:
    """Make what a branch has of a table or view current, or drop the branch. A view that only the branch has is created, or removed."""

    identifier: TableIdentifier
    branch: str
    to: Literal["publish", "drop"]


Change = TableCommit | ViewCommit | DropCommit | ConvertCommit | BranchCommit
