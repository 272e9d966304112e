"""name of an adapter -> a new catalog of that adapter: every test of this folder runs with each of them."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from behaviour.world import World, embedded, memory, remote, rest, served, warehouse
from servers import hive, moto, nessie, postgres
from servers.proxy import between
from servers.rest import NoServer, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.hive import Hive
    from servers.moto import Moto
    from servers.postgres import Postgres
    from servers.proxy import Proxy
    from servers.rest import RestServer

_WORLDS: dict[str, Any] = {"embedded": embedded, "memory": memory, "remote": remote, "warehouse": warehouse}
_METASTORES = ("hive", "glue")
_PROOF = ("remote", "postgres", *_METASTORES)
"""Catalogs whose tests are left to the proofs: the test command runs a catalog of each kind, embedded, in files, and on a server (REST)."""
_NESTED = ("test_nested_namespaces", "test_threads_create_the_same_names")
_OF_FILES = (
    "test_change",
    "test_copies_of_other_tables",
    "test_relevance",
    "test_row_changes",
    "test_rows",
    "test_scratch",
    "test_table_changes",
)
"""The content of files is the same for all kinds of pointers, and these servers are slow."""
_OF_POINTERS = ("test_stage_write_commit", "test_scratch_names", "test_names_of_tables", "test_drop_with_other_changes")
_ODD = "öß日本 `\";'%?#/"


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Metastores have one level of namespaces, and run what is about pointers."""

    def runs(item: Any) -> bool:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if not {params.get("world"), params.get("mv_world")} & {*_METASTORES}:
            return True
        return item.originalname not in _NESTED and (item.path.stem not in _OF_FILES or item.originalname in _OF_POINTERS)

    items[:] = [item for item in items if runs(item)]


@pytest.fixture(scope="session")
def rest_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    """The reference server, or with `MVBUILD_REST_SERVER=nessie` Nessie."""
    try:
        with _server(os.environ.get("MVBUILD_REST_SERVER", "reference"), tmp_path_factory.mktemp("rest")) as server:
            yield server
    except NoServer as error:
        pytest.skip(f"no REST server: {error}")


@contextmanager
def _server(kind: str, root: Path) -> Iterator[RestServer]:
    if kind == "reference":
        with running(root) as server:
            yield server
    else:
        with moto.running(root) as s3, nessie.running(root, s3) as server:
            yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    try:
        with postgres.running() as server:
            yield server
    except postgres.NoServer as error:
        pytest.skip(f"no PostgreSQL: {error}")


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    keys = {"AWS_ACCESS_KEY_ID": "lake", "AWS_SECRET_ACCESS_KEY": moto.SECRET}
    try:
        with moto.running(tmp_path_factory.mktemp("moto")) as server, patch.dict(os.environ, keys), moto.quick_clients():
            yield server
    except moto.NoServer as error:
        pytest.skip(f"no moto: {error}")


@pytest.fixture(scope="session")
def hive_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    try:
        with hive.running(tmp_path_factory.mktemp("hive")) as server:
            yield server
    except hive.NoServer as error:
        pytest.skip(f"no Hive metastore: {error}")


def _postgres(server: Postgres, root: Path) -> World:
    return served({"type": "sql", "uri": server.fresh(), "warehouse": f"file://{root}/warehouse"})


def _glue(server: Moto, root: Path) -> World:
    """Its files are on the disk, which is faster; those in S3 have tests of their own."""
    server.clear()
    return served({**server.glue, "warehouse": f"file://{root}/warehouse"}, atomic=False, refused=_ODD)


def _hive(server: Hive) -> World:
    server.clear()
    return served(server.properties, atomic=False, refused=_ODD)


def _world(request: pytest.FixtureRequest, root: Path) -> World:
    """The servers are started by the first test that needs them."""
    name = request.param
    if name == "rest":
        return rest(request.getfixturevalue("rest_server"))
    if name == "postgres":
        return _postgres(request.getfixturevalue("postgres_server"), root)
    if name == "glue":
        return _glue(request.getfixturevalue("moto_server"), root)
    if name == "hive":
        return _hive(request.getfixturevalue("hive_server"))
    found: World = _WORLDS[name](root)
    return found


def _params(*names: str) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.proof) if name in _PROOF else name for name in names]


@pytest.fixture(params=_params(*_WORLDS, "rest", "postgres", *_METASTORES))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    found = _world(request, tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture(params=_params("postgres", *_METASTORES))
def served_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The catalogs whose pointers a server keeps, and whose metadata mvbuild writes."""
    found = _world(request, tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture
def hive_world(hive_server: Hive) -> Iterator[World]:
    found = _hive(hive_server)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture
def glue_world(moto_server: Moto, tmp_path: Path) -> Iterator[World]:
    found = _glue(moto_server, tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture
def rest_world(rest_server: RestServer) -> Iterator[World]:
    found = rest(rest_server)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture
def proxied(rest_world: World, rest_server: RestServer) -> Iterator[tuple[World, Proxy]]:
    """The catalog of `rest_world` once more, where the test decides on what happens on the way."""
    with between(rest_server.uri) as proxy:
        found = rest(replace(rest_server, uri=proxy.uri))
        found.catalog.ensure_namespace(("mart",))
        yield found, proxy
        found.close()


@pytest.fixture(params=_params("embedded", "memory", "warehouse", "postgres", *_METASTORES))
def mv_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The catalogs that hold MVs in the metadata-file format."""
    found = _world(request, tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture(params=["embedded", "warehouse"])
def file_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Catalogs whose files a test can damage."""
    found: World = _WORLDS[request.param](tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture(params=_params("embedded", "remote", "warehouse", "rest"))
def disk_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The catalogs whose tables have files."""
    found = _world(request, tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture
def sql_world(tmp_path: Path) -> Iterator[World]:
    found = embedded(tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()
