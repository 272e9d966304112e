"""adapter -> World: a catalog, and a foreign engine that appends to its tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mvbuild.adapters import open_catalog
from mvbuild.adapters.iceberg import tables
from mvbuild.adapters.iceberg.data import arrow_table
from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.commits import TableCommit, TableLayout, ViewCommit
from mvbuild.ports.states import TableState
from servers.rest import RestServer

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class World:
    catalog: Catalog
    write: Callable[[TableIdentifier, Columns, str], TableState]
    """(table, rows, branch): append as another engine would."""
    whole: bool = False
    """What is written is the whole content of the table, not added to it."""
    views: bool = True
    atomic: bool = True
    refused: str = ""
    """Characters that names cannot have."""
    close: Callable[[], None] = lambda: None
    pyiceberg: Callable[[], Any] | None = None
    swaps: bool = True
    """mvbuild writes the metadata files and swaps the pointers; otherwise the catalog does."""


def embedded(root: Path) -> World:
    properties = embedded_properties(root)
    catalog: Any = open_catalog("lake", properties, embedded=True)
    return World(
        catalog=catalog, write=_pyiceberg_writer(catalog, properties), close=catalog.close, pyiceberg=lambda: plain_pyiceberg(properties)
    )


def embedded_properties(root: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{root}/.mvbuild/catalog.db", "warehouse": f"file://{root}/.mvbuild/warehouse"}


def memory(_: Path) -> World:
    catalog = MemoryCatalog("lake")
    return World(catalog=catalog, write=lambda table, columns, branch: catalog.append_snapshot(table, columns, branch=branch), whole=True)


def remote(root: Path) -> World:
    """Any catalog that PyIceberg loads goes this way; its own SQL catalog needs no server."""
    from mvbuild.adapters.iceberg.catalog import MetadataCatalog
    from mvbuild.adapters.iceberg.remote_publisher import RemotePublisher

    properties = embedded_properties(root) | {"schema_version": "v1"}
    (root / ".mvbuild").mkdir()
    catalog = MetadataCatalog(RemotePublisher("lake", properties))
    return World(catalog=catalog, write=_pyiceberg_writer(catalog, properties), close=catalog.close, views=False, atomic=False, swaps=False)


def rest(server: RestServer) -> World:
    """One server for the whole test run: whatever another test left there goes first."""
    server.clear()
    catalog: Any = open_catalog("lake", server.properties, embedded=False)
    writer = _pyiceberg_writer(catalog, server.properties)
    # Jetty takes two of them for tricks in an address, and PyIceberg the others in the locations that the server makes of names.
    refused = "/%?#"
    opened = partial(plain_pyiceberg, server.properties)
    return World(catalog=catalog, write=writer, refused=refused, close=catalog.close, pyiceberg=opened, swaps=False)


def served(properties: Mapping[str, str], **traits: Any) -> World:
    """A catalog of metadata files whose pointers a server keeps."""
    catalog: Any = open_catalog("lake", properties, embedded=False)
    writer = _pyiceberg_writer(catalog, properties)
    return World(catalog=catalog, write=writer, close=catalog.close, pyiceberg=lambda: plain_pyiceberg(properties), **traits)


def warehouse(root: Path) -> World:
    """A file-system warehouse as Spark's HadoopCatalog keeps it. PyIceberg has no such catalog: its writer commits as Spark does."""
    catalog: Any = open_catalog("lake", warehouse_properties(root), embedded=False)
    return World(catalog=catalog, write=lambda table, columns, branch: _append(catalog, table, columns, branch), views=False, atomic=False)


def warehouse_properties(root: Path) -> dict[str, str]:
    return {"type": "hadoop", "warehouse": f"file://{root}/warehouse"}


def _append(catalog: Any, identifier: TableIdentifier, columns: Columns, branch: str) -> TableState:
    from pyiceberg.table import StaticTable, Transaction
    from pyiceberg.table.update import AddSnapshotUpdate

    found = catalog.load([identifier])[identifier]
    table = StaticTable.from_metadata(found.metadata_location)
    transaction = Transaction(table, autocommit=False)
    transaction.append(arrow_table(table.schema(), columns), branch=branch)
    (snapshot,) = [u.snapshot for u in transaction._updates if isinstance(u, AddSnapshotUpdate)]
    added = json.loads(snapshot.model_dump_json(by_alias=True, exclude_none=True))
    path = Path(found.metadata_location.removeprefix("file:"))
    raw = json.loads(path.read_text())
    if branch == "main":
        raw = tables.with_main(tables.with_snapshots(raw, [added], None), added["snapshot-id"], identifier)
    else:
        raw = tables.with_branch(raw, branch, added)
    number = int(path.name[1:].partition(".")[0]) + 1
    raw["metadata-log"] = [*raw["metadata-log"], {"timestamp-ms": raw["last-updated-ms"], "metadata-file": found.metadata_location}]
    path.with_name(f"v{number}.metadata.json").write_text(json.dumps(raw))
    path.with_name("version-hint.text").write_text(str(number))
    written = catalog.load([identifier])[identifier]
    assert isinstance(written, TableState)
    return written


def plain_pyiceberg(properties: Mapping[str, str]) -> Any:
    from pyiceberg.catalog import load_catalog

    return load_catalog("lake", **properties)


def _pyiceberg_writer(catalog: Catalog, properties: Mapping[str, str]) -> Callable[[TableIdentifier, Columns, str], TableState]:
    def write(identifier: TableIdentifier, columns: Columns, branch: str) -> TableState:
        other = plain_pyiceberg(properties)
        table = other.load_table((*identifier.namespace, identifier.name))
        table.append(arrow_table(table.schema(), columns), branch=branch)
        other.close()
        found = catalog.load([identifier])[identifier]
        assert isinstance(found, TableState)
        return found

    return write


def name(text: str) -> TableIdentifier:
    return TableIdentifier.parse(text, "lake")


def schema(**columns: Any) -> dict[str, Any]:
    fields = [{"id": at, "name": of, "required": False, "type": type_} for at, (of, type_) in enumerate(columns.items(), 1)]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def layout(**columns: Any) -> TableLayout:
    return TableLayout(schema=schema(**columns))


def table_commit(table: TableState, **changes: Any) -> TableCommit:
    return TableCommit(identifier=table.identifier, expect_uuid=table.uuid, expect_snapshot_id=table.current_snapshot_id, **changes)


def view_commit(text: str, sql: str = "SELECT 1 AS a", *, expect: str | None = None, version: int = 1, **changes: Any) -> ViewCommit:
    given = {"schema": schema(a="int"), "representations": {"spark": sql}, "default_namespace": ("mart",), "properties": {}, **changes}
    return ViewCommit(identifier=name(text), expect_metadata_location=expect, version_id=version, **given)
