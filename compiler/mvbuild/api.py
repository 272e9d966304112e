"""project directory -> Graph | Plan | RunResult: the pipeline on one screen, for programs. Nothing here prints.

>>> from mvbuild import api                                   # doctest: +SKIP
>>> result = api.run("shop", select=["+revenue_daily"])       # doctest: +SKIP
>>> result.ok                                                 # doctest: +SKIP
True
"""

from __future__ import annotations

import atexit
import math
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvbuild.compilation import compile, write_artifacts
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error, warning
from mvbuild.freshness.former import former_states
from mvbuild.freshness.history import PastRefresh
from mvbuild.freshness.history import history as past_refreshes
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observed import World
from mvbuild.freshness.readable import require_readable
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.graph.select import select as select_nodes
from mvbuild.graph.select import select_all
from mvbuild.graph.version import version_of
from mvbuild.graph.versions import opened
from mvbuild.incremental.changes import Changes
from mvbuild.lifecycle.branches import OnBranch, branches, checked_name, on_branch, publish_branch, require_branchable
from mvbuild.lifecycle.branches import drop_branch as forget_branch
from mvbuild.lifecycle.drop import Dropped, drop_all
from mvbuild.lifecycle.drop import drop as drop_one
from mvbuild.lifecycle.maintain import Maintained
from mvbuild.lifecycle.maintain import maintain as keep_up
from mvbuild.lifecycle.prune import find_named, find_removed
from mvbuild.lifecycle.rename import rename
from mvbuild.lifecycle.rollback import rollback as roll_back
from mvbuild.names import TableIdentifier
from mvbuild.plan.build import build_plan
from mvbuild.plan.conversions import conversions
from mvbuild.plan.explain import Explanation
from mvbuild.plan.explain import explain as explain_mv
from mvbuild.plan.model import Plan
from mvbuild.plan.removed import Removed, refusal
from mvbuild.plan.renames import Found, find_renames, renamed_world
from mvbuild.plan.seeds import seed_rows
from mvbuild.ports.catalog import Catalog, CatalogError, CommitConflict, TableState
from mvbuild.project.settings import StorageFormat
from mvbuild.refresh.atomic import require_atomic
from mvbuild.refresh.held import Held
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.recording import described
from mvbuild.refresh.result import RunResult
from mvbuild.refresh.row_keys import row_key
from mvbuild.refresh.run import run_plan
from mvbuild.refresh.session import RunSession, ScratchKey
from mvbuild.refresh.testing import run_tests
from mvbuild.refresh.verified import Verification
from mvbuild.refresh.verify import Check, doubts
from mvbuild.refresh.verify import verify as verify_all
from mvbuild.serve import frames
from mvbuild.serve.as_of import AsOf
from mvbuild.serve.frames import served
from mvbuild.serve.lookup import find
from mvbuild.serve.rows import Shown, choose_rows
from mvbuild.sessions import OnEvent, catalog_of, explained, main_catalog_of, new_session, observed, open_session, unheard

if TYPE_CHECKING:
    from mvbuild.lineage.lock import Locked
    from mvbuild.lineage.model import Bound
    from mvbuild.lineage.schemas import TableColumns
    from mvbuild.refresh.comparison import Comparison
    from mvbuild.review.model import Review

# What only one command needs is imported where it is used: a run that finds nothing to do is over in the time that the rest takes.

Project = str | Path | Graph
"""A project directory; or what `compile` gave, where a target, vars or an environment are to be chosen."""


def _graph(project: Project) -> Graph:
    return project if isinstance(project, Graph) else compile(project)


def plan(
    project: Project = ".",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    full_refresh: bool = False,
    removed: bool = True,
    catalog: Catalog | None = None,
) -> Plan:
    """What a run would do and why: one read of the catalog, no Spark. With `removed`, unless nodes are selected, one more of all its views:
    they tell what is left of models that are gone."""
    graph = _graph(project)
    catalog = catalog or catalog_of(graph)
    world = observed(graph, catalog)
    chosen, warnings = select_nodes(world.graph, select, exclude, _states(world))
    with explained(graph):
        former = former_states(world, catalog)
        found = find_renames(world, former, chosen) if graph.project.branch is None else Found()
        if found.diagnostics:
            raise ProjectError(found.diagnostics)
        removed = removed and graph.project.branch is None
        renamed = [r.view.identifier for r in find_renames(world, former, frozenset(world.graph.nodes)).renames]
        gone = find_removed(world, catalog, renamed) if removed and not (tuple(select) or tuple(exclude)) else ()
    new = renamed_world(world, found.renames)
    planned = build_plan(new, chosen, full_refresh=full_refresh, warnings=warnings, changes=Changes(catalog))
    before = replace(world, observed=world.observed.updated(former))
    return replace(planned, renames=found.renames, before=before, removed=gone)


