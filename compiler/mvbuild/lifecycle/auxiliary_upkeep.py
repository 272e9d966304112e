"""MV -> its auxiliary views in fewer files, without snapshots that nothing names any more, and without those that no refresh needs.

An auxiliary view gets new files with every refresh, as the storage does. The snapshot that the MV names stays. A view from which no current
row was computed is dropped when it is as old as snapshots that expire: a definition may need it again, or a rollback may have left it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import ModelNode
from mvbuild.lifecycle.compaction import COMPACTED, compact_table, is_needed
from mvbuild.lifecycle.drop import drop
from mvbuild.lifecycle.expiry import before, expirable
from mvbuild.lifecycle.orphans import orphans
from mvbuild.names import TableIdentifier
from mvbuild.plan.removed import Removed
from mvbuild.ports.commits import TableCommit
from mvbuild.ports.states import State, TableState
from mvbuild.refresh.run_id import started_ms
from mvbuild.refresh.session import RunSession
from mvbuild.storage.auxiliary_views import OWNED_BY, NamedView, listed_views, possible_views, views_of_rows, without_views
from mvbuild.storage.stored import stored


@dataclass(kw_only=True)
class Upkeep:
    """What was done to the auxiliary views of an MV or, in a dry run, what would be done."""

    snapshots: int = 0
    """That were expired."""
    files: int = 0
    """That were deleted."""
    orphans: int = 0
    """Files that no snapshot has, which were deleted."""
    dropped: list[TableIdentifier] = field(default_factory=list)


def maintain_views(
    session: RunSession, node: ModelNode, storage: TableState, around: Collection[State], *, began_ms: int, dry_run: bool
) -> Upkeep:
    """Raises CommitConflict if a refresh came first; then that view stays as the refresh left it. `around`: see `orphans`."""
    done, policy = Upkeep(), node.model.config.maintain
    before_ms, used = before(began_ms, policy.expire_after), _used(storage)
    for table in _unlisted(node, storage, around):
        # A refresh that is under way has just written files.
        written_ms = max((ms for _, ms in session.catalog.files.below(table.location)), default=0)
        if written_ms < before_ms and not any(started_ms(branch) is not None for branch in table.branches):
            _drop(session, node, table, done, dry_run=dry_run)
    for named, table in _views(session, storage):
        if any(started_ms(branch) is not None for branch in table.branches):
            continue
        if named.name not in used and _changed_ms(table) < before_ms:
            _drop(session, node, table, done, dry_run=dry_run)
            continue
        if policy.compact and is_needed(table) and not dry_run:
            compact_table(session, table.identifier)
            table = _marked(session, named)
        gone = expirable(table, before_ms=before_ms, keep=1, recorded=(named.snapshot_id,))
        done.snapshots += len(gone)
        if gone and not dry_run:
            done.files += _expired(session, table, gone)
        left = orphans(session, table, around, before_ms=before(began_ms, policy.orphans_after))
        done.orphans += len(left) if dry_run else session.catalog.files.delete(left)
    if done.dropped and not dry_run:
        session.catalog.commit([_forgotten(storage, done.dropped)])
    return done


def _drop(session: RunSession, node: ModelNode, table: TableState, done: Upkeep, *, dry_run: bool) -> None:
    done.dropped.append(table.identifier)
    if not dry_run:
        done.files += drop(session.catalog, Removed(view=None, storage=table, model=node.id)).files


def _changed_ms(table: TableState) -> int:
    return table.current_snapshot.timestamp_ms if table.current_snapshot is not None else 0


def _used(storage: TableState) -> frozenset[TableIdentifier]:
    record = stored(storage).record
    return frozenset(one.name for one in views_of_rows(storage, record)) if record is not None else frozenset()


def _forgotten(storage: TableState, names: list[TableIdentifier]) -> TableCommit:
    """If it does not happen, the storage names tables that are gone, which is harmless."""
    return TableCommit(
        identifier=storage.of_view or storage.identifier,
        of_view=storage.of_view,
        expect_uuid=storage.uuid,
        expect_snapshot_id=storage.current_snapshot_id,
        set_properties=without_views(storage, names),
    )


def _views(session: RunSession, storage: TableState) -> Iterator[tuple[NamedView, TableState]]:
    listed = {one.name: one for one in listed_views(storage)}
    for name, found in (session.catalog.load(list(listed)) if listed else {}).items():
        if isinstance(found, TableState) and OWNED_BY in found.properties:
            yield listed[name], found


def _unlisted(node: ModelNode, storage: TableState, around: Collection[State]) -> list[TableState]:
    """Those of refreshes that were never published."""
    tables = {state.identifier: state for state in around if isinstance(state, TableState) and state.properties.get(OWNED_BY) == node.id}
    possible = possible_views(storage, [name for name in tables if name.namespace == storage.identifier.namespace])
    return [tables[name] for name, is_listed in possible.items() if not is_listed]


def _marked(session: RunSession, named: NamedView) -> TableState:
    """With a mark of the compaction, which is not repeated."""
    table = session.catalog.load([named.name])[named.name]
    assert isinstance(table, TableState), named.name
    commit = TableCommit(
        identifier=named.name,
        expect_uuid=table.uuid,
        expect_snapshot_id=table.current_snapshot_id,
        set_properties={COMPACTED: str(table.current_snapshot_id)},
    )
    found = session.catalog.commit([commit])[named.name]
    assert isinstance(found, TableState), named.name
    return found


def _expired(session: RunSession, table: TableState, gone: frozenset[int]) -> int:
    commit = TableCommit(identifier=table.identifier, expect_uuid=table.uuid, expect_snapshot_id=table.current_snapshot_id, expire=gone)
    had = session.catalog.files.of(table)
    after = session.catalog.commit([commit])[table.identifier]
    assert isinstance(after, TableState), table.identifier
    return session.catalog.files.delete(had - session.catalog.files.of(after))
