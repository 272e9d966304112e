"""tables of another metastore -> TableStates, with the same adapters as the target's catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg import open_catalog
from mvbuild.ports.sources import SourceError
from mvbuild.ports.states import TableState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mvbuild.names import TableIdentifier
    from mvbuild.ports.catalog import Catalog
    from mvbuild.ports.sources import SourceLocation


def opened(name: str, properties: Mapping[str, str]) -> Catalog:
    """Open a metastore without connecting to it. Nothing is ever created there."""
    return open_catalog(name, properties, create=False)


def load(catalog: Catalog, locations: Iterable[SourceLocation]) -> Mapping[TableIdentifier, TableState]:
    """The tables that exist. A view there is an error, because what it reads is not declared."""
    states = catalog.load(location.identifier for location in locations)
    tables = {}
    for identifier, state in states.items():
        if not isinstance(state, TableState):
            message = getattr(state, "reason", "it is a view, and a source of another metastore must be a table")
            raise SourceError(f"{identifier} cannot be read: {message}", identifier)
        tables[identifier] = state
    return tables
