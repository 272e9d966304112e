"""MV + RunSession -> Outcome: one refresh, written to an audit branch, tested there, and published in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mvbuild.diagnostics import ProjectError, error
from mvbuild.formats import failed_tests, properties
from mvbuild.formats.properties import OWNER, Indirect
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.indirect import indirect
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import Pin, World
from mvbuild.freshness.overtaken import is_as_new
from mvbuild.freshness.pins import leaf_table, pin
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode, TestNode
from mvbuild.incremental.choose import StrategyChoice
from mvbuild.incremental.strategies import refused_by_settings
from mvbuild.names import TableIdentifier
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.ports.catalog import Catalog, CommitConflict
from mvbuild.ports.commits import TableCommit, TableLayout
from mvbuild.ports.engine import PreparedQuery
from mvbuild.ports.session import session_of
from mvbuild.ports.states import TableState
from mvbuild.refresh import incremental
from mvbuild.refresh.advance import advance
from mvbuild.refresh.audits import audit_sql, failures, require_columns, run_audits, test_inputs
from mvbuild.refresh.choosing import chosen, fallen_back, progress_text, result_details, summary_of_choice
from mvbuild.refresh.mark import mark_failed
from mvbuild.refresh.observe_again import observe_again
from mvbuild.refresh.outcome import AuditFailed, Outcome
from mvbuild.refresh.queries import is_missing_table, prepare
from mvbuild.refresh.recording import record_of
from mvbuild.refresh.result import TestResult
from mvbuild.refresh.round_trip import mark_after_full
from mvbuild.refresh.run_id import left_over
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_sql
from mvbuild.refresh.staging_area import StagingArea, drop_branches, staging_area
from mvbuild.refresh.views import mv_commit
from mvbuild.refresh.write_outcome import NotIncremental, WriteOutcome
from mvbuild.storage.commits import recorded, require_recordable, summary_of
from mvbuild.storage.embedded import with_embedded
from mvbuild.storage.format import is_embedded
from mvbuild.storage.history import STRATEGY, live_rows, next_refresh_id, written_in
from mvbuild.storage.layout import changed_properties, docs, same_layout, storage_layout
from mvbuild.storage.names import known_as
from mvbuild.storage.proof import PROVEN, mark_of
from mvbuild.storage.schema import schema_property, stale_schema_property
from mvbuild.storage.schema_difference import difference
from mvbuild.storage.schemas_read import schemas_read, stale_schemas
from mvbuild.storage.sessions import SESSION_KEY, SETTINGS, encode_session, settings_mark, settings_of, settings_property

ATTEMPTS = 3
"""After this many lost commit races a refresh gives up; after each one it looks again at the state that the winner left."""


def refresh(session: RunSession, node: ModelNode, tests: Sequence[TestNode], *, forced: bool = False) -> Outcome:
    """Refresh an MV from the run's pinned snapshots, and publish it if the tests pass. `forced`: in full, whatever changed.

    If another run published first, and read what this run had to read or newer data, that refresh is reused.
    """
    world = session.world
    for _ in range(ATTEMPTS):
        started_ms = session.clock.now_ms()
        try:
            return _attempt(session, node, world, tests, started_ms, forced=forced)
        except AuditFailed as exc:
            raise mark_failed(session, node, world, exc, started_ms) from exc
        except CommitConflict:
            world = observe_again(session, node)
            if is_as_new(session.world, world, node, forced=forced):
                return Outcome(message="another run refreshed it", reused=True)
        except ProjectError as exc:
            if not is_missing_table(exc):
                raise
            before, world = world, observe_again(session, node)
            if _entries(world, node) == _entries(before, node):
                raise
    raise ProjectError([error("commit-conflict", f"other processes changed '{node.model.name}' {ATTEMPTS} times while it was refreshed")])


def _entries(world: World, node: ModelNode) -> set[tuple[TableIdentifier, bool]]:
    """What it reads, and whether each has its own entry: migrating an upstream MV removes the entry of its storage, or creates one."""
    found = (pin(world.graph, world.observed, leaf) for leaf in node_inputs(world.graph, node).leaves)
    return {(known_as(p.table), p.table.of_view is None) for p in found if p}


def _attempt(session: RunSession, node: ModelNode, world: World, tests: Sequence[TestNode], started_ms: int, *, forced: bool) -> Outcome:
    below = node_inputs(world.graph, node)
    pins = {leaf: p for leaf in below.leaves if (p := pin(world.graph, world.observed, leaf))}
    choice = chosen(session, world, node, pins, forced=forced)
    if choice.is_no_change:
        return advance(session, world, node, pins, started_ms, choice, _audit_as_it_is(session, node, world, tests))
    sql = pinned_sql(world.graph, node.query, node.reads, pins, session.schema_pin)
    query = prepare(session.engine, sql, node)
    layout = storage_layout(node, query.schema)
    require_columns(world.graph, node, tests, query.schema)
    conf = session.engine.settings()
    settings = settings_mark(conf)
    choice = _possible(node, choice, world.observed.table(node.storage), layout, conf)
    world = _with_properties(session, node, world)
    view = mv_commit(world, node, layout.schema)
    version = view.version_id if view and view.version_id else world.observed.view(node.identifier).version_id  # type: ignore[union-attr]
    record = record_of(world, below, pins, version, started_ms)
    if is_embedded(node, world.observed.table(node.storage)):
        require_recordable(node, record)
    with session.staging_area(staging_area(session, node, world, layout)) as place:
        meant = fingerprint(definition(world.graph, node).text)
        session_property = {SESSION_KEY: encode_session(session_of(conf), world.observed.session)}
        summary = {**summary_of(record, next_refresh_id(place.before), choice.strategy, meant), **session_property}
        choice, done = _write(session, node, choice, sql.text, query, place, summary)
        if done is not None and done.is_empty:
            drop_branches(session.catalog, place.before, (place.branch,) if place.branch else ())
            kept = _audit_as_it_is(session, node, world, tests)
            return advance(session, world, node, pins, started_ms, choice, kept, _mark(choice, settings))
        mark = _mark(choice, settings) if done else mark_after_full(session, world, node, pins, sql.text, query.schema, settings)
        written = _staged_state(session.catalog, place)
        results = _audit(session, node, world, written, place.head(written), tests, sql.text)
        if view and view.expect_metadata_location is None:
            session.catalog.ensure_namespace(node.identifier.namespace)
        others = indirect(world, node, record, (view.uuid if view else None) or "")
        publish = _publish(
            session, node, place, written, record, others, schemas_read(p.table for p in pins.values() if p.moves), mark, settings
        )
        session.publish([*([view] if view else []), publish], world, written)
    snapshot = written.snapshots[place.head(written)]
    done = done.counted(snapshot.summary) if done else None
    made = tuple(s for s in written_in(written, snapshot) if s.snapshot_id not in place.before.snapshots)
    rows = live_rows(snapshot)
    return Outcome(
        message=progress_text(node, choice, done, rows),
        tests=results,
        sql="\n;\n".join(done.statements) if done else sql.text,
        details={
            "storage_table": None if place.before.of_view else str(node.storage),
            "snapshot_id": snapshot.snapshot_id,
            "view_version_id": version,
            "base_snapshots": {str(p.table.identifier): p.snapshot_id for p in pins.values()},
            "rows": rows,
            **result_details(choice, done, made, place.before.current_snapshot),
        },
    )


def _possible(
    node: ModelNode, choice: StrategyChoice, storage: TableState | None, layout: TableLayout, conf: Mapping[str, str]
) -> StrategyChoice:
    """In full if only Spark's analysis of the query or its settings show that it must be."""
    if not choice.is_incremental or storage is None:
        return choice
    if not same_layout(storage, layout):
        # Another writer may have created it, with another order of columns.
        return fallen_back(node, choice, NotIncremental("layout-changed", "the columns of the storage differ from those of the query"))
    before, settings = settings_of(storage), settings_mark(conf)
    if before != settings:
        # Rows to remove would be searched with the values that these settings give, and not with the stored ones.
        what = (
            f"the settings of the session differ from those of the last refresh ({_zone(before) or 'unknown'} then, {_zone(settings)} now)"
        )
        return fallen_back(node, choice, NotIncremental("session-changed", what))
    refused = refused_by_settings(choice.strategy, conf, (field["type"] for field in layout.schema["fields"]))
    return fallen_back(node, choice, NotIncremental(refused.code, refused.message)) if refused else choice


