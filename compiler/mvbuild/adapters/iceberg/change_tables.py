"""TableChange -> scratch tables that list only its files: the metadata of a pinned snapshot over new manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mvbuild.dataclass import dataclass
from mvbuild.formats.record import NO_SNAPSHOT
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import ChangeRefused
from mvbuild.ports.changes import ChangePart, FileGroup, StagedChange, StagedPart, TableChange
from mvbuild.ports.states import TableState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ICEBERG = ("iceberg-metastore", "iceberg-filesystem")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFiles:
    """The files of a part. Their type is that of the data adapter."""

    added: tuple[Any, ...] = ()
    removed: tuple[Any, ...] = ()
    altered: tuple[Any, ...] = ()
    old_deletes: tuple[Any, ...] = ()
    """Delete manifests of `old` that may apply to these files."""
    new_deletes: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """Some files of a snapshot."""

    snapshot_id: int
    files: tuple[Any, ...]
    deletes: tuple[Any, ...]
    group: FileGroup


def group(entries: Iterable[Any]) -> FileGroup:
    sizes = [(entry.file.record_count, entry.file.file_size_in_bytes) for entry in entries]
    return FileGroup(files=len(sizes), rows=sum(rows for rows, _ in sizes), bytes=sum(size for _, size in sizes))


def require_change(table: TableState, old: int, new: int) -> None:
    """Raise ChangeRefused for reasons that the state of the table shows."""
    if table.type not in _ICEBERG:
        raise ChangeRefused("non-iceberg-source", f"{table.identifier} is not an Iceberg table: its changes cannot be read.")
    for snapshot_id in (old, new):
        if snapshot_id != NO_SNAPSHOT and snapshot_id not in table.snapshots:
            raise ChangeRefused("snapshot-expired", f"Snapshot {snapshot_id} of {table.identifier} has expired.")


def stage(
    change: TableChange,
    new_scratch: Callable[[], TableIdentifier],
    register: Callable[[Subset, TableIdentifier], None],
    drop: Callable[[TableIdentifier], None],
) -> StagedChange:
    """Create all scratch tables of a change, each by `register`, or none of them."""
    made: list[TableIdentifier] = []

    def table(subset: Subset) -> TableIdentifier | None:
        if not subset.files:
            return None
        scratch = new_scratch()
        register(subset, scratch)
        made.append(scratch)
        return scratch

    try:
        return StagedChange(parts=tuple(_staged(part, table) for part in change.parts))
    except BaseException:
        for scratch in made:
            drop(scratch)
        raise


def _staged(part: ChangePart, table: Callable[[Subset], TableIdentifier | None]) -> StagedPart:
    files: PartFiles = part.files
    return StagedPart(
        added=table(Subset(snapshot_id=part.new, files=files.added, deletes=files.new_deletes, group=part.added)),
        removed=table(Subset(snapshot_id=part.old, files=files.removed, deletes=files.old_deletes, group=part.removed)),
        altered_old=table(Subset(snapshot_id=part.old, files=files.altered, deletes=files.old_deletes, group=part.altered)),
        altered_new=table(Subset(snapshot_id=part.new, files=files.altered, deletes=files.new_deletes, group=part.altered)),
        only_deletes=part.only_deletes,
        had_deletes=part.had_deletes,
    )
