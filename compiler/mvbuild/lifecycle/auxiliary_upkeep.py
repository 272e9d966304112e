"""MV -> its auxiliary views in fewer files, and without snapshots that nothing names any more.

An auxiliary view gets new files with every refresh, as the storage does. The snapshot that the MV names stays.
"""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.graph.model import ModelNode
from mvbuild.lifecycle.compaction import COMPACTED, compact_table, is_needed
from mvbuild.lifecycle.expiry import before, expirable
from mvbuild.ports.commits import TableCommit
from mvbuild.ports.states import TableState
from mvbuild.refresh.run_id import started_ms
from mvbuild.refresh.session import RunSession
from mvbuild.storage.auxiliary_views import OWNED_BY, NamedView, listed_views


def maintain_views(session: RunSession, node: ModelNode, storage: TableState, *, began_ms: int, dry_run: bool) -> tuple[int, int]:
    """How many snapshots were expired (or would be) and how many files were deleted. Raises CommitConflict if a refresh came first; then
    that view stays as the refresh left it."""
    snapshots = files = 0
    for named, table in _views(session, storage):
        if any(started_ms(branch) is not None for branch in table.branches):
            continue
        if node.model.config.maintain.compact and is_needed(table) and not dry_run:
            compact_table(session, table.identifier)
            table = _marked(session, named)
        gone = expirable(table, before_ms=before(began_ms, node.model.config.maintain.expire_after), keep=1, recorded=(named.snapshot_id,))
        snapshots += len(gone)
        if gone and not dry_run:
            files += _expired(session, table, gone)
    return snapshots, files


def _views(session: RunSession, storage: TableState) -> Iterator[tuple[NamedView, TableState]]:
    listed = {one.name: one for one in listed_views(storage)}
    for name, found in (session.catalog.load(list(listed)) if listed else {}).items():
        if isinstance(found, TableState) and OWNED_BY in found.properties:
            yield listed[name], found


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