def explain(project: Project, name: str) -> Explanation:
    """How an MV is refreshed: its query as a tree, what changed in each table, and what every strategy says to that. No Spark."""
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    with explained(graph):
        found = find_renames(world, former_states(world, catalog), frozenset(world.graph.nodes))
        if found.diagnostics:
            raise ProjectError(found.diagnostics)
        world = renamed_world(world, found.renames)
        return explain_mv(world, _mv(world.graph, name), Changes(catalog))


def status(project: Project = ".") -> tuple[World, Mapping[NodeId, Freshness]]:
    """The freshness of every MV."""
    graph = _graph(project)
    world = observed(graph, catalog_of(graph))
    return world, judge(world)


def run(
    project: Project = ".",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    full_refresh: bool = False,
    fail_fast: bool = False,
    prune: bool = False,
    atomic: bool | None = None,
    threads: int | None = None,
    spark: Any = None,
    on_event: OnEvent = unheard,
    arguments: Mapping[str, Any] | None = None,
) -> RunResult:
    """Refresh what is stale. With `spark` a session that the caller has is used and left running. With `prune` what is left of models that
    the project does not have any more is dropped afterwards. With `atomic` all that the run made is published in one commit at its end, or
    nothing if anything failed; None: as the project says."""
    select, exclude = tuple(select), tuple(exclude)
    if prune and (select or exclude):
        raise ProjectError([error("command-line", "What is to be pruned depends on the whole project: nothing can be selected with it")])
    graph = _graph(project)
    if prune and graph.project.branch is not None:
        raise ProjectError([error("command-line", "A run on a branch drops nothing: --prune goes with runs on main")])
    catalog = catalog_of(graph)
    together = graph.project.publish == "atomic" if atomic is None else atomic
    if together:
        require_atomic(graph, catalog.atomic)
    planned = plan(graph, select=select, exclude=exclude, full_refresh=full_refresh, removed=False, catalog=catalog)
    if graph.project.branch is not None:
        require_branchable(planned)
    _require_contracts(planned)
    rows = seed_rows(planned)
    with open_session(planned.world, catalog, spark, on_event) as session:
        session.held = Held(catalog=catalog, clock=session.clock) if together else None
        if planned.needs_engine:
            _ = session.engine  # before any step: where Spark cannot start nothing is touched
        planned = rename(session, planned)
        result = run_plan(planned, session, rows, threads=threads or graph.project.target.threads, fail_fast=fail_fast, on_event=on_event)
    renamed = tuple(pair for r in planned.renames for pair in r.names.items())
    result = replace(result, diagnostics=(*planned.warnings, *result.diagnostics), renamed=renamed)
    if prune and result.ok:
        result = _pruned(graph, catalog, result)
    write_artifacts(planned.world.graph, result, arguments={"which": "run", **(arguments or {})})
    return result


def test(
    project: Project = ".", *, select: Iterable[str] = (), exclude: Iterable[str] = (), spark: Any = None, on_event: OnEvent = unheard
) -> RunResult:
    """Run the data tests of the selected models, seeds and sources on what the catalog has now."""
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    chosen, warnings = select_all(world.graph, select, exclude, _states(world))
    tests = [t for t in world.graph.tests if t.id in chosen]
    with open_session(world, catalog, spark, on_event) as session:
        result = run_tests(session, tests, warnings=warnings, on_event=on_event)
    write_artifacts(world.graph, result, arguments={"which": "test"})
    return result


test.__test__ = False  # type: ignore[attr-defined]


