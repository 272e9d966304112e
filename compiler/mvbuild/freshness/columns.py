"""schemas of base tables, as they were read and as they are -> whether a query that was not changed still means the same columns.

Iceberg changes a schema without making a snapshot, so that snapshot ids alone call an MV fresh whose query now reads other columns under
the same names, or none. The specifications have no place for it: mvbuild notes the schema that each refresh read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mvbuild.freshness.observed import Pin
from mvbuild.ports.catalog import Schema, TableState

SCHEMA_READ = "mvbuild.base.schema."
"""Prefix of properties of the storage table: UUID of a base table -> the id of its schema that the refresh read."""
_STAR = re.compile(r"(?:select|distinct|all|,|\.)\s*\*|\bnatural\b|\btable\b", re.IGNORECASE)
"""What takes columns without naming them. Too often is safe."""
_WORD = re.compile(r"\w+")


def schemas_read(pins: Iterable[Pin]) -> dict[str, str]:
    """For tables that are read with their current schema; one that the user pinned to a version has that version's."""
    return {SCHEMA_READ + p.table.uuid: str(p.table.current_schema_id) for p in pins if p.moves and p.table.uuid}


def stale_schemas(properties: Mapping[str, str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """Notes of earlier refreshes that are not made again."""
    return tuple(k for k in properties if k.startswith(SCHEMA_READ) and k not in kept)


def changed_columns(storage: TableState, table: TableState, texts: Sequence[str]) -> tuple[str, ...]:
    """Columns that the refresh knew, that the SQL may mean, and that are gone, renamed, or of another type; with a star in the SQL new ones
    as well. Empty if nothing is known."""
    noted = storage.properties.get(SCHEMA_READ + table.uuid, "")
    before = table.schemas.get(int(noted)) if noted.isdigit() else None
    if before is None or int(noted) == table.current_schema_id:
        return ()
    was, now = dict(_columns(before)), dict(_columns(table.schema))
    star = any(_STAR.search(text) for text in texts)
    words = {word for text in texts for word in _WORD.findall(text.lower())}
    lost = [name for name, column in was.items() if now.get(name) != column]
    return tuple(n for n in lost if star or _is_meant(n, words, texts)) + tuple(n for n in now if star and n not in was)


def _is_meant(name: str, words: set[str], texts: Sequence[str]) -> bool:
    """A column that the SQL reads is named in it, unless a star takes it. A field goes with its struct."""
    column = name.partition(".")[0]
    return column in words if _WORD.fullmatch(column) else any(column in text.lower() for text in texts)


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
