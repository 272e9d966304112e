"""The domain type of a refresh: RefreshRecord, what an MV's storage was built from. The modules beside this one have the encodings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from mvbuild.dataclass import dataclass

NO_SNAPSHOT = -1
"""Snapshot id of a table that had no snapshot when it was read (Iceberg's own sentinel)."""


StorageFormat = Literal["table-properties", "metadata-file"]
STORAGE_FORMATS: tuple[StorageFormat, ...] = get_args(StorageFormat)
TableType = Literal["iceberg-metastore", "iceberg-filesystem", "deltalake-filesystem"]
"""The types of the metadata-file draft: a table of a catalog, an Iceberg table at a path, a Delta table at a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseTable:
    """A table that a refresh read: a base table, or the storage table of an upstream MV."""

    uuid: str
    """Empty if the writer recorded only names (the metadata-file draft does not require it, and Trino has none)."""
    snapshot_id: int
    """The snapshot that was read, or NO_SNAPSHOT; for a Delta table its version."""
    type: TableType = "iceberg-metastore"
    catalog: str | None = None
    namespace: tuple[str, ...] = ()
    name: str = ""
    """For the two file-system types, the path of the table's directory, without a namespace."""
    ref: str | None = None
    """The branch or tag that was read; None for `main`."""
    place: tuple[tuple[str, str], ...] = ()
    """Sorted properties that identify another metastore or storage system, without secrets. Only the metadata file stores them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildView:
    """A view below the MV's own, direct or nested, that a refresh expanded."""

    uuid: str
    version_id: int
    catalog: str | None = None
    namespace: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRecord:
    """What one refresh read. `base_tables` has every distinct state: a table that was read at two snapshots appears twice."""

    view_version_id: int | None
    """None if the writer (Trino) does not record it."""
    base_tables: tuple[BaseTable, ...] = ()
    child_views: tuple[ChildView, ...] = ()
    refresh_start_ms: int | None = None
    incomplete: bool = False
    """Whether tables were read that the writer (Trino) could not name. mvbuild never writes such a record."""

    def of_table(self, uuid: str, namespace: tuple[str, ...] = (), name: str = "") -> tuple[BaseTable, ...]:
        """Every state of the table that was read; states of `main` come first. By name only if the record has no UUID."""
        found = (t for t in self.base_tables if t.uuid == uuid or (not t.uuid and name and (t.namespace, t.name) == (namespace, name)))
        return tuple(sorted(found, key=lambda t: t.ref is not None))

    def of_view(self, uuid: str, namespace: tuple[str, ...] = (), name: str = "") -> ChildView | None:
        """The state of a view that was expanded. A view that was registered under two names has one UUID; then the name must be equal
        too. So it must if another view had that name, as when two views swap their names."""
        found = [v for v in self.child_views if v.uuid == uuid]
        named = [v for v in self.child_views if (v.namespace, v.name) == (namespace, name)]
        if named or len(found) > 1:
            found = [v for v in found if v in named]
        return next(iter(found), None)


class RecordError(ValueError):
    """A stored record breaks a rule of its format. `field` is the property or JSON field."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


def integer(field: str, value: object) -> int:
    """An integer field, as a number or as its decimal digits -> int."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(value) if isinstance(value, str) else _refuse(field, value)
    except ValueError:
        return _refuse(field, value)


def _refuse(field: str, value: object) -> int:
    raise RecordError(field, f"must be an integer, not {value!r}")


Properties = Mapping[str, str]
