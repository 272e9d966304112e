"""MV + RunSession -> Outcome: its entries follow the configuration and its record the compacted base tables, without touching a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mvbuild.formats.record import BaseTable, RefreshRecord
from mvbuild.freshness.history import current_refresh_id
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.pins import known_as
from mvbuild.freshness.rules import judge_one
from mvbuild.freshness.stored import stored
from mvbuild.graph.model import ModelNode
from mvbuild.plan.alterations import Alteration, alteration
from mvbuild.plan.layout import documented
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.commits import TableCommit, ViewCommit
from mvbuild.ports.states import TableState
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.recording import recorded
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.views import commit_of_comment, next_version

ATTEMPTS = 3


def alter(session: RunSession, node: ModelNode) -> Outcome:
    """One commit of metadata. No engine, and no new snapshot."""
    for attempt in range(ATTEMPTS):
        if attempt:
            session.reload([i for i in (node.identifier, node.storage) if i])
        world = session.world
        if not judge_one(world, node, {}).is_fresh:
            return Outcome(message="another run changed it", reused=True)
        change = alteration(world, node)
        commits = _commits(session, node, change)
        if not commits:
            return Outcome(message="another run altered it", reused=True)
        try:
            session.publish(commits)
        except CommitConflict:
            continue
        return Outcome(message=f"only metadata changed: {', '.join(change.what)}" if change else _COMPACTED, reused=True)
    raise CommitConflict(f"{node.identifier} is being changed by others")


_COMPACTED = "only compacted base tables changed"


def for_new_version(
    node: ModelNode, storage: TableState, view: ViewCommit, record: RefreshRecord, change: Alteration | None
) -> Sequence[TableCommit | ViewCommit]:
    """A new version of the view, and the same snapshot recorded for it. The `refresh-state` in that snapshot keeps naming the version that
    was refreshed: who reads nothing else takes the storage for stale, which is safe, and nobody downstream sees a new snapshot."""
    assert view.version_id is not None
    return [
        view,
        recorded(
            node,
            storage,
            replace(record, view_version_id=view.version_id),
            current_refresh_id(storage),
            set_properties=change.properties.set if change else {},
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
    assert before is not None, "only a fresh MV is altered"
    record = _moved(session, node, before)
    if change is None:
        return () if record == before else [recorded(node, storage, record, current_refresh_id(storage))]
    if change.view_version:
        commit = next_version(world, node, view, documented(node, view.schema))
        return for_new_version(node, storage, commit, record, change)
    of_table = recorded(
        node,
        storage,
        record,
        current_refresh_id(storage),
        set_properties=change.properties.set,
        also_remove=change.properties.remove,
        layout=change.layout,
    )
    return [of_table] if change.comment is None else [commit_of_comment(view, change.comment), of_table]


def _moved(session: RunSession, node: ModelNode, record: RefreshRecord) -> RefreshRecord:
    """On the snapshots of base tables that were only compacted. A table inside its window stays as it was read."""
    answer = judge_one(session.world, node, {})
    compacted = {r.table for r in answer.reasons if r.code == "base-table-compacted"}
    moved: dict[BaseTable, int] = {}
    for found in session.pins(node_inputs(session.world.graph, node)).values():
        if found.ref is None and found.moves and found.table.identifier in compacted:
            name = known_as(found.table)
            states = record.of_table(found.table.uuid, name.namespace, name.name)
            moved.update((state, found.snapshot_id) for state in states if state.ref is None)
    return replace(record, base_tables=tuple(replace(t, snapshot_id=moved.get(t, t.snapshot_id)) for t in record.base_tables))
