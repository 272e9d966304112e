"""project directory -> Graph | Plan | RunResult: the pipeline on one screen, for programs. Nothing here prints.

>>> from mvbuild import api                                   # doctest: +SKIP
>>> result = api.run("shop", select=["+revenue_daily"])       # doctest: +SKIP
>>> result.ok                                                 # doctest: +SKIP
True
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from mvbuild import __version__
from mvbuild.adapters import open_catalog, start_engine
from mvbuild.artifacts.files import write_compiled, write_executed, write_json
from mvbuild.artifacts.manifest import manifest
from mvbuild.artifacts.run_results import run_results, timestamp
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observe import observe
from mvbuild.freshness.observed import World
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, NodeId, SeedNode
from mvbuild.graph.resolve import build
from mvbuild.graph.select import select as select_nodes
from mvbuild.parse.project import parse_project
from mvbuild.plan.build import build_plan
from mvbuild.plan.model import Plan
from mvbuild.ports.catalog import Catalog, CatalogError
from mvbuild.ports.engine import Engine, Rows
from mvbuild.project.load import load_project
from mvbuild.project.seeds import SeedRows, read
from mvbuild.refresh.result import Event, RunResult, Said
from mvbuild.refresh.run import run_plan
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.staging import RunId
from mvbuild.refresh.testing import run_tests
from mvbuild.serve import choose_rows

OnEvent = Callable[[Event], None]

Project = str | Path | Graph
"""A project directory; or what `compile` gave, where a target, vars or an environment are to be chosen."""


def unheard(_: Event) -> None:
    """For callers that want no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


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


def _observe(graph: Graph, catalog: Catalog) -> World:
    """`observe`, with what the catalog fails at told at the place that configures it."""
    try:
        return observe(graph, catalog)
    except CatalogError as exc:
        code = "catalog-unreachable" if exc.unreachable else "catalog-error"
        raise ProjectError([error(code, str(exc), graph.project.target.span)]) from exc


def _graph(project: Project) -> Graph:
    return project if isinstance(project, Graph) else compile(project)


def catalog_of(graph: Graph) -> Catalog:
    """The catalog of the project's target; the embedded one is made on first use."""
    target = graph.project.target
    return open_catalog(target.catalog_name, target.catalog, embedded=target.embedded)


def plan(
    project: Project = ".",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    full_refresh: bool = False,
    catalog: Catalog | None = None,
) -> Plan:
    """What a run would do and why: one read of the catalog, no Spark."""
    graph = _graph(project)
    world = _observe(graph, catalog or catalog_of(graph))
    chosen, warnings = select_nodes(world.graph, select, exclude)
    return build_plan(world, chosen, full_refresh=full_refresh, warnings=warnings)


def status(project: Project = ".") -> tuple[World, Mapping[NodeId, Freshness]]:
    """The freshness of every MV."""
    graph = _graph(project)
    world = _observe(graph, catalog_of(graph))
    return world, judge(world)


def run(
    project: Project = ".",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    full_refresh: bool = False,
    fail_fast: bool = False,
    threads: int | None = None,
    spark: Any = None,
    on_event: OnEvent = unheard,
    arguments: Mapping[str, Any] | None = None,
) -> RunResult:
    """Refresh what is stale. With `spark` a session that the caller has is used and left running."""
    graph = _graph(project)
    catalog = catalog_of(graph)
    planned = plan(graph, select=select, exclude=exclude, full_refresh=full_refresh, catalog=catalog)
    rows = seed_rows(planned)
    with _session(planned.world, catalog, spark, on_event) as session:
        if planned.needs_engine:
            _ = session.engine  # before any step: where Spark cannot start nothing is touched
        result = run_plan(planned, session, rows, threads=threads or graph.project.target.threads, fail_fast=fail_fast, on_event=on_event)
    result = replace(result, diagnostics=planned.warnings)
    write_artifacts(planned.world.graph, result, arguments={"which": "run", **(arguments or {})})
    return result


def test(
    project: Project = ".", *, select: Iterable[str] = (), exclude: Iterable[str] = (), spark: Any = None, on_event: OnEvent = unheard
) -> RunResult:
    """Run the data tests of the selected models, seeds and sources on what the catalog has now."""
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = _observe(graph, catalog)
    chosen, warnings = select_nodes(world.graph, select, exclude)
    everything = not (tuple(select) or tuple(exclude))
    tests = [t for t in world.graph.tests if everything or any(r in chosen for r in t.reads)]
    with _session(world, catalog, spark, on_event) as session:
        result = run_tests(session, tests, warnings=warnings, on_event=on_event)
    write_artifacts(world.graph, result, arguments={"which": "test"})
    return result


test.__test__ = False  # type: ignore[attr-defined]


def show(project: Project, name: str, *, limit: int = 10, spark: Any = None, on_event: OnEvent = unheard) -> tuple[Rows, str]:
    """Rows of a model, and where they come from: an MV's storage if it may be served, else its query on the tables as they are now."""
    graph = _graph(project)
    catalog = catalog_of(graph)
    world = _observe(graph, catalog)
    with _session(world, catalog, spark, on_event) as session:
        return choose_rows(session, name, limit)


def seed_rows(planned: Plan) -> dict[NodeId, SeedRows]:
    """The rows of the seeds that the plan loads; one ProjectError with all bad values of all files."""
    rows: dict[NodeId, SeedRows] = {}
    diagnostics: list[Diagnostic] = []
    for step in planned.steps:
        node = planned.world.graph.nodes[step.node]
        if step.action == "load" and isinstance(node, SeedNode):
            try:
                rows[step.node] = read(node.seed)
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


@contextmanager
def _session(world: World, catalog: Catalog, spark: Any, on_event: OnEvent) -> Iterator[RunSession]:
    project = world.graph.project

    def start() -> Engine:
        return start_engine(
            project.target,
            spark=spark,
            log_file=project.target_path / "logs" / "spark.log",
            env=os.environ,
            progress=lambda message: on_event(Said(message=message)),
        )

    clock = SystemClock()
    run_id = RunId(host=_host(), pid=os.getpid(), started_ms=clock.now_ms(), nonce=secrets.token_hex(3))
    session = RunSession(catalog=catalog, clock=clock, run=run_id, world=world, start_engine=start, is_alive=_is_alive)
    try:
        yield session
    finally:
        session.close()


def _host() -> str:
    """A name of this machine, or container, since its last start: process ids mean nothing beyond that."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()}/{boot}"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


__all__: Sequence[str] = ("catalog_of", "compile", "plan", "run", "show", "status", "test", "write_artifacts")
