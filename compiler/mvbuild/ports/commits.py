"""What is asked of a catalog: a change of one table or view, with what must still be true for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mvbuild.formats.record import RefreshRecord
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import Partition, Schema, Sort, TableState, ViewState


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


OWN_CATALOG = ""
"""The default catalog of a view's version that is the view's own."""


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
    default_catalog: str | None = OWN_CATALOG
    """With the namespace, what completes names in the SQL; None for none."""
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
