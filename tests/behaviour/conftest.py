"""name of an adapter -> a fresh catalog of it: every test of this folder runs over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from behaviour.world import World, embedded, memory, remote, warehouse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WORLDS: dict[str, Any] = {"embedded": embedded, "memory": memory, "remote": remote, "warehouse": warehouse}


@pytest.fixture(params=[*_WORLDS])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    found: World = _WORLDS[request.param](tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture(params=["embedded", "memory", "warehouse"])
def mv_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The catalogs that hold MVs in the metadata-file format."""
    found: World = _WORLDS[request.param](tmp_path)
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


@pytest.fixture(params=["embedded", "remote", "warehouse"])
def disk_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The catalogs whose tables have files."""
    found: World = _WORLDS[request.param](tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


@pytest.fixture
def sql_world(tmp_path: Path) -> Iterator[World]:
    found = embedded(tmp_path)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()
