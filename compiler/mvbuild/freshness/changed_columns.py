"""schemas of base tables, as read and as they are now -> whether an unchanged query still means the same columns.

Iceberg changes a schema without making a snapshot. By snapshot ids alone, an MV would be fresh although its query now reads other columns
under the same names, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mvbuild.dataclass import dataclass
from mvbuild.freshness.observed import Pin
from mvbuild.parse.by_position import takes_columns_by_position
from mvbuild.ports.states import TableState
from mvbuild.storage.schema_difference import Path, difference, paths
from mvbuild.storage.schemas_read import REMOVED, recorded_schema_id

_WORD = re.compile(r"\w+")


def changed_columns(storage: TableState, now: Pin, texts: Sequence[str], read: int | None = None) -> tuple[str, ...]:
    """Columns that the SQL may mean and that differ from what the refresh read: removed, renamed or retyped, or new under a name that the
    SQL uses for something else; if the SQL takes columns by position, also those that moved. `now`: a table, branch or tag. `read`: the
    snapshot that was read, whose schema serves if none was recorded. Empty without both, or if nothing changed."""
    table, schema = now.table, now.table.schemas[now.schema_id]
    recorded = recorded_schema_id(storage, table, now.ref, read)
    if recorded == now.schema_id:
        return ()
    if recorded == REMOVED:
        # Every column may have changed.
        return tuple(".".join(path) for path in paths(schema))
    # A tag is read under the schema of its snapshot, so that none is recorded, unless its name was that of a branch then.
    possible = _possible(table, read) if now.follows_schema else []
    before = [id for id in ([recorded] if recorded is not None else possible) if id != now.schema_id]
    found = [one for id in before if (one := difference(table.schemas[id], schema))]
    if not found:
        return ()
    sql = _Sql.of(texts)
    return tuple(dict.fromkeys(".".join(path) for one in found for path in sql.meant(one.columns, one.moved)))


def _possible(table: TableState, read: int | None) -> list[int]:
    """The schemas with which another writer may have read a snapshot: its own, and every later one."""
    if read is None:
        return []
    snapshot = table.snapshots.get(read)
    own = snapshot.schema_id if snapshot is not None else None
    return [id for id in table.schemas if own is None or id >= own]


@dataclass(frozen=True, slots=True)
class _Sql:
    """SQL texts in lower case."""

    texts: tuple[str, ...]
    words: frozenset[str]
    is_by_position: bool
    """Whether it takes columns without naming them."""

    @staticmethod
    def of(texts: Sequence[str]) -> _Sql:
        small = tuple(text.lower() for text in texts)
        words = frozenset(word for text in small for word in _WORD.findall(text))
        return _Sql(small, words, any(takes_columns_by_position(text) for text in texts))

    def meant(self, columns: Iterable[Path], moved: Iterable[Path]) -> Iterator[Path]:
        yield from (path for path in columns if self._means(path[0].lower()))
        yield from moved if self.is_by_position else ()

    def _means(self, column: str) -> bool:
        """A column that the SQL reads is named in it, unless it is taken by position. A field belongs to its struct."""
        if self.is_by_position or _WORD.fullmatch(column):
            return self.is_by_position or column in self.words
        return any(column in text or column.replace("`", "``") in text for text in self.texts)
