"""texts by keys, in tables <-> target/cache.sqlite: what an earlier command computed is not computed again.

A key is a hash of everything that its text depends on. Each row has a checksum of itself and of the version of the code: a row that was
damaged, or that another version wrote, is not found. A file that cannot be read or written, for whatever reason, makes a command slower and
changes nothing else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from weakref import finalize

from mvbuild.cache.keys import code_version

FILE = "cache.sqlite"
_FEW = 4
"""So many unused rows are never too many."""
_PATIENCE = 5.0
"""Seconds to wait for a process that is writing. For 10,000 models, it writes for a fraction of a second."""
_NO_DAMAGE = ("unable to open", "database is locked", "no such table")
"""How the messages of errors begin that say nothing about the file. Python 3.10 has no error codes."""


class Table:
    """Texts of one kind. What is put here reaches the file when the cache is saved."""

    def __init__(self, name: str, database: _Database | None) -> None:
        self.name = name
        self.new: dict[str, str] = {}
        self.used: set[str] = set()
        self._database = database

    def get(self, key: str) -> str | None:
        found = self.new.get(key)
        if found is None and self._database is not None:
            found = self._database.text(self.name, key)
        if found is not None:
            self.used.add(key)
        return found

    def put(self, key: str, text: str) -> None:
        if self._database is not None:
            self.new[key] = text
            self.used.add(key)


class Cache:
    """The tables of one project; without a path they stay empty."""

    def __init__(self, path: Path | None = None) -> None:
        self._database = database = _Database(path) if path is not None else None
        self.contents = Table("contents", database)
        """What a graph depends on of the contents of its files, by when they were changed."""
        self.files = Table("files", database)
        """What each YAML file declares, and each SQL file after rendering and parsing."""
        self.graphs = Table("graphs", database)
        """Outlines of graphs, and which of them have no error in their columns."""
        self.fingerprints = Table("fingerprints", database)
        """The fingerprint of each definition."""
        self.bindings = Table("bindings", database)
        """The columns and types of each query."""
        self.artifacts = Table("artifacts", database)
        """What the files below target/ were made from."""
        self.settled = Table("settled", database)
        """The MVs for which a run had nothing to do."""

    def save(self, *whole: Table) -> None:
        """Add what is new to the file. `whole`: tables of which this process has used everything that the project needs. Their other rows
        are deleted when they outnumber the used ones.

        A command that only reads creates no target/: nothing is saved if that folder does not exist.
        """
        if self._database is not None:
            self._database.save(
                (self.contents, self.files, self.graphs, self.fingerprints, self.bindings, self.artifacts, self.settled), whole
            )


class _Database:
    """A file of SQLite that may be missing, damaged, locked or read-only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._is_readable = True
        """False after an error, so that a command waits for a lock only once."""
        self._is_damaged = False

    def text(self, table: str, key: str) -> str | None:
        row = self._row(f"SELECT content, checksum FROM {table} WHERE key = ?", key)
        is_right = row is not None and isinstance(row[0], bytes) and row[1] == _checksum(table, key, row[0])
        return row[0].decode() if row is not None and is_right else None

    def _row(self, query: str, *values: str) -> tuple[Any, ...] | None:
        if not self._is_readable:
            return None
        try:
            found: tuple[Any, ...] | None = self._opened("rw").execute(query, values).fetchone()
        except (sqlite3.Error, UnicodeDecodeError) as exc:
            # A damaged name can make a message that is not UTF-8.
            self._is_readable, self._is_damaged = False, _is_damage(exc)
            return None
        return found

    def save(self, tables: Sequence[Table], whole: Iterable[Table]) -> None:
        """In one transaction."""
        large = [table for table in whole if self._is_large(table)]
        if not (large or any(table.new for table in tables)) or not self._path.parent.is_dir():
            return
        try:
            if self._is_damaged:
                self._remove()
            with self._opened("rwc") as connection:
                connection.execute("BEGIN IMMEDIATE")
                for table in tables:
                    _add(connection, table)
                for table in large:
                    _delete_unused(connection, table)
        except (sqlite3.Error, UnicodeDecodeError) as exc:
            if _is_damage(exc):
                self._remove()
            return
        self._is_readable = True
        for table in tables:
            # What is in the file need not be in memory: for a large project that is a lot.
            table.new.clear()

    def _is_large(self, table: Table) -> bool:
        found = self._row(f"SELECT count(*) FROM {table.name}")
        return found is not None and found[0] > len(table.used) + max(len(table.used), _FEW)

    def _opened(self, mode: str) -> sqlite3.Connection:
        if self._connection is None:
            uri = f"{self._path.absolute().as_uri()}?mode={mode}"
            self._connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            self._close = finalize(self, self._connection.close)
            # Rows have checksums: if a power failure damages the file, nothing wrong is found in it.
            self._connection.execute("PRAGMA synchronous = OFF")
        return self._connection

    def _remove(self) -> None:
        if self._connection is not None:
            self._close()
            self._connection = None
        for path in (self._path, self._path.with_name(f"{self._path.name}-journal")):
            with suppress(OSError):
                path.unlink()
        self._is_damaged = False


def _is_damage(exc: Exception) -> bool:
    return not str(exc).startswith(_NO_DAMAGE)


def _add(connection: sqlite3.Connection, table: Table) -> None:
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table.name} (key TEXT PRIMARY KEY, content BLOB, checksum BLOB)")
    contents = ((key, text.encode()) for key, text in table.new.items())
    rows = ((key, content, _checksum(table.name, key, content)) for key, content in contents)
    connection.executemany(f"INSERT OR REPLACE INTO {table.name} VALUES (?, ?, ?)", rows)


def _delete_unused(connection: sqlite3.Connection, table: Table) -> None:
    connection.execute("CREATE TEMP TABLE used (key TEXT PRIMARY KEY)")
    connection.executemany("INSERT INTO used VALUES (?)", ((key,) for key in table.used))
    connection.execute(f"DELETE FROM {table.name} WHERE key NOT IN (SELECT key FROM used)")
    connection.execute("DROP TABLE used")


def _checksum(table: str, key: str, content: bytes) -> bytes:
    found = blake2b(f"{code_version()} {table} {key} ".encode(), digest_size=8)
    found.update(content)
    return found.digest()
