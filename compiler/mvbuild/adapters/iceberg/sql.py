"""SQLAlchemy URL -> Database: SQLite by the standard library, every other database by SQLAlchemy.

A run with nothing to do makes one query; importing SQLAlchemy for it would take longer than all the rest.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy import Engine
    from sqlalchemy.exc import DBAPIError

_BUSY_SECONDS = 60
_TABLES = (
    "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
    "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
    "iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, "
    "property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000) NOT NULL, PRIMARY KEY (catalog_name, namespace, property_key))",
)
_PROBE = "SELECT iceberg_type FROM iceberg_tables WHERE 1 = 0"
_ADD_TYPE = "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL that must affect exactly one row, with `:name` parameters."""

    sql: str
    params: Mapping[str, str]


class Database(Protocol):
    """Safe to use from several threads; makes the tables of a JDBC catalog when they are missing."""

    def query(self, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        """The rows."""

    def transact(self, statements: Sequence[Statement]) -> bool:
        """All or nothing: False if one affects no row or hits a key that is there."""

    def close(self) -> None:
        """Give connections back."""


def open_database(uri: str, *, create: bool) -> Database:
    scheme, _, rest = uri.partition("://")
    path, _, query = rest.removeprefix("/").partition("?")
    if scheme.split("+")[0] != "sqlite" or "uri=true" in query:
        return ServerDatabase(uri)
    if path in ("", ":memory:"):
        raise CatalogError("An in-memory SQLite database cannot be shared with Spark; give a file: sqlite:////path/to/catalog.db")
    return SqliteDatabase(Path(path), create=create)


class SqliteDatabase:
    """A connection per call: opening one takes a tenth of a millisecond, and nothing is left open between threads and processes."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self._path = path
        self._create = create

    def query(self, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        return self._with_tables(lambda: self._query(sql, params))

    def transact(self, statements: Sequence[Statement]) -> bool:
        return self._with_tables(lambda: self._transact(statements))

    def close(self) -> None:
        """Nothing is open."""

    def _query(self, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        with self._connection() as db:
            return db.execute(sql, params).fetchall()

    def _transact(self, statements: Sequence[Statement]) -> bool:
        with self._connection() as db:
            # A file that Spark made may not be in WAL mode yet; if others are busy with it, the next writer will switch it.
            with suppress(sqlite3.OperationalError):
                db.execute("PRAGMA journal_mode = WAL")
            # IMMEDIATE takes the write lock at once, and so waits for it; a lock that is upgraded later would fail instead of waiting.
            db.execute("BEGIN IMMEDIATE")
            try:
                done = all(db.execute(s.sql, s.params).rowcount == 1 for s in statements)
            except sqlite3.IntegrityError:
                done = False
            db.execute("COMMIT" if done else "ROLLBACK")
            return done

    def _with_tables(self, action: Callable[[], _T]) -> _T:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise
        self._make_tables()
        return action()

    def _make_tables(self) -> None:
        with self._connection() as db:
            with suppress(sqlite3.OperationalError):
                db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN IMMEDIATE")
            for statement in _TABLES:
                db.execute(statement)
            try:
                db.execute(_PROBE)
            except sqlite3.OperationalError:
                db.execute(_ADD_TYPE)
            db.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if not self._path.exists():
            # As PyIceberg does, a new file is made where its directory exists; only the embedded catalog makes directories.
            if self._create:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            elif not self._path.parent.is_dir():
                raise CatalogError(f"There is no directory {self._path.parent} for the catalog file {self._path.name}.", unreachable=True)
        # isolation_level=None: transactions begin where this module says so, and not by the driver's guess.
        db = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            yield db
        finally:
            db.close()


class ServerDatabase:
    """PostgreSQL and others, through a pool of connections."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._opened: Engine | None = None

    def query(self, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        from sqlalchemy.exc import DBAPIError

        try:
            return self._with_tables(lambda: self._query(sql, params))
        except DBAPIError as error:
            # The server was restarted, or something between closed the connection. Who only reads may ask again.
            if not error.connection_invalidated:
                raise
        return self._query(sql, params)

    def transact(self, statements: Sequence[Statement]) -> bool:
        return self._with_tables(lambda: self._transact(statements))

    def close(self) -> None:
        if self._opened is not None:
            self._opened.dispose()
            self._opened = None

    def _engine(self) -> Engine:
        if self._opened is None:
            from sqlalchemy import create_engine

            try:
                # A pooled connection may have been closed by the server while Spark computed for an hour.
                self._opened = create_engine(self._uri, pool_pre_ping=True)
            except ModuleNotFoundError as error:
                advice = "'mvbuild[postgres]'" if error.name == "psycopg2" else error.name
                raise CatalogError(f"The database needs the Python package '{error.name}': pip install {advice}.") from None
        return self._opened

    def _query(self, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        from sqlalchemy import text

        with self._engine().connect() as db:
            return db.execute(text(sql), dict(params)).all()

    def _transact(self, statements: Sequence[Statement]) -> bool:
        from sqlalchemy import text
        from sqlalchemy.exc import DBAPIError, IntegrityError

        with self._engine().connect() as db:
            try:
                done = all(db.execute(text(s.sql), dict(s.params)).rowcount == 1 for s in statements)
            except IntegrityError:
                done = False
            except DBAPIError as error:
                if not _is_lost_race(error):
                    raise
                done = False
            if done:
                db.commit()
            else:
                db.rollback()
            return done

    def _with_tables(self, action: Callable[[], _T]) -> _T:
        from sqlalchemy.exc import OperationalError, ProgrammingError

        try:
            return action()
        except (OperationalError, ProgrammingError) as error:
            # Both tell a missing table, and the first a lost server as well; making the tables tells these apart. After the second the
            # tables may be there by now: another process made them meanwhile.
            if not self._make_tables() and not isinstance(error, ProgrammingError):
                raise
        return action()

    def _make_tables(self) -> bool:
        """Whether anything was missing."""
        from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

        wanted = self._lacking()
        try:
            self._execute(wanted)
        except (IntegrityError, OperationalError, ProgrammingError):
            # Also IF NOT EXISTS fails where two processes make the same table at once; then the other one made it.
            if self._lacking():
                raise
        return bool(wanted)

    def _lacking(self) -> tuple[str, ...]:
        """The statements that make what is missing."""
        from sqlalchemy import inspect

        inspector = inspect(self._engine())
        if not inspector.has_table("iceberg_tables") or not inspector.has_table("iceberg_namespace_properties"):
            return _TABLES
        untyped = all(column["name"] != "iceberg_type" for column in inspector.get_columns("iceberg_tables"))
        return (_ADD_TYPE,) if untyped else ()

    def _execute(self, statements: Sequence[str]) -> None:
        from sqlalchemy import text

        if statements:
            with self._engine().begin() as db:
                for statement in statements:
                    db.execute(text(statement))


def _is_lost_race(error: DBAPIError) -> bool:
    """Whether the server undid the transaction for another's sake: a deadlock, or a serialization failure."""
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return state in ("40001", "40P01")
