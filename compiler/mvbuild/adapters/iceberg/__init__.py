"""catalog name and properties -> Catalog: REST catalogs through their server, most others through their metadata files.

SQL catalogs, file-system warehouses, Hive metastores and Glue differ only in where the pointers are. All other catalogs go through
PyIceberg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mvbuild.adapters.iceberg.pointers import Pointers
    from mvbuild.adapters.iceberg.sql import Database
    from mvbuild.ports.catalog import Catalog


def open_catalog(name: str, properties: Mapping[str, str], *, create: bool) -> Catalog:
    """Open a catalog without connecting to it. `create`: a SQLite file and its directories are created on first use."""
    settings = dict(properties)
    if not settings.keys() & {"type", "uri", "py-catalog-impl"}:
        settings = _from_configuration(name) | settings
    kind = settings["type"].lower() if "type" in settings else _kind_of(settings.get("uri", ""))
    if kind not in _TYPES:
        return _open_remote(name, settings)
    return _open_metadata_files(name, settings, _TYPES[kind](name, settings, create))


def prepare(properties: Mapping[str, str], *, create: bool) -> None:
    """Create the directory of a SQLite catalog: Spark opens its file, but creates no directory. All other catalogs exist already."""
    if not properties.get("uri", "").startswith("sqlite"):
        return
    from mvbuild.adapters.iceberg.sql import open_database
    from mvbuild.adapters.iceberg.sqlite import SqliteDatabase

    database = open_database(properties["uri"], create=create)
    if isinstance(database, SqliteDatabase):
        database.prepare()


def _kind_of(uri: str) -> str:
    """The type that the address of a catalog without one implies."""
    return next((kind for kind, schemes in _SCHEMES.items() if uri.startswith(schemes)), "")


def _open_metadata_files(name: str, properties: Mapping[str, str], pointers: Pointers) -> Catalog:
    from mvbuild.adapters.iceberg.catalog import MetadataCatalog
    from mvbuild.adapters.iceberg.data import IcebergData
    from mvbuild.adapters.iceberg.failures import Translator
    from mvbuild.adapters.iceberg.files import FileStore
    from mvbuild.adapters.iceberg.pointer_publisher import PointerPublisher

    files, translator = FileStore(properties), Translator(name, properties)
    return MetadataCatalog(PointerPublisher(name=name, pointers=pointers, files=files, data=IcebergData(files.io), translator=translator))


def _open_remote(name: str, properties: Mapping[str, str]) -> Catalog:
    """REST, and any catalog that PyIceberg has an implementation of."""
    _require_known_type(name, properties)
    from mvbuild.adapters.iceberg.catalog import MetadataCatalog
    from mvbuild.adapters.iceberg.remote_publisher import RemotePublisher

    return MetadataCatalog(RemotePublisher(name, properties))


def _require_known_type(name: str, properties: Mapping[str, str]) -> None:
    """PyIceberg would not say which types there are."""
    if "type" not in properties or "py-catalog-impl" in properties:
        return
    from pyiceberg.catalog import CatalogType

    known = sorted({*_TYPES, *(one.value for one in CatalogType)})
    if properties["type"].lower() not in known:
        raise CatalogError(f"Catalog '{name}' has the unknown type '{properties['type']}'. Known types: {', '.join(known)}.")


def _sql(name: str, properties: Mapping[str, str], create: bool) -> Pointers:
    from mvbuild.adapters.iceberg.pointers import SqlPointers
    from mvbuild.adapters.iceberg.sql import open_database

    if "uri" not in properties:
        raise CatalogError(f"Catalog '{name}' has type sql but no 'uri'.")
    database = open_database(properties["uri"], create=create)
    if create and "warehouse" in properties:
        _require_own_place(database, properties["warehouse"])
    return SqlPointers(name, database, properties.get("warehouse", ""))


def _require_own_place(database: Database, warehouse: str) -> None:
    """The embedded catalog names files by their full paths. In a copy of the project these are those of the original, which would lose what
    a command drops in the copy."""
    import sqlite3
    from pathlib import Path

    from mvbuild.adapters.iceberg.files import local_path

    path = local_path(warehouse)
    assert path is not None
    try:
        rows = database.query("SELECT metadata_location FROM iceberg_tables LIMIT 20", {})
    except (sqlite3.Error, CatalogError):
        return  # the next reader reports it
    places = (str(local_path(row[0])).partition("/.mvbuild/warehouse/") for row in rows if row[0])
    # The same folder may have several names, by symbolic links.
    here = path.parent.resolve()
    made = next((place for place, found, _ in places if found and Path(place, ".mvbuild").resolve() != here), None)
    if made is not None:
        raise CatalogError(
            f"The embedded catalog in {path.parent} was created in {made}, and its tables refer to files there."
            " Move the project back, or remove .mvbuild here: the next run then builds everything again."
        )


def _warehouse(name: str, properties: Mapping[str, str], _: bool) -> Pointers:
    from mvbuild.adapters.iceberg.files import local_path
    from mvbuild.adapters.iceberg.hadoop import FilePointers

    warehouse = properties.get("warehouse", "")
    path = local_path(warehouse) if warehouse else None
    if path is None or not path.is_absolute():
        raise CatalogError(
            f"Catalog '{name}' has type hadoop and warehouse '{warehouse}'; it needs an absolute path of a local or mounted file"
            " system, as '/path' or 'file:///path'. Object stores cannot create a numbered file exclusively: use a catalog there."
        )
    return FilePointers(warehouse)


def _hive(name: str, properties: Mapping[str, str], _: bool) -> Pointers:
    from mvbuild.adapters.iceberg.hive import HivePointers

    if "uri" not in properties:
        raise CatalogError(f"Catalog '{name}' has type hive but no 'uri'; set it to the metastore's, like thrift://host:9083.")
    return HivePointers(properties)


def _glue(name: str, properties: Mapping[str, str], _: bool) -> Pointers:
    from mvbuild.adapters.iceberg.glue import GluePointers

    return GluePointers(name, properties)


def _from_configuration(name: str) -> dict[str, str]:
    """The properties in PyIceberg's own configuration file and environment, for a catalog that the project only names."""
    from pyiceberg.utils.config import Config

    found = Config().get_catalog_config(name) or {}
    return {key: str(value) for key, value in found.items()}


_TYPES: dict[str, Callable[[str, Mapping[str, str], bool], Pointers]] = {
    "sql": _sql,
    "hadoop": _warehouse,
    "hive": _hive,
    "glue": _glue,
}
"""Catalogs whose metadata files mvbuild reads and publishes itself -> their pointers. `spark/catalog_conf.py` configures Spark for the same
types."""
_SCHEMES = {"sql": ("sqlite", "postgresql", "mysql", "mariadb"), "hive": ("thrift:",)}
