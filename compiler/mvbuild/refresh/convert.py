"""MV + RunSession -> Outcome: the MV in the other storage format, without a row computed or moved."""

from __future__ import annotations

from mvbuild.diagnostics import ProjectError, error
from mvbuild.formats import properties
from mvbuild.formats.record import StorageFormat
from mvbuild.freshness.indirect import indirect
from mvbuild.graph.model import ModelNode
from mvbuild.ports.catalog import AlreadyExists, CommitConflict
from mvbuild.ports.commits import ConvertCommit, Refresh
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.recording import described, other_refreshes
from mvbuild.refresh.session import RunSession
from mvbuild.storage.commits import kept_refreshes, require_recordable
from mvbuild.storage.format import found_format, wanted_format
from mvbuild.storage.history import current_refresh_id
from mvbuild.storage.stored import stored

ATTEMPTS = 3


def convert(session: RunSession, node: ModelNode, to: StorageFormat | None = None) -> Outcome:
    """Convert to the configured format, or to another one. One commit: the view, its storage and the record move together. If another
    process changes the MV at the same time, the changed MV is converted."""
    for _ in range(ATTEMPTS - 1):
        try:
            return _attempt(session, node, to)
        except (CommitConflict, AlreadyExists):
            session.reload([i for i in (node.identifier, node.storage) if i])
    return _attempt(session, node, to)


def _attempt(session: RunSession, node: ModelNode, to: StorageFormat | None) -> Outcome:
    world = session.world
    view, storage = world.observed.view(node.identifier), world.observed.table(node.storage)
    if view is None or storage is None or node.storage is None:
        raise ProjectError(
            [error("unknown-name", f"'{node.model.name}' was never refreshed: there is nothing to convert", node.model.file.line_span(1))]
        )
    to = to or wanted_format(node, storage)
    if found_format(storage) == to:
        return Outcome(message=f"it already has the format {to}", reused=True)
    found = stored(storage).record
    record = described(world, node, found) if found is not None else None
    if record is not None and to == "metadata-file":
        require_recordable(node, record)
    encoded = properties.encode(record, indirect(world, node, record)) if record is not None and to == "table-properties" else {}
    of_record = (properties.VIEW_VERSION, properties.BASE_SNAPSHOT, properties.CHILD_VIEW_VERSION, properties.INDIRECT)
    refresh = None
    if record is not None:
        listed = other_refreshes(world, node, storage) if to == "metadata-file" else ()
        refresh = Refresh(refresh_id=current_refresh_id(storage), record=record, keep=kept_refreshes(node), others=listed)
    commit = ConvertCommit(
        view=view,
        storage=storage,
        to=to,
        storage_name=node.storage,
        refresh=refresh,
        set_properties=encoded,
        remove_properties=tuple(k for k in storage.properties if k.startswith(of_record)) if to == "metadata-file" else (),
    )
    states = dict(session.catalog.commit([commit]))
    session.observe(states)
    return Outcome(message=f"converted to the format {to}; no row was touched", reused=True)
