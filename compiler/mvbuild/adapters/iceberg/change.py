"""table metadata + two snapshots -> TableChange: the files that differ, and those whose deletes differ. Reads only manifests.

Manifests of both snapshots are the same on both sides. They are searched only for data files whose deletes differ.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.altered import Deletes, altered_files, had_deletes
from mvbuild.adapters.iceberg.change_steps import stretches
from mvbuild.adapters.iceberg.change_tables import PartFiles, group
from mvbuild.adapters.iceberg.manifest_pruning import matching_deletes
from mvbuild.adapters.iceberg.manifest_reader import ManifestReader
from mvbuild.ports.catalog import ChangeRefused
from mvbuild.ports.changes import ChangePart, TableChange
from mvbuild.ports.states import TableState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile

    from mvbuild.adapters.iceberg.manifest_reader import Manifests
    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw


def table_change(raw: Raw, table: TableState, old: int, new: int, io: FileIO) -> TableChange:
    """The change between the two snapshots directly, or in steps around compactions: whichever has fewer bytes."""
    reader = ManifestReader(io, raw, table.identifier)
    whole = change_part(reader, old, new)
    parts = [whole]
    if whole.bytes:
        steps = _stepwise(reader, table, whole)
        parts = parts if steps is None else steps
    return TableChange(
        table=table,
        old=old,
        new=new,
        parts=tuple(part for part in parts if part.added.files or part.removed.files or part.altered.files),
        manifests_read=reader.manifests_read,
        manifest_bytes_read=reader.bytes_read,
    )


def _stepwise(reader: ManifestReader, table: TableState, whole: ChangePart) -> list[ChangePart] | None:
    """None if that is not possible, or not less to read."""
    steps = stretches(table, whole.old, whole.new)
    if steps is None:
        return None
    found, total = [], 0
    try:
        for old, new in steps:
            found.append(change_part(reader, old, new))
            total += found[-1].bytes
            if total >= whole.bytes:
                return None
    except ChangeRefused:
        return None
    return found


def change_part(reader: ManifestReader, old: int, new: int) -> ChangePart:
    """The difference between the files of two snapshots."""
    before, after = reader.manifests(old), reader.manifests(new)
    common = {m.manifest_path for m in before.data} & {m.manifest_path for m in after.data}
    shared = [m for m in before.data if m.manifest_path in common]
    reader.refuse_dropped_columns(_in_one(before, after), (*before.deletes, *after.deletes))
    removed, kept, added = compared(reader.entries(before.data, common), reader.entries(after.data, common))
    deletes = _deletes(reader, before.deletes, after.deletes)
    altered = altered_files(reader, deletes, kept, shared)
    altered, twice = _split(altered)
    removed, added = [*removed, *twice], [*added, *twice]
    files = PartFiles(
        added=tuple(added),
        removed=tuple(removed),
        altered=tuple(altered),
        old_deletes=matching_deletes(before.deletes, [*removed, *altered]),
        new_deletes=matching_deletes(after.deletes, [*added, *altered]),
    )
    for snapshot_id, manifests in ((old, files.old_deletes), (new, files.new_deletes)):
        reader.refuse_nested_keys(snapshot_id, manifests)
    had = had_deletes(deletes, altered)
    return ChangePart(
        old=old,
        new=new,
        added=group(added),
        removed=group(removed),
        altered=group(altered),
        only_deletes=deletes.only_more(altered, had=had, io=reader.io),
        had_deletes=had,
        deleted_rows=deletes.added_rows(altered),
        files=files,
    )


def _in_one(before: Manifests, after: Manifests) -> list[ManifestFile]:
    """The manifests that only one of two snapshots has."""
    left, right = ({m.manifest_path: m for m in (*one.data, *one.deletes)} for one in (before, after))
    return [manifest for path, manifest in {**left, **right}.items() if path not in left or path not in right]


def _deletes(reader: ManifestReader, before: Sequence[ManifestFile], after: Sequence[ManifestFile]) -> Deletes:
    common = {m.manifest_path for m in before} & {m.manifest_path for m in after}
    gone, kept, fresh = compared(reader.entries(before, common), reader.entries(after, common))
    return Deletes(gone=tuple(gone), fresh=tuple(fresh), kept=tuple(kept), shared=tuple(m for m in before if m.manifest_path in common))


def compared(before: Sequence[FileEntry], after: Sequence[FileEntry]) -> tuple[list[FileEntry], list[FileEntry], list[FileEntry]]:
    """Files only in the first, in both, only in the second. As bags, because a table may list a file twice."""
    left = Counter(entry.key for entry in before)
    both: Counter[object] = Counter()
    kept, added = [], []
    for entry in after:
        if both[entry.key] < left[entry.key]:
            both[entry.key] += 1
            kept.append(entry)
        else:
            added.append(entry)
    removed = []
    for entry in before:
        if both[entry.key]:
            both[entry.key] -= 1
        else:
            removed.append(entry)
    return removed, kept, added


def _split(altered: Sequence[FileEntry]) -> tuple[list[FileEntry], list[FileEntry]]:
    """Files that are listed once, and files that are listed several times, whose rows cannot be distinguished by their position."""
    times = Counter(entry.path for entry in altered)
    return [e for e in altered if times[e.path] == 1], [e for e in altered if times[e.path] > 1]
