"""Graph + other information -> Facts: what rules can ask about a project; each answer is computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from mvbuild.dataclass import dataclass
from mvbuild.freshness.observed import World
from mvbuild.graph.definition import fingerprint_of
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.lineage.model import Column
from mvbuild.lint.statement import Statement
from mvbuild.project.setting import EMPTY


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A project as rules see it. `columns`: of nodes whose columns are all known. `world`: the catalog, if it was read."""

    graph: Graph
    selected: frozenset[NodeId]
    """The models that are linted."""
    columns: Mapping[NodeId, tuple[Column, ...]] = field(default_factory=lambda: EMPTY)
    world: World | None = None

    def statement(self, node: ModelNode) -> Statement:
        found = self._statements.get(node.id)
        if found is None:
            found = self._statements[node.id] = Statement(node.query)
        return found

    def feeds_mv(self, node: ModelNode) -> bool:
        """Whether an MV stores the result of the query: the model itself, or one that reads it."""
        return node.storage is not None or any(
            isinstance(other := self.graph.nodes[id], ModelNode) and other.storage is not None for id in self.graph.descendants([node.id])
        )

    def same_definition(self, node: ModelNode) -> tuple[ModelNode, ...]:
        """The models with the same query, including this one, in the order of their files."""
        # A model that reads other tables has another query, which is cheaper to find out.
        alike = self._by_reads.get(_reads(node), ())
        if len(alike) < 2:
            return (node,)
        own = self._fingerprint(node)
        return tuple(sorted((other for other in alike if self._fingerprint(other) == own), key=lambda n: n.model.file.path))

    def _fingerprint(self, node: ModelNode) -> str:
        found = self._fingerprints.get(node.id)
        if found is None:
            found = self._fingerprints[node.id] = fingerprint_of(self.graph, node)
        return found

    @cached_property
    def tested(self) -> frozenset[NodeId]:
        """The nodes that data tests read."""
        return frozenset(read for test in self.graph.tests for read in test.reads)

    @cached_property
    def _statements(self) -> dict[NodeId, Statement]:
        return {}

    @cached_property
    def _fingerprints(self) -> dict[NodeId, str]:
        return {}

    @cached_property
    def _by_reads(self) -> Mapping[frozenset[NodeId], tuple[ModelNode, ...]]:
        found: dict[frozenset[NodeId], list[ModelNode]] = {}
        for node in self.graph.models:
            if node.id in self.graph.undefined:
                continue
            found.setdefault(_reads(node), []).append(node)
        return {reads: tuple(nodes) for reads, nodes in found.items()}


def _reads(node: ModelNode) -> frozenset[NodeId]:
    return frozenset(node.reads)
