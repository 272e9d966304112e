"""World + MV + why it is stale -> Question: what the choice of a strategy depends on; and whether that has changed since."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pins import leaf_table
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


def has_moved(planned: World, now: World, node: ModelNode) -> bool:
    """Whether another strategy may be right now: the MV, or something that it reads, is not as the plan saw it. A step of the run may have
    written it; or another run, which made this one look again."""
    graph, below = now.graph, node_inputs(now.graph, node)
    # The storage of an MV may be embedded in its view.
    read = (name for leaf in below.leaves for name in (graph.nodes[leaf.node].identifier, leaf_table(graph, leaf)))
    names = {node.identifier, *((node.storage,) if node.storage else ()), *read, *(graph.nodes[view].identifier for view in below.views)}
    before, after = planned.observed, now.observed
    return (
        planned.graph is not graph or before.session != after.session or any(before.states.get(i) is not after.states.get(i) for i in names)
    )


def _keeps_layout(world: World, node: ModelNode) -> bool:
    """Whether partitioning and sort order are as configured; the columns are those of the same query."""
    storage = world.observed.table(node.storage)
    try:
        return storage is None or same_layout(storage, storage_layout(node, storage.schema))
    except ProjectError:
        return False
