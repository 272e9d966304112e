"""model + what the catalog has -> the current and the wanted storage format of the MV."""

from __future__ import annotations

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.formats import properties
from mvbuild.formats.record import StorageFormat
from mvbuild.graph.model import ModelNode
from mvbuild.ports.states import TableState, ViewState


def wanted_format(node: ModelNode, storage: TableState | None) -> StorageFormat:
    """As configured; otherwise the current one, so that a migrated MV keeps its format."""
    return node.model.config.storage_format or (found_format(storage) if storage is not None else "table-properties")


def found_format(storage: TableState) -> StorageFormat:
    return "metadata-file" if storage.of_view is not None else "table-properties"


def is_embedded(node: ModelNode, storage: TableState | None) -> bool:
    """Whether the storage is, or will be, part of the MV's metadata file."""
    return (wanted_format(node, None) if storage is None else found_format(storage)) == "metadata-file"


def unrecordable(node: ModelNode, why: str) -> Diagnostic:
    """The error if the metadata file cannot express what the MV reads."""
    span = node.model.config.spans.get("storage_format") or node.model.file.line_span(1)
    message = f"'{node.model.name}' cannot be recorded in a metadata file: {why}"
    help = "Use `storage: {format: table-properties}`, or read each table at one snapshot."
    return error("unsupported-format", message, span, help=help)


def is_mv(view: ViewState) -> bool:
    """Whether the catalog has the view as an MV, in either format."""
    return view.storage is not None or properties.is_materialized(view.properties)
