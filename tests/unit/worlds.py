"""files of a project -> Graph; a catalog and an engine in memory: the basis of the tests of freshness, plans and runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.api.lineage_events import with_lineage
from mvbuild.formats.properties import TARGET_NAMESPACE
from mvbuild.freshness.observe import observe
from mvbuild.freshness.observed import World
from mvbuild.graph.model import Graph
from mvbuild.graph.resolve import build
from mvbuild.incremental.table_changes import Changes
from mvbuild.lifecycle.rename import rename
from mvbuild.names import TableIdentifier
from mvbuild.parse.project import parse_project
from mvbuild.plan.build import build_plan
from mvbuild.plan.model import Plan
from mvbuild.plan.renames import find_renames, renamed_world
from mvbuild.ports.commits import TableLayout, ViewCommit
from mvbuild.ports.engine import QueryError, Rows
from mvbuild.ports.sources import Sources
from mvbuild.ports.states import TableState, ViewState
from mvbuild.project.load import load_project
from mvbuild.refresh.pending_commits import PendingCommits
from mvbuild.refresh.result import Event, RunResult
from mvbuild.refresh.run import run_plan
from mvbuild.refresh.run_id import RunId
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.testing import with_other_tests
from mvbuild.selection.select import select, select_all
from mvbuild.storage.names import former_states, storage_name
from mvbuild.workers import Workers
from unit.settled_check import SettledCheck

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}

PROJECT = {
    "mvbuild.yml": "name: shop\n",
    "models/orders_clean.sql": "{{ config(materialized='view') }}\nSELECT id FROM raw.orders WHERE id > 0\n",
    "models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }}\n",
    "models/monthly.sql": "SELECT id FROM daily JOIN raw.customers USING (id)\n",
}
"""raw.orders -> view orders_clean -> MV daily -> MV monthly <- raw.customers."""


def write_project(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def compiled(root: Path, files: Mapping[str, str] | None = None, **options: Any) -> Graph:
    if files is not None:
        write_project(root, files)
    project = load_project(root, target=None, vars=options.get("vars", {}), env=options.get("env", {}))
    return build(project, parse_project(project, env=options.get("env", {}), workers=Workers(1)))


def name(text: str) -> TableIdentifier:
    return TableIdentifier.parse(text, "lake")


def base_table(catalog: MemoryCatalog, text: str, *, rows: int | None = 3) -> TableState:
    """A base table of another writer; with rows None it has no snapshot."""
    identifier = name(text)
    catalog.ensure_namespace(identifier.namespace)
    state = catalog.create_table(identifier, TableLayout(schema=SCHEMA), {})
    return state if rows is None else append(catalog, text, rows)


def append(catalog: MemoryCatalog, text: str, rows: int = 1, *, operation: str = "append") -> TableState:
    return catalog.append_snapshot(name(text), {"id": list(range(rows))}, operation=operation)


@dataclass
class ManualClock:
    """Time that a test moves."""

    at_ms: int = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000


@dataclass
class RecordingEngine:
    """Computes nothing: every query gives one `id` column and one row. Remembers the SQL, and fails where a test says so."""

    catalog: MemoryCatalog
    fails: Callable[[str], str | None] = lambda sql: None
    failures: Mapping[str, int] = field(default_factory=dict)
    """Text in a test's SQL -> how many rows it finds."""
    before_write: Callable[[TableIdentifier], None] = lambda table: None
    schema: Mapping[str, Any] = field(default_factory=lambda: SCHEMA)
    plans: Mapping[str, str] = field(default_factory=dict)
    """Text in a query's SQL -> its plan; else the plan is the SQL itself."""
    session: Mapping[str, str] = field(default_factory=lambda: {"spark.sql.session.timeZone": "UTC"})
    described: str = "bigint"
    """The type of the column, as DESCRIBE shows it."""
    executed: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    copies_by_position: bool = True

    def prepare(self, sql: str) -> _Prepared:
        message = self.fails(sql)
        if message:
            raise QueryError(message, condition="TEST", start=0, end=6)
        return _Prepared(self, sql, self.schema)

    def rows(self, sql: str, limit: int) -> Rows:
        with self.lock:
            self.executed.append(sql)
        parts = sql.split("\nUNION ALL\n")
        counts = [next((n for text, n in self.failures.items() if text in part), 0) for part in parts]
        if len(parts) == 1 and " AS test" not in sql:
            return Rows(columns=("failures",), rows=((counts[0],),)[:limit])
        return Rows(columns=("test", "failures"), rows=tuple(enumerate(counts)))

    def settings(self) -> Mapping[str, str]:
        return self.session

    def explain(self, sql: str, *, physical: bool = True) -> str:
        return next((plan for text, plan in self.plans.items() if text in sql), sql)

    def frame(self, sql: str) -> Frame:
        self.prepare(sql)
        return Frame(sql)

    def call(self, statement: str) -> Rows:
        with self.lock:
            self.executed.append(statement)
        described = (("id", self.described, None),) if statement.startswith("DESCRIBE QUERY ") else ()
        return Rows(columns=("col_name", "data_type", "comment") if described else (), rows=described)

    def define(self, name: str, sql: str) -> None:
        """Nothing is computed."""

    def keep(self, name: str, sql: str, *, at_once: bool = True) -> None:
        self.call(sql)

    def fetch(self, sql: str, limit: int) -> Any | None:
        """More rows than wanted: the other statements are recorded too."""
        self.prepare(sql)

    def supply(self, name: str, data: Any) -> None:
        """Nothing is computed."""

    def work(self) -> None:
        """It has no tasks to count."""

    def forget(self, name: str) -> None:
        """Nothing was kept."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(eq=False)
class Frame:
    """A replacement for a DataFrame: the SQL that it would compute."""

    sql: str


@dataclass
class _Prepared:
    engine: RecordingEngine
    sql: str
    schema: Mapping[str, Any]

    def overwrite(self, table: TableIdentifier, branch: str | None, summary: Mapping[str, str], *, where: str = "true") -> None:
        assert where == "true", "nothing is computed here"
        self.engine.before_write(table)
        with self.engine.lock:
            self.engine.executed.append(self.sql)
        self.engine.catalog.append_snapshot(table, {"id": [1]}, branch=branch or "main", operation="overwrite", summary=summary)

    def append(self, table: TableIdentifier, branch: str | None, summary: Mapping[str, str]) -> None:
        self.engine.before_write(table)
        with self.engine.lock:
            self.engine.executed.append(self.sql)
        self.engine.catalog.append_snapshot(table, {"id": [1]}, branch=branch or "main", summary={"added-records": "1", **summary})


_NONCES = count()


@dataclass
class Shop:
    """A project directory with a catalog and an engine in memory."""

    root: Path
    catalog: MemoryCatalog = field(default_factory=lambda: MemoryCatalog("lake"))
    clock: ManualClock = field(default_factory=ManualClock)
    alive: Callable[[int], bool] = lambda pid: True
    sources: Sources | None = None
    changes: Changes | None = None
    """What changed in tables; without, every refresh is a full one."""

    def __post_init__(self) -> None:
        self.engine = RecordingEngine(self.catalog)
        self.settled = SettledCheck(self.root)

    def write(self, files: Mapping[str, str]) -> Shop:
        write_project(self.root, files)
        return self

    def world(self) -> World:
        graph = compiled(self.root)
        found = observe(graph, self.catalog, self.sources, at_ms=self.clock.at_ms)
        self.settled.same(graph, self.catalog, self.sources, found)
        return found

    def plan(self, *include: str, **options: Any) -> Plan:
        world = self.world()
        chosen, warnings = select(world.graph, include, options.pop("exclude", ()))
        former = former_states(world.graph, world.observed.states, self.catalog)
        found = find_renames(world, former, chosen)
        options.setdefault("changes", self.changes)
        options.setdefault("refused", found.refused)
        planned = build_plan(renamed_world(world, found.renames), chosen, warnings=warnings, **options)
        before = replace(world, observed=world.observed.updated(former))
        return replace(planned, renames=found.renames, before=before)

    def actions(self, *include: str, **options: Any) -> dict[str, str]:
        """Node name -> action of the plan."""
        return {s.node.rpartition(".")[2]: s.action for s in self.plan(*include, **options).steps}

    def run(
        self,
        *include: str,
        threads: int = 1,
        fail_fast: bool = False,
        planned: Plan | None = None,
        on_event: Callable[[Event], None] = lambda event: None,
        atomic: bool = False,
        all_tests: bool = False,
        lineage: bool = False,
        **options: Any,
    ) -> RunResult:
        planned = planned or self.plan(*include, **options)
        run = RunId(host="here", pid=1, started_ms=self.clock.at_ms, nonce=f"{next(_NONCES):06x}")
        session = RunSession(
            catalog=self.catalog,
            clock=self.clock,
            run=run,
            world=planned.world,
            start_engine=lambda: self.engine,
            is_alive=self.alive,
            sources=self.sources,
            changes=self.changes,
            pending=PendingCommits(catalog=self.catalog, clock=self.clock) if atomic else None,
        )

        def work(told: Callable[[Any], None]) -> RunResult:
            result = run_plan(rename(session, planned), session, threads=threads, fail_fast=fail_fast, on_event=told)
            if not all_tests:
                return result
            chosen, _ = select_all(planned.world.graph, include, ())
            return with_other_tests(session, result, chosen, fail_fast=fail_fast, on_event=told)

        try:
            return with_lineage(session, on_event, work) if lineage else work(on_event)
        finally:
            session.close()

    def statuses(self, *include: str, **options: Any) -> dict[str, str]:
        """Node name -> status of a run."""
        return {r.node.rpartition(".")[2]: r.status for r in self.run(*include, **options).results}

    def table(self, text: str) -> TableState:
        state = self.catalog.load([name(text)])[name(text)]
        assert isinstance(state, TableState)
        return state


def shop(root: Path, files: Mapping[str, str] = PROJECT) -> Shop:
    """The project with its two base tables."""
    made = Shop(root).write(files)
    base_table(made.catalog, "raw.orders")
    base_table(made.catalog, "raw.customers")
    return made


def unmarked(of: Shop, view: ViewState) -> None:
    """The view as an older mvbuild wrote it: it does not say for which target."""
    commit = ViewCommit(
        identifier=view.identifier,
        expect_metadata_location=view.metadata_location,
        version_id=None,
        schema=view.schema,
        representations=view.representations,
        default_namespace=view.default_namespace,
        properties={},
        remove_properties=(TARGET_NAMESPACE,),
        storage_table=storage_name(view),
    )
    of.catalog.commit([commit])
