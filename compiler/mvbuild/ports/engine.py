"""The engine that computes: Spark as mvbuild needs it. No PySpark types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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
    """The engine refused or failed a query. `start`, `end`: offsets in the SQL that was given, where the engine told them."""

    def __init__(self, message: str, *, condition: str = "", start: int | None = None, end: int | None = None) -> None:
        super().__init__(message)
        self.condition = condition
        """Spark's error condition, e.g. UNRESOLVED_COLUMN.WITH_SUGGESTION."""
        self.start = start
        self.end = end


class SnapshotGone(QueryError):
    """A snapshot that the query names does not exist any more: another process expired it."""


class PreparedQuery(Protocol):
    """A query that the engine has analyzed once. Its tables are those that it had then."""

    @property
    def schema(self) -> Schema:
        """The Iceberg schema of the result: field ids count from 1, nothing is required."""

    def overwrite(self, table: TableIdentifier, branch: str | None, summary: Mapping[str, str], *, where: str = "true") -> None:
        """Make the rows the whole content of the table, or of one branch that exists, in one snapshot with `summary` entries.

        `where`: only rows of the table that fulfil it go; no file may hold such rows and others.

        Keys of the summary are in lower case, or become so. Columns go by name. No rows make a snapshot too. Nothing is returned: the
        catalog tells the head of a private branch in a millisecond, Spark in sixty. CommitConflict (of ports.catalog) if the branch is
        gone or another commit came first.
        """

    def append(self, table: TableIdentifier, branch: str | None, summary: Mapping[str, str]) -> None:
        """Add the rows to the table or branch, in one snapshot with `summary` entries; also where there are none."""


class Engine(Protocol):
    """A running engine; safe to use from several threads. Queries raise QueryError, a lost engine EngineError."""

    def prepare(self, sql: str) -> PreparedQuery:
        """Analyze a query. A type that Iceberg cannot hold is a QueryError with condition `mvbuild.UNSTORABLE_COLUMN`, two output columns
        of one name are `mvbuild.DUPLICATE_COLUMN`; all such columns are named at once. A variable or a temporary
        function of the session, which no reader of a view has, is `mvbuild.SESSION_OBJECT`."""

    def rows(self, sql: str, limit: int) -> Rows:
        """Up to `limit` rows of a query."""

    def settings(self) -> Mapping[str, str]:
        """What the session is set to, of all that changes what SQL means: the time zone, ANSI rules, how literals are read. Defaults as
        well: they differ between versions and machines."""

    def explain(self, sql: str) -> str:
        """The text of EXPLAIN EXTENDED of a query. An engine may put the message of an error in the place of a plan."""

    def frame(self, sql: str) -> Any:
        """The query as the engine's own DataFrame, for callers who go on with it."""

    def call(self, statement: str) -> Rows:
        """Run a statement that is no query, such as a CALL of a procedure of Iceberg's; what it gives."""

    def define(self, name: str, sql: str) -> None:
        """Give a query a name that later queries of this engine can read. Names are the caller's to keep apart."""

    def keep(self, name: str, sql: str, *, at_once: bool = True) -> None:
        """`define`, and compute the rows once: who reads the name reads those. If not `at_once` the first who reads it computes them, and
        must read all."""

    def supply(self, name: str, data: Any) -> None:
        """`define`, for rows that the catalog adapter read: `ReadRows.data`."""

    def forget(self, name: str) -> None:
        """Undo `define` or `keep`. Nothing happens if the name is not known."""

    def close(self) -> None:
        """Stop the engine if it is mvbuild's own."""
