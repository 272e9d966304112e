"""World -> Freshness of every MV. Pure: the same observation always gives the same result.

The conditions are those of the property-based specification (view version, base table snapshots, child view versions, and the relaxed
window on the difference of snapshot timestamps), with what it leaves open: other UUIDs, rollbacks, compaction, foreign writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mvbuild.formats import failed_tests, properties
from mvbuild.formats.failed_tests import FailedTests
from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, ChildView, RefreshRecord
from mvbuild.freshness.age import allows, unseen, unseen_of_snapshot
from mvbuild.freshness.changed_columns import changed_columns
from mvbuild.freshness.file_places import metadata_columns_of
from mvbuild.freshness.leaves import Inputs, node_inputs
from mvbuild.freshness.marks import has_rows_of, is_recreated, wrong_marks
from mvbuild.freshness.model import Freshness, Reason, State
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pending import pending_seeds, pending_views, same_definition, stored_definition
from mvbuild.freshness.pins import known_as, leaf_table, pin
from mvbuild.freshness.sessions import difference, recorded_session
from mvbuild.freshness.states import recorded_states, states_without_reader
from mvbuild.freshness.storage_schema import changed_by_others
from mvbuild.freshness.stored import Stored, replaced_since, stored, unseen_since
from mvbuild.freshness.zones import dependence_on_zone
from mvbuild.graph.definition import definition
from mvbuild.graph.definition_edits import classify
from mvbuild.graph.model import ModelNode, NodeId, SeedNode, ViewNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.determinism import nondeterministic_word
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.parse.metadata_columns import OF_ALL_SPECS
from mvbuild.ports.states import TableState, ViewState
from mvbuild.project.setting_values import written


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that the rules look at for one MV."""

    world: World
    node: ModelNode
    view: ViewState | None
    storage: TableState | None
    stored: Stored
    record: RefreshRecord | None
    same_definition: bool
    inputs: Inputs
    upstream: Mapping[NodeId, Freshness]
    pending: frozenset[NodeId]

    @property
    def is_unreadable(self) -> bool:
        observed = self.world.observed
        return bool(observed.unreadable(self.node.identifier) or observed.unreadable(self.node.storage))


Rule = Callable[[Situation], Iterable[Reason]]


def judge(world: World) -> dict[NodeId, Freshness]:
    """The freshness of every MV of the graph, upstreams first."""
    pending = pending_seeds(world) | pending_views(world)
    answers: dict[NodeId, Freshness] = {}
    for node in world.graph.views:
        answers[node.id] = judge_one(world, node, answers, pending)
    return answers


def judge_one(world: World, node: ModelNode, upstream: Mapping[NodeId, Freshness], pending: frozenset[NodeId] = frozenset()) -> Freshness:
    """The freshness of one MV, given that of the MVs that it reads and the nodes that are about to change."""
    situation = _situation(world, node, upstream, pending)
    # A table whose columns changed may be read at several branches.
    reasons = tuple(dict.fromkeys(reason for rule in RULES for reason in rule(situation)))
    state = _state(reasons)
    return Freshness(
        node=node.id,
        state=state,
        reasons=reasons,
        record=situation.record,
        unseen=unseen(world, situation.inputs, reasons, upstream),
        failed=_failed(situation, state, reasons),
    )


def _situation(world: World, node: ModelNode, upstream: Mapping[NodeId, Freshness], pending: frozenset[NodeId]) -> Situation:
    view = world.observed.view(node.identifier)
    storage = world.observed.table(node.storage)
    of_storage = stored(storage) if storage else Stored(record=None)
    return Situation(
        world=world,
        node=node,
        view=view,
        storage=storage,
        stored=of_storage,
        record=of_storage.record,
        same_definition=same_definition(world, node, view),
        inputs=node_inputs(world.graph, node),
        upstream=upstream,
        pending=pending,
    )


def _state(reasons: Iterable[Reason]) -> State:
    effects = {r.effect for r in reasons}
    return "stale" if "stale" in effects else "unknown" if "unknown" in effects else "fresh"


def _failed(s: Situation, state: State, reasons: Iterable[Reason]) -> FailedTests | None:
    """The newest data if its tests failed. If the storage is exactly what the query returns now, the failure is obsolete: a table was
    rolled back, or an edit undone."""
    found = failed_tests.decode(s.storage.properties) if s.storage else None
    is_exact = state == "fresh" and s.record is not None and not any(r.code == "within-window" for r in reasons)
    if found is None or not is_exact or s.record is None:
        return found
    return found if found.is_of(s.record, fingerprint(definition(s.world.graph, s.node).text)) else None


