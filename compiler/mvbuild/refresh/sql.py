"""query + pins -> the SQL that the engine runs: every table at its pinned snapshot, child views and ephemeral models expanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from mvbuild.freshness.clock import columns_below
from mvbuild.freshness.expansion import TableOf, expanded_relation, expanded_sql
from mvbuild.freshness.leaves import NONE
from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.graph.definition import table_sql
from mvbuild.graph.model import Graph, NodeId
from mvbuild.names import TableIdentifier
from mvbuild.parse.clock_reads import with_values
from mvbuild.parse.model import Query, Read
from mvbuild.ports.states import TableState
from mvbuild.refresh.pinned import Pinned
from mvbuild.source import MappedText


class SchemaPin(Protocol):
    """Returns a scratch table that shows the pinned snapshot under the table's current schema, or under its own."""

    def __call__(self, found: Pin, /, *, own_schema: bool = False) -> TableIdentifier: ...


def pinned_sql(
    graph: Graph,
    query: Query,
    reads: tuple[NodeId, ...],
    pins: Mapping[Leaf, Pin],
    schema_pin: SchemaPin,
    expanded: frozenset[NodeId] = NONE,
) -> MappedText:
    """The query for the engine: the user's text with only its table references replaced. `expanded`: see `inputs`."""
    return expanded_sql(graph, query, reads, _pinned(pins, schema_pin), expanded)


def pinned_query(pinned: Pinned, schema_pin: SchemaPin) -> tuple[Pinned, MappedText]:
    """The query of an MV at what a refresh of it reads. A time that cannot be put into the text is not recorded."""
    node, graph = pinned.node, pinned.world.graph
    sql = pinned_sql(graph, node.query, node.reads, pinned.pins, schema_pin)
    if not pinned.clock:
        return pinned, sql
    made = with_values(sql, pinned.clock, columns_below(pinned.world, pinned.inputs))
    return (replace(pinned, clock={}) if made is sql else pinned), made


def pinned_relation(
    graph: Graph, id_: NodeId, read: Read, pins: Mapping[Leaf, Pin], schema_pin: SchemaPin, expanded: frozenset[NodeId] = NONE
) -> str | MappedText:
    """The text for one table that a query reads, in the engine's SQL."""
    return expanded_relation(graph, id_, read, _pinned(pins, schema_pin), expanded)


def _pinned(pins: Mapping[Leaf, Pin], schema_pin: SchemaPin) -> TableOf:
    return lambda leaf: pinned_table(pins[leaf], schema_pin, own_version=leaf.travel is not None)


def pinned_table(pin: Pin, schema_pin: SchemaPin, *, own_version: bool = False) -> str:
    """A table at one snapshot. `VERSION AS OF` shows the snapshot's schema; if the table has a newer one, a scratch table shows that.

    An Iceberg table in no catalog is always read through a scratch table, because Spark SQL has no name for it.
    """
    table, own_version = pin.table, own_version and not pin.is_branch
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
    """Whether a catalog that Spark knows has an entry for the table in this state."""
    return table.type == "iceberg-metastore" and table.of_view is None and not table.is_held