def _zone(settings: str) -> str:
    return settings.partition(" ")[0]


def _mark(choice: StrategyChoice, settings: str) -> str:
    """The mark of the proof that an incremental refresh relies on."""
    assert choice.inputs is not None
    return mark_of(choice.inputs.text.text, choice.inputs.schemas, settings)


def _audit_as_it_is(session: RunSession, node: ModelNode, world: World, tests: Sequence[TestNode]) -> tuple[TestResult, ...]:
    """Run the tests on rows that do not change: other tables that the tests read may have changed."""
    storage = world.observed.table(node.storage)
    assert storage is not None, node.id
    if not tests or storage.current_snapshot_id is None:
        return ()
    return _audit(session, node, world, storage, storage.current_snapshot_id, tests, "")


def _write(
    session: RunSession,
    node: ModelNode,
    choice: StrategyChoice,
    sql: str,
    query: PreparedQuery,
    place: StagingArea,
    summary: Mapping[str, str],
) -> tuple[StrategyChoice, WriteOutcome | None]:
    """Write with the chosen strategy, or in full if that turns out to be impossible. What an attempt left on the branch is replaced."""
    if choice.is_incremental:
        try:
            return choice, incremental.write(session, node, choice, sql, place, {**summary, **summary_of_choice(choice)})
        except NotIncremental as exc:
            choice = fallen_back(node, choice, exc)
    query.overwrite(place.table, place.branch, {**summary, STRATEGY: choice.strategy, **summary_of_choice(choice)})
    return choice, None


