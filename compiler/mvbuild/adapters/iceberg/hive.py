"""names <-> metadata locations, in a Hive metastore that Spark, PyIceberg, Trino and others share.

A pointer is moved as Iceberg's own HiveCatalog does it: under the metastore's lock for that name, the location is compared, then the table
is altered. If the table property `engine.hive.lock-enabled` is false, there is no lock, and the metastore itself compares.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.hive_connection import Connections
from mvbuild.adapters.iceberg.hive_entries import LOCATION, LOCK, changed, new_table, pointer
from mvbuild.adapters.iceberg.hive_locks import Locks
from mvbuild.adapters.iceberg.hive_names import HIVE
from mvbuild.adapters.iceberg.hive_types import ZONED
from mvbuild.adapters.iceberg.metastore_locations import PlacedByDatabase
from mvbuild.adapters.iceberg.pointers import Swap
from mvbuild.adapters.iceberg.several import UndoableStep, in_turn
from mvbuild.adapters.iceberg.trino_views import view_of_trino
from mvbuild.ports.catalog import AlreadyExists, CommitConflict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mvbuild.adapters.iceberg.pointers import Key, Kind

_CHUNK = 300
_WHOLE = "mvbuild_namespace"
"""The table name under which a namespace is locked."""
_AS_IT_IS = {"DO_NOT_UPDATE_STATS": "true"}
_PASSED = "The parameter value for key 'metadata_location' is"
"""The message of a metastore that compared the location and found a different one."""
_OTHER_COLUMNS = "types incompatible with the existing columns"


class HivePointers(PlacedByDatabase):
    """The Iceberg tables and views of one metastore."""

    has_views = True
    atomic = False
    names_of = HIVE

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._connections = Connections(properties)
        self._warehouse = properties.get("warehouse", "").rstrip("/")
        self._zoned = ZONED if properties.get("hive.hive2-compatible", "true").lower() == "false" else "timestamp"
        self._making = Lock()
        self._locks = properties.get(f"hadoop.iceberg.{LOCK}", "true").lower() == "true"

    def find(self, keys: Iterable[Key]) -> dict[Key, tuple[str, Kind]]:
        wanted = [key for key in dict.fromkeys(keys) if HIVE.can_be(key)]
        if not wanted:
            return {}
        with self._connections.open() as client:
            found = dict(self._entries(client, wanted))
        return {key: found[key] for key in wanted if key in found}

    def foreign(self, keys: Iterable[Key]) -> dict[Key, str]:
        wanted = [key for key in dict.fromkeys(keys) if HIVE.can_be(key)]
        with self._connections.open() as client:
            tables = list(self._objects(client, wanted)) if wanted else []
        found = {(t.dbName, t.tableName): view_of_trino(t.parameters or {}, t.viewOriginalText) for t in tables if not pointer(t)}
        return {key: what for key, what in found.items() if what}

    def names(self, namespace: str) -> list[Key]:
        lower = namespace.lower()
        if not HIVE.can_be((lower, "")):
            return []
        with self._connections.open() as client:
            keys = [(lower, name) for name in client.get_all_tables(lower)]
            return sorted(key for key, _ in self._entries(client, keys))

    def views(self) -> list[Key]:
        with self._connections.open() as client:
            keys = [(meta.dbName, meta.tableName) for meta in client.get_table_meta("*", "*", ["VIRTUAL_VIEW"])]
            return [key for key, (_, kind) in self._entries(client, keys) if kind == "VIEW"]

    def swap(self, swaps: Sequence[Swap]) -> bool:
        for swap in swaps:
            HIVE.require(swap.key)
        locked = [swap.key for swap in swaps if self._is_locked(swap)]
        with self._connections.open() as client, Locks(client, locked, another=self._connections.open) as locks:
            found = {swap.key: self._table(client, swap.key) for swap in swaps}
            if any(_location(found[swap.key]) != swap.old for swap in swaps):
                return False
            _require_free(swaps, found)
            locks.require()
            try:
                return in_turn(self._steps(client, swaps, found))
            except Exception as error:
                if _is_lost_race(error):
                    return False
                raise

    def delete(self, key: Key, location: str) -> bool:
        return self.swap([Swap(key=key, kind="TABLE", old=location, new=None)])

    def has_namespace(self, namespace: str) -> bool:
        from hive_metastore.ttypes import NoSuchObjectException

        HIVE.require((namespace, ""))
        with self._connections.open() as client, suppress(NoSuchObjectException):
            client.get_database(namespace)
            return True
        return False

    def add_namespace(self, namespace: str) -> None:
        from hive_metastore.ttypes import AlreadyExistsException, Database

        if self.has_namespace(namespace):
            return
        location = f"{self._warehouse}/{namespace}.db" if self._warehouse else None
        # One at a time: if two processes create a namespace, the metastore deletes the directory for the second one, with what the first
        # one wrote there.
        keys = [(namespace, _WHOLE)] if self._locks else []
        with self._making, self._connections.open() as client, Locks(client, keys, another=self._connections.open):
            if not self.has_namespace(namespace):
                with suppress(AlreadyExistsException):
                    client.create_database(Database(name=namespace, locationUri=location, parameters={}))

    def base(self, namespace: str) -> str:
        """The location for new tables of a namespace."""
        from hive_metastore.ttypes import NoSuchObjectException

        with self._connections.open() as client, suppress(NoSuchObjectException):
            found = client.get_database(namespace).locationUri
            if found:
                return str(found).rstrip("/")
        return f"{self._warehouse}/{namespace}.db" if self._warehouse else ""

    def close(self) -> None:
        self._connections.close()

    def _steps(self, client: Any, swaps: Sequence[Swap], found: Mapping[Key, Any]) -> list[UndoableStep]:
        made = next((swap for swap in swaps if swap.old is None), None)
        gone = next((swap for swap in swaps if swap.new is None), None)
        if made and gone and len(swaps) == 2 and made.kind == gone.kind:
            # One call, which a metastore executes in one transaction.
            return [UndoableStep(do=lambda: self._alter(client, gone.key, changed(found[gone.key], made, zoned=self._zoned), ""))]
        return [self._step(client, swap, found[swap.key]) for swap in swaps]

    def _step(self, client: Any, swap: Swap, table: Any) -> UndoableStep:
        namespace, name = swap.key
        if swap.new is None:
            return UndoableStep(order=2, do=lambda: client.drop_table(namespace, name, False))
        if swap.old is None:
            made = new_table(swap, zoned=self._zoned)
            return UndoableStep(order=0, do=lambda: client.create_table(made), undo=lambda: client.drop_table(namespace, name, False))
        new, compared = changed(table, swap, zoned=self._zoned), "" if self._is_locked(swap) else swap.old
        return UndoableStep(
            order=1, do=lambda: self._alter(client, swap.key, new, compared), undo=lambda: self._alter(client, swap.key, table, "")
        )

    def _alter(self, client: Any, key: Key, table: Any, compared: str) -> None:
        from hive_metastore.ttypes import InvalidOperationException

        try:
            _put(client, key, table, compared)
        except InvalidOperationException as error:
            if _OTHER_COLUMNS not in str(error.message):
                raise
            # These columns are only informative. A metastore that refuses to change them accepts none at first and others afterwards.
            bare = client.get_table(*key)
            bare.sd.cols = []
            _put(client, key, bare, compared)
            _put(client, key, table, compared)

    def _is_locked(self, swap: Swap) -> bool:
        """The table's own property takes precedence, as in Iceberg's HiveCatalog: all writers of a table must agree."""
        own = ((swap.base or swap.raw or {}).get("properties") or {}).get(LOCK) if swap.kind == "TABLE" else None
        return self._locks if own is None else str(own).lower() == "true"

    def _entries(self, client: Any, keys: Iterable[Key]) -> Iterator[tuple[Key, tuple[str, Kind]]]:
        for table in self._objects(client, keys):
            entry = pointer(table)
            if entry:
                yield (table.dbName, table.tableName), entry

    def _objects(self, client: Any, keys: Iterable[Key]) -> Iterator[Any]:
        for namespace, group in groupby(sorted(keys), key=lambda key: key[0]):
            names = [name for _, name in group]
            for at in range(0, len(names), _CHUNK):
                yield from _tables(client, namespace, names[at : at + _CHUNK])

    def _table(self, client: Any, key: Key) -> Any:
        from hive_metastore.ttypes import NoSuchObjectException

        try:
            return client.get_table(*key)
        except NoSuchObjectException:
            return None


def _put(client: Any, key: Key, table: Any, compared: str) -> None:
    from hive_metastore.ttypes import EnvironmentContext

    expected = {"expected_parameter_key": LOCATION, "expected_parameter_value": compared} if compared else {}
    client.alter_table_with_environment_context(*key, table, EnvironmentContext(properties={**_AS_IT_IS, **expected}))


def _tables(client: Any, namespace: str, names: list[str]) -> list[Any]:
    from hive_metastore.ttypes import NoSuchObjectException
    from thrift.Thrift import TApplicationException

    try:
        return list(client.get_table_objects_by_name(namespace, names))
    except TApplicationException:
        # The interface of Hive 4, which PyIceberg contains, does not declare the exception that a server of Hive 2 or 3 raises for a
        # missing database.
        try:
            client.get_database(namespace)
        except NoSuchObjectException:
            return []
        # Another writer may have created the database between the two calls.
        return list(client.get_table_objects_by_name(namespace, names))


def _location(table: Any) -> str | None:
    found = pointer(table) if table is not None else None
    return found[0] if found else None


def _require_free(swaps: Sequence[Swap], found: Mapping[Key, Any]) -> None:
    for swap in swaps:
        if swap.old is None and found[swap.key] is not None:
            raise AlreadyExists(
                f"{'.'.join(swap.key)} already exists in the Hive metastore, and is not an Iceberg table:"
                " drop it there, or choose another name."
            )


def _is_lost_race(error: Exception) -> bool:
    from hive_metastore.ttypes import AlreadyExistsException, NoSuchObjectException

    if isinstance(error, CommitConflict | AlreadyExistsException):
        return True
    return isinstance(error, NoSuchObjectException) or _PASSED in str(getattr(error, "message", ""))
