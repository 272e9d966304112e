"""nodes with their reads -> the same nodes in topological order, or a ProjectError that shows every cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mvbuild.diagnostics import Diagnostic, Note, ProjectError, error
from mvbuild.graph.model import ModelNode, Node, NodeId


def topological(nodes: Mapping[NodeId, Node]) -> dict[NodeId, Node]:
    """Parents before children, otherwise in the order of `nodes`, so that the result is stable."""
    ordered, missing = _ordered(nodes)
    if missing:
        raise ProjectError(_cycle(c, nodes) for c in _cycles(missing))
    return ordered


def cycles(nodes: Mapping[NodeId, Node]) -> list[list[NodeId]]:
    """One cycle for each group of nodes that read each other."""
    return _cycles(_ordered(nodes)[1])


def _ordered(nodes: Mapping[NodeId, Node]) -> tuple[dict[NodeId, Node], dict[NodeId, list[NodeId]]]:
    """The nodes in order, and for each remaining node what it waits for."""
    missing = {id: {r for r in node.reads if r in nodes} for id, node in nodes.items()}
    children: dict[NodeId, list[NodeId]] = {id: [] for id in nodes}
    for id_, parents in missing.items():
        for parent in parents:
            children[parent].append(id_)
    ordered: dict[NodeId, Node] = {}
    ready = [id for id, parents in missing.items() if not parents]
    while ready:
        following: list[NodeId] = []
        for id_ in ready:
            ordered[id_] = nodes[id_]
            for child in children[id_]:
                missing[child].discard(id_)
                if not missing[child]:
                    following.append(child)
        ready = following
    return ordered, {id: sorted(p) for id, p in missing.items() if id not in ordered}


def _cycles(parents: Mapping[NodeId, Sequence[NodeId]]) -> list[list[NodeId]]:
    """One cycle per group: walk up from every remaining node until a node repeats."""
    seen: set[NodeId] = set()
    cycles = []
    for start in parents:
        path: list[NodeId] = []
        at = start
        while at not in seen and at not in path:
            path.append(at)
            at = parents[at][0]
        if at in path:
            cycles.append(path[path.index(at) :])
        seen.update(path)
    return cycles


def _cycle(cycle: list[NodeId], nodes: Mapping[NodeId, Node]) -> Diagnostic:
    names = [_name(nodes[id]) for id in cycle]
    arrows = " -> ".join([*names, names[0]])
    steps = [_step(nodes[id], cycle[(i + 1) % len(cycle)], nodes) for i, id in enumerate(cycle)]
    if len(cycle) == 1:
        help = "Read the tables that its rows come from: what a model contained before is not one of its inputs."
        return error("cycle", f"The model '{names[0]}' reads itself", steps[0].span, help=help)
    return error("cycle", f"Models form a cycle: {arrows}", steps[0].span, notes=steps[1:])


def _step(node: Node, parent: NodeId, nodes: Mapping[NodeId, Node]) -> Note:
    message = f"{_name(node)} reads {_name(nodes[parent])}"
    if isinstance(node, ModelNode):
        return Note(message=message, span=node.query.reads[node.reads.index(parent)].span)
    return Note(message=message)


def _name(node: Node) -> str:
    return node.model.name if isinstance(node, ModelNode) else str(node.identifier)
