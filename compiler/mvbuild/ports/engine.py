"""The engine that computes: Spark as mvbuild needs it. No PySpark types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mvbuild.dataclass import dataclass
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A small result: column names and rows as plain Python values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class EngineError(Exception):
    """The engine could not start, or stopped working. `code` is a diagnostic code."""

    def __init__(self, code: str, message: str, *, help: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.help = help


class QueryError(Exception):
    """The engine refused or failed a query. `start`, `end`: offsets in the given SQL, if the engine reported them."""

    def __init__(self, message: str, *, condition: str = "", start: int | None = None, end: int | None = None) -> None:
        super().__init__(message)
        self.condition = condition
        """`condition`: Spark's error condition, for example UNRESOLVED_COLUMN.WITH_SUGGESTION."""
        self.start = start
        self.end = end


class SnapshotGone(QueryError):
    """A snapshot that the query names no longer exists: another process expired it."""


class PreparedQuery(Protocol):
    """A query that the engine has analyzed once. Its tables are those of that moment."""

    @property
    def schema(self) -> Schema:
        """The Iceberg schema of the result: field ids count from 1, and no field is required."""

    def overwrite(self, table: TableIdentifier, branch: str | None, summary: Mapping[str, str], *, where: str = "true") -> None:
        """Replace the content of the table, or of an existing branch, with the rows, in one snapshot with `summary` entries.

        `where`: replace only the rows of the table that satisfy it; no file may have both such rows and others.

        Keys of the summary become lower case. Columns are matched by name. A result without rows makes a snapshot too. Nothing is returned:
        the catalog knows the head of an audit branch in one millisecond, Spark in sixty. Raises CommitConflict (of ports.catalog) if the
        branch no longer exists or another commit came first.
        """

    def append(self, table: TableIdentifier, branch: str | None, summary: Mapping[str, str]) -> None:
        """Add the rows to the table or branch, in one snapshot with `summary` entries, even if there are no rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an engine is doing now, for all queries that it runs."""

    tasks: int
    tasks_done: int
    rows_read: int
    bytes_read: int
    rows_written: int


class Engine(Protocol):
    """A running engine; safe to use from several threads. Queries raise QueryError; a lost engine raises EngineError."""

    @property
    def copies_by_position(self) -> bool:
        """Whether `DELETE ... WHERE (_file, _pos) IN (...)` works in a table whose deletes are copy-on-write."""

    def work(self) -> Work | None:
        """What it is doing now; None if it does nothing, or does not say. Raises nothing."""

    def prepare(self, sql: str) -> PreparedQuery:
        """Analyze a query. A type that Iceberg cannot store is a QueryError with condition `mvbuild.UNSTORABLE_COLUMN`, output columns with
        equal names are `mvbuild.DUPLICATE_COLUMN`; one error names all such columns. A variable or a temporary function of the session,
        which readers of a view do not have, is `mvbuild.SESSION_OBJECT`."""

    def rows(self, sql: str, limit: int) -> Rows:
        """Up to `limit` rows of a query."""

    def settings(self) -> Mapping[str, str]:
        """The settings of the session that affect the meaning of SQL: the time zone, ANSI rules, how literals are read. Defaults are
        included, because they differ between versions and machines."""

    def explain(self, sql: str, *, physical: bool = True) -> str:
        """The text of EXPLAIN EXTENDED of a query. Without `physical`, it may have the optimized plan alone. For a query that
        cannot be planned, this raises QueryError or returns an error message."""

    def frame(self, sql: str) -> Any:
        """The query as the engine's own DataFrame, for callers who continue with it."""

    def call(self, statement: str) -> Rows:
        """Run a statement that is not a query, such as a CALL of an Iceberg procedure, and return its result."""

    def define(self, name: str, sql: str) -> None:
        """Name a query, so that later queries of this engine can read it. The caller must avoid duplicate names."""

    def keep(self, name: str, sql: str, *, at_once: bool = True) -> None:
        """`define`, and compute the rows only once for all readers of the name. If not `at_once`, the first reader computes them, and must
        read all of them."""

    def supply(self, name: str, data: Any) -> None:
        """`define` for rows that the catalog adapter read: `ReadRows.data`."""

    def fetch(self, sql: str, limit: int) -> Any | None:
        """All rows of a query, for `supply` and `Catalog.change_rows`; None if there are more than `limit`."""

    def forget(self, name: str) -> None:
        """Undo `define` or `keep`. Does nothing if the name is not known."""

    def close(self) -> None:
        """Stop the engine if mvbuild started it."""
