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
from typing import Any
from uuid import uuid4

from mvbuild import __version__
from mvbuild.artifacts.files import write_compiled, write_executed, write_json
from mvbuild.artifacts.manifest import manifest
from mvbuild.artifacts.run_results import run_results, timestamp
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.former import former_states
from mvbuild.freshness.history import PastRefresh
from mvbuild.freshness.history import history as past_refreshes
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observed import World
from mvbuild.freshness.readable import require_readable
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode
from mvbuild.graph.resolve import build
from mvbuild.graph.select import select as select_nodes
from mvbuild.incremental.changes import Changes
from mvbuild.lifecycle.drop import Dropped, drop_all
from mvbuild.lifecycle.drop import drop as drop_one
from mvbuild.lifecycle.maintain import Maintained
from mvbuild.lifecycle.maintain import maintain as keep_up
from mvbuild.lifecycle.prune import find_named, find_removed
from mvbuild.lifecycle.rename import rename
from mvbuild.lifecycle.rollback import rollback as roll_back
from mvbuild.names import TableIdentifier
from mvbuild.parse.project import parse_project
from mvbuild.plan.build import build_plan
from mvbuild.plan.conversions import conversions
from mvbuild.plan.explain import Explanation
from mvbuild.plan.explain import explain as explain_mv
from mvbuild.plan.model import Plan
from mvbuild.plan.removed import Removed, refusal
from mvbuild.plan.renames import find_renames, renamed_world
from mvbuild.ports.catalog import Catalog, CatalogError, CommitConflict
from mvbuild.project.load import load_project
from mvbuild.project.seeds import SeedRows
from mvbuild.project.seeds import read as read_seed
from mvbuild.project.settings import StorageFormat
from mvbuild.refresh.atomic import require_atomic
from mvbuild.refresh.held import Held
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.recording import described
from mvbuild.refresh.result import RunResult
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
from mvbuild.sessions import OnEvent, SystemClock, catalog_of, explained, new_session, observed, open_session, unheard

Project = str | Path | Graph
"""A project directory; or what `compile` gave, where a target, vars or an environment are to be chosen."""


def compile(
    project_dir: str | Path = ".",
    *,
    target: str | None = None,
    vars: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    target_path: Path | None = None,
    threads: int | None = None,
) -> Graph:
    """Load, render, parse and resolve a project. No catalog, no Spark. ProjectError with every error of the stage that failed."""
    environment = os.environ if env is None else env
    project = load_project(Path(project_dir), target=target, vars=vars or {}, env=environment, target_path=target_path, threads=threads)
    return build(project, parse_project(project, env=environment))


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
    chosen, warnings = select_nodes(world.graph, select, exclude)
    with explained(graph):
        former = former_states(world, catalog)
        found = find_renames(world, former, chosen)
        if found.diagnostics:
            raise ProjectError(found.diagnostics)
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
    catalog = catalog_of(graph)
    together = graph.project.publish == "atomic" if atomic is None else atomic
    if together:
        require_atomic(graph, catalog.atomic)
    planned = plan(graph, select=select, exclude=exclude, full_refresh=full_refresh, removed=False, catalog=catalog)
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
    chosen, warnings = select_nodes(world.graph, select, exclude)
    everything = not (tuple(select) or tuple(exclude))
    tests = [t for t in world.graph.tests if everything or any(r in chosen for r in t.reads)]
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
    chosen, warnings = (named, ()) if named else select_nodes(world.graph, select, exclude)
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
    chosen, warnings = select_nodes(world.graph, select, exclude)
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
    chosen, warnings = select_nodes(world.graph, select, exclude)
    planned = conversions(world, chosen, to)
    with open_session(planned.world, catalog, None, on_event) as session:
        result = run_plan(planned, session, {}, threads=1, fail_fast=False, on_event=on_event)
    return replace(result, diagnostics=(*warnings, *planned.warnings))


def _mv(graph: Graph, name: str) -> ModelNode:
    node = find(graph, name)
    if not isinstance(node, ModelNode) or node.storage is None:
        raise ProjectError([error("unknown-name", f"'{name}' is no materialized view")])
    return node


def seed_rows(planned: Plan) -> dict[NodeId, SeedRows]:
    """The rows of the seeds that the plan loads; one ProjectError with all bad values of all files."""
    rows: dict[NodeId, SeedRows] = {}
    diagnostics: list[Diagnostic] = []
    for step in planned.steps:
        node = planned.world.graph.nodes[step.node]
        if step.action == "load" and isinstance(node, SeedNode):
            try:
                rows[step.node] = read_seed(node.seed)
            except ProjectError as exc:
                diagnostics.extend(exc.diagnostics)
    if diagnostics:
        raise ProjectError(diagnostics)
    return rows


def write_artifacts(graph: Graph, result: RunResult | None = None, *, arguments: Mapping[str, Any] | None = None) -> None:
    """target/manifest.json and target/compiled; with a result target/run_results.json and target/run as well."""
    invocation, now = str(uuid4()), SystemClock().now_ms()
    path = graph.project.target_path
    try:
        write_json(path / "manifest.json", manifest(graph, version=__version__, generated_at=timestamp(now), invocation_id=invocation))
        write_compiled(graph)
        if result is not None:
            content = run_results(graph, result, arguments=arguments or {}, version=__version__, invocation_id=invocation)
            write_json(path / "run_results.json", content)
            write_executed(graph, result)
    except OSError as exc:
        raise ProjectError([error("unwritable-target", f"Cannot write to {path}: {exc.strerror or exc}")]) from exc


__all__: Sequence[str] = (
    "catalog_of",
    "compile",
    "drop",
    "explain",
    "history",
    "maintain",
    "migrate",
    "plan",
    "read",
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
