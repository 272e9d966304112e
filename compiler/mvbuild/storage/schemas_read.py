"""storage table -> the schemas with which its last refresh read the base tables.

Iceberg changes a schema without making a snapshot. The specifications have no place for it, so mvbuild records the schema that each refresh
read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from mvbuild.formats.metadata_rules import field_ids
from mvbuild.ports.states import TableState
from mvbuild.storage.history import refreshed_at
from mvbuild.storage.schema_difference import mark_of

SCHEMA_READ = "mvbuild.base.schema."
"""Prefix of properties of the storage table, and of keys of a snapshot's summary: UUID of a base table, and the branch if it is not
`main` -> `id:mark:names` of the schema that the refresh read, without `names` if the table has no such property.
Earlier releases wrote the id alone."""
REMOVED = -1
"""Instead of the id of a schema that the table does not have any more, or by which its files are not read any more."""
_NAME_MAPPING = "schema.name-mapping.default"
"""Iceberg's property for files without field ids, as `add_files`, `snapshot` and `migrate` take them in: which names are which field."""


def schemas_read(tables: Iterable[tuple[TableState, str | None]]) -> dict[str, str]:
    """The properties for tables, each with its branch, that are read with their current schema. Nothing is recorded for two tables with one
    UUID (`register_table`) whose schemas differ."""
    found: dict[str, set[str]] = {}
    for table, branch in tables:
        if table.uuid:
            parts = (str(table.current_schema_id), mark_of(table.schema), _names_mark(table, table.current_schema_id))
            found.setdefault(_key(table, branch), set()).add(":".join(part for part in parts if part))
    return {key: str(*schemas) for key, schemas in found.items() if len(schemas) == 1}


def recorded_schema_id(storage: TableState, table: TableState, branch: str | None, read: int | None) -> int | None:
    """The id of the schema with which the last refresh read the snapshot `read` of a table, or REMOVED; None if it was not recorded.

    `expire_snapshots` can remove a schema that no snapshot was written with, and the next new one has its id. A new column takes its name
    from the column that had it before in files without field ids, which then has no values in them.
    """
    text, *marks = _recorded(storage, _key(table, branch)).split(":")
    mark, names = (*marks, None, None)[:2]
    if not text.isdigit():
        return None
    id_, snapshot = int(text), table.snapshots.get(read) if read is not None else None
    if id_ not in table.schemas:
        return REMOVED
    is_kept = snapshot is not None and snapshot.schema_id == id_
    is_same = is_kept or mark in (None, mark_of(table.schemas[id_]))
    return id_ if is_same and names in (None, _names_mark(table, id_)) else REMOVED


def _names_mark(table: TableState, schema_id: int) -> str:
    """Empty without the property, which the first `add_files` sets. Columns that are added or renamed later do not change it."""
    text = table.properties.get(_NAME_MAPPING)
    if not text:
        return ""
    try:
        read = table.schemas[schema_id]
        known = {id_ for _, id_ in field_ids(read)}
        later = {named for id_, schema in table.schemas.items() if id_ > schema_id for named in _named(schema["fields"])}
        later.difference_update(_named(read["fields"]))
        given = ((id_, [name for name in names if (id_, name) not in later]) for id_, names in _names(json.loads(text)) if id_ in known)
        text = repr(sorted(given))
    except (ValueError, LookupError, TypeError, AttributeError):
        pass  # not a mapping: any other text is another one
    return blake2b(text.encode(), digest_size=4).hexdigest()


def _named(fields: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    for field in fields:
        yield field["id"], field["name"]
        if isinstance(field["type"], Mapping):
            yield from _named(field["type"].get("fields") or ())


def _names(fields: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, list[str]]]:
    for field in fields:
        if (id_ := field.get("field-id")) is not None:
            yield id_, sorted(field.get("names") or ())
        yield from _names(field.get("fields") or ())


def _recorded(storage: TableState, key: str) -> str:
    """A rollback removes the properties, which are those of another refresh."""
    current = storage.current_snapshot
    if key in storage.properties or current is None:
        return storage.properties.get(key, "")
    summary = refreshed_at(storage, current).summary
    # Spark may write the keys of summaries in lower case.
    return summary.get(key, summary.get(key.lower(), ""))


def _key(table: TableState, branch: str | None) -> str:
    return f"{SCHEMA_READ}{table.uuid}{f'.{branch}' if branch else ''}"


def stale_schemas(properties: Mapping[str, str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """Schema properties of earlier refreshes that are not set again."""
    return tuple(k for k in properties if k.startswith(SCHEMA_READ) and k not in kept)
