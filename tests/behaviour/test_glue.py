"""Glue: entries as Iceberg's GlueCatalog writes them, its rules for names, and failures between two steps."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from behaviour.mvs import MV, created, loaded
from behaviour.world import World, layout, name, table_commit, view_commit
from mvbuild.adapters import open_catalog
from mvbuild.ports.catalog import AlreadyExists, CatalogError, CommitConflict
from mvbuild.ports.commits import ConvertCommit, DropCommit
from mvbuild.ports.states import TableState, Unreadable
from servers.moto import SECRET

if TYPE_CHECKING:
    from servers.moto import Moto

pytestmark = pytest.mark.proof


def _glue(world: World) -> Any:
    found: Any = world.catalog
    return found._publisher.pointers._glue


def _entry(world: World, table: str) -> dict[str, Any]:
    found: dict[str, Any] = _glue(world).get_table(DatabaseName="mart", Name=table)["Table"]
    return found


def test_a_table_is_shown_as_iceberg_shows_it(glue_world: World) -> None:
    fields = layout(id="long", at="timestamptz", tags={"type": "list", "element-id": 9, "element": "string", "element-required": False})
    table = glue_world.catalog.create_table(name("mart.t"), fields, {"comment": "what it holds"})
    other = _entry(glue_world, "t")
    kept = {key: other[key] for key in ("Name", "TableType", "StorageDescriptor")}
    given = {**other["Parameters"], "of.somebody.else": "kept"}
    _glue(glue_world).update_table(DatabaseName="mart", TableInput={**kept, "Owner": "me", "Parameters": given})
    fewer = layout(id="long", tags=fields.schema["fields"][2]["type"])
    (done,) = glue_world.catalog.commit([table_commit(table, layout=fewer)]).values()
    found = _entry(glue_world, "t")
    assert (found["TableType"], found["Description"], found["Owner"]) == ("EXTERNAL_TABLE", "what it holds", "me")
    assert found["Parameters"] == {
        "table_type": "ICEBERG",
        "metadata_location": done.metadata_location,
        "previous_metadata_location": table.metadata_location,
        "of.somebody.else": "kept",
    }
    assert found["StorageDescriptor"]["Location"] == table.location
    shown = [(c["Name"], c["Type"], c["Parameters"]["iceberg.field.current"]) for c in found["StorageDescriptor"]["Columns"]]
    assert shown == [("id", "bigint", "true"), ("tags", "array<string>", "true"), ("at", "timestamp", "false")]
    assert found["StorageDescriptor"]["Columns"][0]["Parameters"]["iceberg.field.id"] == "1"


def test_what_pyiceberg_shows_besides_stays_right(glue_world: World) -> None:
    glue_world.catalog.create_table(name("mart.t"), layout(id="long"), {"a": "1", "b": "1"})
    table = glue_world.write(name("mart.t"), {"id": [1]}, "main")
    assert (_entry(glue_world, "t")["Parameters"]["a"], _entry(glue_world, "t")["Parameters"]["b"]) == ("1", "1")
    glue_world.catalog.commit([table_commit(table, set_properties={"a": "2"}, remove_properties=("b",))])
    parameters = _entry(glue_world, "t")["Parameters"]
    assert (parameters["a"], parameters.get("b")) == ("2", None)


def test_a_view_is_no_table_of_others(glue_world: World) -> None:
    glue_world.catalog.commit([view_commit("mart.v", "SELECT 1 AS a")])
    found = _entry(glue_world, "v")
    assert (found["TableType"], found["ViewOriginalText"]) == ("VIRTUAL_VIEW", "SELECT 1 AS a")
    assert found["Parameters"]["table_type"] == "ICEBERG-VIEW"
    assert glue_world.catalog.list_views() == (name("mart.v"),)
    assert glue_world.pyiceberg
    assert glue_world.pyiceberg().list_tables("mart") == []


def test_names(glue_world: World) -> None:
    for text, reason in (
        ("mart.Daily", "lower case: name it 'mart.daily'"),
        ("mart.größe", "digits and underscores"),
        ("mart.a-b", "digits"),
    ):
        with pytest.raises(CatalogError, match=reason):
            glue_world.catalog.create_table(name(text), layout(id="long"), {})
    with pytest.raises(CatalogError, match="one level of namespaces"):
        glue_world.catalog.ensure_namespace(("mart", "daily"))
    table = glue_world.catalog.create_table(name("mart.daily"), layout(id="long"), {})
    with pytest.raises(CatalogError, match="lower case"):
        glue_world.catalog.commit([table_commit(table, rename_to=name("mart.Weekly"))])
    assert glue_world.catalog.list_names(("MART",)) == (name("mart.daily"),)
    assert glue_world.catalog.load([name("mart.DAILY")]) == {}


def test_a_table_of_another_kind(glue_world: World) -> None:
    _glue(glue_world).create_table(DatabaseName="mart", TableInput={"Name": "csv", "TableType": "EXTERNAL_TABLE"})
    assert glue_world.catalog.load([name("mart.csv")]) == {}
    assert glue_world.catalog.list_names(("mart",)) == ()
    with pytest.raises(AlreadyExists, match="is not an Iceberg table"):
        glue_world.catalog.create_table(name("mart.csv"), layout(id="long"), {})


def test_a_renamed_table_keeps_what_others_wrote(glue_world: World) -> None:
    table = glue_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    entry = _entry(glue_world, "t")
    given = {"Name": "t", "Owner": "me", "Parameters": {**entry["Parameters"], "lf.tag": "kept"}}
    _glue(glue_world).update_table(DatabaseName="mart", TableInput=given)
    glue_world.catalog.commit([table_commit(table, rename_to=name("mart.u"))])
    assert (_entry(glue_world, "u")["Owner"], _entry(glue_world, "u")["Parameters"]["lf.tag"]) == ("me", "kept")
    assert glue_world.catalog.list_names(("mart",)) == (name("mart.u"),)


def test_a_request_that_boto_sent_twice(glue_world: World) -> None:
    """The first was heard, and the second refused for it."""
    table = glue_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    glue = _glue(glue_world)
    original = glue.update_table

    def twice(**given: Any) -> Any:
        original(**given)
        return original(**given)

    with patch.object(glue, "update_table", twice):
        done = glue_world.catalog.commit([table_commit(table, set_properties={"a": "1"})])
    assert glue_world.catalog.load([table.identifier]) == done


def test_a_drop_does_not_take_a_commit_with_it(glue_world: World) -> None:
    table = glue_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    found: Any = glue_world.catalog
    original = found._publisher.pointers._table

    def overtaken(key: Any) -> Any:
        entry = original(key)
        found._publisher.pointers._table = original
        glue_world.catalog.commit([table_commit(table, set_properties={"a": "1"})])
        return entry

    found._publisher.pointers._table = overtaken
    with pytest.raises(CommitConflict):
        glue_world.catalog.commit([DropCommit(identifier=table.identifier, expect_metadata_location=table.metadata_location)])
    now = glue_world.catalog.load([table.identifier])[table.identifier]
    assert isinstance(now, TableState)
    assert now.properties["a"] == "1"


@pytest.mark.parametrize("to", ["table-properties", "metadata-file"])
def test_a_conversion_that_fails_half_way_is_undone(glue_world: World, to: Any) -> None:
    view = created(glue_world)
    assert view.storage
    storage, table = name("mart.daily_storage"), view.storage
    if to == "metadata-file":
        there = ConvertCommit(view=view, storage=view.storage, to="table-properties", storage_name=storage)
        done = glue_world.catalog.commit([there])
        view, table = done[MV], done[storage]
    before = glue_world.catalog.load([MV, storage])
    glue = _glue(glue_world)
    original = glue.update_table
    of_last = "daily_storage" if to == "metadata-file" else "daily"
    calls = 0

    def broken(**given: Any) -> Any:
        nonlocal calls
        calls += given["TableInput"]["Name"] == of_last
        if calls == 1 and given["TableInput"]["Name"] == of_last:
            raise ConnectionError("cut")
        return original(**given)

    with patch.object(glue, "update_table", broken), pytest.raises(CatalogError, match="cut"):
        glue_world.catalog.commit([ConvertCommit(view=view, storage=table, to=to, storage_name=storage)])
    assert glue_world.catalog.load([MV, storage]) == before
    if to == "table-properties":
        assert loaded(glue_world)[0] == view


def test_many_names_at_once(glue_world: World) -> None:
    """Of several databases, more than are asked for one by one."""
    glue_world.catalog.ensure_namespace(("other",))
    tables = [glue_world.catalog.create_table(name(f"{space}.t"), layout(id="long"), {}) for space in ("mart", "other")]
    wanted = [name(f"mart.x{number}") for number in range(60)]
    assert set(glue_world.catalog.load([*wanted, *(t.identifier for t in tables)])) == {t.identifier for t in tables}
    with ThreadPoolExecutor(4) as pool:
        assert all(len(found) == 1 for found in pool.map(lambda t: glue_world.catalog.load([t.identifier]), tables * 4))


def test_keys_are_not_shown(moto_server: Moto) -> None:
    properties = {**moto_server.glue, "glue.endpoint": f"http://me:{SECRET}@127.0.0.1:9", "glue.max-retries": "1"}
    catalog = open_catalog("lake", properties, embedded=False)
    with pytest.raises(CatalogError, match="Catalog 'lake' cannot be reached") as caught:
        catalog.load([name("mart.t")])
    assert SECRET not in str(caught.value)
    with patch.dict("os.environ", {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}, clear=True):
        catalog = open_catalog("lake", moto_server.glue, embedded=False)
        with pytest.raises(CatalogError, match="credentials") as caught:
            catalog.load([name("mart.t")])
    assert caught.value.unreachable


def test_a_materialized_view_of_trino_is_named(glue_world: World) -> None:
    encoded = base64.b64encode(json.dumps({"originalSql": "SELECT id FROM raw.orders"}).encode()).decode()
    entry = {
        "Name": "of_trino",
        "TableType": "VIRTUAL_VIEW",
        "Parameters": {"presto_view": "true", "comment": "Presto Materialized View"},
        "ViewOriginalText": f"/* Presto Materialized View: {encoded} */",
    }
    _glue(glue_world).create_table(DatabaseName="mart", TableInput=entry)
    found = glue_world.catalog.load([name("mart.of_trino"), name("mart.nothing")])
    assert list(found) == [name("mart.of_trino")]
    state = found[name("mart.of_trino")]
    assert isinstance(state, Unreadable)
    assert (state.code, "its query is: SELECT id FROM raw.orders" in state.reason) == ("unsupported-view", True)