def verify(
    project: Project = ".",
    names: Iterable[str] = (),
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    sample: float | None = None,
    seed: int | None = None,
    limit: int = 10,
    float_tolerance: float | None = None,
    spark: Any = None,
    on_event: OnEvent = unheard,
) -> Verification:
    """Compute MVs again from the snapshots that their last refresh read, and compare that with their storage. Nothing is written.

    `sample` is a share of the keys, 0.01 for one in a hundred; `seed` chooses which. `float_tolerance` wins over what models say. An MV
    that cannot be verified is an error if it is among `names`, else a warning.
    """
    if not (sample is None or 0 < sample <= 1):
        raise ProjectError([error("command-line", "A sample is a share of the keys: above 0, and 1 at most")])
    if not (float_tolerance is None or (math.isfinite(float_tolerance) and float_tolerance >= 0)):
        raise ProjectError([error("command-line", "A tolerance is a number, not below 0")])
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    named = {_mv(world.graph, name).id for name in names}
    chosen, warnings = (named, ()) if named else select_nodes(world.graph, select, exclude, _states(world))
    nodes = [n for n in world.graph.views if n.id in chosen]
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    check = Check(sample=sample, seed=seed, limit=limit, float_tolerance=float_tolerance)
    with open_session(world, catalog, spark, on_event) as session, explained(graph):
        found = verify_all(session, nodes, check, on_event)
    return replace(found, diagnostics=(*warnings, *doubts(world.graph, found.results, named=bool(named))))


def show(
    project: Project, name: str, *, limit: int = 10, as_of: AsOf | None = None, spark: Any = None, on_event: OnEvent = unheard
) -> Shown:
    """Rows of a model, and where they come from: each MV's storage if its policy allows that, else its query on the tables of now.

    `as_of` gives the rows that an MV had at a time, or after the refresh of that number. No Spark is needed then.
    """
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    with open_session(world, catalog, spark, on_event) as session:
        return choose_rows(session, name, limit, as_of)


def read(spark: Any, name: str, *, project: Project | None = None, as_of: AsOf | None = None) -> Any:
    """A DataFrame with all rows of a model, seed or source; each MV in it is resolved by its policy, see `served`.

    `as_of` gives the rows that an MV had at a time, or after the refresh of that number.
    """
    return _framed(_graph(_default(project)), spark, frames.named(name, as_of))


def sql(spark: Any, text: str, *, project: Project | None = None) -> Any:
    """A DataFrame of a query whose tables are named as in the project or in the catalog; each MV in it is resolved by its policy."""
    graph, ask = frames.asked(_graph(_default(project)), text)
    return _framed(graph, spark, ask)


def _default(project: Project | None) -> Project:
    return os.environ.get("MVBUILD_PROJECT_DIR", ".") if project is None else project


def _framed(graph: Graph, spark: Any, ask: frames.Ask) -> Any:
    """The DataFrame, on one observation of the catalog. A snapshot that is expired in between is followed by a new look."""
    catalog = catalog_of(graph)
    for attempt in range(1, _LOOKS + 1):
        session = new_session(observed(graph, catalog), catalog, spark, unheard)
        session.kept = _KEPT.setdefault(catalog.name, {})
        try:
            with explained(graph, conflicts=attempt == _LOOKS):
                found = frames.frame(session, ask)
        except CommitConflict:
            session.close()
        except BaseException:
            session.close()
            raise
        else:
            _keep(session)
            return found
    raise AssertionError("the last look returns or raises")


_LOOKS = 3
_KEPT: dict[str, dict[ScratchKey, TableIdentifier]] = {}
"""Catalog -> the scratch tables that DataFrames of this process read."""


def _keep(session: RunSession) -> None:
    """Spark opens a table when rows are fetched, so what a DataFrame reads must live as long as it may: to the end of the process."""
    made = session.hand_over()
    if made:
        atexit.register(_drop, session.catalog, made)


def _drop(catalog: Catalog, scratch: Iterable[TableIdentifier]) -> None:
    with suppress(CatalogError, OSError):
        for identifier in scratch:
            catalog.drop_scratch(identifier)


def bound(project: Project = ".") -> Bound:
    """The columns of every node and their lineage, by schemas.lock and what the project declares. No catalog, no Spark. Nothing is raised
    for what is wrong in a query: that is in `diagnostics`."""
    from mvbuild.lineage.bind import bind
    from mvbuild.lineage.lock import of_lock, read_lock
    from mvbuild.lineage.schemas import NO_SCHEMAS

    graph = _graph(project)
    tables = read_lock(graph)
    return bind(graph, of_lock(tables, graph) if tables is not None else NO_SCHEMAS, keep=True)


