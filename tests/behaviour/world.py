"""adapter -> World: a catalog, and a foreign engine that appends to its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mvbuild.adapters import open_catalog
from mvbuild.adapters.iceberg.data import arrow_table
from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog, TableCommit, TableLayout, TableState, ViewCommit

if TYPE_CHECKING:
    from pathlib import Path

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class World:
    catalog: Catalog
    write: Callable[[TableIdentifier, Columns, str], TableState]
    """(table, rows, branch): append as another engine would."""
    views: bool = True
    atomic: bool = True
    close: Callable[[], None] = lambda: None
    pyiceberg: Callable[[], Any] | None = None


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
    return World(catalog=catalog, write=lambda table, columns, branch: catalog.append_snapshot(table, columns, branch=branch))


def remote(root: Path) -> World:
    """Any catalog that PyIceberg loads goes this way; its own SQL catalog needs no server."""
    from mvbuild.adapters.iceberg.remote import RemoteCatalog

    properties = embedded_properties(root) | {"schema_version": "v1"}
    (root / ".mvbuild").mkdir()
    catalog = RemoteCatalog("lake", properties)
    return World(catalog=catalog, write=_pyiceberg_writer(catalog, properties), close=catalog.close, views=False, atomic=False)


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
