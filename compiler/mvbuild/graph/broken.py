"""Graph -> the same with the models that cannot be built, because they or what they read is wrong; the tests that cannot run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from mvbuild.diagnostics import Diagnostic, Note, error
from mvbuild.formats.properties import OWNER
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, TableNode, TestNode, ViewNode
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import State, TableState, ViewState


def with_problems(nodes: Mapping[NodeId, Node], found: Iterable[tuple[NodeId, Diagnostic]]) -> dict[NodeId, Node]:
    """The nodes, with more errors of single models."""
    new = dict(nodes)
    for id_, problem in found:
        node = new[id_]
        assert isinstance(node, ModelNode)
        new[id_] = replace(node, model=replace(node.model, problems=(*node.model.problems, problem)))
    return new


def with_broken(graph: Graph, lost: Mapping[NodeId, Diagnostic] = MappingProxyType({})) -> Graph:
    """Set `problems`, `undefined` and `blocked` of a graph whose nodes are in topological order. `lost`: tables and views of the catalog
    that belong to a wrong model, whose name in the catalog is not known."""
    undefined: dict[NodeId, Diagnostic] = {}
    blocked: dict[NodeId, Diagnostic] = dict(lost)
    problems: list[Diagnostic] = []
    for node in graph.nodes.values():
        if isinstance(node, ViewNode) and (first := next((id for id in node.reads if id in blocked), None)) is not None:
            blocked.setdefault(node.id, blocked[first])
        if not isinstance(node, ModelNode):
            continue
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


def lost_names(graph: Graph, states: Mapping[TableIdentifier, State]) -> dict[NodeId, Diagnostic]:
    """Tables and views of the catalog that mvbuild wrote for a model of this project whose settings are wrong."""
    if not graph.problems:
        return {}
    wrong = {node.id: node.model.problems[0] for node in graph.models if not node.model.knows_settings}
    found: dict[NodeId, Diagnostic] = {}
    for node in graph.nodes.values():
        state = states.get(node.identifier) if isinstance(node, TableNode | ViewNode) else None
        owner = state.properties.get(OWNER) if isinstance(state, TableState | ViewState) else None
        if owner in wrong:
            found[node.id] = wrong[owner]
    return found


def unrunnable(graph: Graph, test: TestNode) -> Diagnostic | None:
    """Why a test cannot run: the first thing that it reads that does not compile, except for the stored rows of an MV."""
    seen, edge = set(test.reads), list(test.reads)
    while edge and graph.undefined:
        node = graph.nodes[edge.pop()]
        if isinstance(node, ModelNode) and node.storage is not None and node.model.knows_settings:
            continue
        if node.id in graph.undefined:
            why = graph.undefined[node.id]
            message = f"data test {test.name} reads {node.identifier}, which does not compile"
            return error("not-compiled", message, test.span, notes=(Note(message=why.message, span=why.span),))
        edge += (new := [id for id in node.reads if id not in seen])
        seen.update(new)
    return None


def _is_inlined(node: Node) -> bool:
    """Whether a reader has no definition without this one: its query goes into the reader's, or its name does, which is not known."""
    return isinstance(node, ModelNode) and (node.materialized == "ephemeral" or not node.model.knows_settings)


def _reader(node: ModelNode, above: NodeId, nodes: Mapping[NodeId, Node], why: Diagnostic) -> Diagnostic:
    read, parent = node.query.reads[node.reads.index(above)], nodes[above]
    name = parent.model.name if isinstance(parent, ModelNode) else str(parent.identifier)
    note = why.notes[0] if why.code == "not-compiled" else Note(message=why.message, span=why.span)
    return error("not-compiled", f"'{name}', which '{node.model.name}' reads, does not compile", read.span, notes=(note,))