def check_columns(project: Project = ".") -> tuple[Diagnostic, ...]:
    """ProjectError with everything that is certainly wrong with names, types and contracts; the warnings, if nothing is. Queries are looked
    at only where schemas.lock tells what they read, or where a contract is enforced."""
    from mvbuild.lineage import check

    return check.check_columns(_graph(project))


def _require_contracts(planned: Plan) -> None:
    """Nothing is touched where a model of the plan does not have the columns of its contract, by what the catalog has now."""
    graph = planned.world.graph
    enforced = [s.node for s in planned.steps if isinstance(n := graph.nodes[s.node], ModelNode) and n.model.config.contract]
    if enforced:
        from mvbuild.lineage.bind import bind
        from mvbuild.lineage.schemas import of_states

        found = bind(graph, of_states(planned.world.observed.states), only=enforced)
        broken = [d for d in found.diagnostics if d.code == "broken-contract"]
        if broken:
            raise ProjectError(broken)


def lineage(project: Project = ".", *, of: str | None = None) -> tuple[Bound, tuple[Diagnostic, ...]]:
    """The columns of every node and their lineage, by schemas.lock, else by the catalog; a warning where neither is there.

    `of`: a name as the command takes it, to which the answer is narrowed: what it comes from, and what is made of it. Raises ProjectError.
    """
    from mvbuild.lineage.bind import bind
    from mvbuild.lineage.lock import of_lock, read_lock
    from mvbuild.lineage.schemas import of_states
    from mvbuild.lineage.trace import around

    graph = _graph(project)
    tables = read_lock(graph)
    if tables is not None:
        return bind(graph, of_lock(tables, graph), around(graph, of) if of else None, keep=True), ()
    try:
        world = observed(graph, catalog_of(graph))
    except ProjectError as exc:
        unreachable = [d for d in exc.diagnostics if d.code == "catalog-unreachable"]
        if not unreachable:
            raise
        help = "The columns of the tables in it are not known; a schemas.lock would tell."
        return bind(graph, only=around(graph, of) if of else None), tuple(replace(d, severity="warning", help=help) for d in unreachable)
    return bind(world.graph, of_states(world.observed.states), around(world.graph, of) if of else None), ()


def lock(project: Project = ".", *, write: bool = True) -> Locked:
    """Compare schemas.lock with the catalog, and write it anew unless `write` is False. One read of the catalog, no Spark."""
    from mvbuild.lineage.lock import Locked, differences, lock_path, locked, missing_tables, to_text
    from mvbuild.lineage.schemas import of_states

    graph = _graph(project)
    world = observed(graph, catalog_of(graph))
    now, missing = locked(world.graph, of_states(world.observed.states))
    before = _lock_before(graph, needed=not write)
    if write and before != now:
        try:
            lock_path(graph).write_text(to_text(now), encoding="utf-8", newline="\n")
        except OSError as exc:
            raise ProjectError([error("unwritable-target", f"Cannot write {lock_path(graph)}: {exc.strerror or exc}")]) from exc
    warnings = tuple(replace(d, severity="warning") for d in missing_tables(missing, world.graph))
    changes = tuple(differences(before, now)) if before is not None else ()
    return Locked(tables=len(now), differences=changes, is_new=before is None, warnings=warnings)


def _lock_before(graph: Graph, *, needed: bool) -> dict[str, TableColumns] | None:
    """A lock that cannot be read is as good as none where it is written anew."""
    from mvbuild.lineage.lock import read_lock

    try:
        return read_lock(graph)
    except ProjectError:
        if needed:
            raise
        return None


def history(project: Project, name: str) -> tuple[ModelNode, tuple[PastRefresh, ...]]:
    """The refreshes of an MV that can still be read, oldest first. No Spark."""
    graph = _graph(project)
    world = observed(graph, catalog_of(graph))
    node = _mv(world.graph, name)
    require_readable(world, node)
    storage = world.observed.table(node.storage)
    past = past_refreshes(storage) if storage is not None else ()
    return node, tuple(replace(p, record=described(world, node, p.record)) for p in past)


