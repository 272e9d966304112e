"""Tables that the catalog does not have -> scratch tables that show one of their snapshots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from behaviour.world import World, layout, name
from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.adapters.sources import OpenedSources
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.sources import SourceLocation
from mvbuild.ports.states import TableState

SCRATCH = name("mvbuild_scratch.s1")


@pytest.fixture
def other(world: World, tmp_path: Path) -> TableState:
    """A table that is known by its path alone."""
    if isinstance(world.catalog, MemoryCatalog):
        pytest.skip("it reads no files")
    world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    written = world.write(name("mart.t"), {"id": [1, 2]}, "main")
    location = SourceLocation(identifier=TableIdentifier("", (), written.location.removeprefix("file://")), type="iceberg-filesystem")
    return OpenedSources({}).load([location])[location.identifier]


def files(table: TableState) -> set[Path]:
    return {f for f in Path(table.identifier.name).rglob("*") if f.is_file()}


def test_a_snapshot_is_shown_and_nothing_is_written_to_the_table(world: World, other: TableState) -> None:
    before = files(other)
    assert other.current_snapshot_id is not None
    pinned = world.catalog.pin_schema(other, other.current_snapshot_id, SCRATCH)
    assert pinned.identifier == SCRATCH
    assert pinned.current_snapshot_id == other.current_snapshot_id
    assert pinned.uuid != other.uuid
    assert world.catalog.files.rows(pinned, 5)[1] == [(1,), (2,)]
    world.catalog.drop_scratch(SCRATCH)
    assert world.catalog.load([SCRATCH]) == {}
    assert files(other) == before


def test_a_table_without_a_snapshot(world: World, other: TableState) -> None:
    pinned = world.catalog.pin_schema(replace(other, current_snapshot_id=None), NO_SNAPSHOT, SCRATCH)
    assert pinned.current_snapshot_id is None
    assert world.catalog.files.rows(pinned, 5) == (("id",), [])
    world.catalog.drop_scratch(SCRATCH)


def test_a_snapshot_that_is_not_there(world: World, other: TableState) -> None:
    with pytest.raises(CatalogError, match="has no snapshot 7"):
        world.catalog.pin_schema(other, 7, SCRATCH)
