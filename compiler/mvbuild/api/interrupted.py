"""events of a run that is interrupted -> its RunResult: what had ended, and the rest as skipped, so that `retry` knows what to run."""

from __future__ import annotations

from dataclasses import field

from mvbuild.api.sessions import Event, OnEvent
from mvbuild.dataclass import dataclass
from mvbuild.graph.model import NodeId
from mvbuild.plan.model import Plan
from mvbuild.refresh.result import Finished, NodeResult, RunResult, Tested, TestResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Passes events on, and keeps the results of what has ended."""

    on_event: OnEvent
    results: dict[NodeId, NodeResult] = field(default_factory=dict)
    tests: list[TestResult] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Finished):
            self.results[event.result.node] = event.result
        elif isinstance(event, Tested):
            self.tests.append(event.result)
        self.on_event(event)

    def interrupted(self, plan: Plan, *, together: bool) -> RunResult:
        """`together`: whether the run would have published everything at its end, so that it published nothing."""
        skipped = (NodeResult(node=s.node, status="skipped", message="the run was interrupted", reasons=s.reasons) for s in plan.steps)
        ended = {id for id, result in self.results.items() if not together or result.status != "success"}
        results = tuple(self.results[one.node] if one.node in ended else one for one in skipped)
        return RunResult(results=results, tests=tuple(self.tests))
