"""schemas of base tables, as they were read and as they are -> whether a query that was not changed still means the same columns.

Iceberg changes a schema without making a snapshot, so that snapshot ids alone call an MV fresh whose query now reads other columns under
the same names, or none. The specifications have no place for it: mvbuild notes the schema that each refresh read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mvbuild.freshness.observed import Pin
from mvbuild.ports.states import Schema, TableState

SCHEMA_READ = "mvbuild.base.schema."
"""Prefix of properties of the storage table: UUID of a base table -> the id of its schema that the refresh read."""
_STAR = re.compile(
    r"(?:select|distinct|all|,|\.|\*/|\n|(?<!count)\()\s*\*(?!/)|\bnatural\b|\btable\b|\bpivot\b",
    re.IGNORECASE,
)
"""What takes columns without naming them, also after a hint or a comment, as the arguments of a function, and as the groups of PIVOT. Too
often is safe."""
_WORD = re.compile(r"\w+")


def schemas_read(pins: Iterable[Pin]) -> dict[str, str]:
    """For tables that are read with their current schema; one that the user pinned to a version has that version's. Nothing is noted of
    two tables of one UUID (`register_table`) whose schemas are not the same."""
    found: dict[str, set[int]] = {}
    for one in pins:
        if one.moves and one.table.uuid:
            found.setdefault(one.table.uuid, set()).add(one.table.current_schema_id)
    return {SCHEMA_READ + uuid: str(*ids) for uuid, ids in found.items() if len(ids) == 1}


def schema_noted(storage: TableState, table: TableState) -> int | None:
    """The id of the schema with which the last refresh read a table; None where it is not noted."""
    noted = storage.properties.get(SCHEMA_READ + table.uuid, "")
    return int(noted) if noted.isdigit() else None


def stale_schemas(properties: Mapping[str, str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """Notes of earlier refreshes that are not made again."""
    return tuple(k for k in properties if k.startswith(SCHEMA_READ) and k not in kept)


def changed_columns(storage: TableState, table: TableState, texts: Sequence[str], read: int | None = None) -> tuple[str, ...]:
    """Columns that the SQL may mean and that are others than the refresh knew: gone, renamed or of another type, or new under a name that
    the SQL has for something else. `read`: the snapshot that was read, which says enough where no schema was noted; without both, and
    where nothing changed, it is empty."""
    noted = schema_noted(storage, table)
    if noted == table.current_schema_id:
        return ()
    if noted is not None and noted not in table.schemas:
        # Expired with the snapshots that had it: every column may have been another one.
        return tuple(name for name, _ in _columns(table.schema))
    before = [id for id in ([noted] if noted is not None else _possible(table, read)) if id != table.current_schema_id]
    if not before:
        return ()
    sql = _Sql.of(texts)
    return tuple(dict.fromkeys(name for id in before for name in _changed(table, id, sql)))


def _possible(table: TableState, read: int | None) -> list[int]:
    """The schemas with which another writer may have read a snapshot: its own, and every later one."""
    if read is None:
        return []
    snapshot = table.snapshots.get(read)
    own = snapshot.schema_id if snapshot is not None else None
    return [id for id in table.schemas if own is None or id >= own]


def _changed(table: TableState, before: int, sql: _Sql) -> Iterator[str]:
    was, now = dict(_columns(table.schemas[before])), dict(_columns(table.schema))
    different = [name for name, column in was.items() if now.get(name) != column] + [name for name in now if name not in was]
    return (name for name in different if sql.means(name))


@dataclass(frozen=True, slots=True)
class _Sql:
    """Texts in small letters."""

    texts: tuple[str, ...]
    words: frozenset[str]
    has_star: bool

    @staticmethod
    def of(texts: Sequence[str]) -> _Sql:
        small = tuple(text.lower() for text in texts)
        words = frozenset(word for text in small for word in _WORD.findall(text))
        return _Sql(small, words, any(_STAR.search(text) for text in small))

    def means(self, name: str) -> bool:
        """A column that the SQL reads is named in it, unless a star takes it. A field goes with its struct."""
        column = name.partition(".")[0]
        if self.has_star or _WORD.fullmatch(column):
            return self.has_star or column in self.words
        return any(column in text or column.replace("`", "``") in text for text in self.texts)


def _columns(schema: Schema | Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, tuple[int, str]]]:
    """Dotted name in small letters -> field id and type."""
    for field in schema["fields"]:
        name, type_ = f"{prefix}{field['name'].lower()}", field["type"]
        if isinstance(type_, Mapping) and type_["type"] == "struct":
            yield name, (field["id"], "struct")
            yield from _columns(type_, f"{name}.")
        else:
            yield name, (field["id"], _shape(type_))


def _shape(type_: Any) -> str:
    return str(type_["type"]) + repr(sorted(map(str, type_.items()))) if isinstance(type_, Mapping) else str(type_).replace(" ", "")
