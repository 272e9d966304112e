"""names <-> metadata locations: the rows of a JDBC catalog, which Spark, PyIceberg and others share (schema V1)."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, Protocol

from mvbuild.adapters.iceberg.folders import folder
from mvbuild.adapters.iceberg.jdbc_tables import Statement
from mvbuild.adapters.iceberg.scratch import FOLDER as SCRATCH
from mvbuild.dataclass import dataclass
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.adapters.iceberg.sql import Database
    from mvbuild.names import TableIdentifier

Kind = Literal["TABLE", "VIEW", "MV"]
"""In a catalog without views, an MV is an entry of its own; otherwise the entry of an MV is its view."""
Key = tuple[str, str]
"""The namespace, with dots between its levels, and the name."""

_FEW = 900
"""Up to this many names are listed in a query. Older builds of SQLite allow 999 parameters; and reading all names of a namespace is faster
than a second list."""
_FIND_ALL = (
    "SELECT table_namespace, table_name, metadata_location, iceberg_type FROM iceberg_tables "
    "WHERE catalog_name = :c AND table_namespace = :n"
)
_FIND = f"{_FIND_ALL} AND table_name IN ({{names}})"
_NUMBER = re.compile(r"(?:/v(\d+)\.|/(\d+)-)[^/]*\Z")
_VIEWS = "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = :c AND iceberg_type = 'VIEW'"
_NAMES = "SELECT table_name FROM iceberg_tables WHERE catalog_name = :c AND table_namespace = :n ORDER BY table_name"
_IN_USE = "SELECT 1 FROM iceberg_tables WHERE catalog_name = :c AND metadata_location LIKE :below ESCAPE '!'"
_INSERT = (
    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) "
    "VALUES (:c, :n, :t, :new, :kind)"
)
_WHERE = "WHERE catalog_name = :c AND table_namespace = :n AND table_name = :t AND metadata_location = :old"
_UPDATE = f"UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old {_WHERE}"
_DELETE = f"DELETE FROM iceberg_tables {_WHERE}"
_HAS_NAMESPACE = (
    "SELECT 1 FROM iceberg_tables WHERE catalog_name = :c AND (table_namespace = :n OR table_namespace LIKE :below ESCAPE '!') "
    "UNION SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name = :c AND (namespace = :n OR namespace LIKE :below ESCAPE '!')"
)
_OWN_NAMESPACE = "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name = :c AND namespace = :n"
_ADD_NAMESPACE = (
    "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) VALUES (:c, :n, 'exists', 'true')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """A pointer to move, to create (`old` is None), or to remove (`new` is None)."""

    key: Key
    kind: Kind
    old: str | None
    new: str | None
    written: str | None = None
    """Where the file for `new` was written, see `Pointers.draft`."""
    raw: Raw | None = None
    """The content of the file for `new`: some catalogs show columns and properties beside the pointer."""
    base: Raw | None = None
    """The content of the file for `old`, if the entry continues as one of the same kind."""


def numbered(folder: str, old: str | None, first: int, suffix: str) -> str:
    """The location of a new metadata file, with the number after that of `old`."""
    return f"{folder}/{next_number(old, first):05d}-{uuid.uuid4()}{suffix}"


def next_number(old: str | None, first: int) -> int:
    match = _NUMBER.search(old) if old else None
    return int(match[1] or match[2]) + 1 if match else first


def levels(namespace: str) -> Iterator[str]:
    """The parents of a namespace, and the namespace itself."""
    parts = namespace.split(".")
    return (".".join(parts[:level]) for level in range(1, len(parts) + 1))


class Pointers(Protocol):
    """What a catalog of metadata files must provide; everything else follows from the files."""

    has_views: bool
    """If False, an MV's pointer leads directly to its metadata file."""
    atomic: bool
    """`swap` moves any number of pointers in one step. If False, it gets those of one edit: one, or the two of a rename or conversion."""
    spark_reads_views: bool
    """Whether Spark finds the views by name."""

    def find(self, keys: Iterable[Key]) -> dict[Key, tuple[str, Kind]]:
        """Metadata location and kind of the names that exist."""

    def foreign(self, keys: Iterable[Key]) -> dict[Key, str]:
        """Names that `find` does not know and that are not Iceberg's, with what they are."""

    def names(self, namespace: str) -> list[Key]:
        """The tables and views of a namespace, as the catalog spells them."""

    def views(self) -> list[Key]:
        """The views (and MVs) of all namespaces."""

    def location(self, identifier: TableIdentifier) -> str:
        """The location for a new table or view."""

    def scratch_location(self, scratch: TableIdentifier) -> str:
        """The location for a scratch table."""

    def borrowed(self, location: str) -> list[str]:
        """Other directories with files of the table at a location."""

    def note_base(self, key: Key, location: str) -> None:
        """A scratch table at `key` is about to be made from the table at `location`; see `borrowed`."""

    def hints(self, key: Key) -> list[str]:
        """Files of an entry that only help to find its metadata file."""

    def place(self, key: Key, kind: Kind, folder: str, old: str | None, suffix: str) -> str:
        """The location for the next metadata file of an entry."""

    def draft(self, location: str) -> str:
        """Where to write the file for `location` before `swap`. Most catalogs ignore files without a pointer."""

    def swap(self, swaps: Sequence[Swap]) -> bool:
        """Move pointers. Returns False, and changes nothing, if one is not as expected."""

    def delete(self, key: Key, location: str) -> bool:
        """Delete a pointer. Returns False if it has changed or is gone."""

    def has_namespace(self, namespace: str) -> bool:
        """Also True if only something below it exists."""

    def add_namespace(self, namespace: str) -> None:
        """Create a namespace and its parents, as far as they do not exist."""


