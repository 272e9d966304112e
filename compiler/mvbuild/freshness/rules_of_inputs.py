"""Situation -> Reasons in what the MV reads: upstream MVs, edited seeds and views, base tables and child views."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, ChildView, RefreshRecord
from mvbuild.freshness.age import allows, unseen_of_snapshot
from mvbuild.freshness.changed_columns import changed_columns
from mvbuild.freshness.file_places import metadata_columns_of
from mvbuild.freshness.model import Freshness, Reason, State
from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.freshness.pending import is_of_seed
from mvbuild.freshness.pins import leaf_table, pin
from mvbuild.freshness.situation import Situation, listed, texts_of
from mvbuild.freshness.states import recorded_states, states_without_reader
from mvbuild.graph.model import SeedNode
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import TableState, ViewState
from mvbuild.project.setting_values import written
from mvbuild.storage.names import known_as
from mvbuild.storage.stored import replaced_since, unseen_since

_FRESH = Freshness(node="", state="fresh", reasons=(), record=None)


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
        what = f"the newest data of {oldest.table}" if oldest.table else "the current time"
        limit = f"the window of this MV is {written(window)}" if window else "this MV has no window"
        yield Reason(
            code="upstream-behind",
            message=f"it reads {name}, which does not reflect {what}; {limit}",
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
            state = s.world.observed.states.get(node.identifier)
            # A table of others may have the name of a seed.
            is_there = isinstance(state, ViewState) or (isinstance(state, TableState) and is_of_seed(state, id_))
            happened = "was edited" if is_there else "is not in the catalog yet"
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


def _missing(s: Situation, leaf: Leaf) -> Reason:
    identifier = leaf_table(s.world.graph, leaf)
    broken = s.world.observed.unreadable(identifier)
    if broken is not None:
        return Reason(code="base-table-unreadable", message=broken.reason, effect="unknown", table=identifier)
    if leaf.travel and s.world.observed.view(identifier) is not None:
        message = f"{identifier} is a view, which has no version {leaf.travel[1]!r}"
        return Reason(code="version-missing", message=message, effect="unknown", table=identifier)
    if s.world.observed.table(identifier) is None:
        message = f"the table {identifier} does not exist{_how_to_read(identifier)}"
        return Reason(code="base-table-missing", message=message, effect="unknown", table=identifier)
    version = leaf.travel[1] if leaf.travel else ""
    return Reason(
        code="version-missing",
        message=f"the table {identifier} no longer has version {version!r}",
        effect="unknown",
        table=identifier,
    )


def _how_to_read(identifier: TableIdentifier) -> str:
    """Spark also reads a branch or tag as `orders.branch_audit`."""
    kind, _, name = identifier.name.partition("_")
    is_ref = kind in ("branch", "tag") and name and len(identifier.namespace) > 1
    return f"; if it is a {kind} of {'.'.join(identifier.namespace)}, write VERSION AS OF '{name}' after the table" if is_ref else ""


def _base_table(s: Situation, record: RefreshRecord, leaf: Leaf, found: Pin) -> Iterator[Reason]:
    table, now = found.table, found.snapshot_id
    states = recorded_states(record, found)
    if not states:
        if s.same_definition:
            yield from _not_recorded(s, record, found)
        return
    before = states[0].snapshot_id
    if found.moves:
        yield from _schema(s, found, before)
    if found.moves and found.ref is None:
        if before != now:
            yield _moved(s, leaf, table, before, now)
    elif now not in {t.snapshot_id for t in states} or (not found.moves and states_without_reader(record, found, _pins(s))):
        yield _difference("base-table-changed", f"{table.identifier} is read at another snapshot", table, before, now)


def _pins(s: Situation) -> list[Pin]:
    return [p for leaf in s.inputs.leaves if (p := pin(s.world.graph, s.world.observed, leaf))]


def _schema(s: Situation, found: Pin, read: int) -> Iterator[Reason]:
    changed = changed_columns(s.storage, found, [text for _, text in texts_of(s)], read) if s.storage else ()
    if changed:
        message = (
            f"columns of {known_as(found.table)} have been renamed, dropped, added, moved or retyped since it was read: {listed(changed)}"
        )
        yield Reason(code="base-table-schema-changed", message=message, effect="stale", table=found.table.identifier)


def _moved(s: Situation, leaf: Leaf, table: TableState, before: int, now: int) -> Reason:
    """The current snapshot is not the recorded one: does the difference matter?"""
    name = known_as(table)
    if now == NO_SNAPSHOT:
        return _difference("base-table-emptied", f"{name} no longer has a snapshot", table, before, now)
    if before == NO_SNAPSHOT:
        return _difference("base-table-changed", f"{name} was empty and now has rows", table, before, now)
    if replaced_since(table, before):
        metadata_columns = metadata_columns_of((text for _, text in texts_of(s)), table)
        if metadata_columns:
            message = f"the files of {name} were rewritten, and {', '.join(metadata_columns)} depends on files"
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
