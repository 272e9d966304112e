"""query + pins -> the SQL that the engine runs: every table at its pinned snapshot, child views and ephemeral models expanded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mvbuild.freshness.leaves import NONE, is_leaf
from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.graph.definition import parenthesized, replace_reads, table_sql
from mvbuild.graph.model import Graph, ModelNode, NodeId, ViewNode
from mvbuild.names import TableIdentifier, quote
from mvbuild.parse.model import Query, Read
from mvbuild.ports.catalog import TableState
from mvbuild.source import MappedText


class SchemaPin(Protocol):
    """Gives a scratch table that shows the pinned snapshot under the table's current schema, or under its own."""

    def __call__(self, found: Pin, /, *, own_schema: bool = False) -> TableIdentifier: ...


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
        return pinned_relation(graph, id_, read, pins, schema_pin, expanded)

    return replace_reads(query, reads, relation)


def pinned_relation(
    graph: Graph, id_: NodeId, read: Read, pins: Mapping[Leaf, Pin], schema_pin: SchemaPin, expanded: frozenset[NodeId] = NONE
) -> str | MappedText:
    """What stands in the engine's SQL for one table that a query reads."""
    node = graph.nodes[id_]
    if is_leaf(node, expanded) or read.travel is not None:
        leaf = Leaf.of(id_, read.travel)
        return pinned_table(pins[leaf], schema_pin, own_version=leaf.travel is not None)
    if isinstance(node, ViewNode):
        return _view(node, pinned_sql(graph, node.query, node.reads, pins, schema_pin, expanded))
    assert isinstance(node, ModelNode)
    return parenthesized(pinned_sql(graph, node.query, node.reads, pins, schema_pin, expanded))


def pinned_table(pin: Pin, schema_pin: SchemaPin, *, own_version: bool = False) -> str:
    """A table at one snapshot. `VERSION AS OF` shows the snapshot's schema; where the table has a newer one, a scratch table shows that.

    An Iceberg table that no catalog has is read through a scratch table always: Spark SQL has no name for it.
    """
    table = pin.table
    if table.type == "deltalake-filesystem":
        return f"{table_sql(table.type, table.identifier)} VERSION AS OF {pin.snapshot_id}"
    if not _has_name(table):
        return schema_pin(pin, own_schema=own_version).sql
    if pin.is_empty:
        return f"(SELECT * FROM {table.identifier.sql} WHERE false)"
    schema_id = table.snapshots[pin.snapshot_id].schema_id
    if not own_version and schema_id is not None and schema_id != table.current_schema_id:
        return schema_pin(pin).sql
    return f"{table.identifier.sql} VERSION AS OF {pin.snapshot_id}"


def _has_name(table: TableState) -> bool:
    """Whether a catalog that Spark knows has an entry for the table."""
    return table.type == "iceberg-metastore" and table.of_view is None


def _view(node: ViewNode, sql: MappedText) -> str:
    """A view of the catalog gives the columns that it has in the catalog, by the names that it has there."""
    names = ", ".join(quote(c) for c in node.columns)
    if node.selected is None:
        return f"(SELECT * FROM ({sql.text}\n) AS view_query({names}))"
    columns = ", ".join(f"{quote(q)} AS {quote(c)}" for q, c in zip(node.selected, node.columns, strict=True))
    return f"(SELECT {columns} FROM ({sql.text}\n) AS view_query)"
