"""Graph + Schemas -> Bound: the columns of every node, where they come from, and what is certainly wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from mvbuild.cache.store import Cache, Table
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, error
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, TableNode, ViewNode
from mvbuild.lineage.cache import bind_once
from mvbuild.lineage.contracts import contract_problems
from mvbuild.lineage.layout_types import mistyped_in_layout
from mvbuild.lineage.model import Bound, Column, NodeLineage, Origin
from mvbuild.lineage.named import duplicate, misnamed
from mvbuild.lineage.schemas import NO_SCHEMAS, Schemas, of_node
from mvbuild.lineage.statement import BoundQuery, Input
from mvbuild.lineage.types import parsed, stored, text
from mvbuild.lineage.values import Base, Finding
from mvbuild.parse import placeholder
from mvbuild.parse.model import Query, Read
from mvbuild.parse.template_output import written_by_template
from mvbuild.source import MappedText, Span


def bind(graph: Graph, schemas: Schemas = NO_SCHEMAS, only: Collection[NodeId] | None = None, *, keep: bool = False) -> Bound:
    """Bind the queries of a graph. Nodes whose columns cannot be determined are left out, without a diagnostic.

    `only` restricts the diagnostics to these nodes, and the work to them and what they read. With `keep`, results are cached for all
    processes, see `lineage.cache`.
    """
    wanted = None if only is None else {*only, *graph.ancestors(only)}
    nodes = [node for node in graph.nodes.values() if wanted is None or node.id in wanted]
    cache = graph.project.cache if keep else Cache()
    binder = _Binder(graph, schemas, cache.bindings, {}, {})
    found: list[Diagnostic] = []
    for node in nodes:
        wrong = binder.add(node)
        found += wrong if only is None or node.id in only else ()
    if keep and only is None:
        with suppress(OSError):
            graph.project.target_path.mkdir(parents=True, exist_ok=True)
    cache.save(*([cache.bindings] if only is None else []))
    columns = {id: found.columns for id, found in binder.known.items() if found.complete}
    bound = Bound(graph=graph, columns=columns, lineage=binder.lineage, diagnostics=tuple(found))
    asked = [node for node in nodes if only is None or node.id in only]
    problems = [p for node in asked if isinstance(node, ModelNode) for p in contract_problems(node, bound)]
    typed = [
        p for node in asked if isinstance(node, ModelNode) and node.storage for p in mistyped_in_layout(node, columns.get(node.id, ()))
    ]
    named = misnamed(graph, lambda id: [c.name for c in columns[id]] if id in columns else None, {node.id for node in asked})
    return replace(bound, diagnostics=(*bound.diagnostics, *problems, *named, *typed))


def bind_views(graph: Graph, schemas: Schemas) -> dict[NodeId, BoundQuery]:
    """Bind the queries of the views of the catalog: the columns of each query, before the view casts and renames them."""
    views = [node for node in graph.nodes.values() if isinstance(node, ViewNode)]
    wanted = {*graph.ancestors([view.id for view in views]), *(view.id for view in views)}
    binder = _Binder(graph, schemas, Cache().bindings, {}, {})
    found = {}
    for node in graph.nodes.values():
        if node.id not in wanted:
            continue
        if isinstance(node, ViewNode):
            found[node.id] = binder.bound(node)
        binder.add(node)
    return found


@dataclass(frozen=True, slots=True)
class _Binder:
    """The nodes that are bound so far."""

    graph: Graph
    schemas: Schemas
    cache: Table
    known: dict[NodeId, Input]
    lineage: dict[NodeId, NodeLineage]

    def add(self, node: Node) -> list[Diagnostic]:
        """What is wrong with it."""
        if node.id in self.graph.undefined:
            return []
        if isinstance(node, ModelNode):
            return self._model(node)
        if isinstance(node, ViewNode):
            self._view(node)
        else:
            found = of_node(node, self.schemas)
            if found is not None:
                self.known[node.id] = Input(columns=found.columns, complete=found.complete)
        return []

    def _model(self, node: ModelNode) -> list[Diagnostic]:
        wrong = [self._missing(node, read) for read in self._unknown_tables(node)]
        bound = self._bound(node.query, node.reads)
        sql = node.query.sql
        wrong.extend(_diagnostic(f, sql) for f in bound.findings)
        columns = _model_columns(node, bound)
        if node.materialized != "ephemeral":
            wrong.extend(_duplicates(columns, node))
        self._keep(node.id, columns, bound, node.reads)
        return wrong

    def _view(self, node: ViewNode) -> None:
        """A view of the catalog takes the first columns of its query by position and has its own names for them. Errors in the view are not
        the project's to fix."""
        bound = self.bound(node)
        known, width = self.schemas.of(node.identifier), len(node.columns)
        if not bound.complete or len(bound.columns) < width:
            columns = known.columns if known is not None else tuple(Column(name) for name in node.columns)
            self.known[node.id] = Input(columns=columns, complete=True)
            return
        types = [column.type for column in (known.columns if known is not None else bound.columns)]
        columns = tuple(Column(name, type_) for name, type_ in zip(node.columns, types, strict=False))
        chosen = replace(bound, values=bound.values[:width], unsure=frozenset(i for i in bound.unsure if i < width))
        self._keep(node.id, columns, chosen, node.reads)

    def bound(self, node: ModelNode | ViewNode) -> BoundQuery:
        """Bind the query of a node. What the node reads must be bound already."""
        return self._bound(node.query, node.reads)

    def _bound(self, query: Query, reads: Sequence[NodeId]) -> BoundQuery:
        return bind_once(self.cache, query, [self._input(read, id) for read, id in zip(query.reads, reads, strict=True)])

    def _input(self, read: Read, id: NodeId) -> Input:
        spellings = _spellings(read, self.graph.nodes[id])
        known = self.known.get(id)
        if known is None or read.travel is not None:
            # A version that the user chose may have had other columns.
            return Input(columns=(), complete=False, spellings=spellings)
        return replace(known, spellings=spellings)

    def _keep(self, id: NodeId, columns: tuple[Column | None, ...], bound: BoundQuery, reads: Sequence[NodeId]) -> None:
        at = [i for i, c in enumerate(columns) if c is not None]
        named = tuple(c for c in columns if c is not None)
        complete = bound.complete and len(named) == len(columns)
        self.known[id] = Input(columns=named, complete=complete)
        origins: dict[Base, Origin] = {}
        self.lineage[id] = NodeLineage(
            columns=named,
            values=tuple(self._origins(bound.values[i], reads, origins) for i in at),
            rows=self._origins(bound.rows, reads, origins),
            unsure=frozenset(n for n, i in enumerate(at) if i in bound.unsure),
        )

    def _origins(self, bases: Iterable[Base], reads: Sequence[NodeId], made: dict[Base, Origin]) -> frozenset[Origin]:
        return frozenset(made.get(b) or made.setdefault(b, Origin(reads[b.read], b.column)) for b in bases)

    def _unknown_tables(self, node: ModelNode) -> Iterable[int]:
        for i, id in enumerate(node.reads):
            table = self.graph.nodes[id]
            if isinstance(table, TableNode) and self.schemas.misses(table.identifier):
                yield i

    def _missing(self, node: ModelNode, read: int) -> Diagnostic:
        table = self.graph.nodes[node.reads[read]].identifier
        message = f"{self.schemas.source} has no table {'.'.join((*table.namespace, table.name))}"
        help = "Fix its name, or run `mvbuild lock` if it is new."
        return error("missing-table", message, node.query.reads[read].span, help=help)


