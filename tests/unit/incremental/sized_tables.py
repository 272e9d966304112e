"""Tables and changes of any size -> what the estimates read of them: the totals of a snapshot's summary, and counts of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from mvbuild.ports.changes import ChangePart, FileGroup, TableChange
from mvbuild.ports.states import TableState

READ: Any = SimpleNamespace(share=lambda *_: 0.01, range=lambda *_: None, reads_here=lambda *_: True, irrelevant=lambda *_: {})


def sized(table: TableState, rows: int, types: Mapping[str, Any]) -> TableState:
    assert table.current_snapshot is not None
    summary = {"total-records": str(rows), "total-files-size": str(rows * 40), "total-data-files": "50"}
    snapshot = replace(table.current_snapshot, summary=summary, schema_id=0)
    fields = [{"id": at, "name": name, "type": type_, "required": False} for at, (name, type_) in enumerate(types.items(), 1)]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    properties = {"write.delete.mode": "merge-on-read"}
    return replace(
        table, snapshots={snapshot.snapshot_id: snapshot}, schemas={0: schema}, current_schema_id=0, properties=properties, partition_by=()
    )


def deleted(table: TableState, rows: int) -> TableChange:
    files = FileGroup(files=1, rows=rows * 10, bytes=rows * 400)
    part = ChangePart(
        old=1,
        new=2,
        added=FileGroup(),
        removed=FileGroup(),
        altered=files,
        only_deletes=True,
        had_deletes=False,
        deleted_rows=rows,
        files=(),
    )
    return TableChange(table=table, old=1, new=2, parts=(part,), manifests_read=0, manifest_bytes_read=0)


def rewritten(table: TableState, rows: int) -> TableChange:
    """The same rows deleted, with a file that has a hundred times as many (copy-on-write)."""
    found = deleted(table, rows)
    old, new = (FileGroup(files=1, rows=count, bytes=count * 40) for count in (rows * 100, rows * 99))
    return replace(found, parts=(replace(found.parts[0], added=new, removed=old, altered=FileGroup(), deleted_rows=0),))
