"""MV + RunSession -> Outcome: its entries follow the configuration and its record the compacted base tables, without touching a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mvbuild.formats.record import BaseTable, RefreshRecord
from mvbuild.freshness.indirect import indirect, is_written
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import World
from mvbuild.freshness.rules import judge_one
from mvbuild.freshness.states import recorded_states
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.plan.alter import alteration
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.commits import TableCommit, ViewCommit
from mvbuild.ports.states import TableState
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.views import next_version, properties_commit
from mvbuild.storage.alterations import Alteration
from mvbuild.storage.auxiliary_views import moved_views
from mvbuild.storage.commits import recorded, restated
from mvbuild.storage.history import current_refresh_id
from mvbuild.storage.layout import documented
from mvbuild.storage.stored import stored

ATTEMPTS = 3


def alter(session: RunSession, node: ModelNode) -> Outcome:
    """One commit of metadata. No engine, and no new snapshot."""
    for attempt in range(ATTEMPTS):
        if attempt:
            session.reload([i for i in (node.identifier, node.storage) if i])
        world = session.world
        if not judge_one(world, node, {}).has_right_rows:
            return Outcome(message="another run changed it", reused=True)
        change = alteration(world, node)
        commits = _commits(session, node, change)
        if not commits:
            return Outcome(message="another run altered it", reused=True)
        try:
            session.publish(commits)
        except CommitConflict:
            continue
        return Outcome(message=f"only metadata changed: {', '.join(change.what)}" if change else _RECORD, reused=True)
    raise CommitConflict(f"other processes keep changing {node.identifier}")


_RECORD = "only its record was updated"


def for_new_version(
    world: World, node: ModelNode, storage: TableState, view: ViewCommit, record: RefreshRecord, change: Alteration | None
) -> Sequence[TableCommit | ViewCommit]:
    """A new version of the view, and the same snapshot recorded for it. The `refresh-state` in that snapshot still names the version that
    was refreshed. A reader of nothing else finds the storage stale, which is safe, and readers downstream see no new snapshot."""
    assert view.version_id is not None
    moved = replace(record, view_version_id=view.version_id)
    of_views = moved_views(storage, stored(storage).record, moved)
    return [
        view,
        recorded(
            node,
            storage,
            moved,
            current_refresh_id(storage),
            indirect=indirect(world, node, moved),
            set_properties={**(change.properties.set if change else {}), **of_views},
            also_remove=change.properties.remove if change else (),
            layout=change.layout if change else None,
        ),
    ]


def _commits(session: RunSession, node: ModelNode, change: Alteration | None) -> Sequence[TableCommit | ViewCommit]:
    world = session.world
    storage, view = world.observed.table(node.storage), world.observed.view(node.identifier)
    if storage is None or view is None:
        return ()
    before = stored(storage).record
    assert before is not None, "only an MV with the right rows is altered"
    record = replace(_moved(session, node, before), view_version_id=view.version_id)
    if change is None:
        if record == before and is_written(world, node, storage, record):
            return ()
        others, again = indirect(world, node, record), _restated(world, node, storage, before, record)
        moved = moved_views(storage, before, record)
        return [recorded(node, storage, record, current_refresh_id(storage), indirect=others, restate=again, set_properties=moved)]
    if change.view_version:
        commit = next_version(world, node, view, documented(node, view.schema))
        return for_new_version(world, node, storage, commit, record, change)
    of_table = recorded(
        node,
        storage,
        record,
        current_refresh_id(storage),
        indirect=indirect(world, node, record),
        set_properties={**change.properties.set, **moved_views(storage, before, record)},
        also_remove=change.properties.remove,
        layout=change.layout,
        restate=_restated(world, node, storage, before, record),
    )
    of_view = properties_commit(world, node)
    is_same = record == before and is_written(world, node, storage, record)
    if of_view is not None and is_same and change.layout is None and not change.properties:
        return [of_view]
    return [of_table] if of_view is None else [of_view, of_table]


def _restated(world: World, node: ModelNode, storage: TableState, before: RefreshRecord, record: RefreshRecord) -> dict[str, str] | None:
    if record.base_tables == before.base_tables:
        return None
    return restated(storage, record, fingerprint(definition(world.graph, node).text))


def _moved(session: RunSession, node: ModelNode, record: RefreshRecord) -> RefreshRecord:
    """The record at the new snapshots of base tables that were only compacted. A table within its window stays as it was read."""
    answer = judge_one(session.world, node, {})
    compacted = {r.table for r in answer.reasons if r.code == "base-table-compacted"}
    moved: dict[BaseTable, int] = {}
    for found in session.pins(node_inputs(session.world.graph, node)).values():
        if found.ref is None and found.moves and found.table.identifier in compacted:
            # A version that the user chose comes after what was read of `main`.
            moved.update((state, found.snapshot_id) for state in recorded_states(record, found)[:1])
    return replace(record, base_tables=tuple(replace(t, snapshot_id=moved.get(t, t.snapshot_id)) for t in record.base_tables))
