"""The types of binding: Column, Origin, what a model takes from each node that it reads (NodeLineage), and Bound for a whole graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.graph.model import Graph, NodeId
from mvbuild.source import Span


@dataclass(frozen=True, slots=True)
class Column:
    """An output column of a node, under the name that Spark gives it."""

    name: str
    type: str | None = None
    """Spark's type in its simple form: `bigint`, `decimal(12,2)`, `struct<a:int>`. None if it cannot be known."""
    span: Span | None = field(default=None, compare=False)
    """Where the user wrote the column: the expression or alias in a model, the YAML of a declared column."""

    @property
    def key(self) -> str:
        """Equal for names that Spark treats as equal."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """A column of a node. `column` has the node's spelling if its columns are known, otherwise the query's."""

    node: NodeId
    column: str

    @property
    def key(self) -> tuple[NodeId, str]:
        return self.node, self.column.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLineage:
    """What one query takes from the nodes that it reads directly."""

    columns: tuple[Column, ...]
    """The columns that are known: all of them, in order, if the node is one of `Bound.columns`."""
    values: tuple[frozenset[Origin], ...]
    """For each of `columns`: the columns that its value is computed from."""
    rows: frozenset[Origin]
    """The columns that decide which rows there are: those of joins, filters, groups and DISTINCT."""
    unsure: frozenset[int] = frozenset()
    """Indexes of columns that may come from other columns too, because a name in them could not be resolved."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A graph with the columns of its nodes."""

    graph: Graph
    columns: Mapping[NodeId, tuple[Column, ...]]
    """The columns of each node, in order. Nodes whose columns are not all known are absent."""
    lineage: Mapping[NodeId, NodeLineage]
    """For models and views of the catalog."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Definite errors, and warnings."""

    def column(self, node: NodeId, name: str) -> Column | None:
        """The column of that name, ignoring case."""
        index = self._index(node, name)
        return self.known(node)[index] if index is not None else None

    def known(self, node: NodeId) -> tuple[Column, ...]:
        """The columns of a node, as far as they are known."""
        return self.lineage[node].columns if node in self.lineage else self.columns.get(node, ())

    def parents(self, node: NodeId, name: str) -> frozenset[Origin]:
        """The columns of other nodes that a column is computed from, in one step."""
        index = self._index(node, name)
        return self.lineage[node].values[index] if index is not None and node in self.lineage else frozenset()

    def origins(self, node: NodeId, name: str) -> frozenset[Origin]:
        """The columns of base tables that the value of a column comes from; for a base table, the column itself."""
        return self._origins(Origin(node, name))

    def indirect(self, node: NodeId) -> frozenset[Origin]:
        """The columns of base tables that decide which rows a node has."""
        return self._indirect.get(node, frozenset())

    def is_unsure(self, node: NodeId, name: str) -> bool:
        """Whether a column may come from more than its `origins`, because it or a column below it could not be resolved in full."""
        return Origin(node, name).key in self._unsure

    def readers(self, node: NodeId, name: str) -> frozenset[Origin]:
        """The columns of other nodes that are computed from a column, in one step."""
        return frozenset(self._readers.get(Origin(node, name).key, ()))

    def decides(self, node: NodeId, name: str) -> frozenset[NodeId]:
        """The nodes whose rows depend on a column, in one step."""
        return frozenset(self._decided.get(Origin(node, name).key, ()))

    def _index(self, node: NodeId, name: str) -> int | None:
        return self._places.get(node, {}).get(name.lower())

    def _origins(self, origin: Origin) -> frozenset[Origin]:
        if origin.node not in self.lineage:
            return frozenset((origin,))
        return self._base.get(origin.key, frozenset())

    @cached_property
    def _places(self) -> Mapping[NodeId, Mapping[str, int]]:
        known = ((id, self.known(id)) for id in (*self.columns, *self.lineage))
        return {id: {c.key: i for i, c in reversed(list(enumerate(columns)))} for id, columns in known}

    @cached_property
    def _base(self) -> Mapping[tuple[NodeId, str], frozenset[Origin]]:
        """Column of a query -> base columns. Nodes are in topological order, so the nodes that one reads come before it."""
        found: dict[tuple[NodeId, str], frozenset[Origin]] = {}
        for id, taken in self._ordered():
            for column, values in zip(taken.columns, taken.values, strict=True):
                found.setdefault((id, column.key), self._through(values, found))
        return found

    @cached_property
    def _indirect(self) -> Mapping[NodeId, frozenset[Origin]]:
        found: dict[NodeId, frozenset[Origin]] = {}
        for id, taken in self._ordered():
            below = [found.get(read, frozenset()) for read in dict.fromkeys(self.graph.nodes[id].reads)]
            found[id] = self._through(taken.rows, self._base).union(*below)
        return found

    @cached_property
    def _unsure(self) -> frozenset[tuple[NodeId, str]]:
        found: set[tuple[NodeId, str]] = set()
        for id, taken in self._ordered():
            for i, (column, values) in enumerate(zip(taken.columns, taken.values, strict=True)):
                if i in taken.unsure or any(o.key in found or self._is_opaque(o.node) for o in values):
                    found.add((id, column.key))
        return frozenset(found)

    @cached_property
    def _readers(self) -> Mapping[tuple[NodeId, str], tuple[Origin, ...]]:
        found: dict[tuple[NodeId, str], list[Origin]] = {}
        for id, taken in self._ordered():
            for column, values in zip(taken.columns, taken.values, strict=True):
                for origin in values:
                    found.setdefault(origin.key, []).append(Origin(id, column.name))
        return {key: tuple(dict.fromkeys(readers)) for key, readers in found.items()}

    @cached_property
    def _decided(self) -> Mapping[tuple[NodeId, str], tuple[NodeId, ...]]:
        found: dict[tuple[NodeId, str], list[NodeId]] = {}
        for id, taken in self._ordered():
            for origin in taken.rows:
                found.setdefault(origin.key, []).append(id)
        return {key: tuple(dict.fromkeys(nodes)) for key, nodes in found.items()}

    def _ordered(self) -> Iterable[tuple[NodeId, NodeLineage]]:
        return ((id, self.lineage[id]) for id in self.graph.nodes if id in self.lineage)

    def _is_opaque(self, node: NodeId) -> bool:
        """Whether nothing is known about the query of a node, so that lineage ends there."""
        return node not in self.lineage and bool(self.graph.nodes[node].reads)

    def _through(self, origins: frozenset[Origin], base: Mapping[tuple[NodeId, str], frozenset[Origin]]) -> frozenset[Origin]:
        if all(o.node not in self.lineage for o in origins):
            return origins
        return frozenset().union(*(base.get(o.key, frozenset()) if o.node in self.lineage else (o,) for o in origins))
