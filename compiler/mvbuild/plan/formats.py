"""model + what the catalog has -> in which format the MV is kept, and in which it should be."""

from __future__ import annotations

from mvbuild.formats import properties
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode
from mvbuild.ports.catalog import TableState, ViewState
from mvbuild.project.settings import StorageFormat


def wants_metadata_file(node: ModelNode) -> bool:
    return wanted_format(node) == "metadata-file"


def wanted_format(node: ModelNode) -> StorageFormat:
    return node.model.config.storage_format or "table-properties"


def found_format(storage: TableState) -> StorageFormat:
    return "metadata-file" if storage.of_view is not None else "table-properties"


def is_embedded(world: World, node: ModelNode) -> bool:
    """Whether the storage is, or is about to be, part of the MV's metadata file."""
    storage = world.observed.table(node.storage)
    return wants_metadata_file(node) if storage is None else storage.of_view is not None


def is_mv(view: ViewState) -> bool:
    """Whether the catalog takes a view for an MV, in either format."""
    return view.storage is not None or properties.is_materialized(view.properties)
