"""names <-> metadata locations: the tables of an AWS Glue data catalog, which Spark, PyIceberg, Athena, Trino and others share.

A pointer is moved as Iceberg's own GlueCatalog does it: Glue accepts the new entry only if the version is the one that was read. Glue can
neither rename nor delete in that way. To remove an entry, mvbuild first turns it into one that is not an Iceberg table, over the version
that was read, and then deletes it.

Iceberg's GlueCatalog has no views. The views that mvbuild stores here point to the same metadata files as everywhere; Spark does not see
them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.glue_entries import changed, pointer, retired, same
from mvbuild.adapters.iceberg.hive_names import GLUE, GLUE_UNCHECKED
from mvbuild.adapters.iceberg.metastore_locations import PlacedByDatabase
from mvbuild.adapters.iceberg.pointers import Swap
from mvbuild.adapters.iceberg.several import UndoableStep, in_turn
from mvbuild.adapters.iceberg.trino_views import view_of_trino
from mvbuild.ports.catalog import AlreadyExists, CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mvbuild.adapters.iceberg.pointers import Key, Kind

_REQUESTS = 8
_ONE_BY_ONE = 50
"""Up to this many tables of a database are requested individually, in parallel; for more, the whole database is listed, a hundred at a
time."""


class GluePointers(PlacedByDatabase):
    """The Iceberg tables and views of one Glue data catalog."""

    has_views = True
    atomic = False
    spark_reads_views = False

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self._name = name
        self._properties = properties
        self._warehouse = properties.get("warehouse", "").rstrip("/")
        self._skip_archive = properties.get("glue.skip-archive", "true").lower() == "true"
        self.names_of = GLUE_UNCHECKED if properties.get("glue.skip-name-validation", "").lower() == "true" else GLUE

    def find(self, keys: Iterable[Key]) -> dict[Key, tuple[str, Kind]]:
        wanted = [key for key in dict.fromkeys(keys) if self.names_of.can_be(key)]
        single: list[Key] = []
        found: dict[Key, tuple[str, Kind]] = {}
        for namespace, group in groupby(sorted(wanted), key=lambda key: key[0]):
            of_database = list(group)
            if len(of_database) > _ONE_BY_ONE:
                found |= self._listed(namespace)
            else:
                single += of_database
        found |= {key: entry for key, table in zip(single, self._each(self._table, single), strict=True) if (entry := pointer(table))}
        return {key: found[key] for key in wanted if key in found}

    def foreign(self, keys: Iterable[Key]) -> dict[Key, str]:
        wanted = [key for key in dict.fromkeys(keys) if self.names_of.can_be(key)]
        tables = zip(wanted, self._each(self._table, wanted), strict=True)
        found = {k: view_of_trino(t.get("Parameters") or {}, t.get("ViewOriginalText")) for k, t in tables if t and not pointer(t)}
        return {key: what for key, what in found.items() if what}

    def names(self, namespace: str) -> list[Key]:
        lower = namespace.lower()
        return sorted(self._listed(lower)) if self.names_of.can_be((lower, "")) else []

    def views(self) -> list[Key]:
        databases = [one["Name"] for page in self._glue.get_paginator("get_databases").paginate() for one in page["DatabaseList"]]
        return [key for found in self._each(self._listed, databases) for key, (_, kind) in found.items() if kind == "VIEW"]

    def swap(self, swaps: Sequence[Swap]) -> bool:
        for swap in swaps:
            self.names_of.require(swap.key)
        found = {swap.key: self._table(swap.key) for swap in swaps}
        if any((pointer(found[swap.key]) or (None,))[0] != swap.old for swap in swaps):
            return False
        for swap in swaps:
            if swap.old is None and found[swap.key] is not None:
                raise AlreadyExists(
                    f"{'.'.join(swap.key)} already exists in Glue, and is not an Iceberg table: delete it there, or choose another name."
                )
        renamed = next((found[swap.key] for swap in swaps if swap.new is None and len(swaps) > 1), None)
        return in_turn([self._step(swap, found[swap.key] or {}, renamed or {}) for swap in swaps])

    def delete(self, key: Key, location: str) -> bool:
        return self.swap([Swap(key=key, kind="TABLE", old=location, new=None)])

    def has_namespace(self, namespace: str) -> bool:
        self.names_of.require((namespace, ""))
        return self._database(namespace) is not None

    def add_namespace(self, namespace: str) -> None:
        if not self.has_namespace(namespace):
            with suppress(self._glue.exceptions.AlreadyExistsException):
                self._glue.create_database(DatabaseInput={"Name": namespace})

    def base(self, namespace: str) -> str:
        """The location for new tables of a namespace."""
        found = (self._database(namespace) or {}).get("LocationUri")
        if found:
            return str(found).rstrip("/")
        return f"{self._warehouse}/{namespace}.db" if self._warehouse else ""

    def _step(self, swap: Swap, table: Mapping[str, Any], renamed: Mapping[str, Any]) -> UndoableStep:
        namespace, name = swap.key
        if swap.new is None:
            return UndoableStep(order=2, do=lambda: self._removed(namespace, table))
        if swap.old is None:
            # A renamed entry keeps what other writers added to it.
            base = renamed if (pointer(renamed) or ("", ""))[1] == swap.kind else {}
            made = changed(base, swap)
            return UndoableStep(order=0, do=lambda: self._created(namespace, made), undo=lambda: self._deleted(namespace, name))
        new = changed(table, swap)
        back = same(table, name)
        return UndoableStep(
            order=1,
            do=lambda: self._updated(namespace, new, table["VersionId"]),
            undo=lambda: self._restored(swap, back),
        )

    def _created(self, namespace: str, table: Mapping[str, Any]) -> bool:
        try:
            self._glue.create_table(DatabaseName=namespace, TableInput=table)
        except self._glue.exceptions.AlreadyExistsException:
            return self._is_there(namespace, table)
        return True

    def _updated(self, namespace: str, table: Mapping[str, Any], version: str) -> bool:
        lost = (self._glue.exceptions.ConcurrentModificationException, self._glue.exceptions.EntityNotFoundException)
        try:
            self._glue.update_table(DatabaseName=namespace, TableInput=table, VersionId=version, SkipArchive=self._skip_archive)
        except lost:
            return self._is_there(namespace, table)
        return True

    def _is_there(self, namespace: str, table: Mapping[str, Any]) -> bool:
        """Whether this process lost the race to itself: boto repeats a request without an answer, although the first one was executed."""
        wanted = pointer(table)
        return wanted is not None and pointer(self._table((namespace, table["Name"]))) == wanted

    def _removed(self, namespace: str, table: Mapping[str, Any]) -> bool:
        if not self._updated(namespace, retired(table), table["VersionId"]):
            return False
        self._deleted(namespace, table["Name"])
        return True

    def _deleted(self, namespace: str, name: str) -> None:
        with suppress(self._glue.exceptions.EntityNotFoundException):
            self._glue.delete_table(DatabaseName=namespace, Name=name)

    def _restored(self, swap: Swap, back: Mapping[str, Any]) -> None:
        found = self._table(swap.key)
        if found is not None and (pointer(found) or ("", ""))[0] == swap.new:
            self._updated(swap.key[0], back, found["VersionId"])

    def _listed(self, namespace: str) -> dict[Key, tuple[str, Kind]]:
        try:
            pages = self._glue.get_paginator("get_tables").paginate(DatabaseName=namespace)
            tables = [table for page in pages for table in page["TableList"]]
        except self._glue.exceptions.EntityNotFoundException:
            return {}
        return {(namespace, table["Name"]): entry for table in tables if (entry := pointer(table))}

    def _table(self, key: Key) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = self._glue.get_table(DatabaseName=key[0], Name=key[1])["Table"]
        except self._glue.exceptions.EntityNotFoundException:
            return None
        return found

    def _database(self, name: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = self._glue.get_database(Name=name)["Database"]
        except self._glue.exceptions.EntityNotFoundException:
            return None
        return found

    @staticmethod
    def _each(ask: Any, wanted: Sequence[Any]) -> list[Any]:
        """Glue answers in tens of milliseconds, so many requests are sent in parallel."""
        if len(wanted) < 2:
            return [ask(one) for one in wanted]
        with ThreadPoolExecutor(_REQUESTS) as pool:
            return list(pool.map(ask, wanted))

    @cached_property
    def _glue(self) -> Any:
        """A boto3 client with PyIceberg's settings. Threads may share it."""
        try:
            from pyiceberg.catalog.glue import GlueCatalog
        except ModuleNotFoundError as error:
            raise CatalogError(f"Glue needs the Python package '{error.name}': pip install 'mvbuild[glue]'.") from None
        retries = self._properties.get("glue.max-retries", "")
        # PyIceberg passes the text on, and boto needs a number.
        numbers = {"glue.max-retries": int(retries)} if retries.isdecimal() else {}
        return GlueCatalog(self._name, **{**self._properties, **numbers}).glue
