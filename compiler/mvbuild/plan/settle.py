"""Plan -> the models for which a run has nothing to do: the next command does not read their metadata, unless something changed."""

from __future__ import annotations

from collections.abc import Iterable

from mvbuild.formats.metadata_file import METADATA_LOCATION
from mvbuild.freshness.observed import World
from mvbuild.freshness.settled import remember
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.plan.model import Plan, Step
from mvbuild.ports.states import ViewState
from mvbuild.storage.names import former_name, storage_name

_OF_RUNS = "mvbuild_"
"""How the names of audit branches begin."""


def settle(planned: Plan) -> None:
    """Keep in the cache which models are settled: see `freshness.settled`."""
    world = planned.world
    if world.sighting is None or planned.renames:
        return
    settled = set(world.settled)
    for step in planned.steps:
        node = world.graph.nodes[step.node]
        if isinstance(node, ModelNode) and node.id not in settled and _is_settled(planned, step, node):
            settled.add(node.id)
    unsettled = [n.id for n in world.graph.models if n.id not in settled and (n.storage is not None or n.materialized != "ephemeral")]
    settled -= world.graph.descendants(unsettled) if unsettled and settled else set()
    new = settled - world.settled
    refreshed = {id: planned.freshness[id].refreshed_ms for id in new if id in planned.freshness}
    remember(world.sighting, world.graph, settled, dict(_files(world, new)), refreshed)


def _is_settled(planned: Plan, step: Step, node: ModelNode) -> bool:
    """Whether nothing but the metadata files of a model and its ancestors decides that there is nothing to do."""
    world, config = planned.world, node.model.config
    found = planned.freshness.get(node.id)
    if step.action != "reuse" or step.reasons or config.dialects or former_name(world.graph, node) is not None:
        return False
    if found is not None and (not found.is_fresh or found.reasons or found.unseen or found.failed is not None):
        return False
    if node.storage is not None and _reads_clock(world, node):
        # It is fresh only until midnight, and nothing in the catalog shows that it has passed.
        return False
    storage, view = world.observed.table(node.storage), world.observed.view(node.identifier)
    # Of runs that were killed. Whether the run is still alive is not in the catalog.
    has_branches = storage is not None and any(branch.startswith(_OF_RUNS) for branch in storage.branches)
    return not has_branches and view is not None and storage_name(view) in (None, node.storage)


def _reads_clock(world: World, node: ModelNode) -> bool:
    # Imported here because a run that finds everything settled reads no SQL.
    from mvbuild.freshness.clock import names_read

    return bool(names_read(world, node))


def _files(world: World, ids: Iterable[NodeId]) -> Iterable[tuple[NodeId, str]]:
    for id in ids:
        view = world.observed.states.get(world.graph.nodes[id].identifier)
        if isinstance(view, ViewState) and view.storage is not None:
            yield id, view.properties.get(METADATA_LOCATION) or view.metadata_location
