"""MV + RunSession -> Outcome: one full refresh, written to an audit branch, tested there, and published in one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from mvbuild.diagnostics import ProjectError, error
from mvbuild.formats import properties, refresh_state
from mvbuild.formats.record import BaseTable, ChildView, RefreshRecord
from mvbuild.freshness.leaves import Inputs, node_inputs
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pins import leaf_table, pin
from mvbuild.freshness.rules import judge_one
from mvbuild.graph.model import ModelNode, TestNode
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, Catalog, CommitConflict, TableCommit, TableLayout, TableState
from mvbuild.ports.engine import PreparedQuery
from mvbuild.refresh.audits import audit_sql, failures, run_audits, test_inputs
from mvbuild.refresh.layout import changed_properties, same_layout, storage_layout, storage_properties
from mvbuild.refresh.queries import prepare
from mvbuild.refresh.result import TestResult, count_rows
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_sql
from mvbuild.refresh.staging import left_over
from mvbuild.refresh.views import mv_commit

ATTEMPTS = 3
"""Lost commit races after which a refresh gives up; each is followed by a new look at what the winner left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one node."""

    message: str
    reused: bool = False
    tests: tuple[TestResult, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    sql: str | None = None


class AuditFailed(ProjectError):
    """Data tests found bad rows: nothing was published. Carries the results."""

    def __init__(self, error: ProjectError, tests: tuple[TestResult, ...], sql: str) -> None:
        super().__init__(error.diagnostics)
        self.tests = tests
        self.sql = sql


def refresh(session: RunSession, node: ModelNode, tests: Sequence[TestNode]) -> Outcome:
    """Refresh an MV from the run's pinned snapshots, and publish it if the tests pass.

    If another run published it first, and it is fresh now, that is as good.
    """
    world = session.world
    for _ in range(ATTEMPTS):
        try:
            return _attempt(session, node, world, tests)
        except CommitConflict:
            world = _look_again(session, node)
            if judge_one(world, node, {}).is_fresh:
                return Outcome(message="another run refreshed it", reused=True)
    raise ProjectError([error("commit-conflict", f"'{node.model.name}' was changed by others {ATTEMPTS} times while it was refreshed")])


def _attempt(session: RunSession, node: ModelNode, world: World, tests: Sequence[TestNode]) -> Outcome:
    started_ms = session.clock.now_ms()
    below = node_inputs(world.graph, node)
    pins = {leaf: p for leaf in below.leaves if (p := pin(world.graph, world.observed, leaf))}
    sql = pinned_sql(world.graph, node.query, node.reads, pins, session.schema_pin)
    query = prepare(session.engine, sql, node)
    layout = storage_layout(node, query.schema)
    view = mv_commit(world, node, layout.schema)
    version = view.version_id if view else world.observed.view(node.identifier).version_id  # type: ignore[union-attr]
    record = _record(world, below, pins, version, started_ms)
    with _stage(session, node, world, layout) as stage:
        written = _write(session.catalog, query, stage, record)
        results = _audit(session, node, world, written, tests, sql.text)
        if view and view.expect_metadata_location is None:
            session.catalog.ensure_namespace(node.identifier.namespace)
        states = session.catalog.commit([*([view] if view else []), _publish(session, node, stage, written, record)])
        session.observe(states)
    snapshot = written.snapshots[_head(written, stage)]
    rows = snapshot.summary.get("total-records")
    return Outcome(
        message=count_rows(int(rows)) if rows else "",
        tests=results,
        sql=sql.text,
        details={
            "storage_table": str(node.storage),
            "snapshot_id": snapshot.snapshot_id,
            "view_version_id": version,
            "base_snapshots": {str(p.table.identifier): p.snapshot_id for p in pins.values()},
            "rows": int(rows) if rows else None,
        },
    )


def _record(world: World, below: Inputs, pins: Mapping[Leaf, Pin], version: int, started_ms: int) -> RefreshRecord:
    """What this refresh reads: each distinct state of a table once, and every child view."""
    tables = {
        (p.table.uuid, p.snapshot_id, p.ref): BaseTable(
            uuid=p.table.uuid,
            snapshot_id=p.snapshot_id,
            catalog=p.table.identifier.catalog,
            namespace=p.table.identifier.namespace,
            name=p.table.identifier.name,
            ref=p.ref,
        )
        for p in sorted(pins.values(), key=lambda p: not p.moves)
    }
    views = []
    for id_ in below.views:
        identifier = world.graph.nodes[id_].identifier
        state = world.observed.view(identifier)
        assert state is not None, f"the plan lets no MV be refreshed without its child view {identifier}"
        views.append(
            ChildView(
                uuid=state.uuid,
                version_id=state.version_id,
                catalog=identifier.catalog,
                namespace=identifier.namespace,
                name=identifier.name,
            )
        )
    return RefreshRecord(view_version_id=version, base_tables=tuple(tables.values()), child_views=tuple(views), refresh_start_ms=started_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Where the engine writes: a branch of the storage table, or a scratch copy where the storage must get another layout."""

    before: TableState
    """The storage table before the refresh."""
    table: TableIdentifier
    branch: str | None


@contextmanager
def _stage(session: RunSession, node: ModelNode, world: World, layout: TableLayout) -> Iterator[_Stage]:
    """A private place to write to, gone at the end whatever happens."""
    assert node.storage is not None
    storage = world.observed.table(node.storage) or _create(session.catalog, node, layout)
    if same_layout(storage, layout):
        session.catalog.create_branch(storage, session.run.branch)
        try:
            yield _Stage(before=storage, table=storage.identifier, branch=session.run.branch)
        except BaseException:
            drop_branches(session.catalog, storage.identifier, (session.run.branch,))
            raise
    else:
        scratch = session.new_scratch()
        try:
            session.catalog.stage(storage, layout, scratch)
            yield _Stage(before=storage, table=scratch, branch=None)
        finally:
            session.catalog.drop_scratch(scratch)


