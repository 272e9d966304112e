"""Base tables outside the target's catalog: in another metastore, or at a path. mvbuild only reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Protocol

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import TableType
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.states import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """The location of a base table that the target's catalog does not have."""

    identifier: TableIdentifier
    """For the two file-system types, only the path, as the name."""
    type: TableType
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """PyIceberg's properties of the other metastore, or options of the storage. They may contain secrets."""


class SourceError(CatalogError):
    """A base table cannot be read. `code` is a diagnostic code."""

    def __init__(
        self, message: str, identifier: TableIdentifier, *, code: str = "catalog-error", help: str = "", unreachable: bool = False
    ) -> None:
        super().__init__(message, unreachable=unreachable)
        self.identifier = identifier
        self.code = "catalog-unreachable" if unreachable else code
        self.help = help


class Sources(Protocol):
    """The state of such tables, in Iceberg's terms: the versions of a Delta table are its snapshots."""

    def load(self, locations: Iterable[SourceLocation]) -> Mapping[TableIdentifier, TableState]:
        """The tables that exist. Raises SourceError, with secrets masked, for the first one that cannot be read."""
