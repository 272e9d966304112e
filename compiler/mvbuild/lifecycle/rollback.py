"""MV + refresh id + RunSession -> Outcome: data and record of an earlier refresh, or a later one, in one commit."""

from __future__ import annotations

from dataclasses import replace

from mvbuild.diagnostics import ProjectError, error
from mvbuild.formats import properties
from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.indirect import indirect
from mvbuild.graph.model import ModelNode
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.ports.states import TableState, ViewState
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.recording import described, other_refreshes
from mvbuild.refresh.session import RunSession
from mvbuild.storage.commits import recorded
from mvbuild.storage.history import PastRefresh, history
from mvbuild.storage.reads import stale_reads
from mvbuild.storage.schema import schema_property, stale_schema_property
from mvbuild.storage.schemas_read import stale_schemas


def rollback(session: RunSession, node: ModelNode, refresh_id: int) -> Outcome:
    """Raises ProjectError if the refresh does not exist any more. Readers see the old rows or the new ones, and freshness compares with
    what those rows were built from. Columns are those that the snapshot was written with."""
    world = session.world
    storage = world.observed.table(node.storage)
    past = find_refresh(node, storage, refresh_id)
    assert storage is not None
    if past.is_current:
        return Outcome(message=f"refresh {refresh_id} is already current", reused=True)
    schema_id, schema = past.snapshot.schema_id, schema_property(past.snapshot)
    record = _for_same_definition(world.observed.view(node.identifier), described(world, node, past.record))
    commit = recorded(
        node,
        storage,
        record,
        refresh_id,
        indirect=indirect(world, node, record),
        others=other_refreshes(world, node, storage),
        # The recorded schemas and values of the clock are those of another refresh.
        also_remove=(
            *stale_schemas(storage.properties, {}),
            *stale_reads(storage.properties, {}),
            *stale_schema_property(storage.properties, schema),
        ),
        set_properties={properties.REFRESH_SNAPSHOT: str(past.snapshot.snapshot_id), **schema},
        set_snapshot_id=past.snapshot.snapshot_id,
        schema_id=schema_id if schema_id != storage.current_schema_id else None,
    )
    session.observe(session.catalog.commit([commit]))
    return Outcome(message=f"refresh {refresh_id} is current again", details={"snapshot_id": past.snapshot.snapshot_id})


def _for_same_definition(view: ViewState | None, record: RefreshRecord) -> RefreshRecord:
    """A view that was only reformatted since the refresh has another version of the same definition."""
    before = view.spark_versions.get(record.view_version_id) if view and record.view_version_id is not None else None
    now = view.representations.get("spark") if view else None
    if view is None or before is None or now is None or fingerprint(before) != fingerprint(now):
        return record
    return replace(record, view_version_id=view.version_id)


def find_refresh(node: ModelNode, storage: TableState | None, refresh_id: int) -> PastRefresh:
    """One of the refreshes that still exist. Raises ProjectError unknown-refresh."""
    known = history(storage) if storage is not None else ()
    for past in known:
        if past.refresh_id == refresh_id:
            return past
    message = f"'{node.model.name}' has no refresh {refresh_id} in its history"
    listed = ", ".join(str(past.refresh_id) for past in known)
    raise ProjectError([error("unknown-refresh", message, help=f"Choose one that it has: {listed}." if listed else "")])
