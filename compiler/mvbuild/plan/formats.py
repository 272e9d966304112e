"""model + what the catalog has -> in which format the MV is kept, and in which it should be."""

from __future__ import annotations

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.formats import properties
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode
from mvbuild.ports.states import TableState, ViewState
from mvbuild.project.settings import StorageFormat


def wanted_format(node: ModelNode, storage: TableState | None) -> StorageFormat:
    """As configured; else as it is, so that an MV which was migrated stays so."""
    return node.model.config.storage_format or (found_format(storage) if storage is not None else "table-properties")


def found_format(storage: TableState) -> StorageFormat:
    return "metadata-file" if storage.of_view is not None else "table-properties"


def is_embedded(world: World, node: ModelNode) -> bool:
    """Whether the storage is, or is about to be, part of the MV's metadata file."""
    storage = world.observed.table(node.storage)
    return (wanted_format(node, None) if storage is None else found_format(storage)) == "metadata-file"


def unrecordable(node: ModelNode, why: str) -> Diagnostic:
    """What is said where the metadata file cannot hold what the MV reads."""
    span = node.model.config.spans.get("storage_format") or node.model.file.line_span(1)
    message = f"'{node.model.name}' cannot be recorded in a metadata file: {why}"
    help = "Use `storage: {format: table-properties}`, or read each table at one snapshot."
    return error("unsupported-format", message, span, help=help)


def is_mv(view: ViewState) -> bool:
    """Whether the catalog takes a view for an MV, in either format."""
    return view.storage is not None or properties.is_materialized(view.properties)
