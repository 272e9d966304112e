"""World + Freshness + selection -> the MVs within their own windows that are too old for a selected MV that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from mvbuild.freshness.age import allows
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode, NodeId


def needed_fresher(world: World, freshness: Mapping[NodeId, Freshness], selected: frozenset[NodeId]) -> Mapping[NodeId, Reason]:
    """A window allows an MV to be old, but not the MVs that read it. All MVs in between must be newer as well, so an unselected one ends
    the search: a refresh of the MVs that it reads would have no effect."""
    found: dict[NodeId, Reason] = {}
    asked: set[tuple[NodeId, timedelta | None]] = set()

    def ask(node: ModelNode, window: timedelta | None, reader: ModelNode) -> None:
        for leaf in node_inputs(world.graph, node).leaves:
            above = world.graph.nodes[leaf.node]
            if not isinstance(above, ModelNode) or leaf.travel is not None or above.id not in selected or (above.id, window) in asked:
                continue
            if not allows(window, freshness[above.id].unseen):
                asked.add((above.id, window))
                message = f"{reader.identifier} reads it, and has to be newer"
                found.setdefault(above.id, Reason(code="needed-fresher", message=message, effect="fresh", table=reader.identifier))
                ask(above, window, reader)

    for id_ in (id for id in freshness if id in selected and id not in world.settled):
        node = world.graph.model(id_)
        ask(node, node.model.config.max_staleness, node)
    return found
