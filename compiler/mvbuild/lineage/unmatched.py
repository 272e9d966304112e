"""Graph -> the models whose queries read a column that none of their tables has, as far as the texts of the queries show.

Binding all queries of a project takes as long as compiling it. Without schemas.lock, only these are bound: whether a name is really a
mistake is for the binder to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode
from mvbuild.lineage.schemas import NO_SCHEMAS, of_node


def unmatched(graph: Graph, ids: Collection[NodeId]) -> Iterator[NodeId]:
    """Those of `ids` whose tables are all models or seeds with known columns, which do not have every name that the query reads."""
    known: dict[NodeId, frozenset[str] | None] = {}
    for id_ in ids:
        node = graph.nodes[id_]
        if not isinstance(node, ModelNode) or not node.query.names:
            continue
        columns = set[str]()
        for table in node.reads:
            found = known[table] if table in known else known.setdefault(table, _columns(graph, table))
            if found is None:
                break
            columns |= found
        else:
            if not columns.issuperset(node.query.names):
                yield id_


def _columns(graph: Graph, id_: NodeId) -> frozenset[str] | None:
    node = graph.nodes[id_]
    if isinstance(node, ModelNode):
        columns = node.query.columns if id_ not in graph.undefined else None
        return frozenset(name.lower() for name in columns) if columns is not None else None
    seed = of_node(node, NO_SCHEMAS) if isinstance(node, SeedNode) else None
    return frozenset(column.key for column in seed.columns) if seed is not None else None
