"""Trino's `dependsOnTables` in a storage snapshot's summary -> RefreshRecord. Only read, never written.

Source: trinodb/trino, plugin/trino-iceberg, `TrinoCatalog` and `AbstractTrinoCatalog`: entries `schema.table=snapshotId`, separated by
commas; nothing after `=` for a table without snapshots; the entry `UNKNOWN` for everything that is not an Iceberg table of the same
catalog. Old versions put the catalog before the schema. UUIDs and the view's version are not recorded.
"""

from __future__ import annotations

import re

from mvbuild.formats.record import NO_SNAPSHOT, BaseTable, RecordError, RefreshRecord

KEY = "dependsOnTables"
_UNKNOWN = "UNKNOWN"
_SNAPSHOT = re.compile(r"-?[0-9]{1,19}")


def decode(value: str) -> RefreshRecord:
    """`incomplete` if Trino read something that it could not name, or names nothing at all. Raises RecordError for text that Trino would
    refuse."""
    entries = [entry.strip() for entry in value.split(",")] if value.strip() else [_UNKNOWN]
    tables = dict.fromkeys(_table(entry) for entry in entries if entry != _UNKNOWN)
    return RefreshRecord(view_version_id=None, base_tables=tuple(tables), incomplete=_UNKNOWN in entries)


def _table(entry: str) -> BaseTable:
    name, equals, snapshot = entry.partition("=")
    parts = name.split(".")
    if not equals or len(parts) not in (2, 3) or not all(parts):
        raise RecordError(KEY, f"must contain entries 'schema.table=snapshot', not {entry[:80]!r}")
    if snapshot and not _SNAPSHOT.fullmatch(snapshot):
        raise RecordError(KEY, f"must contain integers as snapshots, not {snapshot[:40]!r}")
    # Trino's name of the catalog has no meaning to other engines, and Trino does not check it either.
    return BaseTable(uuid="", snapshot_id=int(snapshot) if snapshot else NO_SNAPSHOT, namespace=(parts[-2],), name=parts[-1])