class FreelyPlaced:
    """What all catalogs have in common whose pointers can lead to files anywhere."""

    spark_reads_views = True

    def foreign(self, keys: Iterable[Key]) -> dict[Key, str]:  # noqa: ARG002
        return {}

    def borrowed(self, location: str) -> list[str]:  # noqa: ARG002
        return []

    def note_base(self, key: Key, location: str) -> None:
        """A scratch table shares the location of its base."""

    def hints(self, key: Key) -> list[str]:  # noqa: ARG002
        return []

    def place(self, key: Key, kind: Kind, folder: str, old: str | None, suffix: str) -> str:  # noqa: ARG002
        return numbered(folder, old, 0 if kind == "TABLE" else 1, suffix)

    def draft(self, location: str) -> str:
        return location


class PlacedInWarehouse(FreelyPlaced, ABC):
    """A catalog with one directory for all its tables."""

    def __init__(self, warehouse: str) -> None:
        self._warehouse = warehouse.rstrip("/")

    @abstractmethod
    def in_use(self, location: str) -> bool:
        """Whether an entry has its metadata below a location: a renamed entry keeps the directory of its old name."""

    def location(self, identifier: TableIdentifier) -> str:
        found = "/".join((self._root(identifier), *map(folder, identifier.namespace), folder(identifier.name)))
        # If two tables shared a directory, orphan files could not be recognized.
        return f"{found}-{uuid.uuid4().hex[:8]}" if self.in_use(found) else found

    def scratch_location(self, scratch: TableIdentifier) -> str:
        return f"{self._root(scratch)}/{SCRATCH}/{folder(scratch.name)}"

    def _root(self, identifier: TableIdentifier) -> str:
        if not self._warehouse:
            raise CatalogError(f"Catalog '{identifier.catalog}' does not say where to create tables and views: set 'warehouse'.")
        return self._warehouse


class SqlPointers(PlacedInWarehouse):
    """The rows of one catalog in a database with other writers."""

    has_views = True
    atomic = True

    def __init__(self, catalog: str, database: Database, warehouse: str = "") -> None:
        super().__init__(warehouse)
        self._catalog = catalog
        self._database = database

    def find(self, keys: Iterable[Key]) -> dict[Key, tuple[str, Kind]]:
        wanted: dict[str, set[str]] = {}
        for namespace, name in keys:
            wanted.setdefault(namespace, set()).add(name)
        found: dict[Key, tuple[str, Kind]] = {}
        for namespace, names in wanted.items():
            params = {f"t{number}": name for number, name in enumerate(sorted(names))} if len(names) <= _FEW else {}
            sql = _FIND.format(names=", ".join(f":{one}" for one in params)) if params else _FIND_ALL
            for at_namespace, name, location, kind in self._database.query(sql, {"c": self._catalog, "n": namespace, **params}):
                # Some databases compare case-insensitively; names are exact here.
                if location and name in names and at_namespace == namespace:
                    found[namespace, name] = (location, "VIEW" if kind == "VIEW" else "TABLE")
        return found

    def names(self, namespace: str) -> list[Key]:
        return [(namespace, row[0]) for row in self._database.query(_NAMES, {"c": self._catalog, "n": namespace})]

    def views(self) -> list[Key]:
        return [(row[0], row[1]) for row in self._database.query(_VIEWS, {"c": self._catalog})]

    def in_use(self, location: str) -> bool:
        # Engines write the beginning of a local location in different ways.
        path = location.removeprefix("file:").lstrip("/")
        return bool(self._database.query(_IN_USE, {"c": self._catalog, "below": f"%/{_escaped(path)}/metadata/%"}))

    def swap(self, swaps: Sequence[Swap]) -> bool:
        # One order for all processes, so that two that need the same rows cannot deadlock.
        ordered = sorted(swaps, key=lambda swap: swap.key)
        return self._database.transact([self._statement(swap) for swap in ordered])

    def delete(self, key: Key, location: str) -> bool:
        return self._database.transact([Statement(_DELETE, self._params(key, old=location))])

    def has_namespace(self, namespace: str) -> bool:
        below = f"{_escaped(namespace)}.%"
        return bool(self._database.query(_HAS_NAMESPACE, {"c": self._catalog, "n": namespace, "below": below}))

    def add_namespace(self, namespace: str) -> None:
        for level in levels(namespace):
            params = {"c": self._catalog, "n": level}
            if not self._database.query(_OWN_NAMESPACE, params):
                self._database.transact([Statement(_ADD_NAMESPACE, params)])

    def close(self) -> None:
        self._database.close()

    def _statement(self, swap: Swap) -> Statement:
        if swap.new is None:
            return Statement(_DELETE, self._params(swap.key, old=swap.old or ""))
        if swap.old is None:
            return Statement(_INSERT, self._params(swap.key, new=swap.new, kind=swap.kind))
        return Statement(_UPDATE, self._params(swap.key, new=swap.new, old=swap.old))

    def _params(self, key: Key, **more: str) -> dict[str, str]:
        return {"c": self._catalog, "n": key[0], "t": key[1], **more}


def _escaped(text: str) -> str:
    """Escape for LIKE with the escape character `!`."""
    return text.replace("!", "!!").replace("_", "!_").replace("%", "!%")
