"""World -> the files of the project that the catalog does not have yet: edited seeds and views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mvbuild.diagnostics import Diagnostic
from mvbuild.formats.properties import OWNER, STORAGE_TABLE, is_materialized
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import World
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode, NodeId, SeedNode, TableNode, ViewNode
from mvbuild.graph.view_text import DEFINITION, DIALECTS, further_dialects, storage_select
from mvbuild.names import TableIdentifier
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.ports.states import TableState, ViewState
from mvbuild.storage.history import DEFINITION as DEFINITION_READ
from mvbuild.storage.stored import summary_value

if TYPE_CHECKING:
    from mvbuild.dialects.representations import Known
    from mvbuild.equivalence.edit import Edit

SEED_CHECKSUM = "mvbuild.seed.sha256"
"""Property of a seed's table: the checksum of the file that its rows came from."""


def pending_seeds(world: World) -> frozenset[NodeId]:
    """Seeds whose file differs from what their table has."""
    seeds = [n for n in world.graph.nodes.values() if isinstance(n, SeedNode)]
    return frozenset(n.id for n in seeds if not _is_loaded(world, n))


def pending_views(world: World) -> frozenset[NodeId]:
    """Models that are plain views, and that the catalog lacks, has with another definition, or still has as an MV. A definition that does
    not compile counts as different."""
    new = (n for n in world.graph.models if n.storage is None and n.id not in world.settled)
    views = [(n.id, n, world.observed.view(n.identifier)) for n in new if n.materialized == "view"]
    return frozenset(
        id
        for id, node, view in views
        if view is None
        or id in world.graph.undefined
        or is_materialized(view.properties)
        or view.storage is not None
        or not same_definition(world, node, view)
    )


def same_definition(world: World, node: ModelNode, view: ViewState | None) -> bool:
    """Whether the catalog's view is this model's, ignoring formatting and comments."""
    sql = stored_definition(view, node.storage) if view else None
    if sql is None or node.id in world.graph.undefined:
        return False
    wanted = definition(world.graph, node).text
    return sql == wanted or fingerprint(sql) == fingerprint(wanted) or _has_its_rows(world, node, view, sql, wanted)


def _has_its_rows(world: World, node: ModelNode, view: ViewState | None, sql: str, wanted: str) -> bool:
    """Whether the view selects from a storage whose rows are those of the definition: then it has only lost the property."""
    storage = world.observed.table(node.storage)
    selects = view is not None and storage is not None and storage.of_view is None and _selects(view, sql, storage.identifier)
    return selects and storage is not None and summary_value(storage, DEFINITION_READ) == fingerprint(wanted)


def stored_definition(view: ViewState, storage: TableIdentifier | None = None) -> str | None:
    """The definition of an MV or view in the catalog, for Spark. A view that selects from its storage stores it in a property, which counts
    only until another writer changes the view's text. `storage`: where the rows are, if the pointer does not show it."""
    sql = view.representations.get("spark")
    if DEFINITION not in view.properties or sql is None:
        return sql
    pointer = TableIdentifier.parse(view.properties.get(STORAGE_TABLE, ""), view.identifier.catalog)
    return view.properties[DEFINITION] if any(_selects(view, sql, of) for of in (pointer, storage) if of) else sql


def definition_changed(world: World, node: ModelNode, view: ViewState) -> Reason:
    """Why a view in the catalog needs a new text."""
    edit = definition_edit(world, node, view) if node.id not in world.graph.undefined else None
    # A view that was an MV may have the same text.
    how = f": {edit.message}" if edit is not None and edit.rung != "tokens" else ""
    return Reason(code="definition-changed", message=f"its definition was changed{how}", effect="stale", edit=edit)


def definition_edit(world: World, node: ModelNode, view: ViewState) -> Edit | None:
    """How the definition in the catalog became that of the project; None if the catalog has none for Spark."""
    # Imported here because most definitions are as they were.
    from mvbuild.equivalence.ladder import compare

    old = stored_definition(view, node.storage)
    return compare(old, definition(world.graph, node).text, _columns_below(world, node)) if old else None


