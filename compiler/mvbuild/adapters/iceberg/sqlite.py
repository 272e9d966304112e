"""path of a SQLite file -> Database. Reading creates no file, table or lock file; writing creates what is missing."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mvbuild.adapters.iceberg.jdbc_tables import ADD_TYPE, PROBE, TABLES, Statement, untyped
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_BUSY_SECONDS = 60
_TICK_SECONDS = 0.02
"""More than the time resolution of file systems, so that the next change of a file has another time."""
_LOOKS = 100


class SqliteDatabase:
    """One connection per call: opening one takes a tenth of a millisecond, and nothing stays open between threads and processes."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self._path = path
        self._create = create

    def query(self, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        if not self._path.exists():
            if not (self._create or self._path.parent.is_dir()):
                raise self._no_directory()
            above = next(folder for folder in self._path.absolute().parents if folder.exists())
            if not above.is_dir():
                raise CatalogError(f"{above} is not a directory: the catalog file {self._path.name} cannot be made there.")
            return ()
        try:
            return self._read(sql, params)
        except sqlite3.OperationalError as error:
            if "no such column: iceberg_type" in str(error):
                return self._read(untyped(sql), params)
            if "no such table" in str(error):
                return ()
            raise

    def transact(self, statements: Sequence[Statement]) -> bool:
        try:
            return self._transact(statements)
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise
        self._make_tables()
        return self._transact(statements)

    def prepare(self) -> None:
        """Create the file and its tables, unless they exist."""
        try:
            if self._path.exists():
                self._read(PROBE, {})
                return
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise
        try:
            self._make_tables()
        except sqlite3.OperationalError as error:
            raise self._unwritable(str(error)) from None

    def close(self) -> None:
        """Nothing is open."""

    def _read(self, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        """Reads the file without locks if no process writes. In WAL mode the locks are separate files: a reader without write
        permission cannot create them, and others would leave them behind. If the file changes during the read, it is read again."""
        for _ in range(_LOOKS):
            before = self._quiet()
            if before is None:
                break
            try:
                rows = self._rows("mode=ro&immutable=1", sql, params)
            except sqlite3.DatabaseError:
                if self._quiet() == before:
                    raise
                continue
            if self._quiet() == before:
                return rows
        return self._rows("mode=ro", sql, params)

    def _rows(self, how: str, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        place = f"file:{quote(str(self._path.absolute()))}?{how}"
        with closing(sqlite3.connect(place, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
            return db.execute(sql, params).fetchall()

    def _quiet(self) -> tuple[int, ...] | None:
        """A value that changes with every change of the file; None while a transaction is running, or is not yet in the file."""
        if any(self._path.with_name(self._path.name + end).exists() for end in ("-wal", "-journal")):
            return None
        found = self._path.stat()
        age = time.time() - found.st_mtime
        if 0 <= age < _TICK_SECONDS:
            time.sleep(_TICK_SECONDS - age)
            return self._quiet()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _transact(self, statements: Sequence[Statement]) -> bool:
        with closing(self._writing()) as db:
            # A file that Spark created may not be in WAL mode yet. If others are using it, the next writer will switch it.
            with suppress(sqlite3.OperationalError):
                db.execute("PRAGMA journal_mode = WAL")
            # IMMEDIATE takes the write lock at once, and so waits for it; upgrading a lock later would fail instead of waiting.
            db.execute("BEGIN IMMEDIATE")
            try:
                done = all(db.execute(s.sql, s.params).rowcount == 1 for s in statements)
            except sqlite3.IntegrityError:
                done = False
            db.execute("COMMIT" if done else "ROLLBACK")
            return done

    def _make_tables(self) -> None:
        with closing(self._writing()) as db:
            with suppress(sqlite3.OperationalError):
                db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN IMMEDIATE")
            for statement in TABLES:
                db.execute(statement)
            try:
                db.execute(PROBE)
            except sqlite3.OperationalError:
                db.execute(ADD_TYPE)
            db.execute("COMMIT")

    def _writing(self) -> sqlite3.Connection:
        if not self._path.exists():
            # As in PyIceberg, a new file is created if its directory exists; only the embedded catalog creates directories.
            if self._create:
                self._make_directory()
            elif not self._path.parent.is_dir():
                raise self._no_directory()
        # isolation_level=None: this module starts transactions, not the driver.
        return sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)

    def _make_directory(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error.strerror or str(error)) from None

    def _unwritable(self, reason: str) -> CatalogError:
        return CatalogError(f"The catalog file {self._path.name} cannot be created in {self._path.parent}: {reason}.")

    def _no_directory(self) -> CatalogError:
        return CatalogError(f"The directory {self._path.parent} of the catalog file {self._path.name} does not exist.", unreachable=True)
