"""Broken catalogs: what is reported, and what is not."""

from __future__ import annotations

import gzip
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from behaviour.world import embedded_properties, layout, name, table_commit
from mvbuild.adapters import open_catalog
from mvbuild.adapters.iceberg.failures import Translator
from mvbuild.adapters.iceberg.metadata import table_state
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.states import TableState, Unreadable

if TYPE_CHECKING:
    from behaviour.world import World


def _file(state: TableState) -> Path:
    return Path(state.metadata_location.removeprefix("file:"))


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"format-version": 2, "location": "x"}', b"\xff", None])
def test_corrupt_metadata(sql_world: World, content: bytes | None) -> None:
    state = sql_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    if content is None:
        _file(state).unlink()
    else:
        _file(state).write_bytes(content)
    found = sql_world.catalog.load([name("mart.t")])[name("mart.t")]
    assert isinstance(found, Unreadable)
    assert "lake.mart.t" in found.reason
    assert state.metadata_location in found.reason
    assert found.metadata_location == state.metadata_location
    if content is None:
        with pytest.raises(CatalogError, match=r"mart\.t"):
            sql_world.catalog.commit([table_commit(state, set_properties={"a": "b"})])


def test_no_directory_for_the_catalog_file(tmp_path: Path) -> None:
    catalog = open_catalog("lake", embedded_properties(tmp_path), embedded=False)
    with pytest.raises(CatalogError, match="does not exist") as caught:
        catalog.load([name("mart.t")])
    assert caught.value.unreachable
    assert not (tmp_path / ".mvbuild").exists()
    assert open_catalog("lake", embedded_properties(tmp_path), embedded=True).load([name("mart.t")]) == {}


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / ".mvbuild").mkdir()
    (tmp_path / ".mvbuild" / "catalog.db").write_bytes(b"not a database" * 100)
    with pytest.raises(CatalogError):
        open_catalog("lake", embedded_properties(tmp_path), embedded=True).load([name("mart.t")])


def test_a_catalog_without_view_column(tmp_path: Path) -> None:
    (tmp_path / ".mvbuild").mkdir()
    db = sqlite3.connect(tmp_path / ".mvbuild" / "catalog.db")
    db.execute(
        "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255)"
        " NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),"
        " PRIMARY KEY (catalog_name, table_namespace, table_name))"
    )
    db.close()
    catalog = open_catalog("lake", embedded_properties(tmp_path), embedded=True)
    catalog.ensure_namespace(("mart",))
    catalog.create_table(name("mart.t"), layout(id="long"), {})
    assert catalog.list_names(("mart",)) == (name("mart.t"),)


def test_wal(sql_world: World, tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / ".mvbuild" / "catalog.db")
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


@pytest.mark.parametrize(
    "properties",
    [
        {"type": "rest", "uri": "http://user:s3cr3tpw@127.0.0.1:9/", "token": "tok-abcdef"},
        {"type": "rest", "uri": "http://127.0.0.1:9/?token=tok-abcdef"},
        {"uri": "http://127.0.0.1:9/", "credential": "id-1:hidden-part", "oauth2-server-uri": "http://127.0.0.1:9/"},
    ],
)
def test_an_unreachable_server(properties: dict[str, str]) -> None:
    catalog = open_catalog("lake", properties, embedded=False)
    with pytest.raises(CatalogError) as caught:
        catalog.load([name("mart.t")])
    assert caught.value.unreachable
    for secret in ("s3cr3tpw", "tok-abcdef", "hidden-part"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "cannot connect to postgresql://me:p%40ss@db:5432/x",
        "password=p@ss host=db",
        "could not use 'p@ss'",
        "Authorization with token: abc.def.ghi",
        "the id:sec%ret pair",
    ],
)
def test_credentials_are_masked(text: str) -> None:
    translator = Translator("lake", {"uri": "postgresql://me:p%40ss@db:5432/x", "token": "abc.def.ghi", "credential": "id:sec%ret"})
    for masked in (translator.masked(text), str(translator.error(ValueError(text)))):
        assert "***" in masked
        assert not any(secret in masked for secret in ("p%40ss", "p@ss", "abc.def.ghi", "sec%ret"))


def test_a_password_in_an_address_without_a_scheme_is_masked() -> None:
    translator = Translator("lake", {"type": "rest", "uri": "u:SECRET@host:80"})
    assert translator.masked("No connection adapters were found for 'u:SECRET@host:80/v1/config'").count("SECRET") == 0


