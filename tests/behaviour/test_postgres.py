"""The SQL catalog on a PostgreSQL server: transactions of several tables, first use, connections that break, passwords."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from behaviour.mvs import loaded
from behaviour.swaps import race
from behaviour.world import embedded_properties, layout, name, served, table_commit, view_commit
from mvbuild.adapters import open_catalog
from mvbuild.adapters.iceberg.sql import ServerDatabase, Statement
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.states import TableState
from servers.postgres import PASSWORD, Postgres

pytestmark = pytest.mark.proof

_PATIENT = {"commit.retry.num-retries": "1000", "commit.retry.min-wait-ms": "5", "commit.retry.max-wait-ms": "60"}
_FIRST_USE = """
import json, sys
from mvbuild.adapters import open_catalog
catalog = open_catalog("lake", json.loads(sys.argv[1]), embedded=False)
import psycopg2, sqlalchemy
print("ready", flush=True)
sys.stdin.readline()
catalog.ensure_namespace(("mart",))
print(catalog.list_names(("mart",)))
"""


@pytest.fixture
def properties(postgres_server: Postgres, tmp_path: Path) -> dict[str, str]:
    return {"type": "sql", "uri": postgres_server.fresh(), "warehouse": f"file://{tmp_path}/warehouse"}


def test_eight_processes_swap_one_mv(properties: dict[str, str], tmp_path: Path) -> None:
    world = served(properties)
    outcome = race(world, tmp_path, json.dumps(properties), swaps=80)
    assert outcome.errors == []
    assert outcome.uuids == {outcome.uuid}
    assert outcome.counted == 80
    assert loaded(world)[1].uuid == outcome.uuid
    world.close()


def test_first_use_by_processes_at_once(properties: dict[str, str]) -> None:
    here = Path(__file__).parents[1]
    path = f"import sys; sys.path[:0] = [{str(here)!r}, {str(here.parent / 'compiler')!r}]\n"
    command = [sys.executable, "-c", path + _FIRST_USE, json.dumps(properties)]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        out, _ = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "()\n")


def test_first_use_by_threads_at_once(postgres_server: Postgres) -> None:
    for _ in range(5):
        uri = postgres_server.fresh()
        databases = [ServerDatabase(uri) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda one: list(one.query("SELECT 1 FROM iceberg_tables", {})), databases)) == [[]] * 8
        for one in databases:
            one.close()


def test_a_catalog_of_older_tables(postgres_server: Postgres, tmp_path: Path) -> None:
    """As Spark makes them with schema version V0."""
    uri = postgres_server.fresh()
    schema = uri.rpartition("%3D")[2]
    postgres_server.execute(
        f"CREATE TABLE {schema}.iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name"
        " VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),"
        " PRIMARY KEY (catalog_name, table_namespace, table_name))"
    )
    world = served({"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path}/warehouse"})
    world.catalog.ensure_namespace(("mart",))
    world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    assert world.catalog.commit([view_commit("mart.v")])
    assert world.catalog.list_views() == (name("mart.v"),)
    world.close()


def test_commits_of_two_tables_by_many(properties: dict[str, str]) -> None:
    """In either order: each commit is complete, and there is no deadlock."""
    world = served(properties)
    world.catalog.ensure_namespace(("mart",))
    one, two = (world.catalog.create_table(name(f"mart.{t}"), layout(id="long"), _PATIENT) for t in ("one", "two"))
    commits = 6

    def write(writer: int) -> None:
        for number in range(1, commits + 1):
            changes = [table_commit(table, set_properties={f"w{writer}": str(number)}) for table in (one, two)]
            world.catalog.commit(changes if writer % 2 else changes[::-1])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    for found in world.catalog.load([one.identifier, two.identifier]).values():
        assert isinstance(found, TableState)
        assert [found.properties[f"w{n}"] for n in range(4)] == [str(commits)] * 4
    world.close()


def test_a_deadlock_with_somebody_else_is_a_race_that_was_lost(properties: dict[str, str], postgres_server: Postgres) -> None:
    import psycopg2

    world = served({**properties, "uri": f"{properties['uri']}%20-cdeadlock_timeout%3D4s"})
    world.catalog.ensure_namespace(("mart",))
    tables = [world.catalog.create_table(name(f"mart.{t}"), layout(id="long"), {}) for t in ("a", "b")]
    schema = properties["uri"].rpartition("%3D")[2]
    touch = f"UPDATE {schema}.iceberg_tables SET previous_metadata_location = '' WHERE table_name = %s"
    other = psycopg2.connect(host="127.0.0.1", port=postgres_server.port, user="lake", password=PASSWORD, dbname="postgres")
    cursor = other.cursor()
    # The one that looks for the deadlock last is not undone: the commit looks once, when both wait for each other, also on a slow machine.
    cursor.execute("SET deadlock_timeout = '60s'")
    cursor.execute(touch, ["b"])
    with ThreadPoolExecutor(1) as pool:
        commit = pool.submit(world.catalog.commit, [table_commit(table, set_properties={"p": "1"}) for table in tables])
        _until(lambda: bool(postgres_server.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")))
        cursor.execute(touch, ["a"])
        other.commit()
        assert len(commit.result(timeout=30)) == 2
    other.close()
    world.close()


def _until(is_so: Callable[[], bool]) -> None:
    import time

    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_connections_that_the_server_closed(properties: dict[str, str], postgres_server: Postgres) -> None:
    world = served(properties)
    world.catalog.ensure_namespace(("mart",))
    table = world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    postgres_server.cut_connections()
    assert world.catalog.load([table.identifier]) == {table.identifier: table}
    postgres_server.cut_connections()
    assert world.catalog.commit([table_commit(table, set_properties={"a": "1"})])
    world.close()


@pytest.mark.parametrize("made", [True, False])
def test_a_connection_that_breaks_in_a_commit(
    properties: dict[str, str], postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    world = served(properties)
    world.catalog.ensure_namespace(("mart",))
    table = world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    original: Any = ServerDatabase._transact

    def broken(self: ServerDatabase, statements: Sequence[Statement]) -> bool:
        monkeypatch.setattr(ServerDatabase, "_transact", original)
        if made:
            original(self, statements)
        with self._engine().connect() as db:
            from sqlalchemy import text

            db.execute(text("SELECT 1"))
            postgres_server.cut_connections()
            db.execute(text("SELECT 1"))
        raise AssertionError

    monkeypatch.setattr(ServerDatabase, "_transact", broken)
    change = table_commit(table, set_properties={"a": "1"})
    if made:
        assert world.catalog.commit([change])
    else:
        with pytest.raises(CatalogError) as caught:
            world.catalog.commit([change])
        assert caught.value.unreachable
    found = world.catalog.load([table.identifier])[table.identifier]
    assert isinstance(found, TableState)
    assert (found.properties.get("a") == "1") is made
    world.close()


def test_passwords_are_not_shown(postgres_server: Postgres, tmp_path: Path) -> None:
    for uri in (
        postgres_server.uri(password="wr0ng/p@ss"),
        postgres_server.uri().replace("/postgres", "/nowhere"),
        postgres_server.uri().replace(f":{postgres_server.port}/", ":9/"),
        f"postgresql+nonsense://lake:{'wr0ng'}@127.0.0.1/x",
    ):
        catalog = open_catalog("lake", {**embedded_properties(tmp_path), "uri": uri}, embedded=False)
        with pytest.raises(CatalogError) as caught:
            catalog.load([name("mart.t")])
        assert "Catalog 'lake'" in str(caught.value)
        assert not any(secret in str(caught.value) for secret in ("wr0ng", PASSWORD, "p%40ss"))
        assert caught.value.__cause__ is None
