"""Reading a SQLite catalog creates nothing: no file, directory, table or lock file; and needs no write permission."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from mvbuild.adapters.iceberg.jdbc_tables import Statement
from mvbuild.adapters.iceberg.sqlite import SqliteDatabase
from mvbuild.cli.main import group
from mvbuild.ports.catalog import CatalogError
from unit.worlds import write_project

PROJECT = {
    "models/m.sql": "SELECT id FROM raw.orders\n",
    "models/n.sql": "SELECT id FROM {{ ref('m') }}\n",
}
EMBEDDED = {"mvbuild.yml": "name: shop\n"}
OWN = {
    "mvbuild.yml": "name: shop\ntarget: dev\ntargets:\n  dev:\n    catalog:\n      name: lake\n      type: sql\n"
    "      uri: sqlite:///{root}/here/catalog.db\n      warehouse: file://{root}/warehouse\n"
}
COMMANDS = ("plan", "status", "history m", "explain m", "lineage m", "run --dry-run", "lint --catalog", "lock --check", "drop gone")


def files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything that is there but what is generated, with its content."""
    found = {}
    for path in sorted(root.rglob("*")):
        if "target" not in path.relative_to(root).parts:
            found[str(path.relative_to(root))] = (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
    return found


def database(path: Path) -> SqliteDatabase:
    """With one entry, as a closed connection leaves it."""
    made = SqliteDatabase(path, create=True)
    sql = "INSERT INTO iceberg_namespace_properties VALUES (:c, :n, 'exists', 'true')"
    assert made.transact([Statement(sql, {"c": "lake", "n": "raw"})])
    return made


def namespaces(of: SqliteDatabase) -> list[str]:
    return [row[0] for row in of.query("SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = :c", {"c": "lake"})]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("config", [EMBEDDED, OWN], ids=["embedded", "of the user"])
def test_a_command_that_reads_makes_no_catalog(config: dict[str, str], command: str, tmp_path: Path) -> None:
    write_project(tmp_path, {**PROJECT, "here/readme": "", **{k: v.replace("{root}", str(tmp_path)) for k, v in config.items()}})
    before = files(tmp_path)
    done = CliRunner().invoke(group, [*command.split(), "--project-dir", str(tmp_path)], standalone_mode=False)
    assert "internal" not in done.stderr
    assert not done.exception
    assert files(tmp_path).keys() - before.keys() <= {"schemas.lock"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_reads_leaves_the_catalog_as_it_is(command: str, tmp_path: Path) -> None:
    write_project(tmp_path, {**PROJECT, **{k: v.replace("{root}", str(tmp_path)) for k, v in OWN.items()}})
    (tmp_path / "here").mkdir()
    database(tmp_path / "here/catalog.db")
    before = files(tmp_path / "here")
    CliRunner().invoke(group, [*command.split(), "--project-dir", str(tmp_path)], standalone_mode=False)
    assert files(tmp_path / "here") == before


def test_a_reader_without_the_right_to_write(tmp_path: Path) -> None:
    """In a process of its own, which gives up its rights where it has them: root may write everywhere."""
    home = tmp_path / "home"
    home.mkdir()
    database(home / "catalog.db")
    (home / "catalog.db").chmod(0o444)
    home.chmod(0o555)
    for above in (*reversed(tmp_path.parents[:-2]), tmp_path):
        above.chmod(above.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            status = 0 if namespaces(SqliteDatabase(home / "catalog.db", create=False)) == ["raw"] else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    home.chmod(0o755)


def test_what_another_connection_has_not_yet_taken_into_the_file_is_seen(tmp_path: Path) -> None:
    of = database(tmp_path / "catalog.db")
    other = sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)
    other.execute("INSERT INTO iceberg_namespace_properties VALUES ('lake', 'mart', 'exists', 'true')")
    assert (tmp_path / "catalog.db-wal").stat().st_size > 0
    assert sorted(namespaces(of)) == ["mart", "raw"]
    other.close()
    assert sorted(namespaces(of)) == ["mart", "raw"]


def test_readers_beside_a_writer_see_every_commit_whole(tmp_path: Path) -> None:
    """Each commit adds two rows: an odd number would be half of one."""
    of = database(tmp_path / "catalog.db")
    sql = "INSERT INTO iceberg_namespace_properties VALUES (:c, :n, 'exists', 'true')"
    done = threading.Event()

    def write() -> None:
        for number in range(40):
            assert of.transact([Statement(sql, {"c": "lake", "n": f"{side}{number}"}) for side in "ab"])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    counts = [1]
    while not done.is_set():
        counts.append(len(namespaces(of)))
    writer.join()
    counts.append(len(namespaces(of)))
    assert counts == sorted(counts)
    assert all(count % 2 == 1 for count in counts)
    assert counts[-1] == 81


def test_a_catalog_of_the_older_schema_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    db = sqlite3.connect(path)
    db.execute(
        "CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT, metadata_location TEXT, "
        "previous_metadata_location TEXT, PRIMARY KEY (catalog_name, table_namespace, table_name))"
    )
    db.execute("INSERT INTO iceberg_tables VALUES ('lake', 'raw', 'orders', '/m.json', NULL)")
    db.commit()
    db.close()
    before = path.read_bytes()
    of = SqliteDatabase(path, create=False)
    assert of.query("SELECT table_name, iceberg_type FROM iceberg_tables", {}) == [("orders", "TABLE")]
    assert of.query("SELECT table_name FROM iceberg_tables WHERE iceberg_type = 'VIEW'", {}) == []
    assert of.query("SELECT namespace FROM iceberg_namespace_properties", {}) == ()
    assert path.read_bytes() == before


def read_only(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(CatalogError) as caught:
        SqliteDatabase(tmp_path / ".mvbuild" / "catalog.db", create=True).prepare()
    assert str(caught.value) == f"The catalog file catalog.db cannot be created in {tmp_path}/.mvbuild: Read-only file system."


def test_a_folder_in_which_no_file_can_be_made(tmp_path: Path) -> None:
    # The superuser may write anywhere, so the place of the file is taken by a link to nowhere.
    (tmp_path / "catalog.db").symlink_to(tmp_path / "nowhere" / "catalog.db")
    with pytest.raises(CatalogError) as caught:
        SqliteDatabase(tmp_path / "catalog.db", create=True).prepare()
    assert str(caught.value) == f"The catalog file catalog.db cannot be created in {tmp_path}: unable to open database file."
