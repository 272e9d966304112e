"""World + MV + why it is stale -> Question: what the choice of a strategy depends on."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.choose import Question
from mvbuild.incremental.inputs import ReadChange
from mvbuild.storage.layout import same_layout, storage_layout


def question(
    world: World, node: ModelNode, reasons: tuple[Reason, ...], pins: Mapping[Leaf, Pin], read: ReadChange, *, forced: bool = False
) -> Question:
    """`forced`: a full refresh was requested."""
    children = (world.graph.nodes[child] for child in world.graph.children[node.id])
    return Question(
        world=world,
        node=node,
        reasons=reasons,
        pins=pins,
        has_children=any(isinstance(child, ModelNode) for child in children),
        same_layout=_keeps_layout(world, node),
        policy="full" if forced else node.model.config.refresh_policy,
        read=read,
    )


def _keeps_layout(world: World, node: ModelNode) -> bool:
    """Whether partitioning and sort order are as configured; the columns are those of the same query."""
    storage = world.observed.table(node.storage)
    try:
        return storage is None or same_layout(storage, storage_layout(node, storage.schema))
    except ProjectError:
        return False