# --- the MV itself ---------------------------------------------------------------------------------------------------------------


def unreadable(s: Situation) -> Iterator[Reason]:
    for identifier in (s.node.identifier, s.node.storage):
        found = s.world.observed.unreadable(identifier)
        if found is not None:
            yield Reason(code="metadata-unreadable", message=found.reason, effect="unknown", table=identifier)


def flawed(s: Situation) -> Iterator[Reason]:
    """Errors in a metadata file that no result depends on; see `formats.metadata_certain`."""
    mv = s.storage.mv if s.storage else None
    for problem in mv.problems if mv else ():
        message = f"its metadata file breaks a rule of its format, and is read without what depends on it: {problem}"
        yield Reason(code="metadata-flawed", message=message, effect="fresh", table=s.node.identifier)


def never_refreshed(s: Situation) -> Iterator[Reason]:
    if s.storage is None and s.is_unreadable:
        return
    if s.storage is None:
        if s.view is not None and properties.is_materialized(s.view.properties):
            yield _stale("storage-missing", f"the storage table {s.node.storage} does not exist")
        else:
            yield _stale("never-refreshed", "it was never refreshed")
    elif s.stored.problem:
        yield _stale("record-unreadable", f"the record of its last refresh cannot be read: {s.stored.problem}")
    elif s.record is None:
        yield _stale("never-refreshed", "it was never refreshed")


def storage_changed(s: Situation) -> Iterator[Reason]:
    foreign = s.stored.foreign
    if foreign is not None and s.storage is not None:
        by = foreign.summary.get("engine-name") or foreign.summary.get("app-name")
        who = f" by {by}" if by else ""
        message = f"its storage was changed{who} after the last refresh: {foreign.operation or 'unknown'} snapshot {foreign.snapshot_id}"
        yield Reason(code="storage-changed", message=message, effect="stale", table=s.node.storage, current=foreign.snapshot_id)


def storage_schema_changed(s: Situation) -> Iterator[Reason]:
    changed = changed_by_others(s.storage) if s.storage is not None and s.record is not None else ()
    if changed:
        message = f"columns of its storage were renamed, dropped, added, moved or retyped after the last refresh: {_listed(changed)}"
        yield Reason(code="storage-schema-changed", message=message, effect="stale", table=s.node.storage)


def definition_changed(s: Situation) -> Iterator[Reason]:
    wrong = s.world.graph.undefined.get(s.node.id)
    if wrong is not None:
        yield _stale("not-compiled", f"its SQL does not compile: {wrong.message}")
        return
    if s.record is None:
        return
    if s.view is None and s.is_unreadable:
        return
    if s.view is None:
        yield _stale("view-missing", f"the view {s.node.identifier} does not exist")
    elif not s.same_definition:
        before = stored_definition(s.view, s.node.storage)
        change = classify(before, definition(s.world.graph, s.node).text) if before else None
        message = f"its definition was changed{f': {change.message}' if change else ''}"
        yield Reason(code="definition-changed", message=message, effect="stale", change=change.kind if change else None)
    elif s.record.view_version_id is None:
        message = "the record does not say which version of the view was refreshed"
        yield Reason(code="view-version-not-recorded", message=message, effect="unknown", table=s.node.identifier)
    elif s.record.view_version_id != s.view.version_id:
        yield Reason(
            code="view-version-differs",
            message=f"it was refreshed for version {s.record.view_version_id} of the view, which is now at version {s.view.version_id}",
            effect="stale",
            table=s.node.identifier,
            recorded=s.record.view_version_id,
            current=s.view.version_id,
            heals=_has_rows_of_view(s, s.view, s.record),
        )


def marks(s: Situation) -> Iterator[Reason]:
    """The marks by which other engines find the MV and its rows. If the definition changed, they are written with the next rows."""
    if s.record is None or s.view is None or s.storage is None or not s.same_definition:
        return
    found = list(wrong_marks(s.view, s.storage))
    if is_recreated(s.view, s.storage):
        found.append(("view-recreated", f"the view {s.node.identifier} was dropped and created again"))
    heals = bool(found) and _has_rows_of_view(s, s.view, s.record)
    for code, message in found:
        yield Reason(code=code, message=message, effect="stale", table=s.node.identifier, heals=heals)


def _has_rows_of_view(s: Situation, view: ViewState, record: RefreshRecord) -> bool:
    return s.storage is not None and has_rows_of(view, s.storage, record, definition(s.world.graph, s.node).text)


