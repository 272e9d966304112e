"""What other programs do to a catalog."""

from __future__ import annotations

from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.commits import DropCommit


def drop(catalog: Catalog, identifier: TableIdentifier) -> None:
    """Drop the entry of a table or view, if there is one, but keep its files."""
    state = catalog.load([identifier]).get(identifier)
    if state is not None:
        catalog.commit([DropCommit(identifier=identifier, expect_metadata_location=state.metadata_location)])
