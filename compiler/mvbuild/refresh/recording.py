"""Pinned -> RefreshRecord: what a refresh reads; and the records of earlier refreshes, completed by what the World says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from mvbuild.formats import metadata_file
from mvbuild.formats.record import BaseTable, ChildView, RecordError, RefreshRecord, TableType
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import Leaf, World
from mvbuild.freshness.pins import pin
from mvbuild.graph.model import ModelNode, TableNode
from mvbuild.ports.commits import OtherRefresh
from mvbuild.ports.states import TableState
from mvbuild.refresh.pinned import Pinned
from mvbuild.storage.history import history
from mvbuild.storage.names import known_as


def record_of(pinned: Pinned, version: int) -> RefreshRecord:
    """What a refresh reads: each distinct state of a table once, and every child view. `version`: of the MV's own view."""
    world = pinned.world
    tables = {
        (p.table.uuid, known_as(p.table), p.snapshot_id, p.ref): BaseTable(
            uuid=p.table.uuid,
            snapshot_id=p.snapshot_id,
            type=p.table.type,
            catalog=known_as(p.table).catalog or None,
            namespace=known_as(p.table).namespace,
            name=known_as(p.table).name,
            ref=p.ref,
            place=_place(world, leaf),
        )
        for leaf, p in sorted(pinned.pins.items(), key=lambda item: not item[1].moves)
    }
    views = []
    for id_ in pinned.inputs.views:
        identifier = world.graph.nodes[id_].identifier
        state = world.observed.view(identifier)
        assert state is not None, f"the plan refreshes no MV without its child view {identifier}"
        views.append(
            ChildView(
                uuid=state.uuid,
                version_id=state.version_id,
                catalog=identifier.catalog,
                namespace=identifier.namespace,
                name=identifier.name,
            )
        )
    return RefreshRecord(
        view_version_id=version, base_tables=tuple(tables.values()), child_views=tuple(views), refresh_start_ms=pinned.started_ms
    )


def described(world: World, node: ModelNode, record: RefreshRecord) -> RefreshRecord:
    """Add what properties and `refresh-state` do not contain about tables outside the catalog: from what the MV reads now, otherwise from
    the refreshes in its metadata file, otherwise from the form of a path."""
    found = dict(_known_types(world, node))
    return replace(
        record,
        base_tables=tuple(
            replace(t, type=found[t.uuid][0], place=found[t.uuid][1]) if t.uuid in found else _by_path(world, t) for t in record.base_tables
        ),
    )


def other_refreshes(world: World, node: ModelNode, storage: TableState) -> tuple[OtherRefresh, ...]:
    """The refreshes that are kept, for a metadata file to list."""
    return tuple(
        OtherRefresh(refresh_id=p.refresh_id, record=described(world, node, p.record), sequence_number=p.snapshot.sequence_number)
        for p in history(storage)
    )


def _known_types(world: World, node: ModelNode) -> Iterator[tuple[str, tuple[TableType, tuple[tuple[str, str], ...]]]]:
    """UUID -> type and place; later entries take precedence."""
    storage = world.observed.table(node.storage)
    for refresh in storage.mv.refreshes if storage and storage.mv else ():
        with suppress(RecordError):
            yield from ((t.uuid, (t.type, t.place)) for t in metadata_file.decode_refresh(refresh, {}).base_tables if t.uuid)
    for leaf in node_inputs(world.graph, node).leaves:
        found = pin(world.graph, world.observed, leaf)
        if found is not None:
            yield found.table.uuid, (found.table.type, _place(world, leaf))


def _by_path(world: World, table: BaseTable) -> BaseTable:
    """A table without a namespace is not in a catalog. Versions of a Delta table count from 0; ids of Iceberg's snapshots are large."""
    if table.type != "iceberg-metastore" or table.catalog or table.namespace or "/" not in table.name:
        return table
    declared = (at.type for identifier, at in world.graph.outside.items() if identifier.name == table.name)
    looks: TableType = "deltalake-filesystem" if table.snapshot_id < 1 << 31 else "iceberg-filesystem"
    return replace(table, type=next((one for one in declared if one != "iceberg-metastore"), looks))


def _place(world: World, leaf: Leaf) -> tuple[tuple[str, str], ...]:
    """For a table in another metastore, the properties that identify the metastore. Neither secrets nor addresses with a user are
    recorded."""
    node = world.graph.nodes[leaf.node]
    outside = node.outside if isinstance(node, TableNode) else None
    if outside is None or outside.type != "iceberg-metastore":
        return ()
    options = {k: v for k, v in outside.options.items() if k in ("type", "uri", "warehouse") and "@" not in v and "?" not in v}
    return tuple(sorted(options.items()))
