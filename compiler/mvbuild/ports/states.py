"""Tables and views as a catalog has them. No PyIceberg types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import TableType
from mvbuild.names import TableIdentifier

if TYPE_CHECKING:
    from mvbuild.formats.metadata_file import MvMetadata


Schema = Mapping[str, Any]
"""An Iceberg schema as its JSON form in the table specification: {"type": "struct", "schema-id": int, "fields": [...]}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One snapshot of a table, with the names of the Iceberg specification."""

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    operation: str
    """append, replace, overwrite or delete; empty if an old writer omitted it."""
    schema_id: int | None
    summary: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A field of a partition spec: source column, and transform as Iceberg writes it ("month", "bucket[16]", "identity")."""

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
    """A table as described by one metadata file."""

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
    """The default sort order. For a field with a transform, `column` contains the transform."""
    snapshots: Mapping[int, Snapshot]
    snapshot_log: Sequence[tuple[int, int]]
    """(timestamp-ms, snapshot id) of each change of the current snapshot, oldest first."""
    refs: Mapping[str, int]
    """Branches and tags -> snapshot id."""
    branches: frozenset[str]
    properties: Mapping[str, str]
    type: TableType = "iceberg-metastore"
    of_view: TableIdentifier | None = None
    """The MV that embeds this storage, which has no entry of its own in the catalog (metadata-file format)."""
    mv: MvMetadata | None = None
    """The metadata file that embeds it."""
    is_held: bool = False
    """The commit that makes this state current is pending: only the metadata file has it, not yet the entry of that name."""

    @property
    def current_snapshot(self) -> Snapshot | None:
        return None if self.current_snapshot_id is None else self.snapshots.get(self.current_snapshot_id)

    @property
    def schema(self) -> Schema:
        return self.schemas[self.current_schema_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """A view as described by one metadata file; only the current version."""

    identifier: TableIdentifier
    uuid: str
    location: str
    metadata_location: str
    version_id: int
    last_version_id: int
    """The highest version id in the metadata; the next version gets this plus one."""
    representations: Mapping[str, str]
    """Dialect (lower case) -> SQL of the current version."""
    spark_versions: Mapping[int, str]
    """Version id -> SQL for Spark, for every version in the metadata."""
    default_catalog: str | None
    default_namespace: tuple[str, ...]
    schema: Schema
    properties: Mapping[str, str]
    storage: TableState | None = None
    """The storage that an MV in the metadata-file format embeds. It has the identifier of the view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A table or view whose metadata cannot be read or breaks a rule of its format, or a view that cannot be expanded. It blocks only what
    depends on it."""

    identifier: TableIdentifier
    reason: str
    """What is wrong, with the file and, if there is one, the field."""
    metadata_location: str = ""
    code: str = "unreadable-metadata"
    """The code of the diagnostic for whatever reads it."""
    help: str = ""


State = TableState | ViewState | Unreadable