def rollback(project: Project, name: str, to: int) -> tuple[ModelNode, Outcome, Freshness]:
    """Data and record of another refresh become current, in one commit; and what that makes of the MV's freshness. No Spark."""
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    node = _mv(world.graph, name)
    require_readable(world, node)
    with open_session(world, catalog, None, unheard) as session, explained(graph):
        outcome = roll_back(session, node, to)
        return node, outcome, judge(session.world)[node.id]


def _pruned(graph: Graph, catalog: Catalog, result: RunResult) -> RunResult:
    """The run has just changed what is there: the catalog is looked at again."""
    world = observed(graph, catalog)
    with explained(graph):
        dropped, diagnostics = drop_all(catalog, find_removed(world, catalog))
    names = tuple(name for d in dropped for name in d.names)
    return replace(result, dropped=names, diagnostics=(*result.diagnostics, *diagnostics))


def drop(project: Project, name: str, *, confirm: Callable[[Removed], bool] = lambda _: True) -> Dropped | None:
    """Drop an MV or view that mvbuild wrote, with its storage and files. ProjectError (`has-dependents`) if something reads it; None if it
    was not confirmed. No Spark."""
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    with explained(graph):
        item = find_named(world, catalog, name)
        if item.kept_by:
            raise ProjectError([refusal(item)])
        return drop_one(catalog, item) if confirm(item) else None


def maintain(
    project: Project = ".",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    dry_run: bool = False,
    spark: Any = None,
    on_event: OnEvent = unheard,
    on_done: Callable[[Maintained], None] = lambda _: None,
) -> tuple[Graph, tuple[Maintained, ...], tuple[Diagnostic, ...]]:
    """Compact, expire and tidy the storages of MVs by their policies. Spark is started only where there is something to compact."""
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    chosen, warnings = select_nodes(world.graph, select, exclude, _states(world))
    nodes = [n for n in world.graph.views if n.id in chosen]
    with open_session(world, catalog, spark, on_event) as session, explained(graph):
        return world.graph, keep_up(session, nodes, dry_run=dry_run, on_done=on_done), warnings


def migrate(
    project: Project = ".",
    *,
    to: StorageFormat,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    on_event: OnEvent = unheard,
) -> RunResult:
    """Convert MVs to another storage format without touching a row. No Spark."""
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = observed(graph, catalog)
    chosen, warnings = select_nodes(world.graph, select, exclude, _states(world))
    planned = conversions(world, chosen, to)
    with open_session(planned.world, catalog, None, on_event) as session:
        result = run_plan(planned, session, {}, threads=1, fail_fast=False, on_event=on_event)
    return replace(result, diagnostics=(*warnings, *planned.warnings))


def branch_contents(project: Project, branch: str) -> tuple[OnBranch, ...]:
    """What a branch has of the project's tables and views. ProjectError if it has nothing. No Spark."""
    graph = _graph(project)
    with explained(graph):
        found = on_branch(graph, main_catalog_of(graph), checked_name(branch))
    if not found:
        known = branch_names(graph)
        help = did_you_mean(branch, known) if known else "`mvbuild run --branch` makes one."
        raise ProjectError([error("unknown-branch", f"The project has no branch '{branch}'", help=help)])
    return found


def branch_names(project: Project = ".") -> tuple[str, ...]:
    """The branches that have something of the project. No Spark."""
    graph = _graph(project)
    with explained(graph):
        return branches(graph, main_catalog_of(graph))


def publish(project: Project, branch: str) -> tuple[OnBranch, ...]:
    """What a branch has becomes current, in one commit where the catalog can. No Spark."""
    graph = _graph(project)
    found = branch_contents(graph, branch)
    with explained(graph):
        publish_branch(main_catalog_of(graph), branch, found)
    return found


def drop_branch(project: Project, branch: str) -> tuple[tuple[OnBranch, ...], int]:
    """Forget a branch; how many files went with tables that only it had. No Spark."""
    graph = _graph(project)
    found = branch_contents(graph, branch)
    with explained(graph):
        return found, forget_branch(main_catalog_of(graph), branch, found)


