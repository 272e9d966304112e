"""delete manifests + data files -> the positions that are deleted in each file, read from delete files and deletion vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.altered import FilesByDelete
from mvbuild.adapters.iceberg.deleted_rows import MAX_BYTES, MAX_FILES, MAX_ROWS
from mvbuild.adapters.iceberg.exact_files import Inexact
from mvbuild.adapters.iceberg.manifests import read_entries
from mvbuild.adapters.iceberg.private_pyiceberg import deleted_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile

    from mvbuild.adapters.iceberg.equal_keys import EqualKeys
    from mvbuild.adapters.iceberg.manifests import FileEntry

MAX_MANIFESTS = 32
"""Reading more delete manifests takes longer than the engine's statement, which reads them in parallel."""


def deleted_in(io: FileIO, manifests: Sequence[ManifestFile], data: Sequence[FileEntry], keys: EqualKeys | None = None) -> list[np.ndarray]:
    """For each data file, the positions that the deletes of these manifests remove from it, in ascending order.

    Raises Inexact if there is too much to read, or an equality delete applies and there are no `keys` to find its rows.
    """
    import numpy as np

    nothing = np.empty(0, dtype=np.int64)
    if not manifests or not data:
        return [nothing] * len(data)
    applied = _applied(io, manifests, data)
    read = _Read(io, [delete for deletes in applied.values() for delete in deletes])
    found = []
    for entry in data:
        deletes = applied.get(id(entry), ())
        positions = [read.of(delete, entry.path) for delete in deletes if not delete.is_equality]
        if equal := [delete for delete in deletes if delete.is_equality]:
            if keys is None:
                raise Inexact("equality deletes")
            positions.append(keys.positions(entry, equal))
        found.append(np.unique(np.concatenate(positions)) if positions else nothing)
    return found


def _applied(io: FileIO, manifests: Sequence[ManifestFile], data: Sequence[FileEntry]) -> dict[int, list[FileEntry]]:
    """Data file, by its identity -> the deletes that apply to it. A deletion vector replaces all position deletes of its file."""
    if len(manifests) > MAX_MANIFESTS:
        raise Inexact(f"{len(manifests)} delete manifests")
    index = FilesByDelete(data)
    found: dict[int, list[FileEntry]] = {}
    for manifest in manifests:
        for delete in read_entries(io, manifest):
            for entry in index.matches(delete):
                found.setdefault(id(entry), []).append(delete)
    for at, deletes in found.items():
        if any(delete.vector for delete in deletes):
            found[at] = [delete for delete in deletes if delete.vector or delete.is_equality]
    return found


class _Read:
    """Delete files, each read once."""

    def __init__(self, io: FileIO, deletes: Sequence[FileEntry]) -> None:
        files = {delete.path: delete for delete in deletes}
        if (
            len(files) > MAX_FILES
            or sum(d.file.record_count for d in {id(d): d for d in deletes}.values()) > MAX_ROWS
            or sum(d.file.file_size_in_bytes for d in files.values()) > MAX_BYTES
        ):
            raise Inexact(f"{len(files)} delete files")
        self._positions: dict[str, Any] = {
            path: deleted_positions(io, delete.file) for path, delete in files.items() if not delete.is_equality
        }

    def of(self, delete: FileEntry, path: str) -> np.ndarray:
        import numpy as np

        positions = self._positions[delete.path].get(path)
        return np.empty(0, dtype=np.int64) if positions is None else positions.to_numpy().astype(np.int64)
