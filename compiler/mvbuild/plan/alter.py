"""World + MV -> Alteration: what a step that touches no row changes."""

from __future__ import annotations

from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import view_text_differs
from mvbuild.graph.model import ModelNode
from mvbuild.storage.alterations import Alteration, alteration_of


def alteration(world: World, node: ModelNode) -> Alteration | None:
    """None if there is nothing to alter, or no storage to alter. Raises ProjectError for a column that the storage does not have."""
    storage, view = world.observed.table(node.storage), world.observed.view(node.identifier)
    if storage is None or view is None:
        return None
    return alteration_of(node, storage, view, text_differs=view_text_differs(world, node, view))
