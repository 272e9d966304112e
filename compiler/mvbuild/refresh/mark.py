"""a refresh whose data tests failed + RunSession -> a mark in the catalog, so that readers keep the last good refresh.

The commit sets one property of the storage. It makes no snapshot and does not touch the record, so it changes neither rows nor freshness.
"""

from __future__ import annotations

from dataclasses import replace

from mvbuild.diagnostics import warning
from mvbuild.formats import failed_tests
from mvbuild.formats.failed_tests import FailedTests
from mvbuild.freshness.observed import World
from mvbuild.freshness.overtaken import is_as_new
from mvbuild.graph.model import ModelNode
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.commits import TableCommit
from mvbuild.ports.states import TableState
from mvbuild.refresh.observe_again import observe_again
from mvbuild.refresh.outcome import AuditFailed
from mvbuild.refresh.pinned import Pinned
from mvbuild.refresh.recording import record_of
from mvbuild.refresh.session import RunSession
from mvbuild.storage.names import known_as
from mvbuild.storage.stored import stored

ATTEMPTS = 3


def mark_failed(session: RunSession, pinned: Pinned, failure: AuditFailed) -> AuditFailed:
    """The failure, with a warning if it could not be marked. If another run has refreshed the storage in the meantime, from the same tables
    or newer ones, it is not marked. A first refresh in the metadata-file format has no storage to mark before it is published."""
    node, world = pinned.node, pinned.world
    wanted = failed_tests.encode(_failed(pinned, failure))
    try:
        for _ in range(ATTEMPTS):
            now = observe_again(session, node)
            storage = now.observed.table(node.storage)
            if storage is None or (_was_refreshed(world, node, storage) and is_as_new(world, now, node, forced=False)):
                return failure
            commit = TableCommit(
                identifier=known_as(storage),
                of_view=storage.of_view,
                expect_uuid=storage.uuid,
                expect_snapshot_id=storage.current_snapshot_id,
                set_properties=wanted,
            )
            try:
                session.observe(session.catalog.commit([commit]))
            except CommitConflict:
                continue
            return failure
        why = "other processes are changing it"
    except CatalogError as exc:
        why = str(exc)
    message = f"cannot record in the catalog that the tests of '{node.model.name}' failed ({why}): readers may get the new data"
    return failure.also(warning("failure-not-recorded", message, node.model.file.line_span(1)))


def _was_refreshed(world: World, node: ModelNode, storage: TableState) -> bool:
    before = world.observed.table(node.storage)
    return before is None or stored(before).record != stored(storage).record


def _failed(pinned: Pinned, failure: AuditFailed) -> FailedTests:
    record = record_of(replace(pinned, inputs=replace(pinned.inputs, views=())), 0)
    return FailedTests(
        tests=tuple(f"{test.name}: {test.message}" for test in failure.tests if test.status in ("fail", "error")),
        at_ms=pinned.started_ms,
        definition=pinned.definition_mark,
        reads=failed_tests.reads_of(record),
    )
