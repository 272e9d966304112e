"""Tables, views and MVs whose files are in S3: written, read, listed and deleted there, without writing down the keys anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from behaviour.mvs import created, loaded, refreshed
from behaviour.world import World, layout, name, served, table_commit, view_commit
from mvbuild.adapters import open_catalog
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.states import TableState, ViewState
from other_programs import drop
from servers.moto import BUCKET, SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers.moto import Moto

pytestmark = pytest.mark.proof


@pytest.fixture(params=["sqlite", "glue"])
def s3_world(request: pytest.FixtureRequest, moto_server: Moto, tmp_path: Path) -> Iterator[World]:
    moto_server.clear()
    sqlite = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"s3://{BUCKET}/warehouse", **moto_server.s3}
    found = served(moto_server.glue if request.param == "glue" else sqlite)
    found.catalog.ensure_namespace(("mart",))
    yield found
    found.close()


def test_a_table(s3_world: World, tmp_path: Path) -> None:
    catalog = s3_world.catalog
    table = catalog.create_table(name("mart.t"), layout(id="long"), {"write.metadata.compression-codec": "gzip"})
    assert table.location.startswith(f"s3://{BUCKET}/warehouse/mart")
    table = s3_world.write(name("mart.t"), {"id": [1, 2]}, "main")
    assert catalog.files.rows(table, 9) == (("id",), [(1,), (2,)])
    reached = catalog.files.of(table)
    listed = dict(catalog.files.below(table.location))
    assert reached <= set(listed)
    assert all(path.startswith("s3://") and at > 0 for path, at in listed.items())
    (table,) = catalog.commit([table_commit(table, set_properties={"a": "1"})]).values()
    assert isinstance(table, TableState)
    drop(catalog, table.identifier)
    assert catalog.files.delete(catalog.files.of(table)) == len(listed) + 1
    assert catalog.files.below(table.location) == ()
    assert catalog.files.delete(reached) == 0
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_an_mv_in_both_formats(s3_world: World) -> None:
    created(s3_world)
    view = refreshed(s3_world, 2, {"a": [2, 3]})
    assert view.storage
    assert sorted(s3_world.catalog.files.rows(view.storage, 9)[1]) == [(1,), (2,), (3,)]
    assert loaded(s3_world)[1].mv
    plain = s3_world.catalog.commit([view_commit("mart.v", storage_table=name("mart.storage"))])[name("mart.v")]
    assert isinstance(plain, ViewState)
    assert s3_world.catalog.load([name("mart.v")]) == {name("mart.v"): plain}


def test_a_file_that_is_not_there(s3_world: World) -> None:
    table = s3_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    s3_world.catalog.files.delete([table.metadata_location])
    found = s3_world.catalog.load([table.identifier])[table.identifier]
    assert "the file does not exist" in getattr(found, "reason", "")


def test_keys_of_the_environment(moto_server: Moto, tmp_path: Path) -> None:
    moto_server.clear()
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"s3://{BUCKET}/w", "s3.endpoint": moto_server.uri}
    catalog = open_catalog("lake", properties, embedded=False)
    catalog.ensure_namespace(("mart",))
    # No region either: a server of one's own has none, and Amazon is not asked.
    with patch("pyiceberg.io.pyarrow._cached_resolve_s3_region", side_effect=AssertionError):
        table = catalog.create_table(name("mart.t"), layout(id="long"), {})
    assert catalog.load([table.identifier]) == {table.identifier: table}


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"s3://{BUCKET}/w",
        "s3.endpoint": "http://127.0.0.1:9",
    }
    keys = {"s3.access-key-id": "lake", "s3.secret-access-key": SECRET, "s3.connect-timeout": "1", "s3.request-timeout": "1"}
    catalog = open_catalog("lake", {**properties, **keys}, embedded=False)
    catalog.ensure_namespace(("mart",))
    with pytest.raises(CatalogError, match="Catalog 'lake'") as caught:
        catalog.create_table(name("mart.t"), layout(id="long"), {})
    assert SECRET not in str(caught.value)
    assert catalog.list_names(("mart",)) == ()
