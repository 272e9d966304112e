"""Graph -> the same with the models that cannot be built, because their SQL or that of a model they read is wrong. All others continue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mvbuild.diagnostics import Diagnostic, Note, error
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId


def with_broken(graph: Graph) -> Graph:
    """Set `problems`, `undefined` and `blocked` of a graph whose nodes are in topological order."""
    undefined: dict[NodeId, Diagnostic] = {}
    blocked: dict[NodeId, Diagnostic] = {}
    problems: list[Diagnostic] = []
    for node in graph.models:
        if node.model.problems:
            problems += node.model.problems
            undefined[node.id] = blocked[node.id] = node.model.problems[0]
            continue
        above = next((id for id in node.reads if id in blocked), None)
        if above is None:
            continue
        blocked[node.id] = _reader(node, above, graph.nodes, blocked[above])
        inlined = next((id for id in node.reads if id in undefined and _is_inlined(graph.nodes[id])), None)
        if inlined is not None:
            undefined[node.id] = _reader(node, inlined, graph.nodes, undefined[inlined])
    return replace(graph, problems=tuple(problems), undefined=undefined, blocked=blocked) if blocked else graph


def _is_inlined(node: Node) -> bool:
    return isinstance(node, ModelNode) and node.materialized == "ephemeral"


def _reader(node: ModelNode, above: NodeId, nodes: Mapping[NodeId, Node], why: Diagnostic) -> Diagnostic:
    read, parent = node.query.reads[node.reads.index(above)], nodes[above]
    name = parent.model.name if isinstance(parent, ModelNode) else str(parent.identifier)
    note = why.notes[0] if why.code == "not-compiled" else Note(message=why.message, span=why.span)
    return error("not-compiled", f"'{name}', which '{node.model.name}' reads, does not compile", read.span, notes=(note,))
