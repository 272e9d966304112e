"""Graph -> the catalog of its target, the observation of it, and a RunSession of this process: the start of every command."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mvbuild.adapters import installed_spark, open_catalog, open_sources, session_settings, start_engine
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError, error
from mvbuild.freshness.observe import observe
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph
from mvbuild.incremental.table_changes import Changes
from mvbuild.ports.catalog import Catalog, CatalogError, CommitConflict
from mvbuild.ports.engine import Engine
from mvbuild.ports.session import configured_session, session_of
from mvbuild.refresh.result import EngineStarted, Message
from mvbuild.refresh.result import Event as RunEvent
from mvbuild.refresh.run_id import RunId
from mvbuild.refresh.session import RunSession
from mvbuild.verify.model import Checked

Event = RunEvent | Checked
"""What a command says of its progress."""
OnEvent = Callable[[Event], None]


def ignore_event(_: Event) -> None:
    """For callers that need no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def catalog_of(graph: Graph) -> Catalog:
    """The catalog of the project's target, as the project's branch sees it; the embedded one is created on first use."""
    catalog, branch = main_catalog_of(graph), graph.project.branch
    if branch is None:
        return catalog
    with explained(graph):
        if not catalog.has_branches:
            target = graph.project.target
            message = f"catalog '{target.catalog_name}' has no branches that mvbuild can build on: it does not support views"
            raise ProjectError([error("no-branches", message, target.span)])
        return catalog.on_branch(branch)


def main_catalog_of(graph: Graph) -> Catalog:
    """The same without a branch."""
    target = graph.project.target
    return open_catalog(target.catalog_name, target.catalog, embedded=target.embedded)


def observed(graph: Graph, catalog: Catalog, spark: Any = None, *, lazily: bool = False) -> World:
    """`observe`, with errors of the catalog reported at the place that configures it. `spark`: the caller's session, which will read."""
    settings = session_settings(spark) if spark is not None else None
    own = configured_session(graph.project.target.spark.config, installed_spark())
    session = session_of(settings) if settings is not None else own
    with explained(graph):
        at_ms = SystemClock().now_ms()
        return observe(graph, catalog, open_sources(graph.project.target), at_ms=at_ms, session=session, lazily=lazily)


@contextmanager
def explained(graph: Graph, *, conflicts: bool = True) -> Iterator[None]:
    """Report errors of the catalog at the place that configures it. A conflict passes if the caller handles it."""
    try:
        yield
    except CommitConflict as exc:
        if not conflicts:
            raise
        raise ProjectError([error("commit-conflict", str(exc))]) from exc
    except CatalogError as exc:
        code = "catalog-unreachable" if exc.unreachable else "catalog-error"
        raise ProjectError([error(code, str(exc), graph.project.target.span)]) from exc


@contextmanager
def open_session(
    world: World, catalog: Catalog, spark: Any, on_event: OnEvent, *, reads: int | None = None, engine: Engine | None = None
) -> Iterator[RunSession]:
    """`engine`: one that was started already."""
    session = new_session(world, catalog, spark, on_event, reads=reads)
    session.use(engine)
    try:
        yield session
    finally:
        session.close()


def new_session(
    world: World, catalog: Catalog, spark: Any, on_event: OnEvent, *, warm: bool = True, reads: int | None = None
) -> RunSession:
    """A session whose engine starts when it is needed. Without `warm`, it is never one that other commands use too. `reads`: how
    many bytes of tables an engine of its own reads before the process ends, if that is known."""
    clock = SystemClock()
    run_id = RunId(host=_host(), pid=os.getpid(), started_ms=clock.now_ms(), nonce=secrets.token_hex(3))
    return RunSession(
        catalog=catalog,
        clock=clock,
        run=run_id,
        world=world,
        start_engine=partial(started_engine, world.graph, spark, on_event, warm=warm, reads=reads),
        is_alive=_is_alive,
        sources=open_sources(world.graph.project.target),
        changes=Changes(catalog.changes),
    )


def started_engine(graph: Graph, spark: Any, on_event: OnEvent, *, warm: bool = True, reads: int | None = None) -> Engine:
    """`warm` and `reads`: see `new_session`."""
    project = graph.project
    # What an engine does takes long, and files may be edited meanwhile.
    project.contents.complete()
    engine = start_engine(
        project.target,
        spark=spark,
        log_file=project.target_path / "logs" / "spark.log",
        env=os.environ,
        progress=lambda message: on_event(Message(message=message)),
        sources=tuple(graph.outside.values()),
        project=project.root if warm else None,
        reads=reads,
    )
    on_event(EngineStarted(work=engine.work))
    return engine


def _host() -> str:
    """A name of this machine, or container, since its last start: process ids are only unique within that."""
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
