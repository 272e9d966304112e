"""World -> what of the project's files the catalog does not have yet: seeds and views that were edited."""

from __future__ import annotations

from mvbuild.formats.properties import is_materialized
from mvbuild.freshness.observed import World
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode, NodeId, SeedNode
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.ports.catalog import ViewState

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
        id for id, node, view in views if view is None or is_materialized(view.properties) or not same_definition(world, node, view)
    )


def same_definition(world: World, node: ModelNode, view: ViewState | None) -> bool:
    """Whether the catalog's view is this model's, but for formatting and comments."""
    sql = view.representations.get("spark") if view else None
    if sql is None:
        return False
    wanted = definition(world.graph, node).text
    return sql == wanted or fingerprint(sql) == fingerprint(wanted)


def _is_loaded(world: World, node: SeedNode) -> bool:
    table = world.observed.table(node.identifier)
    return table is not None and table.properties.get(SEED_CHECKSUM) == node.seed.checksum
