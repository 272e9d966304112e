"""World + node -> diagnostics for the names that a run would write for it and that are taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mvbuild.diagnostics import Diagnostic, error, warning
from mvbuild.formats import properties
from mvbuild.formats.properties import OWNER
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import is_of_seed, same_definition
from mvbuild.graph.model import ModelNode, Node, NodeId, SeedNode
from mvbuild.ports.states import State, TableState, ViewState
from mvbuild.source import SourceFile, Span
from mvbuild.storage.auxiliary_views import OWNED_BY
from mvbuild.storage.format import is_mv
from mvbuild.storage.names import storage_name


def collisions(world: World, node: Node) -> Iterator[Diagnostic]:
    """One diagnostic per name. An entry that mvbuild wrote, or another engine as an MV of the same name, is not a collision."""
    if isinstance(node, SeedNode):
        yield from _of_seed(world, node)
    elif isinstance(node, ModelNode) and node.materialized != "ephemeral":
        yield from _of_model(world, node)


def _of_seed(world: World, node: SeedNode) -> Iterator[Diagnostic]:
    state = world.observed.states.get(node.identifier)
    if isinstance(state, ViewState) or (isinstance(state, TableState) and not is_of_seed(state, node.id)):
        kind, owner = "view" if isinstance(state, ViewState) else "table", state.properties.get(OWNER)
        what = f"the {kind} of {owner}" if owner else _unowned(state)
        rename = "Rename the seed with `alias:` or `namespace:`"
        drop = f"remove it with `mvbuild drop {node.identifier.dotted}`" if owner else "delete the file and read the existing table"
        yield error(
            "name-collision",
            f"The seed '{node.seed.name}' would be loaded into {node.identifier}, {what}",
            Span(SourceFile(node.seed.path, ""), 0, 0),
            help=f"{rename}, or {drop}.",
        )


def _unowned(state: State) -> str:
    """What an entry is that belongs to no model or seed."""
    if isinstance(state, TableState) and OWNED_BY in state.properties:
        return f"an auxiliary view of {state.properties[OWNED_BY]}"
    return f"a {'view' if isinstance(state, ViewState) else 'table'} that mvbuild did not write"


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
        yield _taken(node, f"{node.storage}, {_unowned(storage)}", span)
    elif isinstance(storage, TableState) and _is_of_another(storage, node, state):
        help = "If it was renamed, set `previous_name:`. Otherwise drop the other one, or choose another `storage_table:`."
        yield _taken(node, f"{node.storage}, the storage of {storage.properties[OWNER]}", span, help)


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


def _is_of_another(storage: TableState, node: ModelNode, view: State | None) -> bool:
    """Written by another model, and not what our view shows: the other one's view may show it."""
    is_renamed = node.model.config.previous_name is not None
    is_shown = isinstance(view, ViewState) and storage_name(view) == storage.identifier
    return storage.properties.get(OWNER, node.id) != node.id and storage.of_view is None and not is_renamed and not is_shown


def _taken(node: ModelNode, what: str, span: Span, help: str = "") -> Diagnostic:
    return error("name-collision", f"The model '{node.model.name}' would be written to {what}", span, help=help)


def takeovers(world: World, ids: Iterable[NodeId]) -> Iterator[Diagnostic]:
    """A warning for each node that replaces what another project built. It may have moved here, or the project was renamed."""
    nodes = world.graph.nodes
    own = {id.split(".", 2)[1] for id in nodes if id.startswith(("model.", "seed."))}
    for node in (nodes[id] for id in ids):
        state = world.observed.states.get(node.identifier)
        owner = state.properties.get(OWNER, "") if isinstance(state, TableState | ViewState) else ""
        project = owner.split(".", 2)[1] if owner.count(".") > 1 else ""
        if project and project not in own:
            yield warning(
                "other-project",
                f"The project '{project}' built {node.identifier}, and this project replaces it",
                node.model.file.line_span(1) if isinstance(node, ModelNode) else None,
                help=f"If both projects are in use, rename one with `alias:` or `namespace:`. Otherwise remove {owner} there.",
            )
