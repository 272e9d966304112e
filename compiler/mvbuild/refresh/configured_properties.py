"""MV + RunSession -> World in which its storage has the configured table properties."""

from __future__ import annotations

from mvbuild.formats.properties import OWNER
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode
from mvbuild.ports.commits import TableCommit
from mvbuild.refresh.session import RunSession
from mvbuild.storage.embedded import with_embedded
from mvbuild.storage.layout import changed_properties
from mvbuild.storage.names import known_as


def with_properties(session: RunSession, node: ModelNode, world: World) -> World:
    """Configured properties of the table are set before anything is written: one that the engine cannot read would make every refresh fail,
    including the one that corrects it."""
    storage = world.observed.table(node.storage)
    changes = changed_properties(node, storage) if storage is not None else None
    wanted = {name: value for name, value in changes.set.items() if name != OWNER} if changes else {}
    if storage is None or changes is None or not (wanted or changes.remove):
        return world
    commit = TableCommit(
        identifier=known_as(storage),
        of_view=storage.of_view,
        expect_uuid=storage.uuid,
        expect_snapshot_id=storage.current_snapshot_id,
        set_properties=wanted,
        remove_properties=changes.remove,
    )
    states = session.catalog.commit([commit])
    session.observe(states)
    return World(graph=world.graph, observed=world.observed.updated(with_embedded(world.graph, states)))