def nondeterministic(s: Situation) -> Iterator[Reason]:
    """Snapshots do not show whether a query that depends on the clock still returns the same rows."""
    if s.record is None:
        return
    for identifier, text in _texts(s):
        word = nondeterministic_word(text, substituted=_is_substituted(s))
        if word:
            message = f"its rows do not depend on its tables alone: {identifier} uses {word}"
            yield Reason(code="nondeterministic", message=message, effect="unknown", table=identifier)
        if OF_ALL_SPECS in text.lower():
            yield from _partitioned(s, text)


def _partitioned(s: Situation, text: str) -> Iterator[Reason]:
    for leaf in s.inputs.leaves:
        table = s.world.observed.table(leaf_table(s.world.graph, leaf))
        if table is not None and OF_ALL_SPECS in metadata_columns_of((text,), table):
            message = f"{OF_ALL_SPECS} depends on every partition spec of {known_as(table)}, and a new spec makes no snapshot"
            yield Reason(code="nondeterministic", message=message, effect="unknown", table=table.identifier)


def _is_substituted(s: Situation) -> bool:
    """Whether Spark replaces variables in the SQL, or did so when the rows were computed."""
    made = recorded_session(s.storage) if s.storage is not None else None
    return s.world.observed.session.substitutes or made is None or made.session.substitutes


def session_differs(s: Situation) -> Iterator[Reason]:
    """The same query returns other rows in another time zone, or under other rules of SQL."""
    if s.record is None or s.storage is None:
        return
    made, session = recorded_session(s.storage), s.world.observed.session
    if made is None:
        what = _zone_dependence(s)
        if what and not any(nondeterministic(s)):
            message = f"its rows depend on a time zone, and it is not recorded in which one they were made: {what}"
            yield Reason(code="session-not-recorded", message=message, effect="unknown")
        return
    found = difference(made, session, depends_on_zone=lambda: _zone_dependence(s))
    if found:
        yield _stale("session-differs", f"it was refreshed by a session with other settings: {found}")


def _zone_dependence(s: Situation) -> str:
    observed = s.world.observed
    tables = (observed.table(leaf_table(s.world.graph, leaf)) for leaf in s.inputs.leaves)
    views = (observed.view(s.world.graph.nodes[id].identifier) for id in s.inputs.views)
    return dependence_on_zone((text for _, text in _texts(s)), [one.schema for one in (*tables, *views) if one is not None])


def _texts(s: Situation) -> Iterator[tuple[TableIdentifier, str]]:
    """The SQL of the MV and of the views below it, with ephemeral models inlined."""
    graph = s.world.graph
    if s.node.id not in graph.undefined:
        yield s.node.identifier, definition(graph, s.node).text
    for id_ in s.inputs.views:
        node = graph.nodes[id_]
        if isinstance(node, ModelNode | ViewNode) and id_ not in graph.undefined:
            yield node.identifier, definition(graph, node).text if isinstance(node, ModelNode) else node.query.sql.text


# --- what it reads ---------------------------------------------------------------------------------------------------------------


def upstream_not_fresh(s: Situation) -> Iterator[Reason]:
    for leaf in s.inputs.leaves:
        above = s.upstream.get(leaf.node)
        if above is not None and not above.has_right_rows:
            message = f"it reads {s.world.graph.nodes[leaf.node].identifier}, which is {above.state}"
            yield Reason(
                code=f"upstream-{above.state}", message=message, effect=above.state, table=s.world.graph.nodes[leaf.node].identifier
            )


def upstream_behind(s: Situation) -> Iterator[Reason]:
    """An MV within its own window may be too old for one that reads it."""
    window = s.node.model.config.max_staleness
    for leaf in s.inputs.leaves:
        above = s.upstream.get(leaf.node) if leaf.travel is None else None
        if above is None or not above.has_right_rows or allows(window, above.unseen):
            continue
        oldest = max(above.unseen, key=lambda r: r.lag_ms or 0)
        name = s.world.graph.nodes[leaf.node].identifier
        limit = f"the window of this MV is {written(window)}" if window else "this MV has no window"
        yield Reason(
            code="upstream-behind",
            message=f"it reads {name}, which has not seen the newest data of {oldest.table}; {limit}",
            effect="stale",
            table=name,
            lag_ms=oldest.lag_ms,
            unseen_since_ms=oldest.unseen_since_ms,
        )


