"""World + selection -> the nodes that must not be built, each with every reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mvbuild.diagnostics import Diagnostic
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import representation_problems
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.plan.collisions import collisions


def refused_nodes(world: World, selected: frozenset[NodeId]) -> Mapping[NodeId, tuple[Diagnostic, ...]]:
    """Names that are taken, definitions that a dialect cannot express, and broken contracts, by the current catalog. Settled models have
    none of these."""
    graph, ids = world.graph, sorted(selected - world.settled)
    found: dict[NodeId, list[Diagnostic]] = {id: list(collisions(world, graph.nodes[id])) for id in ids}
    models = [node for id in ids if isinstance(node := graph.nodes[id], ModelNode)]
    for id, problems in (*representation_problems(world, models).items(), *_broken_contracts(world, models).items()):
        found[id] += problems
    return {id: tuple(problems) for id, problems in found.items() if problems}


def _broken_contracts(world: World, models: Iterable[ModelNode]) -> Mapping[NodeId, list[Diagnostic]]:
    """The models that do not have the columns of their contract."""
    contracts = frozenset(world.graph.contracts)
    enforced = [node for node in models if node.id in contracts and node.id not in world.graph.undefined]
    if not enforced:
        return {}
    # Imported here because a run with nothing to refresh needs no SQL parser.
    from mvbuild.lineage.bind import bind
    from mvbuild.lineage.contracts import contract_problems
    from mvbuild.lineage.schemas import of_states

    bound = bind(world.graph, of_states(world.observed.states), only=[node.id for node in enforced])
    return {node.id: [d for d in contract_problems(node, bound) if d.severity == "error"] for node in enforced}
