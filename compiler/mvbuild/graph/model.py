"""The types of the dependency graph: nodes with their names in the catalog, and the edges of each query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.names import TableIdentifier
from mvbuild.parse.model import ParsedModel, ParsedTest, Query
from mvbuild.ports.sources import SourceLocation
from mvbuild.project.counting import Counting
from mvbuild.project.loaded import DataTest, LoadedProject, ModelFile, Seed, SourceTable
from mvbuild.source import MappedText, Span

if TYPE_CHECKING:
    from mvbuild.project.exposures import Exposure
    from mvbuild.project.unit_tests import UnitTest

IndirectSelection = Literal["eager", "cautious", "buildable", "empty"]
"""As in dbt: tests that read a selected node; that read only selected nodes; also nodes above these; or none but those named."""
NodeId = str
"""As in dbt: `model.shop.revenue_daily`, `seed.shop.orders`, `source.shop.raw.orders`; `table.lake.raw.orders` for undeclared tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNode:
    """A model of the project. `reads` has the node of each entry of `model.query.reads`, in the same order."""

    id: NodeId
    identifier: TableIdentifier
    storage: TableIdentifier | None
    """The storage table of an MV; None for views and ephemeral models."""
    model: ParsedModel
    reads: tuple[NodeId, ...]
    may_read: tuple[NodeId, ...] = ()
    """The nodes that a model mentions whose query cannot be read."""

    @property
    def query(self) -> Query:
        return self.model.query

    @property
    def materialized(self) -> str:
        return self.model.config.materialized


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedNode:
    """A CSV file that mvbuild loads into a base table."""

    id: NodeId
    identifier: TableIdentifier
    seed: Seed
    reads: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNode:
    """A table that mvbuild only reads; `source` if the project declares it."""

    id: NodeId
    identifier: TableIdentifier
    source: SourceTable | None = None
    outside: SourceLocation | None = None
    """Where it is if the target's catalog does not have it: in another metastore, or at a path."""
    reads: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewNode:
    """A view of the catalog that mvbuild did not write: a child view whose definition was read from the catalog."""

    id: NodeId
    identifier: TableIdentifier
    query: Query
    columns: tuple[str, ...]
    """The view's column names."""
    source: SourceTable | None
    reads: tuple[NodeId, ...]
    further: int = 0
    """How many more columns its query has: a view takes the first ones, by position."""
    casts: tuple[str | None, ...] = ()
    """The Spark type to cast each column to; None, or an empty tuple, if the query returns that type."""


Node = ModelNode | SeedNode | TableNode | ViewNode


def tested_of(node: Node) -> ModelFile | Seed | SourceTable:
    """What YAML declares the tests of a node for."""
    if isinstance(node, ModelNode):
        model = node.model
        return ModelFile(name=model.name, file=model.file, folders=model.folders, layers=(), properties=model.properties)
    if isinstance(node, SeedNode):
        return node.seed
    assert node.source is not None, node.id
    return node.source