def pending_changed(s: Situation) -> Iterator[Reason]:
    for id_ in (*(leaf.node for leaf in s.inputs.leaves), *s.inputs.views):
        if id_ in s.pending:
            node = s.world.graph.nodes[id_]
            code, what = ("seed-changed", "seed") if isinstance(node, SeedNode) else ("child-view-edited", "child view")
            happened = "was edited" if node.identifier in s.world.observed.states else "is not in the catalog yet"
            yield Reason(code=code, message=f"the {what} {node.identifier} {happened}", effect="stale", table=node.identifier)


def base_tables(s: Situation) -> Iterator[Reason]:
    for leaf in s.inputs.leaves:
        found = pin(s.world.graph, s.world.observed, leaf)
        if found is None:
            # What a run is about to create is not missing; the reasons of the upstream are enough.
            if leaf.node not in s.pending and s.upstream.get(leaf.node, _FRESH).is_fresh:
                yield _missing(s, leaf)
        elif s.record is not None:
            yield from _base_table(s, s.record, leaf, found)
    if s.record is not None and s.record.incomplete:
        message = "the record says that it does not cover every table that was read"
        yield Reason(code="base-table-not-recorded", message=message, effect="unknown")


def child_views(s: Situation) -> Iterator[Reason]:
    for id_ in s.inputs.views:
        if s.record is None:
            continue
        identifier = s.world.graph.nodes[id_].identifier
        view = s.world.observed.view(identifier)
        if view is None and id_ in s.pending:
            continue
        if view is None:
            yield Reason(
                code="child-view-missing", message=f"the child view {identifier} does not exist", effect="unknown", table=identifier
            )
            continue
        recorded = s.record.of_view(view.uuid, identifier.namespace, identifier.name)
        if recorded is None:
            if s.same_definition:
                yield from _view_not_recorded(s, s.record, view)
        elif recorded.version_id != view.version_id:
            yield Reason(
                code="child-view-changed",
                message=f"the child view {identifier} was replaced: version {recorded.version_id} was read, it is now at {view.version_id}",
                effect="stale",
                table=identifier,
                recorded=recorded.version_id,
                current=view.version_id,
            )


RULES: tuple[Rule, ...] = (
    unreadable,
    flawed,
    never_refreshed,
    storage_changed,
    storage_schema_changed,
    definition_changed,
    marks,
    nondeterministic,
    session_differs,
    upstream_not_fresh,
    upstream_behind,
    pending_changed,
    base_tables,
    child_views,
)

_FRESH = Freshness(node="", state="fresh", reasons=(), record=None)


def _stale(code: str, message: str) -> Reason:
    return Reason(code=code, message=message, effect="stale")


def _missing(s: Situation, leaf: Leaf) -> Reason:
    identifier = leaf_table(s.world.graph, leaf)
    broken = s.world.observed.unreadable(identifier)
    if broken is not None:
        return Reason(code="base-table-unreadable", message=broken.reason, effect="unknown", table=identifier)
    if leaf.travel and s.world.observed.view(identifier) is not None:
        message = f"{identifier} is a view, which has no version {leaf.travel[1]!r}"
        return Reason(code="version-missing", message=message, effect="unknown", table=identifier)
    if s.world.observed.table(identifier) is None:
        return Reason(code="base-table-missing", message=f"the table {identifier} does not exist", effect="unknown", table=identifier)
    version = leaf.travel[1] if leaf.travel else ""
    return Reason(
        code="version-missing",
        message=f"the table {identifier} no longer has version {version!r}",
        effect="unknown",
        table=identifier,
    )


def _base_table(s: Situation, record: RefreshRecord, leaf: Leaf, found: Pin) -> Iterator[Reason]:
    table, now = found.table, found.snapshot_id
    states = recorded_states(record, found)
    if not states:
        if s.same_definition:
            yield from _not_recorded(s, record, found)
        return
    before = states[0].snapshot_id
    if found.follows_schema:
        yield from _schema(s, found, before)
    if found.moves and found.ref is None:
        if before != now:
            yield _moved(s, leaf, table, before, now)
    elif now not in {t.snapshot_id for t in states} or (not found.moves and states_without_reader(record, found, _pins(s))):
        yield _difference("base-table-changed", f"{table.identifier} is read at another snapshot", table, before, now)


def _pins(s: Situation) -> list[Pin]:
    return [p for leaf in s.inputs.leaves if (p := pin(s.world.graph, s.world.observed, leaf))]


def _schema(s: Situation, found: Pin, read: int) -> Iterator[Reason]:
    changed = changed_columns(s.storage, found.table, [text for _, text in _texts(s)], read) if s.storage else ()
    if changed:
        message = f"columns of {known_as(found.table)} were renamed, dropped, added, moved or retyped since it was read: {_listed(changed)}"
        yield Reason(code="base-table-schema-changed", message=message, effect="stale", table=found.table.identifier)


