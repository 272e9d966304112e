"""The types of a site: Content, and Seen for the state of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from mvbuild.dataclass import dataclass
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, NodeId, TestNode
from mvbuild.incremental.inputs import ReadChange
from mvbuild.lineage.model import Bound
from mvbuild.plan.model import Plan, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The state of the catalog at one time."""

    world: World
    freshness: Mapping[NodeId, Freshness]
    plan: Plan | None
    """What a run would do; None where it cannot be planned."""
    unplanned: str = ""
    """Why there is no plan."""
    changes: ReadChange


@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything that a site shows."""

    graph: Graph
    bound: Bound
    seen: Seen | None
    unseen: str = ""
    """Why the catalog was not read."""
    version: str
    at_ms: int
    """When the catalog was read."""

    @cached_property
    def places(self) -> Mapping[NodeId, int]:
        """The number of each node, by which pages name it."""
        return {id: at for at, id in enumerate(self.graph.nodes)}

    @cached_property
    def tests(self) -> Mapping[NodeId, tuple[TestNode, ...]]:
        """The tests that look at a node."""
        found: dict[NodeId, list[TestNode]] = {}
        for test in self.graph.tests:
            for id in dict.fromkeys(test.reads):
                found.setdefault(id, []).append(test)
        return {id: tuple(tests) for id, tests in found.items()}

    @cached_property
    def steps(self) -> Mapping[NodeId, Step]:
        """What a run would do to a node."""
        return {step.node: step for step in self.seen.plan.steps} if self.seen and self.seen.plan else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A site on disk."""

    pages: int
    seen: bool
    """Whether it has freshness and history."""
