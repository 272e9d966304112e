"""SQLAlchemy URL -> Database: SQLite by the standard library (`sqlite`), every other database by SQLAlchemy.

A run with nothing to do makes one query; importing SQLAlchemy for it would take longer than everything else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mvbuild.adapters.iceberg.jdbc_tables import ADD_TYPE, TABLES, Statement, untyped
from mvbuild.adapters.iceberg.sqlite import SqliteDatabase
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Engine
    from sqlalchemy.exc import DBAPIError

_T = TypeVar("_T")


class Database(Protocol):
    """Safe to use from several threads."""

    def query(self, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        """The rows; none if the tables of a JDBC catalog do not exist. Nothing is written."""

    def transact(self, statements: Sequence[Statement]) -> bool:
        """All or nothing: returns False if a statement affects no row or its key already exists. Creates the tables of a JDBC catalog if
        they are missing."""

    def close(self) -> None:
        """Release connections."""


def open_database(uri: str, *, create: bool) -> Database:
    scheme, _, rest = uri.partition("://")
    path, _, query = rest.removeprefix("/").partition("?")
    if scheme.split("+")[0] != "sqlite" or "uri=true" in query:
        return ServerDatabase(uri)
    if path in ("", ":memory:"):
        raise CatalogError("An in-memory SQLite database cannot be shared with Spark; give a file: sqlite:////path/to/catalog.db")
    return SqliteDatabase(Path(path), create=create)


class ServerDatabase:
    """PostgreSQL and others, through a pool of connections."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._opened: Engine | None = None

    def query(self, sql: str, params: Mapping[str, str]) -> Sequence[Any]:
        from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

        try:
            return self._query(sql, params)
        except DBAPIError as error:
            # The server was restarted, or a proxy closed the connection. A read can be repeated.
            if not error.connection_invalidated:
                if not isinstance(error, (OperationalError, ProgrammingError)):
                    raise
                # Both errors can mean a missing table, and the first one also a lost server; checking for the tables distinguishes these.
                lacking = self._lacking()
                if lacking == TABLES:
                    return ()
                if not lacking and not isinstance(error, ProgrammingError):
                    raise
                sql = untyped(sql) if lacking else sql
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
                # The server may have closed a pooled connection while Spark computed for an hour.
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
            # Both errors can mean a missing table, and the first one also a lost server; creating the tables distinguishes these. After the
            # second error the tables may exist, because another process created them in the meantime.
            if not self._make_tables() and not isinstance(error, ProgrammingError):
                raise
        return action()

    def _make_tables(self) -> bool:
        """Create the missing tables. Returns whether any was missing."""
        from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

        wanted = self._lacking()
        try:
            self._execute(wanted)
        except (IntegrityError, OperationalError, ProgrammingError):
            # IF NOT EXISTS fails too if two processes create the same table at once; then the other one created it.
            if self._lacking():
                raise
        return bool(wanted)

    def _lacking(self) -> tuple[str, ...]:
        """The statements that create the missing tables."""
        from sqlalchemy import inspect

        inspector = inspect(self._engine())
        if not inspector.has_table("iceberg_tables") or not inspector.has_table("iceberg_namespace_properties"):
            return TABLES
        untyped = all(column["name"] != "iceberg_type" for column in inspector.get_columns("iceberg_tables"))
        return (ADD_TYPE,) if untyped else ()

    def _execute(self, statements: Sequence[str]) -> None:
        from sqlalchemy import text

        if statements:
            with self._engine().begin() as db:
                for statement in statements:
                    db.execute(text(statement))


def _is_lost_race(error: DBAPIError) -> bool:
    """Whether the server rolled the transaction back because of another one: a deadlock, or a serialization failure."""
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return state in ("40001", "40P01")
