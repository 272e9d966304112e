"""Graph + names from a reader -> nodes: models, seeds and sources by their own names or the catalog's, otherwise tables of the catalog."""

from __future__ import annotations

from dataclasses import replace

from mvbuild.diagnostics import ProjectError, did_you_mean, error
from mvbuild.formats.base_tables import split_parts
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TableNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.model import Query


def find(graph: Graph, name: str) -> Node:
    """A model or seed by its name, or anything by its name in the catalog."""
    wanted = name.replace("`", "").lower()
    for node in graph.nodes.values():
        if _is_called(node, wanted):
            return node
    raise _unknown(graph, name)


def with_name(graph: Graph, name: str) -> Graph:
    """The graph with a table of that name if the project does not know it: the catalog may."""
    wanted = name.replace("`", "").lower()
    if any(_is_called(node, wanted) for node in graph.nodes.values()):
        return graph
    identifier = _full_name(graph, split_parts(name))
    node = TableNode(id=f"table.{identifier}", identifier=identifier)
    return replace(graph, nodes={**graph.nodes, node.id: node})


def find_observed(world: World, name: str) -> Node:
    """`find` in a graph that was observed `with_name`."""
    try:
        node = find(world.graph, name)
    except ProjectError:
        # The catalog may spell the name differently from the reader.
        identifier = _full_name(world.graph, split_parts(name))
        node = world.graph.nodes[f"table.{identifier}"]
    is_new = isinstance(node, TableNode) and node.source is None and not world.graph.children[node.id]
    if is_new and node.identifier not in world.observed.states:
        raise _unknown(world.graph, name)
    return node


def resolve(graph: Graph, query: Query) -> tuple[tuple[NodeId, ...], dict[NodeId, TableNode]]:
    """The node of each read; and the new nodes: tables that no model reads, if the catalog has them."""
    by_key = {n.identifier.key: n.id for n in graph.nodes.values() if not _is_ephemeral(n)}
    by_name = {name: n.id for n in graph.nodes.values() for name in _own_names(n)}
    by_source = {_source_name(n): n.id for n in graph.nodes.values() if _source_name(n)}
    new: dict[NodeId, TableNode] = {}
    ids = []
    for read in query.reads:
        identifier = _full_name(graph, read.parts)
        words = tuple(part.lower() for part in read.parts)
        known = by_key.get(words) or by_key.get(identifier.key) or (by_name.get(words[0]) if len(words) == 1 else by_source.get(words))
        if known is None:
            known = f"table.{identifier}"
            new[known] = TableNode(id=known, identifier=identifier)
        ids.append(known)
    return tuple(ids), new


def _is_called(node: Node, wanted: str) -> bool:
    return wanted in (*_own_names(node), node.identifier.dotted.lower(), str(node.identifier).lower())


def _unknown(graph: Graph, name: str) -> ProjectError:
    names = [n.model.name for n in graph.models]
    what = f"Unknown model '{name}'" if names else f"Catalog '{graph.project.target.catalog_name}' has no table or view '{name}'"
    return ProjectError([error("unknown-name", what, help=did_you_mean(name, names))])


def _full_name(graph: Graph, parts: tuple[str, ...]) -> TableIdentifier:
    target = graph.project.target
    if len(parts) > 2 and parts[0].lower() == target.catalog_name.lower():
        parts = parts[1:]
    return TableIdentifier(target.catalog_name, parts[:-1] or target.namespace, parts[-1])


def _own_names(node: Node) -> tuple[str, ...]:
    """In lower case. The latest version of a model is meant by the name without a version, too."""
    if isinstance(node, ModelNode):
        version = node.model.version
        latest = (version.model.lower(),) if version and version.is_latest else ()
        return (node.model.name.lower(), *latest)
    return (node.seed.name.lower(),) if isinstance(node, SeedNode) else ()


def _source_name(node: Node) -> tuple[str, ...]:
    source = None if isinstance(node, ModelNode | SeedNode) else node.source
    return (source.source.lower(), source.name.lower()) if source else ()


def _is_ephemeral(node: Node) -> bool:
    return isinstance(node, ModelNode) and node.materialized == "ephemeral"
