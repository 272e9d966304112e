"""delete files -> whether some of them delete all rows that others did; metadata does not show it, so few, small files are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.private_pyiceberg import deleted_positions

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyiceberg.io import FileIO

    from mvbuild.adapters.iceberg.manifests import FileEntry

MAX_FILES = 32
"""Reading before Spark starts must not take longer than the statement that it saves."""
MAX_ROWS = 500_000
MAX_BYTES = 8_000_000

Positions = dict[str, list[Any]]
"""Path of a data file -> arrays of the positions deleted in it."""


def delete_all_of(io: FileIO, fresh: Sequence[FileEntry], gone: Sequence[FileEntry], data: Collection[str]) -> bool:
    """Whether `fresh` deletes every row that `gone` deletes in some data files. False also if they cannot be read or are too large."""
    both = {id(delete): delete for delete in (*gone, *fresh)}.values()
    if len(both) > MAX_FILES or sum(d.file.record_count for d in both) > MAX_ROWS:
        return False
    if sum({d.path: d.file.file_size_in_bytes for d in both}.values()) > MAX_BYTES:
        return False
    try:
        before, after = _positions(io, gone), _positions(io, fresh)
    except (OSError, ValueError):
        return False
    return all(_holds(after.get(path, []), positions) for path, positions in before.items() if path in data)


def _positions(io: FileIO, deletes: Sequence[FileEntry]) -> Positions:
    found: Positions = {}
    # A file may contain the vectors of many data files; an entry refers to one of them.
    wanted: dict[str, set[str | None]] = {}
    for delete in deletes:
        wanted.setdefault(delete.path, set()).add(delete.referenced)
    for delete in {d.path: d for d in deletes}.values():
        for path, positions in deleted_positions(io, delete.file).items():
            if None in wanted[delete.path] or path in wanted[delete.path]:
                found.setdefault(path, []).append(positions)
    return found


def _holds(outer: list[Any], inner: list[Any]) -> bool:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    known, asked = (pa.chunked_array([c.cast(pa.int64()) for a in arrays for c in a.chunks], pa.int64()) for arrays in (outer, inner))
    return len(asked) == 0 or bool(pc.all(pc.is_in(asked, value_set=known.combine_chunks())).as_py())
