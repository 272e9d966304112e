"""query -> its SQL with child views and ephemeral models expanded, down to tables that the caller names."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.leaves import NONE, is_leaf
from mvbuild.freshness.observed import Leaf
from mvbuild.graph.definition import parenthesized, replace_reads
from mvbuild.graph.model import Graph, ModelNode, NodeId, ViewNode
from mvbuild.names import quote
from mvbuild.parse.model import Query, Read
from mvbuild.source import MappedText

TableOf = Callable[[Leaf], str]
"""The text that replaces a table in the SQL."""


def expanded_sql(graph: Graph, query: Query, reads: tuple[NodeId, ...], table: TableOf, expanded: frozenset[NodeId] = NONE) -> MappedText:
    """The user's text with only its table references replaced. `expanded`: see `inputs`."""
    return replace_reads(query, reads, lambda id_, read: expanded_relation(graph, id_, read, table, expanded))


def expanded_relation(graph: Graph, id_: NodeId, read: Read, table: TableOf, expanded: frozenset[NodeId] = NONE) -> str | MappedText:
    """The text that replaces one table or view that a query reads."""
    node = graph.nodes[id_]
    if is_leaf(node, expanded) or read.travel is not None:
        return table(Leaf.of(id_, read.travel))
    if isinstance(node, ViewNode):
        return _view(node, expanded_sql(graph, node.query, node.reads, table, expanded))
    assert isinstance(node, ModelNode)
    if id_ in graph.undefined:
        raise ProjectError([graph.undefined[id_]])
    return parenthesized(expanded_sql(graph, node.query, node.reads, table, expanded))


def _view(node: ViewNode, sql: MappedText) -> str:
    """A view of the catalog returns the columns that it has in the catalog: the first ones of its query by position, under its own names
    and types. Iceberg's extension of Spark (`ResolveViews`) does the same."""
    names = [quote(c) for c in node.columns]
    given = ", ".join((*names, *(quote(name) for name in _unlike(node.columns, node.further))))
    casts = node.casts or (None,) * len(names)
    columns = ", ".join(f"CAST({n} AS {cast}) AS {n}" if cast else n for n, cast in zip(names, casts, strict=True))
    return f"(SELECT {columns} FROM ({sql.text}\n) AS view_query({given}))"


def _unlike(names: tuple[str, ...], count: int) -> list[str]:
    """Names that differ from all of these."""
    taken = {name.lower() for name in names}
    free = (name for number in itertools.count() if (name := f"further_{number}") not in taken)
    return list(itertools.islice(free, count))
