"""Plan + RunSession -> RunResult: the steps in topological order, several at once; a failure affects only its descendants."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import field, replace
from heapq import heappop, heappush
from threading import current_thread

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.leaves import is_leaf
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph, NodeId, SeedNode
from mvbuild.plan.model import Plan, Step
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.engine import EngineError
from mvbuild.ports.states import TableState
from mvbuild.refresh.atomic import publish_together
from mvbuild.refresh.outcome import AuditFailed
from mvbuild.refresh.result import Entered, Event, Finished, NodeResult, RunResult, Started
from mvbuild.refresh.run_id import SCRATCH_NAMESPACE, left_over
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.source_tests import run_source_tests
from mvbuild.storage.auxiliary_views import listed_views

OnEvent = Callable[[Event], None]


def run_plan(plan: Plan, session: RunSession, *, threads: int, fail_fast: bool, on_event: OnEvent) -> RunResult:
    """Carry out the plan. Errors of nodes are in their results; they are not raised."""
    started_ms, began = session.clock.now_ms(), session.clock.monotonic()
    session.on_stage = lambda node, stage: on_event(Entered(node=node, stage=stage))
    remove_leftovers(plan.world, session)
    try:
        sources = run_source_tests(session, plan, on_event)
        schedule = _Schedule(plan=plan, session=session, fail_fast=fail_fast, on_event=on_event, stopped=sources.stopped)
        schedule.run(threads)
    except BaseException:
        if session.pending:
            session.pending.discard()
        raise
    results = tuple(schedule.done[s.node] for s in plan.steps)
    found = RunResult(
        results=results,
        tests=sources.results,
        started_ms=started_ms,
        seconds=session.clock.monotonic() - began,
        diagnostics=sources.diagnostics,
    )
    if session.pending is None:
        return found
    published = publish_together(found, session.pending, on_event)
    return replace(published, seconds=session.clock.monotonic() - began)


@dataclass
class _Schedule:
    plan: Plan
    session: RunSession
    fail_fast: bool
    on_event: OnEvent
    stopped: Mapping[NodeId, str]
    """The steps that may not begin, and why."""
    done: dict[NodeId, NodeResult] = field(default_factory=dict)
    running: dict[Future[NodeResult], NodeId] = field(default_factory=dict)
    steps: dict[NodeId, Step] = field(default_factory=dict)
    waiting: dict[NodeId, set[NodeId]] = field(default_factory=dict)
    """The steps that each step waits for, including those that have ended."""
    children: dict[NodeId, list[NodeId]] = field(default_factory=dict)
    unfinished: dict[NodeId, int] = field(default_factory=dict)
    """How many of the steps that each step waits for have not ended."""
    work: list[tuple[int, NodeId]] = field(default_factory=list)
    """A heap of the steps that can begin, in the order of the plan."""
    numbers: dict[NodeId, int] = field(default_factory=dict)
    """The number of each node in the plan, from 1, for progress."""

    def run(self, threads: int) -> None:
        self.steps = {s.node: s for s in self.plan.steps}
        self.session.shared_rows.expect(step.choice for step in self.plan.steps if step.choice is not None)
        self.numbers = {id: number for number, id in enumerate(self.steps, 1)}
        self.waiting = {id: set(_before(self.plan, id, self.steps)) if step.is_change else set() for id, step in self.steps.items()}
        self.children = {id: [] for id in self.steps}
        for id_, before in self.waiting.items():
            self.unfinished[id_] = len(before)
            for parent in before:
                self.children[parent].append(id_)
        self._settle([id for id, number in self.unfinished.items() if not number])
        pool = ThreadPoolExecutor(max_workers=max(1, threads), thread_name_prefix="Thread")
        try:
            while self.work or self.running:
                while self.work and len(self.running) < max(1, threads):
                    _, id_ = heappop(self.work)
                    result = self._without_work(self.steps[id_])  # with --fail-fast another node may have failed in the meantime
                    if result:
                        self._settle(self._finish(id_, result))
                    else:
                        self.running[pool.submit(self._carry_out, self.steps[id_])] = id_
                finished, _ = wait(self.running, return_when=FIRST_COMPLETED)
                for future in finished:
                    self._settle(self._finish(self.running.pop(future), future.result()))
        except KeyboardInterrupt:
            # Running queries fail at once, so that their nodes can clean up; waiting for them could take hours.
            self.session.stop_engine()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _settle(self, ready: Iterable[NodeId]) -> None:
        """Finish the nodes that need no work (reused, blocked, skipped) and those that waited only for them; the others become work."""
        queue = deque(ready)
        while queue:
            id_ = queue.popleft()
            result = self._without_work(self.steps[id_])
            if result:
                queue.extend(self._finish(id_, result))
            else:
                heappush(self.work, (self.numbers[id_], id_))

    def _without_work(self, step: Step) -> NodeResult | None:
        now = self.session.clock.now_ms()
        if step.action == "blocked":
            return NodeResult(
                node=step.node,
                status="error",
                message=step.diagnostic.message if step.diagnostic else "",
                reasons=step.reasons,
                diagnostics=step.diagnostics,
                started_ms=now,
            )
        if step.action == "reuse":
            return NodeResult(node=step.node, status="reused", message="", reasons=step.reasons, started_ms=now)
        if step.node in self.stopped:
            return NodeResult(node=step.node, status="skipped", message=self.stopped[step.node], reasons=step.reasons, started_ms=now)
        failed = self._failed_before(step)
        if failed:
            name = self.plan.world.graph.nodes[failed[0]].identifier.dotted
            what = "failed" if self.done[failed[0]].status == "error" else "was skipped"
            return NodeResult(node=step.node, status="skipped", message=f"{name} {what}", reasons=step.reasons, started_ms=now)
        if self.fail_fast and any(r.status == "error" for r in self.done.values()):
            return NodeResult(
                node=step.node, status="skipped", message="an earlier node failed (--fail-fast)", reasons=step.reasons, started_ms=now
            )
        return None

    def _failed_before(self, step: Step) -> list[NodeId]:
        """What a step needs and does not have. An MV that only shares a data test with it is not needed."""
        if step.action == "convert":  # moves no row
            return []
        failed = self._failed(step)
        if not failed:
            return []
        graph = self.plan.world.graph
        read = set(_steps_below(graph, graph.nodes[step.node].reads, self.steps))
        # Nothing would run the test again if a seed or a view that it reads came later.
        return [id for id in failed if id in read or not is_leaf(graph.nodes[id]) or isinstance(graph.nodes[id], SeedNode)]

    def _failed(self, step: Step) -> list[NodeId]:
        return [id for id in self.waiting[step.node] if self.done[id].status in ("error", "skipped")]

    def _finish(self, id_: NodeId, result: NodeResult) -> list[NodeId]:
        """The nodes that waited only for this one."""
        self.done[id_] = result
        self.on_event(
            Finished(result=result, index=self.numbers[id_], total=len(self.plan.steps), left=len(self.plan.steps) - len(self.done))
        )
        ready = []
        for child in self.children[id_]:
            self.unfinished[child] -= 1
            if not self.unfinished[child]:
                ready.append(child)
        return ready

    def _carry_out(self, step: Step) -> NodeResult:
        clock = self.session.clock
        expected = step.choice.expected.seconds if step.choice and step.choice.expected else None
        self.on_event(Started(node=step.node, index=self.numbers[step.node], total=len(self.plan.steps), expected_seconds=expected or None))
        started_ms, began = clock.now_ms(), clock.monotonic()
        result = self._attempt(step)
        return NodeResult(
            node=step.node,
            status=result.status,
            message=result.message,
            reasons=step.reasons,
            diagnostics=result.diagnostics,
            tests=result.tests,
            details=result.details,
            sql=result.sql,
            started_ms=started_ms,
            seconds=clock.monotonic() - began,
            thread=current_thread().name,
        )

    def _attempt(self, step: Step) -> NodeResult:
        # Imported here because a run that finds nothing to do does not need it.
        from mvbuild.refresh.work import work

        try:
            outcome = work(self.session, self.plan.leaving(self._failed(step)), step)
        except AuditFailed as exc:
            many = len(exc.diagnostics)
            return _failed(
                step, exc.diagnostics, f"{many} data test{'s' * (many > 1)} failed; the old data stays", tests=exc.tests, sql=exc.sql
            )
        except ProjectError as exc:
            return _failed(step, exc.diagnostics, exc.diagnostics[0].message)
        except CommitConflict as exc:
            return _failed(step, (error("commit-conflict", str(exc)),), str(exc))
        except CatalogError as exc:
            return _failed(step, (error("catalog-unreachable" if exc.unreachable else "catalog-error", str(exc)),), str(exc))
        except EngineError as exc:
            return _failed(step, (error(exc.code, str(exc), help=exc.help),), str(exc))
        except Exception as exc:  # noqa: BLE001 - an unexpected failure of one node must not lose the results of the others
            message = f"{type(exc).__name__} in '{step.node}'; the details are in run_results.json"
            return _failed(step, (error("internal", message),), message, details={"traceback": traceback.format_exc()})
        return NodeResult(
            node=step.node,
            status="reused" if outcome.reused else "success",
            message=outcome.message,
            diagnostics=outcome.warnings,
            tests=outcome.tests,
            details=outcome.details,
            sql=outcome.sql,
        )


def _failed(step: Step, diagnostics: tuple[Diagnostic, ...], message: str, **more) -> NodeResult:  # type: ignore[no-untyped-def]
    return NodeResult(node=step.node, status="error", message=message, diagnostics=diagnostics, **more)


def _before(plan: Plan, id_: NodeId, steps: Mapping[NodeId, Step]) -> Iterator[NodeId]:
    """The steps that must end first: those that it reads, and those that its tests read, except those below the node itself."""
    graph = plan.world.graph
    tested = {read for test in plan.gating.get(id_, ()) for read in test.reads} - {id_}
    above = graph.descendants([id_]) if tested else set()
    yield from _steps_below(graph, (*graph.nodes[id_].reads, *(tested - above)), steps)


def _steps_below(graph: Graph, reads: Iterable[NodeId], steps: Mapping[NodeId, Step]) -> Iterator[NodeId]:
    """The steps of the nodes that are read, and of those below them if they are expanded in the query."""
    seen: set[NodeId] = set()
    edge = set(reads)
    while edge:
        seen |= edge
        yield from (id for id in edge if id in steps)
        expanded = [node for id in edge if not is_leaf(node := graph.nodes[id])]
        edge = {read for node in expanded for read in node.reads} - seen


def remove_leftovers(world: World, session: RunSession) -> None:
    """What killed runs left: scratch tables, and audit branches of MVs that this run would not touch otherwise."""
    for scratch in session.catalog.list_names(SCRATCH_NAMESPACE):
        if left_over([scratch.name], session.run, session.is_alive):
            session.catalog.drop_scratch(scratch)
    for table in _written_tables(world):
        branches = left_over(table.branches, session.run, session.is_alive)
        if branches:
            from mvbuild.refresh.staging_area import drop_branches

            drop_branches(session.catalog, table, branches)


def _written_tables(world: World) -> Iterator[TableState]:
    """The storages of the MVs and their auxiliary views."""
    for node in world.graph.views:
        storage = world.observed.table(node.storage) if node.id not in world.settled else None
        if storage is not None:
            yield storage
            yield from (table for one in listed_views(storage) if (table := world.observed.table(one.name)) is not None)
