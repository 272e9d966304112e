"""name of a table in a metastore -> the location for it: below that of its database, as Iceberg's HiveCatalog and GlueCatalog choose it."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.folders import folder
from mvbuild.adapters.iceberg.pointers import FreelyPlaced
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from mvbuild.adapters.iceberg.hive_names import Names
    from mvbuild.names import TableIdentifier


class PlacedByDatabase(FreelyPlaced, ABC):
    """One level of namespaces, in lower case, whose databases have locations."""

    names_of: Names

    @abstractmethod
    def base(self, namespace: str) -> str:
        """The location for new tables of a namespace; empty if there is none."""

    def location(self, identifier: TableIdentifier) -> str:
        # Each new table has a directory that is never reused: a table that was dropped or renamed keeps its files there.
        return f"{self.scratch_location(identifier)}-{uuid.uuid4().hex[:8]}"

    def scratch_location(self, scratch: TableIdentifier) -> str:
        namespace = ".".join(scratch.namespace)
        self.names_of.require((namespace, scratch.name))
        found = self.base(namespace)
        if not found:
            raise CatalogError(
                f"Catalog '{scratch.catalog}' does not say where to create tables and views:"
                f" set 'warehouse', or a location for the database '{namespace}'."
            )
        return f"{found}/{folder(scratch.name)}"
