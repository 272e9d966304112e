"""Damaged metadata of one entry: it is reported with file, field and rule, and affects nothing else in the catalog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from behaviour.mvs import MV, created, embedded_commit, redefined
from behaviour.world import layout, name, schema, table_commit, view_commit
from mvbuild.formats.metadata_file import METADATA_LOCATION
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.commits import DropCommit
from mvbuild.ports.states import TableState, Unreadable, ViewState

if TYPE_CHECKING:
    from collections.abc import Callable

    from behaviour.world import World

_OTHER = "11111111-2222-3333-4444-555555555555"


def _path(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))


def _edited(location: str, change: Callable[[dict[str, Any]], Any]) -> None:
    raw = json.loads(_path(location).read_text())
    change(raw)
    _path(location).write_text(json.dumps(raw))


def _reason(world: World, text: str) -> str:
    world.catalog.create_table(name("mart.healthy"), layout(id="long"), {})
    found = world.catalog.load([name(text), name("mart.healthy")])
    assert isinstance(found[name("mart.healthy")], TableState)
    broken = found[name(text)]
    assert isinstance(broken, Unreadable), broken
    assert broken.identifier == name(text)
    assert text in broken.reason
    return broken.reason


_MV_DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a higher format version": (lambda raw: raw.update({"format-version": 2}), "format-version: 2 is not supported"),
    "another uuid": (lambda raw: raw.update(uuid=_OTHER), f"uuid: {_OTHER}"),
    "no uuid": (lambda raw: raw.pop("uuid"), "uuid"),
    "a version that is not there": (lambda raw: raw.update(current_version_id=9), "current_version_id"),
    "a snapshot that is not there": (lambda raw: raw.update({"current-snapshot-id": 9}), "current-snapshot-id"),
    "no schemas": (lambda raw: raw.pop("schemas"), "schemas"),
}


@pytest.mark.parametrize("damage", _MV_DAMAGE)
def test_a_metadata_file_that_breaks_a_rule(file_world: World, damage: str) -> None:
    view = created(file_world)
    location = view.properties.get(METADATA_LOCATION, view.metadata_location)
    change, expected = _MV_DAMAGE[damage]
    if damage == "another uuid" and not file_world.views:
        pytest.skip("without a view nothing tells the expected uuid")
    _edited(location, change)
    reason = _reason(file_world, "mart.daily")
    assert expected in reason
    assert location in reason
    assert view.storage
    with pytest.raises(CatalogError, match=r"mart\.daily"):
        file_world.catalog.commit([embedded_commit(view.storage, set_properties={"a": "b"})])
    with pytest.raises(CatalogError, match=r"mart\.daily"):
        file_world.catalog.commit([redefined(view)])
    file_world.catalog.commit([DropCommit(identifier=MV, expect_metadata_location=view.metadata_location)])
    assert file_world.catalog.load([MV]) == {}


_MV_FLAWS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a refresh that is not there": (lambda raw: raw.update({"current-refresh-id": 9}), "current-refresh-id"),
    "refreshes that are no list": (lambda raw: raw.update(refreshes={}), "refreshes"),
    "a log of what has expired": (lambda raw: raw["snapshot-log"].insert(0, {"timestamp-ms": 1, "snapshot-id": 9}), "snapshot-log[0]"),
    "an old clock": (lambda raw: raw.update({"last-updated-ms": 5}), "timestamp-ms"),
}


@pytest.mark.parametrize("flaw", _MV_FLAWS)
def test_a_metadata_file_with_a_flaw_is_read_and_written_right_again(file_world: World, flaw: str) -> None:
    view = created(file_world)
    change, field = _MV_FLAWS[flaw]
    _edited(view.properties.get(METADATA_LOCATION, view.metadata_location), change)
    found = _embedded(file_world)
    assert view.storage
    assert found.mv
    assert any(field in problem for problem in found.mv.problems)
    assert (found.current_snapshot_id, found.schema) == (view.storage.current_snapshot_id, view.storage.schema)
    file_world.catalog.commit([embedded_commit(found, set_properties={"a": "b"})])
    written = _embedded(file_world)
    assert written.mv
    assert (written.mv.problems, written.properties["a"]) == ((), "b")


def _embedded(world: World) -> TableState:
    found = world.catalog.load([MV])[MV]
    assert isinstance(found, ViewState)
    assert found.storage
    return found.storage


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"uuid": NaN}', b"[" * 100_000, None])
def test_a_metadata_file_that_is_none(file_world: World, content: bytes | None) -> None:
    view = created(file_world)
    location = view.properties.get(METADATA_LOCATION, view.metadata_location)
    if content is None:
        if not file_world.views:
            pytest.skip("without its file an MV of a file-system warehouse is the one before, or none")
        _path(location).unlink()
    else:
        _path(location).write_bytes(content)
    assert location in _reason(file_world, "mart.daily")


_TABLE_DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a higher format version": (lambda raw: raw.update({"format-version": 9}), "format-version: 9 is not supported"),
    "no location": (lambda raw: raw.pop("location"), "location: is missing"),
    "a snapshot that is not there": (lambda raw: raw.update({"current-snapshot-id": 9}), "current-snapshot-id: 9"),
    "a schema that is not there": (lambda raw: raw.update({"current-schema-id": 9}), "current-schema-id: 9"),
    "half a snapshot": (lambda raw: raw.update(snapshots=[{"snapshot-id": 1}]), "timestamp-ms: is missing"),
}


@pytest.mark.parametrize("damage", _TABLE_DAMAGE)
def test_a_table_that_breaks_a_rule(file_world: World, damage: str) -> None:
    table = file_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    change, expected = _TABLE_DAMAGE[damage]
    _edited(table.metadata_location, change)
    reason = _reason(file_world, "mart.t")
    assert expected in reason
    assert table.metadata_location in reason
    with pytest.raises(CatalogError, match=r"mart\.t"):
        file_world.catalog.commit([table_commit(table, set_properties={"a": "b"})])


_VIEW_DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a higher format version": (lambda raw: raw.update({"format-version": 2}), "format-version: 2 is not supported"),
    "a version that is not there": (lambda raw: raw.update({"current-version-id": 9}), "current-version-id: 9"),
    "a schema that is not there": (lambda raw: raw.update(schemas=[]), "schema-id: 0"),
    "no uuid": (lambda raw: raw.pop("view-uuid"), "view-uuid: is missing"),
}


@pytest.mark.parametrize("damage", _VIEW_DAMAGE)
def test_a_view_that_breaks_a_rule(sql_world: World, damage: str) -> None:
    (view,) = sql_world.catalog.commit([view_commit("mart.v", schema=schema(a="int"))]).values()
    assert isinstance(view, ViewState)
    change, expected = _VIEW_DAMAGE[damage]
    _edited(view.metadata_location, change)
    reason = _reason(sql_world, "mart.v")
    assert expected in reason
    assert view.metadata_location in reason
