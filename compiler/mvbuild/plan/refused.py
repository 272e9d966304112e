"""World + selection -> the nodes that must not be built, each with every reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mvbuild.diagnostics import Diagnostic
from mvbuild.freshness.observed import World
from mvbuild.freshness.pending import representation_problems
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.plan.collisions import collisions


def refused_nodes(world: World, selected: frozenset[NodeId]) -> Mapping[NodeId, tuple[Diagnostic, ...]]:
    """Names that are taken, definitions that a dialect cannot express, and broken contracts, by the current catalog. Settled models have
    none of these."""
    graph, ids = world.graph, sorted(selected - world.settled)
    found: dict[NodeId, list[Diagnostic]] = {id: list(collisions(world, graph.nodes[id])) for id in ids}
    inlined = _inlined(graph, ids)
    models = [node for id in (*ids, *inlined) if isinstance(node := graph.nodes[id], ModelNode)]
    for id, problems in (*representation_problems(world, models).items(), *_broken_contracts(world, models).items()):
        found.setdefault(id, []).extend(problems)
    for id, above in inlined.items():
        for reader in above & found.keys():
            found[reader] += found.get(id, ())
    return {id: tuple(dict.fromkeys(problems)) for id, problems in found.items() if problems}


def _inlined(graph: Graph, ids: Iterable[NodeId]) -> dict[NodeId, set[NodeId]]:
    """Ephemeral models with a contract -> the given models that have their query, also through other ephemeral ones."""
    contracts = [id for id in graph.contracts if graph.model(id).materialized == "ephemeral"]
    found: dict[NodeId, set[NodeId]] = {id: set() for id in contracts}
    for id in ids if contracts else ():
        seen, edge = set[NodeId](), [id]
        while edge:
            below = {read for one in edge for read in graph.nodes[one].reads} - seen
            seen |= below
            edge = [one for one in below if isinstance(node := graph.nodes[one], ModelNode) and node.materialized == "ephemeral"]
        for one in contracts:
            if one in seen:
                found[one].add(id)
    return found


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
