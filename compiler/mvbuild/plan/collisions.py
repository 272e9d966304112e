"""World + node -> diagnostics for the names that a run would write for it and that are taken."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.formats import properties
from mvbuild.formats.properties import OWNER
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import SEED_CHECKSUM, same_definition
from mvbuild.graph.model import ModelNode, Node, SeedNode
from mvbuild.ports.states import State, TableState, ViewState
from mvbuild.source import SourceFile, Span
from mvbuild.storage.format import is_mv


def collisions(world: World, node: Node) -> Iterator[Diagnostic]:
    """One diagnostic per name. An entry that mvbuild wrote, or another engine as an MV of the same name, is not a collision."""
    if isinstance(node, SeedNode):
        yield from _of_seed(world, node)
    elif isinstance(node, ModelNode) and node.materialized != "ephemeral":
        yield from _of_model(world, node)


def _of_seed(world: World, node: SeedNode) -> Iterator[Diagnostic]:
    state = world.observed.states.get(node.identifier)
    if isinstance(state, ViewState) or (isinstance(state, TableState) and not _is_of_seed(state, node)):
        kind = "view" if isinstance(state, ViewState) else "table"
        yield error(
            "name-collision",
            f"The seed '{node.seed.name}' would be loaded into {node.identifier}, a {kind} that mvbuild did not write",
            Span(SourceFile(node.seed.path, ""), 0, 0),
            help="Rename the seed with `alias:` or `namespace:`, or delete the file and read the existing table.",
        )


def _is_of_seed(table: TableState, node: SeedNode) -> bool:
    """Loaded by mvbuild, or created by a run that ended before it wrote rows."""
    return SEED_CHECKSUM in table.properties or table.properties.get(OWNER) == node.id


def _of_model(world: World, node: ModelNode) -> Iterator[Diagnostic]:
    spans = node.model.config.spans
    state = world.observed.states.get(node.identifier)
    span = spans.get("alias") or spans.get("namespace") or node.model.file.line_span(1)
    if isinstance(state, TableState):
        yield _taken(node, f"{node.identifier}, which is a table", span)
    elif isinstance(state, ViewState) and OWNER not in state.properties and not _is_view_of(world, node, state):
        yield _taken(node, f"{node.identifier}, a view that mvbuild did not write", span)
    if node.storage is None:
        return
    storage = world.observed.states.get(node.storage)
    span = spans.get("storage_table") or span
    if isinstance(storage, ViewState):
        yield _taken(node, f"{node.storage}, which is a view", span)
    elif isinstance(storage, TableState) and not _is_storage_of(storage, state):
        yield _taken(node, f"{node.storage}, a table that mvbuild did not write", span)


def _is_view_of(world: World, node: ModelNode, view: ViewState) -> bool:
    """A materialized view of any engine; or mvbuild's own, which another writer recreated with the same definition."""
    storage = world.observed.table(node.storage)
    is_again = storage is not None and storage.properties.get(OWNER) == node.id and same_definition(world, node, view)
    return node.storage is not None and (is_mv(view) or is_again)


def _is_storage_of(storage: TableState, view: State | None) -> bool:
    """Marked as ours, or the view (of any engine) points to it or embeds it."""
    if OWNER in storage.properties or storage.of_view is not None:
        return True
    pointer = view.properties.get(properties.STORAGE_TABLE, "") if isinstance(view, ViewState) else ""
    return pointer in (storage.identifier.dotted, str(storage.identifier), storage.identifier.name)


def _taken(node: ModelNode, what: str, span: Span) -> Diagnostic:
    return error("name-collision", f"The model '{node.model.name}' would be written to {what}", span)
