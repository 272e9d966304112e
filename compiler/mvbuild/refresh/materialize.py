"""Step + RunSession -> Outcome: one refresh of an MV, from its pinned snapshots to one commit.

The stages are those of write-audit-publish: `prepare`, `stage`, `audit`, `publish`. Each returns a frozen value for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.overtaken import is_as_new
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.plan.model import Plan, Step
from mvbuild.plan.strictness import fallback_warning
from mvbuild.ports.catalog import CommitConflict
from mvbuild.refresh.advance import advance
from mvbuild.refresh.audit import audit, audit_current
from mvbuild.refresh.auxiliary_views import view_places
from mvbuild.refresh.choosing import chosen
from mvbuild.refresh.data_tests import skipped_test
from mvbuild.refresh.mark import mark_failed
from mvbuild.refresh.observe_again import observe_again
from mvbuild.refresh.outcome import AuditFailed, Outcome
from mvbuild.refresh.pinned import Pinned, pinned
from mvbuild.refresh.prepare import prepare
from mvbuild.refresh.publish import publish
from mvbuild.refresh.queries import is_missing_table
from mvbuild.refresh.report import outcome
from mvbuild.refresh.result import TestResult
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.stage import Unchanged, stage
from mvbuild.refresh.staging_area import staging_area

ATTEMPTS = 3
"""After this many lost commit races a refresh gives up; after each one it looks again at the state that the winner left."""


def refresh(session: RunSession, plan: Plan, step: Step) -> Outcome:
    """Refresh an MV from the run's pinned snapshots, and publish it if the tests pass.

    If another run published first, and read what this run had to read or newer data, that refresh is reused.
    """
    node, world = plan.world.graph.model(step.node), session.world
    for _ in range(ATTEMPTS):
        now = pinned(world, node, session.clock.now_ms())
        try:
            done = _attempt(session, plan, step, now)
            return replace(done, tests=(*done.tests, *_deferred(plan, step)))
        except AuditFailed as exc:
            raise mark_failed(session, now, exc) from exc
        except CommitConflict:
            world = observe_again(session, node)
            if is_as_new(session.world, world, node, forced=step.is_forced):
                return Outcome(message="another run refreshed it", reused=True)
        except ProjectError as exc:
            if not is_missing_table(exc):
                raise
            world = observe_again(session, node)
            if pinned(world, node, now.started_ms).entries == now.entries:
                raise
    raise ProjectError([error("commit-conflict", f"other processes changed '{node.model.name}' {ATTEMPTS} times while it was refreshed")])


def _deferred(plan: Plan, step: Step) -> Iterator[TestResult]:
    """The tests that wait for another MV, as skipped."""
    for test, waits in plan.deferred.get(step.node, ()):
        other = plan.world.graph.nodes[waits].identifier.dotted
        yield skipped_test(test, f"it also reads {other}, which is not fresh; it runs when that MV is refreshed")


def _attempt(session: RunSession, plan: Plan, step: Step, now: Pinned) -> Outcome:
    tests = plan.gating.get(step.node, ())
    session.on_stage(step.node, "planning")
    choice = chosen(session, now, plan, step)
    if choice.is_no_change:
        return advance(session, now, choice, audit_current(session, now, tests))
    prepared = prepare(session, now, choice, tests)
    area = session.staging_area(staging_area(session, prepared.pinned, prepared.layout))
    with area as place, session.staging_area(view_places()) as places:
        staged = stage(session, prepared, place, places)
        if isinstance(staged, Unchanged):
            passed = audit_current(session, prepared.pinned, tests)
            return advance(session, prepared.pinned, staged.choice, passed, staged.mark, staged.views)
        published = publish(session, audit(session, staged, tests))
    return replace(outcome(published), warnings=tuple(_fell_back(step, now.node, staged.choice)))


def _fell_back(step: Step, node: ModelNode, choice: StrategyChoice) -> Iterator[Diagnostic]:
    """The warning that the plan could not give."""
    found = fallback_warning(node, choice)
    if found is not None and (step.choice is None or fallback_warning(node, step.choice) is None):
        yield found
