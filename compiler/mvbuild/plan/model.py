"""The types of a plan: what a run would do to each node, in order, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.freshness.model import Freshness, Reason
from mvbuild.freshness.observed import World
from mvbuild.graph.model import NodeId, TestNode
from mvbuild.plan.removed import Removed
from mvbuild.plan.renames import Rename
from mvbuild.project.seeds import SeedRows

if TYPE_CHECKING:
    from mvbuild.incremental.choice import StrategyChoice

Action = Literal["load", "create", "replace", "refresh", "redefine", "record", "alter", "convert", "reuse", "blocked"]
"""load a seed · create or replace a plain view · refresh an MV · redefine: the view gets a new text with the same meaning, and is refreshed
only if Spark does not prove that · record: the data is the same although a base table was compacted, and only the record moves on · alter:
partitioning, sort order, properties or comments follow the configuration, and no data is touched · convert to another storage format ·
reuse: nothing to do · blocked: it cannot be done now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One node of the plan."""

    node: NodeId
    action: Action
    reasons: tuple[Reason, ...]
    strategy: str | None = None
    """How an MV is refreshed, see incremental.strategies; None if it depends on what this run writes first."""
    choice: StrategyChoice | None = None
    """The strategy with all reasons for and against it. The run uses it, unless what it depends on has changed: see question.py."""
    converts: bool = False
    """The MV changes its storage format, before anything else."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Why a node is blocked."""

    @property
    def diagnostic(self) -> Diagnostic | None:
        """The first of them."""
        return self.diagnostics[0] if self.diagnostics else None

    @property
    def is_change(self) -> bool:
        return self.action not in ("reuse", "blocked")

    @property
    def needs_engine(self) -> bool:
        """Whether it needs Spark: loading seeds and moving a record on do not."""
        return self.action in ("create", "replace", "refresh", "redefine")

    @property
    def is_forced(self) -> bool:
        """Whether a full refresh was requested."""
        return any(r.code == "forced" for r in self.reasons)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Steps in topological order, for the selected models and seeds."""

    world: World
    steps: tuple[Step, ...]
    freshness: Mapping[NodeId, Freshness]
    warnings: tuple[Diagnostic, ...] = ()
    renames: tuple[Rename, ...] = ()
    """Models that get another name; `world` is as if they had it already."""
    before: World | None = None
    """The world without the renames, with the former names."""
    removed: tuple[Removed, ...] = ()
    """What mvbuild wrote for models that were removed; empty unless it was requested."""
    rows: Mapping[NodeId, SeedRows] = field(default_factory=dict)
    """Of the seeds that are loaded."""

    @cached_property
    def gating(self) -> Mapping[NodeId, tuple[TestNode, ...]]:
        """MV -> the data tests that must pass before it is published. Each test belongs to the last of its MVs that the plan refreshes, so
        that it never sees one of them new and another one about to change."""
        return {id: tuple(t for t, waits in tests if waits is None) for id, tests in self._tests_of_refreshes.items()}

    @cached_property
    def deferred(self) -> Mapping[NodeId, tuple[tuple[TestNode, NodeId], ...]]:
        """MV -> the data tests that its refresh leaves out, each with the MV that it waits for: one that the test reads as well, and that
        this plan leaves as it is although it is not fresh. The refresh of that MV runs the test."""
        return {id: tuple((t, waits) for t, waits in tests if waits is not None) for id, tests in self._tests_of_refreshes.items()}

    @cached_property
    def _tests_of_refreshes(self) -> Mapping[NodeId, list[tuple[TestNode, NodeId | None]]]:
        refreshed = {s.node for s in self.steps if s.action == "refresh"}
        changed = {s.node for s in self.changes}
        by_gate: dict[NodeId, list[tuple[TestNode, NodeId | None]]] = {}
        for test in self.world.graph.tests:
            gates = [id for id in test.gates if id in refreshed]
            if gates:
                left = (id for id in test.gates if id not in changed and not self.freshness[id].is_fresh)
                by_gate.setdefault(gates[-1], []).append((test, next(left, None)))
        return by_gate

    def leaving(self, nodes: Collection[NodeId]) -> Plan:
        """This plan if it left these nodes as they are, as after their failure."""
        return replace(self, steps=tuple(s for s in self.steps if s.node not in nodes)) if nodes else self

    @property
    def changes(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if s.is_change)

    @property
    def needs_engine(self) -> bool:
        """Whether a step needs Spark."""
        return any(s.needs_engine for s in self.steps)


OnWork = Callable[[Plan], None]
"""Called with the steps that are expected."""
