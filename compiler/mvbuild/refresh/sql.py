"""query + pins -> the SQL that the engine runs: every table at its pinned snapshot, child views and ephemeral models expanded."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mvbuild.freshness.leaves import NONE, is_leaf
from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.graph.definition import parenthesized, replace_reads
from mvbuild.graph.model import Graph, ModelNode, NodeId, ViewNode
from mvbuild.names import TableIdentifier, quote
from mvbuild.parse.model import Query, Read
from mvbuild.source import MappedText

SchemaPin = Callable[[Pin], TableIdentifier]
"""Gives a scratch table that shows the pinned snapshot under the table's current schema."""


def pinned_sql(
    graph: Graph,
    query: Query,
    reads: tuple[NodeId, ...],
    pins: Mapping[Leaf, Pin],
    schema_pin: SchemaPin,
    expanded: frozenset[NodeId] = NONE,
) -> MappedText:
    """The query as the engine gets it: the user's text with only its table references replaced. `expanded`: see `inputs`."""

    def relation(id_: NodeId, read: Read) -> str | MappedText:
        node = graph.nodes[id_]
        if is_leaf(node, expanded):
            leaf = Leaf.of(id_, read.travel)
            return pinned_table(pins[leaf], schema_pin, own_version=leaf.travel is not None)
        if isinstance(node, ViewNode):
            return _view(node, pinned_sql(graph, node.query, node.reads, pins, schema_pin, expanded))
        assert isinstance(node, ModelNode)
        return parenthesized(pinned_sql(graph, node.query, node.reads, pins, schema_pin, expanded))

    return replace_reads(query, reads, relation)


def pinned_table(pin: Pin, schema_pin: SchemaPin, *, own_version: bool = False) -> str:
    """A table at one snapshot. `VERSION AS OF` shows the snapshot's schema; where the table has a newer one, a scratch table shows that."""
    table = pin.table
    if pin.is_empty:
        return f"(SELECT * FROM {table.identifier.sql} WHERE false)"
    schema_id = table.snapshots[pin.snapshot_id].schema_id
    if not own_version and schema_id is not None and schema_id != table.current_schema_id:
        return schema_pin(pin).sql
    return f"{table.identifier.sql} VERSION AS OF {pin.snapshot_id}"


def _view(node: ViewNode, sql: MappedText) -> str:
    """A view of the catalog gives the columns that it has in the catalog, by the names that it has there."""
    names = ", ".join(quote(c) for c in node.columns)
    if node.selected is None:
        return f"(SELECT * FROM ({sql.text}\n) AS view_query({names}))"
    columns = ", ".join(f"{quote(q)} AS {quote(c)}" for q, c in zip(node.selected, node.columns, strict=True))
    return f"(SELECT {columns} FROM ({sql.text}\n) AS view_query)"