def _with_properties(session: RunSession, node: ModelNode, world: World) -> World:
    """Configured properties of the table are set before anything is written: one that the engine cannot read would make every refresh fail,
    including the one that corrects it."""
    storage = world.observed.table(node.storage)
    changes = changed_properties(node, storage) if storage is not None else None
    wanted = {name: value for name, value in changes.set.items() if name != OWNER} if changes else {}
    if storage is None or changes is None or not (wanted or changes.remove):
        return world
    commit = TableCommit(
        identifier=known_as(storage),
        of_view=storage.of_view,
        expect_uuid=storage.uuid,
        expect_snapshot_id=storage.current_snapshot_id,
        set_properties=wanted,
        remove_properties=changes.remove,
    )
    states = session.catalog.commit([commit])
    session.observe(states)
    return World(graph=world.graph, observed=world.observed.updated(with_embedded(world.graph, states)))


def _staged_state(catalog: Catalog, place: StagingArea) -> TableState:
    """The state of the staged table with the new snapshot."""
    written = catalog.load([place.table]).get(place.table)
    if not isinstance(written, TableState) or (place.branch is not None and place.branch not in written.refs):
        raise CommitConflict(f"the audit branch of {place.before.identifier} was removed while it was written")
    if place.branch is not None and difference(place.before.schema, written.schema):
        raise CommitConflict(f"the columns of {place.before.identifier} were changed while it was written")
    return written


def _audit(
    session: RunSession, node: ModelNode, world: World, written: TableState, head: int, gating: Sequence[TestNode], sql: str
) -> tuple[TestResult, ...]:
    """Run the tests on the rows that were written. Raises AuditFailed if one fails."""
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


def _publish(
    session: RunSession,
    node: ModelNode,
    place: StagingArea,
    written: TableState,
    record: RefreshRecord,
    others: Indirect,
    schemas: Mapping[str, str],
    mark: str,
    settings: str,
) -> TableCommit:
    """Move `main` to the tested snapshot and set the record, or do neither."""
    before, head = place.before, place.head(written)
    number = next_refresh_id(before)
    # The staged table has the columns' comments; after a rollback the table itself may have older ones.
    layout = storage_layout(node, before.schema) if place.branch else None
    schema = schema_property(written.snapshots[head])
    properties_of_refresh = {
        properties.REFRESH_SNAPSHOT: str(head),
        **schema,
        SETTINGS: settings_property(number, settings),
        **_proven(mark),
    }
    stale = (*stale_schemas(before.properties, schemas), *stale_schema_property(before.properties, schema))
    leftovers = left_over(before.branches, session.run, session.is_alive)
    return recorded(
        node,
        before,
        record,
        number,
        indirect=others,
        set_properties={**changed_properties(node, before).set, **schemas, **properties_of_refresh},
        also_remove=(
            *stale,
            *(() if mark or PROVEN not in before.properties else (PROVEN,)),
            *((failed_tests.KEY,) if failed_tests.KEY in before.properties else ()),
        ),
        set_snapshot_id=head,
        layout=layout if layout and docs(layout.schema) != docs(before.schema) else None,
        staged=None if place.branch else place.table,
        drop_branches=((place.branch,) if place.branch else ()) + leftovers,
        new_storage=before.metadata_location if before.of_view is not None and before.mv is None else None,
    )


def _proven(mark: str) -> dict[str, str]:
    return {PROVEN: mark} if mark else {}