def _columns_below(world: World, node: ModelNode) -> dict[str, list[str]]:
    """Full name -> columns of what a model reads, as far as the catalog has it."""
    graph, below = world.graph, node_inputs(world.graph, node)
    nodes = [graph.nodes[id] for id in (*(leaf.node for leaf in below.leaves), *below.views)]
    states = ((n.identifier, world.observed.view(n.identifier) or world.observed.table(n.identifier)) for n in nodes)
    return {str(identifier).lower(): [f["name"] for f in state.schema["fields"]] for identifier, state in states if state is not None}


def view_text_differs(world: World, node: ModelNode, view: ViewState) -> bool:
    """Whether the view's SQL in the catalog differs by a single character from what it should be now. Without the tables that it reads, the
    SQL for other engines is not known."""
    if node.model.config.dialects and not _has_tables(world, node):
        return False
    columns = [f["name"] for f in view.schema["fields"]]
    kept = view.properties.get(DEFINITION)
    wanted = definition(world.graph, node).text if selects_storage(world, node) else None
    foreign = foreign_representations(node, view)
    own = {dialect: sql for dialect, sql in view.representations.items() if dialect not in foreign}
    return own != wanted_representations(world, node, columns) or kept != wanted


def foreign_representations(node: ModelNode, view: ViewState) -> dict[str, str]:
    """Dialect -> SQL that another engine added to the view."""
    own = {"spark", *further_dialects(node), *view.properties.get(DIALECTS, "").split(",")}
    return {dialect: sql for dialect, sql in view.representations.items() if dialect not in own}


def wanted_representations(world: World, node: ModelNode, columns: Sequence[str]) -> dict[str, str]:
    """Dialect -> SQL of a view with these columns, as the model's settings request it."""
    of_storage = selects_storage(world, node)
    if not node.model.config.dialects:
        return {"spark": storage_select(node.storage, columns) if of_storage and node.storage else definition(world.graph, node).text}
    # Imported here because most views are for Spark alone.
    from mvbuild.dialects.representations import representations

    return representations(world.graph, node, columns, of_storage=of_storage, known=_known(world))


def representation_problems(world: World, nodes: Iterable[ModelNode]) -> dict[NodeId, list[Diagnostic]]:
    """Why definitions among these models cannot be published in a dialect, given the catalog. A missing table blocks what reads it by
    itself."""
    asking = [node for node in nodes if node.model.config.dialects and _has_tables(world, node)]
    if not asking:
        return {}
    from mvbuild.dialects.representations import dialect_problems

    known = _known(world)
    return {node.id: found for node in asking if (found := dialect_problems(world.graph, [node], known))}


def _has_tables(world: World, node: ModelNode) -> bool:
    below = (world.graph.nodes[id] for id in world.graph.ancestors([node.id]))
    return all(world.observed.table(n.identifier) is not None for n in below if isinstance(n, TableNode))


def _known(world: World) -> Known:
    from mvbuild.dialects.representations import Known
    from mvbuild.lineage.schemas import of_states

    def dialects_of(node: ViewNode) -> Iterable[str]:
        view = world.observed.view(node.identifier)
        return view.representations if view is not None else ()

    return Known(schemas=of_states(world.observed.states), is_all=True, dialects_of=dialects_of)


def selects_storage(world: World, node: ModelNode) -> bool:
    """`catalog_view: storage`, which needs a storage table in the catalog."""
    storage, config = world.observed.table(node.storage), node.model.config
    is_embedded = config.storage_format == "metadata-file" if storage is None else storage.of_view is not None
    return node.storage is not None and config.catalog_view == "storage" and not is_embedded


def _selects(view: ViewState, sql: str, storage: TableIdentifier) -> bool:
    # The property has no quotes, so it cannot distinguish a dot in a name from one between names.
    return sql.replace("`", "") == storage_select(storage, [f["name"] for f in view.schema["fields"]]).replace("`", "")


def _is_loaded(world: World, node: SeedNode) -> bool:
    table = world.observed.table(node.identifier)
    return table is not None and table.properties.get(SEED_CHECKSUM) == node.seed.checksum


def is_of_seed(table: TableState, seed: NodeId) -> bool:
    """Loaded by mvbuild, or created by a run that ended before it wrote rows."""
    return SEED_CHECKSUM in table.properties or table.properties.get(OWNER) == seed
