"""World -> what of the project's files the catalog does not have yet: seeds and views that were edited."""

from __future__ import annotations

from collections.abc import Sequence

from mvbuild.formats.properties import STORAGE_TABLE, is_materialized
from mvbuild.freshness.observed import World
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode, NodeId, SeedNode
from mvbuild.graph.representations import DEFINITION, representations, storage_select
from mvbuild.names import TableIdentifier
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.ports.states import ViewState

SEED_CHECKSUM = "mvbuild.seed.sha256"
"""Property of a seed's table: the checksum of the file that its rows came from."""


def pending_seeds(world: World) -> frozenset[NodeId]:
    """Seeds whose file is not what their table holds."""
    seeds = [n for n in world.graph.nodes.values() if isinstance(n, SeedNode)]
    return frozenset(n.id for n in seeds if not _is_loaded(world, n))


def pending_views(world: World) -> frozenset[NodeId]:
    """Models that are plain views, and that the catalog lacks, has with another definition, or still takes for an MV."""
    views = [(n.id, n, world.observed.view(n.identifier)) for n in world.graph.models if n.materialized == "view"]
    return frozenset(
        id
        for id, node, view in views
        if view is None or is_materialized(view.properties) or view.storage is not None or not same_definition(world, node, view)
    )


def same_definition(world: World, node: ModelNode, view: ViewState | None) -> bool:
    """Whether the catalog's view is this model's, but for formatting and comments."""
    sql = stored_definition(view) if view else None
    if sql is None:
        return False
    wanted = definition(world.graph, node).text
    return sql == wanted or fingerprint(sql) == fingerprint(wanted)


def stored_definition(view: ViewState) -> str | None:
    """The definition that the catalog has of an MV or view, for Spark. One that selects from its storage keeps it as a property, which
    counts only while nobody has given the view another text."""
    sql = view.representations.get("spark")
    return view.properties[DEFINITION] if DEFINITION in view.properties and sql is not None and _is_of_storage(view, sql) else sql


def view_text_differs(world: World, node: ModelNode, view: ViewState) -> bool:
    """Whether the view's SQL in the catalog is not, letter by letter, what it should be now."""
    columns = [f["name"] for f in view.schema["fields"]]
    kept = view.properties.get(DEFINITION)
    wanted = definition(world.graph, node).text if selects_storage(world, node) else None
    return dict(view.representations) != wanted_representations(world, node, columns) or kept != wanted


def wanted_representations(world: World, node: ModelNode, columns: Sequence[str]) -> dict[str, str]:
    """Dialect -> SQL of a view with these columns, as the model's settings ask for it."""
    return representations(world.graph, node, columns, of_storage=selects_storage(world, node))


def selects_storage(world: World, node: ModelNode) -> bool:
    """`catalog_view: storage`, which needs a storage table that the catalog has an entry for."""
    storage, config = world.observed.table(node.storage), node.model.config
    is_embedded = config.storage_format == "metadata-file" if storage is None else storage.of_view is not None
    return node.storage is not None and config.catalog_view == "storage" and not is_embedded


def _is_of_storage(view: ViewState, sql: str) -> bool:
    storage = TableIdentifier.parse(view.properties.get(STORAGE_TABLE, ""), view.identifier.catalog)
    # The property has no quotes that would tell a dot in a name from one between names.
    return sql.replace("`", "") == storage_select(storage, [f["name"] for f in view.schema["fields"]]).replace("`", "")


def _is_loaded(world: World, node: SeedNode) -> bool:
    table = world.observed.table(node.identifier)
    return table is not None and table.properties.get(SEED_CHECKSUM) == node.seed.checksum
