"""A Hive metastore: entries as Iceberg's HiveCatalog writes them, its locks, its rules for names, and failures between two steps."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from behaviour.mvs import MV, created, loaded, redefined
from behaviour.world import World, layout, name, schema, served, table_commit, view_commit
from mvbuild.adapters import open_catalog
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError
from mvbuild.ports.commits import ConvertCommit, TableLayout
from mvbuild.ports.states import Partition, TableState, Unreadable

if TYPE_CHECKING:
    from servers.hive import Hive

pytestmark = pytest.mark.proof


@contextmanager
def _client(server: Hive) -> Iterator[Any]:
    from pyiceberg.catalog.hive import _HiveClient

    with _HiveClient(server.uri) as client:
        yield client


def _locks(server: Hive) -> list[Any]:
    from hive_metastore.ttypes import ShowLocksRequest

    with _client(server) as client:
        return list(client.show_locks(ShowLocksRequest()).locks)


def test_a_namespace_that_several_make_at_once(hive_world: World, hive_server: Hive) -> None:
    """A metastore deletes the directory for the second process, with what the first one wrote there."""

    def made(number: int) -> TableIdentifier:
        catalog = open_catalog("lake", hive_server.properties, embedded=False)
        catalog.ensure_namespace(("many",))
        return catalog.create_table(name(f"many.t{number}"), layout(id="long"), {}).identifier

    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(made, range(8)))
    found = hive_world.catalog.load(tables)
    assert [found[table] for table in tables if not isinstance(found[table], TableState)] == []
    assert _locks(hive_server) == []


def test_a_namespace_that_another_makes_while_it_is_read(hive_world: World, hive_server: Hive) -> None:
    """Its tables are asked for before it exists, and why that failed is asked after."""
    reader = open_catalog("lake", hive_server.properties, embedded=False)
    namespaces = [f"made{number}" for number in range(60)]
    done = Event()

    def read() -> int:
        reads = 0
        while not done.is_set():
            reader.load([name(f"{namespace}.t") for namespace in namespaces])
            reads += 1
        return reads

    with ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(read) for _ in range(4)]
        try:
            for namespace in namespaces:
                hive_world.catalog.ensure_namespace((namespace,))
        finally:
            done.set()
        assert all(each.result() for each in reading)


def test_a_table_is_shown_as_iceberg_shows_it(hive_world: World, hive_server: Hive) -> None:
    partitioned = TableLayout(schema=schema(id="long", at="timestamptz"), partition_by=(Partition(column="id", transform="identity"),))
    first = hive_world.catalog.create_table(name("mart.t"), partitioned, {"gc.enabled": "false", "old": "1"})
    hive_world.write(first.identifier, {"id": [1], "at": [None]}, "main")
    table = hive_world.catalog.load([first.identifier])[first.identifier]
    assert isinstance(table, TableState)
    with _client(hive_server) as client:
        other = client.get_table("mart", "t")
        other.parameters["of.somebody.else"] = "kept"
        client.alter_table("mart", "t", other)
    properties = {"new": "2", "longer than a metastore takes": "x" * 40_000}
    (done,) = hive_world.catalog.commit([table_commit(table, set_properties=properties, remove_properties=("old",))]).values()
    with _client(hive_server) as client:
        found = client.get_table("mart", "t")
    assert (found.tableType, found.sd.location) == ("EXTERNAL_TABLE", done.location)
    assert [(column.name, column.type) for column in found.sd.cols] == [("id", "bigint"), ("at", "timestamp")]
    assert found.parameters["table_type"] == "ICEBERG"
    assert found.parameters["EXTERNAL"] == "TRUE"
    assert found.parameters["metadata_location"] == done.metadata_location
    assert found.parameters["previous_metadata_location"] == table.metadata_location
    assert found.parameters["uuid"] == table.uuid
    assert found.parameters["current-snapshot-id"] == str(table.current_snapshot_id)
    assert found.parameters["snapshot-count"] == found.parameters["numRows"] == "1"
    assert found.parameters["external.table.purge"] == "false"
    assert json.loads(found.parameters["default-partition-spec"])["fields"][0]["transform"] == "identity"
    assert json.loads(found.parameters["current-schema"])["fields"][0]["name"] == "id"
    assert (found.parameters["new"], found.parameters["of.somebody.else"]) == ("2", "kept")
    assert not found.parameters.keys() & {"old", "longer than a metastore takes"}


def test_a_view_is_shown_as_iceberg_shows_it(hive_world: World, hive_server: Hive) -> None:
    given = {"representations": {"trino": "SELECT 't' a", "hive": "SELECT 'h' a"}, "properties": {"k": "v"}}
    view = hive_world.catalog.commit([view_commit("mart.v", **given)])[name("mart.v")]
    again = view_commit("mart.v", "SELECT 2 AS a", expect=view.metadata_location, version=2)
    done = hive_world.catalog.commit([again])[name("mart.v")]
    with _client(hive_server) as client:
        found = client.get_table("mart", "v")
    assert (found.tableType, found.viewOriginalText, found.viewExpandedText) == ("VIRTUAL_VIEW", "SELECT 2 AS a", "SELECT 2 AS a")
    assert (found.parameters["table_type"], found.parameters["k"]) == ("ICEBERG-VIEW", "v")
    assert found.parameters["metadata_location"] == done.metadata_location
    assert found.parameters["previous_metadata_location"] == view.metadata_location


def test_other_columns_in_the_place_of_old_ones(hive_world: World, hive_server: Hive) -> None:
    """A metastore refuses that by default, and would stop Spark, too."""
    table = hive_world.catalog.create_table(name("mart.t"), layout(a="long", b="string"), {})
    hive_world.catalog.commit([table_commit(table, layout=layout(b="string", c="date"))])
    with _client(hive_server) as client:
        assert [(column.name, column.type) for column in client.get_table("mart", "t").sd.cols] == [("b", "string"), ("c", "date")]


def test_names(hive_world: World, hive_server: Hive) -> None:
    with pytest.raises(CatalogError, match=r"'mart.Daily' cannot be in a Hive metastore, .* lower case: name it 'mart.daily'"):
        hive_world.catalog.create_table(name("mart.Daily"), layout(id="long"), {})
    with pytest.raises(CatalogError, match="lower case"):
        hive_world.catalog.commit([view_commit("mart.Daily")])
    with pytest.raises(CatalogError, match="one level of namespaces"):
        hive_world.catalog.ensure_namespace(("mart", "daily"))
    with pytest.raises(CatalogError, match="'Mart' cannot be"):
        hive_world.catalog.ensure_namespace(("Mart",))
    with pytest.raises(CatalogError, match="not a valid object name"):
        hive_world.catalog.create_table(name("mart.with space"), layout(id="long"), {})
    table = hive_world.catalog.create_table(name("mart.daily"), layout(id="long"), {})
    with pytest.raises(CatalogError, match="lower case"):
        hive_world.catalog.commit([table_commit(table, rename_to=name("mart.Weekly"))])
    # As the metastore spells them: so a query that has another case still finds its table.
    assert hive_world.catalog.list_names(("MART",)) == (name("mart.daily"),)
    assert hive_world.catalog.list_names(("mart", "daily")) == ()
    assert hive_world.catalog.load([name("mart.DAILY"), TableIdentifier("lake", ("mart", "x"), "daily")]) == {}
    with _client(hive_server) as client:
        assert sorted(client.get_all_databases()) == ["default", "mart"]


def test_a_table_of_another_kind(hive_world: World, hive_server: Hive) -> None:
    from hive_metastore.ttypes import SerDeInfo, StorageDescriptor, Table

    hive_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    with _client(hive_server) as client:
        storage = StorageDescriptor(cols=[], location=f"{hive_server.warehouse}/csv", serdeInfo=SerDeInfo())
        client.create_table(Table(dbName="mart", tableName="csv", sd=storage, parameters={}, tableType="MANAGED_TABLE"))
    assert hive_world.catalog.load([name("mart.csv")]) == {}
    assert hive_world.catalog.list_names(("mart",)) == (name("mart.t"),)
    with pytest.raises(AlreadyExists, match="is not an Iceberg table"):
        hive_world.catalog.create_table(name("mart.csv"), layout(id="long"), {})


def test_who_finds_a_lock_waits_for_it(hive_world: World, hive_server: Hive) -> None:
    from hive_metastore.ttypes import LockComponent, LockLevel, LockRequest, LockType, UnlockRequest

    table = hive_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    part = LockComponent(type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname="mart", tablename="t")
    with _client(hive_server) as client:
        held = client.lock(LockRequest(component=[part], user="spark", hostname="elsewhere"))
    with ThreadPoolExecutor(1) as pool:
        commit = pool.submit(hive_world.catalog.commit, [table_commit(table, set_properties={"a": "1"})])
        time.sleep(0.5)
        assert not commit.done()
        with _client(hive_server) as client:
            client.unlock(UnlockRequest(lockid=held.lockid))
        assert commit.result(timeout=30)
    assert _locks(hive_server) == []


def test_a_lock_that_nobody_gives_back(hive_world: World, hive_server: Hive, monkeypatch: pytest.MonkeyPatch) -> None:
    from hive_metastore.ttypes import LockComponent, LockLevel, LockRequest, LockType, UnlockRequest

    monkeypatch.setattr("mvbuild.adapters.iceberg.hive_locks._PATIENCE", 0.2)
    table = hive_world.catalog.create_table(name("mart.gone"), layout(id="long"), {})
    part = LockComponent(type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname="mart", tablename="gone")
    with _client(hive_server) as client:
        held = client.lock(LockRequest(component=[part], user="spark", hostname="elsewhere"))
        with pytest.raises(CatalogError, match=r"did not grant the lock of mart.gone within .*: another process has it"):
            hive_world.catalog.commit([table_commit(table, set_properties={"a": "1"})])
        assert [lock.lockid for lock in _locks(hive_server)] == [held.lockid]
        client.unlock(UnlockRequest(lockid=held.lockid))


def test_without_locks_the_metastore_compares(hive_world: World, hive_server: Hive) -> None:
    properties = {"engine.hive.lock-enabled": "false", "commit.retry.num-retries": "1000", "commit.retry.min-wait-ms": "5"}
    table = hive_world.catalog.create_table(name("mart.t"), layout(id="long"), properties)
    commits = 5

    def write(writer: int) -> None:
        for number in range(1, commits + 1):
            hive_world.catalog.commit([table_commit(table, set_properties={f"w{writer}": str(number)})])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    found = hive_world.catalog.load([table.identifier])[table.identifier]
    assert isinstance(found, TableState)
    assert [found.properties[f"w{n}"] for n in range(4)] == [str(commits)] * 4


def test_a_connection_that_breaks_while_a_lock_is_held(hive_world: World, hive_server: Hive, monkeypatch: pytest.MonkeyPatch) -> None:
    from hive_metastore.ThriftHiveMetastore import Client
    from thrift.transport.TTransport import TTransportException

    table = hive_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    original = Client.alter_table_with_environment_context

    def cut(self: Any, *given: Any, **named: Any) -> None:
        monkeypatch.setattr(Client, "alter_table_with_environment_context", original)
        original(self, *given, **named)
        self._iprot.trans.close()
        raise TTransportException(message="the connection was cut")

    monkeypatch.setattr(Client, "alter_table_with_environment_context", cut)
    done = hive_world.catalog.commit([table_commit(table, set_properties={"a": "1"})])
    assert hive_world.catalog.load([table.identifier]) == done
    assert _locks(hive_server) == []


@pytest.mark.parametrize("to", ["table-properties", "metadata-file"])
def test_a_conversion_that_fails_half_way_is_undone(hive_world: World, hive_server: Hive, monkeypatch: pytest.MonkeyPatch, to: Any) -> None:
    from hive_metastore.ThriftHiveMetastore import Client

    view = created(hive_world)
    assert view.storage
    storage = name("mart.daily_storage")
    if to == "metadata-file":
        there = ConvertCommit(view=view, storage=view.storage, to="table-properties", storage_name=storage)
        done = hive_world.catalog.commit([there])
        view, table = done[MV], done[storage]
    else:
        table = view.storage
    before = hive_world.catalog.load([MV, storage])
    last = "drop_table" if to == "metadata-file" else "alter_table_with_environment_context"
    original = getattr(Client, last)
    calls = 0

    def broken(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError("cut")
        return original(*args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Client, last, broken)
        with pytest.raises(CatalogError, match="cut"):
            hive_world.catalog.commit([ConvertCommit(view=view, storage=table, to=to, storage_name=storage)])
    assert hive_world.catalog.load([MV, storage]) == before
    assert _locks(hive_server) == []
    hive_world.catalog.commit([redefined(view)])
    if to == "table-properties":
        assert loaded(hive_world)[0].representations == {"spark": "SELECT 2 AS a"}


def test_a_metastore_that_is_not_there(hive_server: Hive) -> None:
    catalog = open_catalog("lake", {"type": "hive", "uri": "thrift://127.0.0.1:9", "warehouse": "file:///tmp/w"}, embedded=False)
    with pytest.raises(CatalogError, match="Catalog 'lake' cannot be reached") as caught:
        catalog.load([name("mart.t")])
    assert caught.value.unreachable
    both = {**hive_server.properties, "uri": f"thrift://127.0.0.1:9,{hive_server.uri}"}
    world = served(both)
    assert world.catalog.list_names(("nowhere",)) == ()
    world.close()
    with pytest.raises(CatalogError, match=r"no 'uri'.*thrift://"):
        open_catalog("lake", {"type": "hive"}, embedded=False)


def test_databases_that_have_a_place(hive_world: World, hive_server: Hive) -> None:
    from hive_metastore.ttypes import Database

    with _client(hive_server) as client:
        client.create_database(Database(name="placed", locationUri=f"file:{hive_server.warehouse}/elsewhere", parameters={}))
    table = hive_world.catalog.create_table(name("placed.t"), layout(id="long"), {})
    assert table.location.startswith(f"file:{hive_server.warehouse}/elsewhere/t-")
    without = served({key: value for key, value in hive_server.properties.items() if key != "warehouse"})
    assert without.catalog.create_table(name("placed.u"), layout(id="long"), {}).location.startswith(
        f"file:{hive_server.warehouse}/elsewhere/u-"
    )
    without.close()


def test_a_materialized_view_of_trino_is_named(hive_world: World, hive_server: Hive) -> None:
    from hive_metastore.ttypes import SerDeInfo, StorageDescriptor, Table

    encoded = base64.b64encode(json.dumps({"originalSql": "SELECT id FROM raw.orders"}).encode()).decode()
    hive_world.catalog.ensure_namespace(("mart",))
    entry = Table(
        dbName="mart",
        tableName="of_trino",
        tableType="VIRTUAL_VIEW",
        parameters={"presto_view": "true", "comment": "Presto Materialized View", "metadata_location": "file:/hidden.metadata.json"},
        viewOriginalText=f"/* Presto Materialized View: {encoded} */",
        viewExpandedText="/* Presto Materialized View */",
        sd=StorageDescriptor(cols=[], location=f"{hive_server.warehouse}/of_trino", serdeInfo=SerDeInfo(parameters={})),
        partitionKeys=[],
    )
    with _client(hive_server) as client:
        client.create_table(entry)
    found = hive_world.catalog.load([name("mart.of_trino"), name("mart.nothing")])
    assert list(found) == [name("mart.of_trino")]
    state = found[name("mart.of_trino")]
    assert isinstance(state, Unreadable)
    assert state.code == "unsupported-view"
    assert "lake.mart.of_trino is a Trino materialized view" in state.reason
    assert "SELECT id FROM raw.orders" in state.reason
