"""Graph + names that a reader wrote -> nodes: models, seeds and sources by their own names or the catalog's, else tables of the catalog."""

from __future__ import annotations

from mvbuild.diagnostics import ProjectError, did_you_mean, error
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TableNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.model import Query, Read


def find(graph: Graph, name: str) -> Node:
    """A model or seed by its name, or anything by its name in the catalog."""
    wanted = name.replace("`", "").lower()
    for node in graph.nodes.values():
        if wanted in (_own_name(node), node.identifier.dotted.lower(), str(node.identifier).lower()):
            return node
    names = [n.model.name for n in graph.models]
    raise ProjectError([error("unknown-name", f"There is no model '{name}'", help=did_you_mean(name, names))])


def resolve(graph: Graph, query: Query) -> tuple[tuple[NodeId, ...], dict[NodeId, TableNode]]:
    """The node of each read; and those that are new: tables that no model reads, if the catalog has them."""
    by_key = {n.identifier.key: n.id for n in graph.nodes.values() if not _is_ephemeral(n)}
    by_name = {_own_name(n): n.id for n in graph.nodes.values() if _own_name(n)}
    by_source = {_source_name(n): n.id for n in graph.nodes.values() if _source_name(n)}
    new: dict[NodeId, TableNode] = {}
    ids = []
    for read in query.reads:
        identifier = _identifier(graph, read)
        words = tuple(part.lower() for part in read.parts)
        known = by_key.get(words) or by_key.get(identifier.key) or (by_name.get(words[0]) if len(words) == 1 else by_source.get(words))
        if known is None:
            known = f"table.{identifier}"
            new[known] = TableNode(id=known, identifier=identifier)
        ids.append(known)
    return tuple(ids), new


def _identifier(graph: Graph, read: Read) -> TableIdentifier:
    target, parts = graph.project.target, read.parts
    if len(parts) > 2 and parts[0].lower() == target.catalog_name.lower():
        parts = parts[1:]
    return TableIdentifier(target.catalog_name, parts[:-1] or target.namespace, parts[-1])


def _own_name(node: Node) -> str:
    return (node.model.name if isinstance(node, ModelNode) else node.seed.name if isinstance(node, SeedNode) else "").lower()


def _source_name(node: Node) -> tuple[str, ...]:
    source = None if isinstance(node, ModelNode | SeedNode) else node.source
    return (source.source.lower(), source.name.lower()) if source else ()


def _is_ephemeral(node: Node) -> bool:
    return isinstance(node, ModelNode) and node.materialized == "ephemeral"
