"""MappedText + engine -> PreparedQuery, or diagnostics at the place in the user's file that the engine reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.graph.model import ModelNode
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.engine import Engine, PreparedQuery, QueryError, SnapshotGone
from mvbuild.source import MappedText, Span

_NOT_OF_THE_QUERY = "Spark reports no position and no SQL condition: the query may be correct. The data of the last refresh stays."
_CODES: Mapping[str, str] = {
    "mvbuild.UNSTORABLE_COLUMN": "bad-column",
    "mvbuild.DUPLICATE_COLUMN": "duplicate-column",
    "mvbuild.SESSION_OBJECT": "session-object",
}


_COLUMN = re.compile(r"'(\w+)[^']*'")
"""The first column that a message names; a field of a struct is in its column."""


def prepare(engine: Engine, sql: MappedText, node: ModelNode) -> PreparedQuery:
    """Analyze a model's query. Errors of the prepared query at run time are reported in the same way."""
    with explained(sql, node):
        return _Explained(engine.prepare(sql.text), sql, node)


@contextmanager
def explained(sql: MappedText, node: ModelNode) -> Iterator[None]:
    """QueryError -> ProjectError; if a pinned snapshot is gone CommitConflict, because reading the table again corrects that."""
    try:
        yield
    except SnapshotGone as exc:
        raise CommitConflict(str(exc)) from exc
    except QueryError as exc:
        raise ProjectError([diagnostic(exc, sql, node.model.name, node.model.file.line_span(1))]) from exc


def is_missing_table(error: ProjectError) -> bool:
    """Whether the engine does not find a table of the query."""
    cause = error.__cause__
    return isinstance(cause, QueryError) and cause.condition.startswith("TABLE_OR_VIEW_NOT_FOUND")


class _Explained:
    """A PreparedQuery whose errors are ProjectErrors."""

    def __init__(self, query: PreparedQuery, sql: MappedText, node: ModelNode) -> None:
        self._query, self._sql, self._node = query, sql, node
        self.schema = query.schema

    def overwrite(self, table, branch, summary, *, where="true") -> None:  # type: ignore[no-untyped-def]
        with explained(self._sql, self._node):
            self._query.overwrite(table, branch, summary, where=where)

    def append(self, table, branch, summary) -> None:  # type: ignore[no-untyped-def]
        with explained(self._sql, self._node):
            self._query.append(table, branch, summary)


def diagnostic(exc: QueryError, sql: MappedText, name: str, span: Span) -> Diagnostic:
    """The engine's error about a query; at `span` if it did not report a place."""
    if exc.start is not None:
        span = sql.span(exc.start, exc.end if exc.end is not None else exc.start + 1)
    code = _CODES.get(exc.condition, "query-failed")
    help = "" if exc.condition or exc.start is not None else _NOT_OF_THE_QUERY
    if code in ("bad-column", "duplicate-column") and (found := _COLUMN.search(str(exc))):
        # The text of a view is a part of the query, but the columns of the query get their names in the model's own file.
        span = sql.last(found[1], span.file) or span
    return error(code, f"'{name}': {exc}", span, help=help)
