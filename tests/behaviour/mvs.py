"""World -> an MV in the metadata-file format, and its refreshes as mvbuild makes them: staged, written, committed in one swap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from behaviour.world import layout, name, schema, table_commit, view_commit
from mvbuild.formats.record import BaseTable, RefreshRecord
from mvbuild.ports.commits import Refresh, TableCommit, TableLayout
from mvbuild.ports.states import TableState, ViewState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from behaviour.world import World

MV = name("mart.daily")
LAYOUT = layout(a="int")


def record(snapshot_id: int = 1, version: int = 1) -> RefreshRecord:
    base = BaseTable(
        uuid="5f0c8a9e-0000-0000-0000-000000000001", snapshot_id=snapshot_id, catalog="lake", namespace=("raw",), name="orders"
    )
    return RefreshRecord(view_version_id=version, base_tables=(base,), refresh_start_ms=1_700_000_000_000)


def loaded(world: World, identifier: Any = MV) -> tuple[ViewState, TableState]:
    view = world.catalog.load([identifier])[identifier]
    assert isinstance(view, ViewState), view
    assert view.storage is not None
    return view, view.storage


def written(world: World, storage: TableState, rows: Mapping[str, Sequence[Any]], of: TableLayout = LAYOUT, number: int = 1) -> TableState:
    """The scratch table that a refresh wrote."""
    scratch = name(f"mvbuild_scratch.s{number}")
    world.catalog.drop_scratch(scratch)
    world.catalog.stage(storage, of, scratch)
    return world.write(scratch, rows, "main")


def created(world: World, rows: Mapping[str, Sequence[Any]] | None = None, properties: Mapping[str, str] | None = None) -> ViewState:
    storage = world.catalog.new_storage(MV, LAYOUT, properties or {})
    assert storage.of_view == MV
    scratch = written(world, storage, rows or {"a": [1]})
    change = embedded_commit(
        storage,
        staged=scratch.identifier,
        set_snapshot_id=scratch.current_snapshot_id,
        new_storage=storage.metadata_location,
        refresh=Refresh(refresh_id=1, record=record()),
    )
    done = world.catalog.commit([change, view_commit("mart.daily", properties={"iceberg.materialized.view": "true"})])
    world.catalog.drop_scratch(scratch.identifier)
    view = done[MV]
    assert isinstance(view, ViewState)
    return view


def embedded_commit(storage: TableState, **changes: Any) -> TableCommit:
    return table_commit(storage, of_view=storage.of_view, **changes)


def refreshed(world: World, number: int, rows: Mapping[str, Sequence[Any]], of: TableLayout = LAYOUT, keep: int | None = 1) -> ViewState:
    _, storage = loaded(world)
    scratch = written(world, storage, rows, of, number)
    change = embedded_commit(
        storage,
        staged=scratch.identifier,
        set_snapshot_id=scratch.current_snapshot_id,
        refresh=Refresh(refresh_id=number, record=record(number), keep=keep),
    )
    view = world.catalog.commit([change])[MV]
    world.catalog.drop_scratch(scratch.identifier)
    assert isinstance(view, ViewState)
    return view


def redefined(view: ViewState, sql: str = "SELECT 2 AS a", **changes: Any) -> Any:
    given = {"schema": schema(a="int"), **changes}
    return view_commit(view.identifier.dotted, sql, expect=view.metadata_location, version=view.last_version_id + 1, **given)