def _diagnostic(found: Finding, sql: MappedText) -> Diagnostic:
    notes = tuple(written_by_template(sql, found.start, sql.text[found.start : found.end]))
    return error(found.code, found.message, sql.span(found.start, found.end), help=found.help, notes=notes)


def _model_columns(node: ModelNode, bound: BoundQuery) -> tuple[Column | None, ...]:
    """The columns of a model; None for a column whose name is not known. Types of an MV's columns are those that its storage has."""
    is_stored = node.storage is not None
    found: list[Column | None] = []
    for column in bound.columns:
        if column.name is None:
            found.append(None)
            continue
        type_ = text(stored(parsed(column.type))) if is_stored and column.type else column.type
        found.append(Column(column.name, type_, _span(column.place, node)))
    return tuple(found)


def _span(place: tuple[int, int] | None, node: ModelNode) -> Span | None:
    return node.query.sql.span(*place) if place is not None else None


def _duplicates(columns: Iterable[Column | None], node: ModelNode) -> Iterable[Diagnostic]:
    seen: dict[str, Column] = {}
    for column in columns:
        if column is None:
            continue
        first = seen.setdefault(column.key, column)
        if first is not column:
            yield duplicate(node, column.name, column.span or node.query.sql.span(0, len(node.query.sql.text)))


def _spellings(read: Read, node: Node) -> tuple[tuple[str, ...], ...]:
    """The ways to qualify columns of a table without an alias."""
    written = tuple(p.lower() for p in read.parts)
    full = node.identifier.key
    if read.kind == "name":
        return (written, full)
    return (written, (_placeholder(read),), full)


def _placeholder(read: Read) -> str:
    written = placeholder.for_ref(read.parts[0]) if read.kind == "ref" else placeholder.for_source(*read.parts)
    return written.strip("`").lower()
