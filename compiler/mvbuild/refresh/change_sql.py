"""StagedChange + columns -> the Spark SQL of its rows: those added (`plus`) and those removed (`minus`), as bags.

Iceberg's metadata column `_deleted` returns the rows that deletes hide. Both tables of an altered file share the file: if both hide a row,
its position in the file shows that it is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mvbuild.names import TableIdentifier, quote
from mvbuild.ports.changes import StagedChange, StagedPart


def change_sql(staged: StagedChange, columns: Sequence[str]) -> tuple[str | None, str | None]:
    """The SQL of plus and of minus; None for a side that is known to be empty."""
    names = ", ".join(map(quote, columns))
    plus = [sql for part in staged.parts for sql in _plus(part, names)]
    minus = [sql for part in staged.parts for sql in _minus(part, names)]
    return _union(plus), _union(minus)


def _plus(part: StagedPart, names: str) -> Iterator[str]:
    if part.added:
        yield f"SELECT {names} FROM {part.added.sql}"
    if part.altered_old and part.altered_new and part.had_deletes and not part.only_deletes:
        yield _hidden(names, by=part.altered_old, not_by=part.altered_new)


def _minus(part: StagedPart, names: str) -> Iterator[str]:
    if part.removed:
        yield f"SELECT {names} FROM {part.removed.sql}"
    if part.altered_old and part.altered_new:
        yield _hidden(names, by=part.altered_new, not_by=part.altered_old if part.had_deletes else None)


def _hidden(names: str, *, by: TableIdentifier, not_by: TableIdentifier | None) -> str:
    """The rows that the deletes of one table hide and those of the other do not."""
    rows = f"SELECT {names} FROM {by.sql} AS hidden WHERE _deleted"
    if not_by is None:
        return rows
    other = f"SELECT _file, _pos FROM {not_by.sql} WHERE _deleted"
    return f"{rows} AND NOT EXISTS (SELECT 1 FROM ({other}) AS seen WHERE seen._file = hidden._file AND seen._pos = hidden._pos)"


def _union(queries: list[str]) -> str | None:
    return "\nUNION ALL\n".join(queries) if queries else None
