"""World + pins -> RefreshRecord, and RefreshRecord + storage -> TableCommit: what a refresh writes down, in the format of its MV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mvbuild.diagnostics import ProjectError, error
from mvbuild.formats import metadata_file, properties, refresh_state
from mvbuild.formats.record import BaseTable, ChildView, RecordError, RefreshRecord
from mvbuild.freshness.history import REFRESH_ID, STRATEGY
from mvbuild.freshness.leaves import Inputs, node_inputs
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.freshness.pins import known_as
from mvbuild.graph.model import ModelNode, TableNode
from mvbuild.ports.catalog import Refresh, TableCommit, TableState
from mvbuild.refresh.session import RunSession


def record_of(world: World, below: Inputs, pins: Mapping[Leaf, Pin], version: int, started_ms: int) -> RefreshRecord:
    """What a refresh reads: each distinct state of a table once, and every child view."""
    tables = {
        (p.table.uuid, p.snapshot_id, p.ref): BaseTable(
            uuid=p.table.uuid,
            snapshot_id=p.snapshot_id,
            type=p.table.type,
            catalog=known_as(p.table).catalog or None,
            namespace=known_as(p.table).namespace,
            name=known_as(p.table).name,
            ref=p.ref,
            place=_place(world, leaf),
        )
        for leaf, p in sorted(pins.items(), key=lambda item: not item[1].moves)
    }
    views = []
    for id_ in below.views:
        identifier = world.graph.nodes[id_].identifier
        state = world.observed.view(identifier)
        assert state is not None, f"the plan lets no MV be refreshed without its child view {identifier}"
        views.append(
            ChildView(
                uuid=state.uuid,
                version_id=state.version_id,
                catalog=identifier.catalog,
                namespace=identifier.namespace,
                name=identifier.name,
            )
        )
    return RefreshRecord(view_version_id=version, base_tables=tuple(tables.values()), child_views=tuple(views), refresh_start_ms=started_ms)


def described(session: RunSession, node: ModelNode, record: RefreshRecord) -> RefreshRecord:
    """With what the properties and `refresh-state` do not tell of tables outside of the catalog, as far as they are still read."""
    world = session.world
    found = {p.table.uuid: (p.table.type, _place(world, leaf)) for leaf, p in session.pins(node_inputs(world.graph, node)).items()}
    tables = (replace(t, type=found[t.uuid][0], place=found[t.uuid][1]) if t.uuid in found else t for t in record.base_tables)
    return replace(record, base_tables=tuple(tables))


def _place(world: World, leaf: Leaf) -> tuple[tuple[str, str], ...]:
    """Of a table in another metastore, what names that one. Neither a secret nor a place with a user in it gets into a record."""
    node = world.graph.nodes[leaf.node]
    outside = node.outside if isinstance(node, TableNode) else None
    if outside is None or outside.type != "iceberg-metastore":
        return ()
    told = {k: v for k, v in outside.options.items() if k in ("type", "uri", "warehouse") and "@" not in v and "?" not in v}
    return tuple(sorted(told.items()))


def summary_of(record: RefreshRecord, refresh_id: int, strategy: str) -> dict[str, str]:
    """What the snapshot of a refresh says of it, in every format."""
    return {refresh_state.KEY: refresh_state.encode(record), REFRESH_ID: str(refresh_id), STRATEGY: strategy}


def recorded(
    node: ModelNode,
    storage: TableState,
    record: RefreshRecord,
    refresh_id: int,
    *,
    set_properties: Mapping[str, str] | None = None,
    **changes: Any,
) -> TableCommit:
    """A commit that makes this the record of the storage's data, with further changes."""
    is_embedded = storage.of_view is not None
    of_record = {} if is_embedded else properties.encode(record)
    return TableCommit(
        identifier=known_as(storage),
        expect_uuid=storage.uuid,
        expect_snapshot_id=storage.current_snapshot_id,
        set_properties={**(set_properties or {}), **of_record},
        remove_properties=() if is_embedded else properties.stale_keys(storage.properties, record),
        of_view=storage.of_view,
        refresh=Refresh(refresh_id=refresh_id, record=record, keep=kept_refreshes(node)) if is_embedded else None,
        **changes,
    )


def kept_refreshes(node: ModelNode) -> int | None:
    """How many refreshes a metadata file lists; None for all."""
    wanted = node.model.config.refresh_history
    return None if wanted == "all" else wanted


def require_recordable(node: ModelNode, record: RefreshRecord) -> None:
    """ProjectError if the metadata file cannot hold the record. Asked before anything is computed."""
    try:
        metadata_file.encode_refresh(record, refresh_id=1, sequence_number=None)
    except RecordError as exc:
        span = node.model.config.spans.get("storage_format") or node.model.file.line_span(1)
        message = f"'{node.model.name}' cannot be recorded in a metadata file: {exc}"
        help = "Use `storage: {format: table-properties}`, or read each table at one snapshot."
        raise ProjectError([error("unsupported-format", message, span, help=help)]) from exc
