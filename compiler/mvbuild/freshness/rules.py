"""World -> Freshness of every MV. Pure: the same observation always gives the same answer.

The conditions are those of the property-based specification (view version, base table snapshots, child view versions, and the relaxed
window on the difference of snapshot timestamps), with what it leaves open: other uuids, rollbacks, compaction, foreign writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mvbuild.formats import properties
from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, ChildView, RefreshRecord
from mvbuild.freshness.columns import changed_columns
from mvbuild.freshness.leaves import Inputs, node_inputs
from mvbuild.freshness.model import Freshness, Reason, State
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pending import pending_seeds, pending_views, same_definition, stored_definition
from mvbuild.freshness.pins import known_as, leaf_table, pin
from mvbuild.freshness.states import recorded_states
from mvbuild.freshness.stored import Stored, replaced_since, stored, unseen_since
from mvbuild.graph.changes import classify
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode, NodeId, SeedNode, ViewNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.steadiness import unsteady
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
    """The freshness of one MV, given that of the MVs above it and the nodes that are about to change."""
    situation = _situation(world, node, upstream, pending)
    # A table whose columns changed may be read at several branches.
    reasons = tuple(dict.fromkeys(reason for rule in RULES for reason in rule(situation)))
    return Freshness(node=node.id, state=_state(reasons), reasons=reasons, record=situation.record)


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


# --- the MV itself ---------------------------------------------------------------------------------------------------------------


def unreadable(s: Situation) -> Iterator[Reason]:
    for identifier in (s.node.identifier, s.node.storage):
        found = s.world.observed.unreadable(identifier)
        if found is not None:
            yield Reason(code="metadata-unreadable", message=found.reason, effect="unknown", table=identifier)


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


def definition_changed(s: Situation) -> Iterator[Reason]:
    if s.record is None:
        return
    if s.view is None and s.is_unreadable:
        return
    if s.view is None:
        yield _stale("view-missing", f"the view {s.node.identifier} does not exist")
    elif not s.same_definition:
        before = stored_definition(s.view)
        change = classify(before, definition(s.world.graph, s.node).text) if before else None
        message = f"its definition was changed{f': {change.message}' if change else ''}"
        yield Reason(code="definition-changed", message=message, effect="stale", change=change.kind if change else None)
    elif s.record.view_version_id is None:
        message = "the record does not tell which version of the view was refreshed"
        yield Reason(code="view-version-not-recorded", message=message, effect="unknown", table=s.node.identifier)
    elif s.record.view_version_id != s.view.version_id:
        yield Reason(
            code="view-version-differs",
            message=f"it was refreshed for version {s.record.view_version_id} of the view, which is at version {s.view.version_id}",
            effect="stale",
            table=s.node.identifier,
            recorded=s.record.view_version_id,
            current=s.view.version_id,
        )


def nondeterministic(s: Situation) -> Iterator[Reason]:
    """Snapshots cannot tell whether a query that asks the clock still gives the same rows."""
    if s.record is None:
        return
    for identifier, text in _texts(s):
        word = unsteady(text)
        if word:
            message = f"its rows are not those of its tables alone: {identifier} uses {word}"
            yield Reason(code="nondeterministic", message=message, effect="unknown", table=identifier)


def _texts(s: Situation) -> Iterator[tuple[TableIdentifier, str]]:
    """The SQL of the MV and of the views below it, ephemeral models inlined."""
    graph = s.world.graph
    yield s.node.identifier, definition(graph, s.node).text
    for id_ in s.inputs.views:
        node = graph.nodes[id_]
        if isinstance(node, ModelNode | ViewNode):
            yield node.identifier, definition(graph, node).text if isinstance(node, ModelNode) else node.query.sql.text


# --- what it reads ---------------------------------------------------------------------------------------------------------------


def upstream_not_fresh(s: Situation) -> Iterator[Reason]:
    for leaf in s.inputs.leaves:
        above = s.upstream.get(leaf.node)
        if above is not None and not above.is_fresh:
            message = f"it reads {s.world.graph.nodes[leaf.node].identifier}, which is {above.state}"
            yield Reason(
                code=f"upstream-{above.state}", message=message, effect=above.state, table=s.world.graph.nodes[leaf.node].identifier
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
            # What a run is about to make is not missing: the reasons of the upstream say enough.
            if leaf.node not in s.pending and s.upstream.get(leaf.node, _FRESH).is_fresh:
                yield _missing(s, leaf)
        elif s.record is not None:
            yield from _base_table(s, s.record, found)
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
        recorded = s.record.of_view(view.uuid)
        if recorded is None:
            if s.same_definition:
                yield from _view_not_recorded(s, s.record, view)
        elif recorded.version_id != view.version_id:
            yield Reason(
                code="child-view-changed",
                message=f"the child view {identifier} was replaced: version {recorded.version_id} was read, it is at {view.version_id}",
                effect="stale",
                table=identifier,
                recorded=recorded.version_id,
                current=view.version_id,
            )


RULES: tuple[Rule, ...] = (
    unreadable,
    never_refreshed,
    storage_changed,
    definition_changed,
    nondeterministic,
    upstream_not_fresh,
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
    if s.world.observed.table(identifier) is None:
        return Reason(code="base-table-missing", message=f"the table {identifier} does not exist", effect="unknown", table=identifier)
    version = leaf.travel[1] if leaf.travel else ""
    return Reason(
        code="version-missing",
        message=f"the table {identifier} has no version {version!r} that is still kept",
        effect="unknown",
        table=identifier,
    )


def _base_table(s: Situation, record: RefreshRecord, found: Pin) -> Iterator[Reason]:
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
            yield _moved(s, table, before, now)
    elif now not in {t.snapshot_id for t in states}:
        yield _difference("base-table-changed", f"{table.identifier} is read at another snapshot", table, before, now)


def _schema(s: Situation, found: Pin, read: int) -> Iterator[Reason]:
    changed = changed_columns(s.storage, found.table, [text for _, text in _texts(s)], read) if s.storage else ()
    if changed:
        many = f"{', '.join(changed[:5])}{' and others' if len(changed) > 5 else ''}"
        message = f"columns of {known_as(found.table)} were renamed, dropped, added or retyped since it was read: {many}"
        yield Reason(code="base-table-schema-changed", message=message, effect="stale", table=found.table.identifier)


def _moved(s: Situation, table: TableState, before: int, now: int) -> Reason:
    """The current snapshot is not the recorded one: does the difference matter?"""
    name = known_as(table)
    if now == NO_SNAPSHOT:
        return _difference("base-table-emptied", f"{name} has no snapshot any more", table, before, now)
    if before == NO_SNAPSHOT:
        return _difference("base-table-changed", f"{name} was empty and has rows now", table, before, now)
    if replaced_since(table, before):
        return _difference("base-table-compacted", f"{name} was only compacted", table, before, now, effect="fresh")
    if before not in table.snapshots:
        return _difference("snapshot-expired", f"{name} changed, and the snapshot that was read has expired", table, before, now)
    if not is_ancestor(table, before, now):
        return _difference("base-table-rolled-back", f"{name} was rolled back or replaced", table, before, now)
    window = s.node.model.config.max_staleness
    lag = table.snapshots[now].timestamp_ms - table.snapshots[before].timestamp_ms
    if window is not None and 0 <= lag <= window.total_seconds() * 1000:
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
    """Whether a snapshot is another one, or came before it on its line."""
    at: int | None = now
    while at is not None and at in table.snapshots:
        if at == before:
            return True
        at = table.snapshots[at].parent_id
    return at == before


def _not_recorded(s: Situation, record: RefreshRecord, found: Pin) -> Iterator[Reason]:
    """The record has no state of this table: it is another table under the old name, or the record never covered it."""
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
    """`gone`: names of what the record covers and the query no longer reads; an empty name is one that the record does not tell."""
    if gone & {_NAMELESS, _name(identifier)}:
        code, message, effect = f"{kind}-recreated", f"{identifier} was dropped and created again", "stale"
    else:
        code, message, effect = f"{kind}-not-recorded", f"the record does not cover {identifier}", "unknown"
    return Reason(code=code, message=message, effect=effect, table=identifier, current=current)  # type: ignore[arg-type]