def _create(catalog: Catalog, node: ModelNode, layout: TableLayout) -> TableState:
    assert node.storage is not None
    catalog.ensure_namespace(node.storage.namespace)
    try:
        return catalog.create_table(node.storage, layout, storage_properties(node))
    except AlreadyExists as exc:
        found = catalog.load([node.storage]).get(node.storage)
        if not isinstance(found, TableState):
            raise CommitConflict(f"{node.storage} is no table") from exc
        return found


def _write(catalog: Catalog, query: PreparedQuery, stage: _Stage, record: RefreshRecord) -> TableState:
    """Write the rows; the state of the staged table with the new snapshot."""
    query.overwrite(stage.table, stage.branch, {refresh_state.KEY: refresh_state.encode(record)})
    written = catalog.load([stage.table]).get(stage.table)
    if not isinstance(written, TableState) or (stage.branch is not None and stage.branch not in written.refs):
        raise CommitConflict(f"the audit branch of {stage.before.identifier} was removed while it was written")
    return written


def _head(table: TableState, stage: _Stage) -> int:
    head = table.refs[stage.branch] if stage.branch else table.current_snapshot_id
    assert head is not None
    return head


def _audit(
    session: RunSession, node: ModelNode, world: World, written: TableState, gating: Sequence[TestNode], sql: str
) -> tuple[TestResult, ...]:
    """The tests on the rows that were written; AuditFailed if one of them says no."""
    head = written.refs.get(session.run.branch, written.current_snapshot_id)
    assert head is not None
    audited = Pin(table=written, snapshot_id=head, ref=None, moves=True)
    queries = []
    for test in gating:
        leaves = test_inputs(world.graph, test).leaves
        pins = {leaf: audited if leaf.node == node.id else pin(world.graph, session.world.observed, leaf) for leaf in leaves}
        missing = [leaf_table(world.graph, leaf) for leaf, p in pins.items() if p is None]
        if missing:
            raise ProjectError([error("missing-table", f"data test {test.name} reads {missing[0]}, which does not exist", test.span)])
        queries.append((test, audit_sql(world.graph, test, {leaf: p for leaf, p in pins.items() if p}, session.schema_pin)))
    results = run_audits(session.engine, session.clock, queries, now_ms=session.clock.now_ms())
    failed = failures(gating, results)
    if failed:
        raise AuditFailed(ProjectError(failed), results, sql)
    return results


def _publish(session: RunSession, node: ModelNode, stage: _Stage, written: TableState, record: RefreshRecord) -> TableCommit:
    """`main` moves to the tested snapshot and the record is set, or neither."""
    before, head = stage.before, _head(written, stage)
    leftovers = left_over(before.branches, session.run, session.is_alive)
    return TableCommit(
        identifier=before.identifier,
        expect_uuid=before.uuid,
        expect_snapshot_id=before.current_snapshot_id,
        set_snapshot_id=head,
        staged=None if stage.branch else stage.table,
        drop_branches=((stage.branch,) if stage.branch else ()) + leftovers,
        set_properties={
            **changed_properties(node, before),
            **properties.encode(record),
            properties.REFRESH_SNAPSHOT: str(head),
        },
        remove_properties=properties.stale_keys(before.properties, record),
    )


def drop_branches(catalog: Catalog, identifier: TableIdentifier, branches: tuple[str, ...]) -> None:
    """Remove audit branches. If somebody else commits at the same moment they stay, for the next run to remove."""
    storage = catalog.load([identifier]).get(identifier)
    if not isinstance(storage, TableState) or not set(branches) & storage.branches:
        return
    commit = TableCommit(
        identifier=identifier, expect_uuid=storage.uuid, expect_snapshot_id=storage.current_snapshot_id, drop_branches=branches
    )
    try:
        catalog.commit([commit])
    except CommitConflict:
        return


def advance(session: RunSession, node: ModelNode) -> Outcome:
    """Move the record of a fresh MV on to the snapshots of base tables that were only compacted. No data, no engine, no new snapshot."""
    world = session.world
    storage, record = world.observed.table(node.storage), judge_one(world, node, {}).record
    assert storage is not None, "only an MV with storage is moved on"
    assert record is not None, "only an MV with a record is moved on"
    by_uuid = {p.table.uuid: p for p in session.pins(node_inputs(world.graph, node)).values() if p.ref is None and p.moves}
    moved = replace(
        record,
        base_tables=tuple(
            replace(t, snapshot_id=by_uuid[t.uuid].snapshot_id) if t.ref is None and t.uuid in by_uuid else t for t in record.base_tables
        ),
    )
    commit = TableCommit(
        identifier=storage.identifier,
        expect_uuid=storage.uuid,
        expect_snapshot_id=storage.current_snapshot_id,
        set_properties=properties.encode(moved),
    )
    session.observe(session.catalog.commit([commit]))
    return Outcome(message="only compacted base tables changed", reused=True)


def _look_again(session: RunSession, node: ModelNode) -> World:
    """Everything that the MV depends on as it is now. The run itself takes over only the MV's own new state: its pins stay."""
    graph = session.world.graph
    below = node_inputs(graph, node)
    own = [i for i in (node.identifier, node.storage) if i]
    others = [leaf_table(graph, leaf) for leaf in below.leaves] + [graph.nodes[v].identifier for v in below.views]
    states = session.catalog.load([*own, *others])
    session.observe({i: states[i] for i in own if i in states})
    return World(graph=graph, observed=session.world.observed.updated(states))