def _listed(columns: Sequence[str]) -> str:
    return f"{', '.join(columns[:5])}{' and others' if len(columns) > 5 else ''}"


def _moved(s: Situation, leaf: Leaf, table: TableState, before: int, now: int) -> Reason:
    """The current snapshot is not the recorded one: does the difference matter?"""
    name = known_as(table)
    if now == NO_SNAPSHOT:
        return _difference("base-table-emptied", f"{name} no longer has a snapshot", table, before, now)
    if before == NO_SNAPSHOT:
        return _difference("base-table-changed", f"{name} was empty and now has rows", table, before, now)
    if replaced_since(table, before):
        told = metadata_columns_of((text for _, text in _texts(s)), table)
        if told:
            message = f"the files of {name} were rewritten, and {', '.join(told)} depends on files"
            return _difference("base-table-rewritten", message, table, before, now)
        return _difference("base-table-compacted", f"{name} was only compacted", table, before, now, effect="fresh")
    if before not in table.snapshots:
        return _difference("snapshot-expired", f"{name} changed, and the snapshot that was read has expired", table, before, now)
    if not is_ancestor(table, before, now):
        return _difference("base-table-rolled-back", f"{name} was rolled back or replaced", table, before, now)
    window = s.node.model.config.max_staleness
    lag = table.snapshots[now].timestamp_ms - table.snapshots[before].timestamp_ms
    is_inside = window is not None and 0 <= lag <= window.total_seconds() * 1000
    if is_inside and allows(window, unseen_of_snapshot(s.world, leaf, table, before, s.upstream)):
        assert window is not None
        return _difference("within-window", f"{name} changed within the window of {written(window)}", table, before, now, effect="fresh")
    return _difference("base-table-changed", f"{name} has new data", table, before, now)


def _difference(code: str, message: str, table: TableState, before: int, now: int, *, effect: State = "stale") -> Reason:
    old, new = table.snapshots.get(before), table.snapshots.get(now)
    lag = new.timestamp_ms - old.timestamp_ms if old and new else None
    return Reason(
        code=code,
        message=message,
        effect=effect,
        table=table.identifier,
        recorded=before,
        current=now,
        lag_ms=lag,
        unseen_since_ms=unseen_since(table, before, now),
    )


def is_ancestor(table: TableState, before: int, now: int) -> bool:
    """Whether a snapshot is another one, or one of its ancestors."""
    at: int | None = now
    while at is not None and at in table.snapshots:
        if at == before:
            return True
        at = table.snapshots[at].parent_id
    return at == before


def _not_recorded(s: Situation, record: RefreshRecord, found: Pin) -> Iterator[Reason]:
    """The record has no state of this table: it is another table with the old name, or the record never covered it."""
    table = found.table
    current = {p.table.uuid for leaf in s.inputs.leaves if (p := pin(s.world.graph, s.world.observed, leaf))}
    gone = {_name(t) for t in record.base_tables if t.uuid not in current}
    if found.is_empty and not gone & {_NAMELESS, _name(known_as(table))}:
        message = f"{table.identifier} has no snapshot, and the record does not say that it had none"
        yield Reason(code="base-table-empty", message=message, effect="unknown", table=table.identifier)
    else:
        yield _uncovered("base-table", known_as(table), found.snapshot_id, gone)


def _view_not_recorded(s: Situation, record: RefreshRecord, view: ViewState) -> Iterator[Reason]:
    current = {v.uuid for id in s.inputs.views if (v := s.world.observed.view(s.world.graph.nodes[id].identifier))}
    gone = {_name(v) for v in record.child_views if v.uuid not in current}
    yield _uncovered("child-view", view.identifier, view.version_id, gone)


_Name = tuple[tuple[str, ...], str]
_NAMELESS: _Name = ((), "")


def _name(of: TableIdentifier | BaseTable | ChildView) -> _Name:
    return of.namespace, of.name


def _uncovered(kind: str, identifier: TableIdentifier, current: int, gone: set[_Name]) -> Reason:
    """`gone`: names of what the record covers and the query no longer reads; an empty name is one that the record does not contain."""
    if gone & {_NAMELESS, _name(identifier)}:
        code, message, effect = f"{kind}-recreated", f"{identifier} was dropped and recreated", "stale"
    else:
        code, message, effect = f"{kind}-not-recorded", f"the record does not cover {identifier}", "unknown"
    return Reason(code=code, message=message, effect=effect, table=identifier, current=current)  # type: ignore[arg-type]