def test_a_password_with_an_at_sign() -> None:
    """A driver ends it at the first one, and looks for a host that begins with the rest."""

    class OperationalError(Exception):
        pass

    translator = Translator("lake", {"type": "sql", "uri": "postgresql+psycopg2://u:hunter2@Se@x@localhost:1/lake"})
    said = str(translator.error(OperationalError('could not translate host name "Se@x@localhost" to address: unknown')))
    assert not any(part in said for part in ("hunter2", "Se@", "x@"))
    assert said.endswith("The password in its address contains an @: write it as %40")


def test_nonsense_settings(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no 'uri'"):
        open_catalog("lake", {"type": "sql"}, embedded=False)
    with pytest.raises(CatalogError, match="in-memory"):
        open_catalog("lake", {"uri": "sqlite:///:memory:"}, embedded=False)
    with pytest.raises(CatalogError):
        open_catalog("lake", {"type": "nonsense", "uri": "x"}, embedded=False).load([name("mart.t")])
    catalog = open_catalog("lake", {"uri": f"sqlite:///{tmp_path}/c.db"}, embedded=True)
    catalog.ensure_namespace(("mart",))
    with pytest.raises(CatalogError, match="set 'warehouse'"):
        catalog.create_table(name("mart.t"), layout(id="long"), {})


def test_metadata_log_and_gzip(sql_world: World) -> None:
    properties = {
        "write.metadata.previous-versions-max": "2",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.compression-codec": "gzip",
    }
    state = sql_world.catalog.create_table(name("mart.t"), layout(id="long"), properties)
    for number in range(5):
        (found,) = sql_world.catalog.commit([table_commit(state, set_properties={"n": str(number)})]).values()
        assert isinstance(found, TableState)
        state = found
    raw = json.loads(gzip.decompress(_file(state).read_bytes()))
    assert len(raw["metadata-log"]) == 2
    assert sorted(path.name[:5] for path in _file(state).parent.iterdir()) == ["00003", "00004", "00005"]


def test_a_failed_write_leaves_no_file(sql_world: World, tmp_path: Path) -> None:
    one, two = (sql_world.catalog.create_table(name(f"mart.{t}"), layout(id="long"), {}) for t in "ab")
    (tmp_path / "file").touch()
    changes = [
        table_commit(one, set_properties={"a": "b"}),
        table_commit(two, set_properties={"write.metadata.path": f"{tmp_path}/file/x"}),
    ]
    with pytest.raises(CatalogError, match="NotADirectoryError"):
        sql_world.catalog.commit(changes)
    assert list(_file(one).parent.iterdir()) == [_file(one)]
    assert sql_world.catalog.load([one.identifier])[one.identifier] == one
    with pytest.raises(CatalogError, match="only once"):
        sql_world.catalog.commit([changes[0], changes[0]])


def test_metadata_of_the_first_format() -> None:
    raw = {
        "format-version": 1,
        "table-uuid": "u",
        "location": "file:/x",
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}]},
        "partition-spec": [],
        "current-snapshot-id": -1,
        "snapshots": [{"snapshot-id": 7, "timestamp-ms": 5, "manifests": []}],
    }
    state = table_state(name("mart.t"), "file:/x/metadata/1.json", raw)
    assert (state.current_snapshot_id, state.current_schema_id, state.refs) == (None, 0, {})
    assert state.schema["fields"][0]["name"] == "a"
    snapshot = state.snapshots[7]
    assert (snapshot.operation, snapshot.sequence_number, snapshot.schema_id, snapshot.parent_id) == ("", 0, None, None)
    with_current = table_state(name("mart.t"), "x", {**raw, "current-snapshot-id": 7})
    assert (with_current.refs, with_current.branches) == ({"main": 7}, {"main"})


def test_a_catalog_that_keeps_no_branches(sql_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Nessie does: the commit succeeds, and the branch is not there."""
    state = sql_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    publisher = sql_world.catalog._publisher  # type: ignore[attr-defined]
    edit = publisher.edit
    monkeypatch.setattr(publisher, "edit", lambda *given: replace(edit(*given), refs={}))
    with pytest.raises(CatalogError, match=r"did not keep branch 'audit' of lake\.mart\.t\. .* needs a catalog with Iceberg branches"):
        sql_world.catalog.create_branch(state, "audit")
