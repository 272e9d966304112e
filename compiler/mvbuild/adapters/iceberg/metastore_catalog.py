"""pointers of a metastore + metadata files -> Catalog, for metastores with locations of databases and case-insensitive names."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Protocol

from mvbuild.adapters.iceberg.catalog import MetadataCatalog
from mvbuild.adapters.iceberg.folders import folder
from mvbuild.adapters.iceberg.pointers import Pointers
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from mvbuild.adapters.iceberg.hive_names import Names


class MetastorePointers(Pointers, Protocol):
    """The pointers of Hive and Glue."""

    names_of: Names
    spark_reads_views: bool
    """Whether Spark finds the views by name."""

    def base(self, namespace: str) -> str:
        """The location for new tables of a namespace; empty if there is none."""


class MetastoreCatalog(MetadataCatalog):
    """One level of namespaces, in lower case, and locations as Iceberg's HiveCatalog and GlueCatalog choose them."""

    def __init__(self, *, pointers: MetastorePointers, **others: Any) -> None:
        super().__init__(pointers=pointers, **others)
        self.spark_reads_views = pointers.spark_reads_views
        self._metastore = pointers

    def list_names(self, namespace: tuple[str, ...]) -> tuple[TableIdentifier, ...]:
        """The names as the metastore spells them, whatever case is asked for."""
        lower = tuple(part.lower() for part in namespace)
        if not self._metastore.names_of.can_be((".".join(lower), "")):
            return ()
        return super().list_names(lower)

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        self._metastore.names_of.require((".".join(namespace), ""))
        super().ensure_namespace(namespace)

    def _location(self, identifier: TableIdentifier) -> str:
        # Each new table has a directory that is never reused: a table that was dropped or renamed keeps its files there.
        return f"{self._base(identifier)}-{uuid.uuid4().hex[:8]}"

    def _scratch_location(self, scratch: TableIdentifier) -> str:
        return self._base(scratch)

    def _base(self, identifier: TableIdentifier) -> str:
        namespace = ".".join(identifier.namespace)
        self._metastore.names_of.require((namespace, identifier.name))
        found = self._metastore.base(namespace)
        if not found:
            raise CatalogError(
                f"Catalog '{self.name}' has no 'warehouse' and its database '{namespace}' no location,"
                " so there is no location for new tables and views."
            )
        return f"{found}/{folder(identifier.name)}"