def diff(
    project: Project,
    branch: str,
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    key: Sequence[str] = (),
    limit: int = 10,
    spark: Any = None,
    on_event: OnEvent = unheard,
) -> tuple[Comparison, ...]:
    """How the rows of a branch differ from those of `main`, for each MV and seed that it has. `key`: instead of what the models tell."""
    from mvbuild.refresh.comparison import compare

    graph = _graph(project)
    found = branch_contents(graph, branch)
    chosen, _ = select_nodes(graph, select, exclude)
    old = [one for one in found if one.standing == "outdated" and one.node in chosen]
    if old:
        help = f"Run with --branch {branch} again."
        raise ProjectError(
            [error("branch-outdated", f"{o.identifier} was changed since branch '{branch}' was built", help=help) for o in old]
        )
    catalog = catalog_of(replace(graph, project=replace(graph.project, branch=branch)))
    done = []
    with open_session(observed(graph, catalog), catalog, spark, on_event) as session, explained(graph):
        for one in found:
            after = one.branch
            if one.node not in chosen or not isinstance(after, TableState) or after.current_snapshot_id is None:
                continue
            before = one.main if isinstance(one.main, TableState) else None
            keys = tuple(key) or row_key(graph, one.node)
            done.append(compare(session, before, after, keys, limit=limit))
    return tuple(done)


def review(project: Project, against: str, *, select: Iterable[str] = (), exclude: Iterable[str] = ()) -> Review:
    """What differs from another version of the project, of which kind and for whom, and what that refreshes. `against` is a git ref, which
    is compiled without a checkout, or a manifest that mvbuild has written. The catalog is read if it can be; no Spark."""
    from mvbuild.review.build import build_review
    from mvbuild.review.findings import new_findings
    from mvbuild.review.refreshes import concerned, of_plan, without_plan

    graph = _graph(project)
    select, exclude = tuple(select), tuple(exclude)
    chosen, warnings = select_all(graph, select, exclude, _states_now(graph)) if select or exclude else (None, ())
    now, new = bound(graph), version_of(graph, "the working copy")
    with opened(graph, against) as (old, former):
        before = bound(former) if former is not None else None
        found = build_review(graph, old, new, before, now, selected=chosen)
        found = replace(found, lint=new_findings(found.changes, before, now))
    if old.is_missing:
        message = f"There was no project at '{against}': everything is told as new"
        warnings = (*warnings, warning("bad-state", message, help="Name a version that has it, if there is one."))
    ids = concerned(graph, found.changes)
    planned, unknown = _plan_if_known(graph) if ids else (None, "")
    refreshes = of_plan(planned, ids) if planned else without_plan(graph, found.changes, ids)
    return replace(found, refreshes=refreshes, unknown=unknown, warnings=warnings)


def _plan_if_known(graph: Graph) -> tuple[Plan | None, str]:
    """The plan of everything, or why there is none."""
    target = graph.project.target
    database = Path(target.catalog.get("uri", "").removeprefix("sqlite:///"))
    if target.embedded and not database.exists():
        return None, "the project's own catalog has not been made yet"
    try:
        return plan(graph, select=["*"], removed=False), ""
    except ProjectError as exc:
        return None, exc.diagnostics[0].message.rstrip(".")


def _states(world: World) -> Callable[[], Mapping[NodeId, str]]:
    """What `fresh:` and `stale:` select by."""
    return lambda: {id: found.state for id, found in judge(world).items()}


def _states_now(graph: Graph) -> Callable[[], Mapping[NodeId, str]]:
    """The same for what has not read the catalog yet: it does so when it is asked."""
    return lambda: _states(observed(graph, catalog_of(graph)))()


def _mv(graph: Graph, name: str) -> ModelNode:
    node = find(graph, name)
    if not isinstance(node, ModelNode) or node.storage is None:
        raise ProjectError([error("unknown-name", f"'{name}' is no materialized view")])
    return node


__all__: Sequence[str] = (
    "bound",
    "catalog_of",
    "check_columns",
    "compile",
    "drop",
    "explain",
    "history",
    "lineage",
    "lock",
    "maintain",
    "migrate",
    "plan",
    "read",
    "review",
    "rollback",
    "run",
    "served",
    "show",
    "sql",
    "status",
    "test",
    "verify",
    "write_artifacts",
)
