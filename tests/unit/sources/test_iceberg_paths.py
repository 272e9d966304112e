"""Directories of Iceberg tables -> their states, by the newest metadata file; and tables of another metastore."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from mvbuild.adapters.sources import OpenedSources
from mvbuild.names import TableIdentifier
from mvbuild.ports.sources import SourceError, SourceLocation
from mvbuild.ports.states import TableState

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def location(path: Path | str) -> SourceLocation:
    return SourceLocation(identifier=TableIdentifier("", (), str(path)), type="iceberg-filesystem")


def loaded(path: Path) -> TableState:
    (state,) = OpenedSources({}).load([location(path)]).values()
    return state


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    made = load_catalog("c", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    assert isinstance(made, SqlCatalog)
    made.create_namespace("raw")
    made.create_table("raw.orders", ROWS.schema, location=f"file://{tmp_path}/my orders")
    return made


@pytest.fixture
def path(catalog: SqlCatalog, tmp_path: Path) -> Path:
    catalog.load_table("raw.orders").append(ROWS)
    return tmp_path / "my orders"


def test_the_newest_metadata_file(catalog: SqlCatalog, path: Path) -> None:
    for _ in range(2):
        table = catalog.load_table("raw.orders")
        state = loaded(path)
        assert (state.type, state.uuid) == ("iceberg-filesystem", str(table.metadata.table_uuid))
        assert state.current_snapshot_id == table.metadata.current_snapshot_id
        assert Path(state.metadata_location) == Path(table.metadata_location.removeprefix("file://"))
        table.append(ROWS)


def test_numbers_are_no_texts(catalog: SqlCatalog, path: Path) -> None:
    metadata = catalog.load_table("raw.orders").metadata_location.removeprefix("file://")
    newest = path / "metadata" / "100000-aaaa.metadata.json"
    newest.write_bytes(Path(metadata).read_bytes())
    assert loaded(path).metadata_location == str(newest)


def test_of_two_files_of_one_number_the_later(catalog: SqlCatalog, path: Path) -> None:
    current = Path(catalog.load_table("raw.orders").metadata_location.removeprefix("file://"))
    catalog.load_table("raw.orders").append(ROWS)
    later = Path(catalog.load_table("raw.orders").metadata_location.removeprefix("file://"))
    first, second = (path / "metadata" / f"00009-{name}.metadata.json" for name in ("b", "a"))
    first.write_bytes(current.read_bytes())
    second.write_bytes(later.read_bytes())
    assert loaded(path).metadata_location == str(second)


def hadoop(path: Path, hint: str | None, *names: str) -> None:
    """The files of the table under the names of a Hadoop table."""
    folder = path / "metadata"
    contents = [f.read_bytes() for f in sorted(folder.glob("*.metadata.json"))]
    for file in folder.glob("*.metadata.json"):
        file.unlink()
    for name, content in zip(names, [*contents, *contents[-1:] * len(names)], strict=False):
        (folder / name).write_bytes(gzip.compress(content) if ".gz" in name else content)
    if hint is not None:
        (folder / "version-hint.text").write_text(hint)


@pytest.mark.parametrize(
    ("hint", "names", "expected"),
    [
        ("2\n", ("v1.metadata.json", "v2.metadata.json"), "v2.metadata.json"),
        ("1", ("v1.metadata.json", "v2.metadata.json", "v3.metadata.json"), "v3.metadata.json"),
        ("1", ("v1.metadata.json", "v3.metadata.json"), "v1.metadata.json"),
        ("2", ("v1.gz.metadata.json", "v2.gz.metadata.json"), "v2.gz.metadata.json"),
        ("1", ("v1.metadata.json.gz",), "v1.metadata.json.gz"),
        (None, ("v9.metadata.json", "v10.metadata.json"), "v10.metadata.json"),
        ("00001-b", ("00001-b.metadata.json", "00002-c.metadata.json"), "00001-b.metadata.json"),
        ("00001-b.metadata.json", ("00001-b.metadata.json", "00002-c.metadata.json"), "00001-b.metadata.json"),
        ("7", ("v1.metadata.json", "v2.metadata.json"), "v2.metadata.json"),
    ],
)
def test_the_hint(path: Path, hint: str | None, names: tuple[str, ...], expected: str) -> None:
    hadoop(path, hint, *names)
    assert Path(loaded(path).metadata_location).name == expected


def test_no_table(tmp_path: Path) -> None:
    (tmp_path / "empty/metadata").mkdir(parents=True)
    assert OpenedSources({}).load([location(tmp_path / "gone"), location(tmp_path / "empty"), location(tmp_path)]) == {}


def test_a_broken_file(path: Path) -> None:
    (path / "metadata" / "00099-x.metadata.json").write_text("{")
    with pytest.raises(SourceError, match="my orders cannot be read: "):
        loaded(path)
    (path / "metadata" / "00099-x.metadata.json").write_text("{}")
    with pytest.raises(SourceError, match="incomplete"):
        loaded(path)


def elsewhere(name: str, uri: str) -> SourceLocation:
    return SourceLocation(
        identifier=TableIdentifier("crm", ("raw",), name),
        type="iceberg-metastore",
        options={"type": "sql", "uri": uri, "password": "s3cret"},
    )


def test_another_metastore(catalog: SqlCatalog, tmp_path: Path) -> None:
    sources = OpenedSources({})
    uri = f"sqlite:///{tmp_path}/c.db"
    wanted = [elsewhere("orders", uri), elsewhere("gone", uri)]
    options = {**wanted[0].options, "warehouse": f"file://{tmp_path}/warehouse"}
    # PyIceberg's SQL catalog keeps the name of the catalog in each row.
    wanted = [
        SourceLocation(identifier=TableIdentifier("c", w.identifier.namespace, w.identifier.name), type=w.type, options=options)
        for w in wanted
    ]
    found = sources.load(wanted)
    assert [str(i) for i in found] == ["c.raw.orders"]
    assert found[wanted[0].identifier].type == "iceberg-metastore"
    catalog.load_table("raw.orders").append(ROWS)
    assert sources.load(wanted)[wanted[0].identifier].current_snapshot_id == catalog.load_table("raw.orders").metadata.current_snapshot_id


def test_a_metastore_that_cannot_be_reached(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        OpenedSources({}).load([elsewhere("orders", f"sqlite:///{tmp_path}/nowhere/s3cret.db")])
    assert "s3cret" not in str(caught.value)
    assert caught.value.identifier.name == "orders"
    assert not (tmp_path / "nowhere").exists()