def tests_of(node: Node) -> tuple[DataTest, ...]:
    """The generic data tests that YAML declares for a node."""
    if isinstance(node, ModelNode):
        return node.model.properties.tests
    if isinstance(node, SeedNode):
        return node.seed.properties.tests
    return node.source.properties.tests if node.source else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestNode:
    """A data test, generic or SQL."""

    __test__ = False

    id: NodeId
    name: str
    test: DataTest | ParsedTest
    reads: tuple[NodeId, ...]
    """For a generic test the tested node, then what else it reads; for a SQL test the reads of its query."""
    query: Query | None = None
    """The query of a SQL test or of a test of the project's own kind; None for a built-in test."""
    query_reads: tuple[NodeId, ...] = ()
    """The node of each entry of `query.reads`."""
    gates: tuple[NodeId, ...]
    """The MVs whose rows it reads, in topological order: the last one that a run refreshes is only published if the test passes."""

    @property
    def span(self) -> Span:
        """Where the test was written."""
        return self.test.span if isinstance(self.test, DataTest) else self.test.file.line_span(1)

    @property
    def severity(self) -> Literal["error", "warn"]:
        return self.test.severity

    @property
    def counting(self) -> Counting:
        return self.test.counting

    @property
    def tags(self) -> tuple[str, ...]:
        return self.test.tags

    @property
    def meta(self) -> Mapping[str, Any]:
        return self.test.meta


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureNode:
    """An exposure and the nodes that it reads. mvbuild builds nothing for it."""

    id: str
    exposure: Exposure
    reads: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """How a project was read, so that another version of it can be read in the same way."""

    target: str | None = None
    vars: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    state: str | None = None
    """What `state:` selectors compare with: a directory with a manifest, or a git ref."""
    indirect: IndirectSelection = "eager"
    """Which data tests a selection of nodes includes."""
    resource_types: tuple[str, ...] = ()
    """The types of resources that a selection can have; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedGraph:
    """What decides whether a graph is the one of an earlier run, except for a few models."""

    key: str
    """A hash of everything that the graph depends on, except the texts of `changed`."""
    changed: frozenset[NodeId]
    nodes: Mapping[NodeId, Node]
    """As they were compiled: a catalog may have changed them since."""
    contracts: tuple[NodeId, ...]
    """The models with an enforced contract."""


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Nodes in topological order: every node follows those that it reads."""

    project: LoadedProject
    nodes: Mapping[NodeId, Node]
    tests: tuple[TestNode, ...]
    warnings: tuple[Diagnostic, ...] = ()
    """Warnings that stopped no stage: those of templates."""
    reading: CompileOptions = CompileOptions()
    outlined: CachedGraph | None = field(default=None, repr=False, compare=False)
    problems: tuple[Diagnostic, ...] = ()
    """Errors of single models, which block only these and what reads them."""
    undefined: Mapping[NodeId, Diagnostic] = field(default_factory=dict)
    """Models without a definition: they are wrong, or an ephemeral model in them is."""
    blocked: Mapping[NodeId, Diagnostic] = field(default_factory=dict)
    """Those, and every model that reads one of them."""

    @cached_property
    def children(self) -> Mapping[NodeId, tuple[NodeId, ...]]:
        children: dict[NodeId, list[NodeId]] = {id: [] for id in self.nodes}
        for node in self.nodes.values():
            for parent in dict.fromkeys(node.reads):
                children[parent].append(node.id)
        return {id: tuple(c) for id, c in children.items()}

    @cached_property
    def definitions(self) -> dict[NodeId, MappedText]:
        """The definitions that `graph.definition` has made so far: freshness, views and artifacts all need them."""
        return {}

    @cached_property
    def storages(self) -> Mapping[TableIdentifier, TableIdentifier]:
        """View -> storage table of each MV."""
        return {n.identifier: n.storage for n in self.models if n.storage is not None}

    @cached_property
    def outside(self) -> Mapping[TableIdentifier, SourceLocation]:
        """The base tables that the target's catalog does not have."""
        return {n.identifier: n.outside for n in self.nodes.values() if isinstance(n, TableNode) and n.outside}

    @cached_property
    def unit_tests(self) -> tuple[UnitTest, ...]:
        """Read when they are needed: no other command needs their rows. Raises ProjectError."""
        from mvbuild.project.unit_tests import read_unit_tests

        return read_unit_tests(self.project)

    @property
    def contracts(self) -> tuple[NodeId, ...]:
        """The models with an enforced contract."""
        return self.outlined.contracts if self.outlined else tuple(n.id for n in self.models if n.model.config.contract)

    @property
    def models(self) -> Iterator[ModelNode]:
        return (n for n in self.nodes.values() if isinstance(n, ModelNode))

    @property
    def views(self) -> Iterator[ModelNode]:
        """The MVs, in topological order."""
        return (n for n in self.models if n.storage is not None)

    def with_tests(self, *, strict: bool, store: bool | None) -> Graph:
        """The same with other settings of its data tests: with `strict`, what would be a warning is an error; `store` decides whether
        failures are stored."""

        def changed(node: TestNode) -> TestNode:
            counting = replace(node.counting, strict=strict, store=node.counting.store if store is None else store)
            return TestNode(
                id=node.id,
                name=node.name,
                test=replace(node.test, counting=counting),
                reads=node.reads,
                query=node.query,
                query_reads=node.query_reads,
                gates=node.gates,
            )

        return replace(self, tests=tuple(map(changed, self.tests)), outlined=None)

    def model(self, id: NodeId) -> ModelNode:
        node = self.nodes[id]
        assert isinstance(node, ModelNode), id
        return node

    def ancestors(self, ids: Iterable[NodeId], depth: int | None = None) -> set[NodeId]:
        return self._reach(ids, lambda id: self.nodes[id].reads, depth)

    def descendants(self, ids: Iterable[NodeId], depth: int | None = None) -> set[NodeId]:
        return self._reach(ids, lambda id: self.children[id], depth)

    def _reach(self, ids: Iterable[NodeId], step, depth: int | None) -> set[NodeId]:  # type: ignore[no-untyped-def]
        seen: set[NodeId] = set()
        edge = set(ids)
        while edge and (depth is None or depth > 0):
            edge = {n for id in edge for n in step(id)} - seen
            seen |= edge
            depth = None if depth is None else depth - 1
        return seen
