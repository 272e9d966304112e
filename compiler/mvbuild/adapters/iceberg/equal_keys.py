"""equality delete files + a data file -> the positions of the rows that they remove, found in this process by comparing the keys.

Writers that do not know where a row is, as Flink does not, write its key. A row is removed if it equals a key in all columns of the delete;
NULL equals NULL (Iceberg's specification, "Equality Delete Files").
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.exact_files import Inexact
from mvbuild.adapters.iceberg.file_rows import FileRows, RowReader, is_readable
from mvbuild.adapters.iceberg.value_ranges import UNREADABLE, range_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyiceberg.io import FileIO

    from mvbuild.adapters.iceberg.manifests import FileEntry
    from mvbuild.adapters.iceberg.metadata import Raw

MAX_VALUES = 16_000_000
"""The limit of values that are compared with keys for one change. An engine compares more of them faster, with all its processors."""
_ORDERED = ("int", "long", "date")
"""Types whose bounds have an order that all writers and readers agree on."""
_FLOATS = ("float", "double")
"""Types that the specification does not allow in a key: -0.0 and NaN have no agreed equality."""


def may_have_keys(data: FileEntry, delete: FileEntry) -> bool:
    """Whether the bounds of a data file allow rows with keys of an equality delete."""
    return all(_may_equal(data, delete, id_) for id_ in delete.file.equality_ids or ())


def _may_equal(data: FileEntry, delete: FileEntry, id_: int) -> bool:
    try:
        type_ = _types(delete.header.meta["schema"])[id_]
        if type_ not in _ORDERED:
            return True
        rows, keys = range_in([data.file], id_, type_), range_in([delete.file], id_, type_)
    except UNREADABLE:
        return True  # no bounds, or those of a type that was widened since
    if rows.has_null and keys.has_null:
        return True
    return rows.low is not None and keys.low is not None and bool(rows.low <= keys.high and keys.low <= rows.high)


@lru_cache(maxsize=32)
def _types(schema: str) -> dict[int, Any]:
    """Field id -> type of the columns of a schema in JSON."""
    import json

    return {field["id"]: field["type"] for field in json.loads(schema)["fields"]}


class EqualKeys:
    """Finds the rows of equality deletes of one table. Each delete file is read once."""

    def __init__(self, io: FileIO, raw: Raw) -> None:
        self._io, self._raw = io, raw
        specs = raw.get("partition-specs") or ()
        self._partitioned = {spec["spec-id"] for spec in specs if any(field["transform"] != "void" for field in spec["fields"])}
        self._keys: dict[str, pa.Table] = {}
        self._left = MAX_VALUES

    def positions(self, data: FileEntry, deletes: Sequence[FileEntry]) -> np.ndarray:
        """The positions that deletes with a higher number remove from a file, in ascending order. Raises Inexact if there is too much to
        read, or only an engine can compare the values."""
        import numpy as np
        import pyarrow as pa

        of: dict[tuple[int, ...], list[FileEntry]] = {}
        for delete in filter(partial(self._applies, data), deletes):
            of.setdefault(tuple(delete.file.equality_ids or ()), []).append(delete)
        found = [np.empty(0, dtype=np.int64)]
        for ids, same in of.items():
            self._left -= len(ids) * data.file.record_count
            if self._left < 0 or not ids:
                raise Inexact(data.path)
            reader = RowReader(self._io, self._raw, [self._field(id_) for id_ in ids])
            keys = pa.concat_tables([self._of(delete, reader) for delete in same])
            found.append(np.flatnonzero(equal_to_some(reader.table([FileRows(entry=data)]), keys)))
        return np.unique(np.concatenate(found))

    def _applies(self, data: FileEntry, delete: FileEntry) -> bool:
        """Whether a delete of older files applies to a file: to those of all partitions, unless its own spec has partitions. NULL is the
        value of a partition too."""
        return delete.spec_id not in self._partitioned or (delete.spec_id, delete.partition) == (data.spec_id, data.partition)

    def _of(self, delete: FileEntry, reader: RowReader) -> pa.Table:
        if delete.path not in self._keys:
            self._keys[delete.path] = reader.table([FileRows(entry=delete)])
        return self._keys[delete.path]

    def _field(self, id_: int) -> Raw:
        """A column of the current schema: Iceberg's own readers need it too."""
        schema = next(s for s in self._raw["schemas"] if s["schema-id"] == self._raw["current-schema-id"])
        field = next((field for field in schema["fields"] if field["id"] == id_), None)
        if field is None or not is_readable(field) or field["type"] in _FLOATS:
            raise Inexact(f"a key with field {id_}")
        return dict(field)


def equal_to_some(rows: pa.Table, keys: pa.Table) -> np.ndarray:
    """For each row, whether some key equals it in every column; NULL equals NULL."""
    import numpy as np

    # Both get the same number for what they have in the columns so far; -1: no key has it.
    of_rows, of_keys = np.zeros(rows.num_rows, dtype=np.int64), np.zeros(keys.num_rows, dtype=np.int64)
    for name in keys.column_names:
        values = keys[name].unique()
        of_rows = np.where(of_rows < 0, -1, _paired(of_rows, _numbers(rows[name], values), len(values)))
        known, of_keys = np.unique(_paired(of_keys, _numbers(keys[name], values), len(values)), return_inverse=True)
        at = np.searchsorted(known, of_rows)
        of_rows = np.where(np.isin(of_rows, known), at, -1)
    return of_rows >= 0


def _numbers(column: pa.ChunkedArray, values: pa.Array) -> np.ndarray:
    """Where each value is in `values`; -1 if it is not."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    found: np.ndarray = pc.index_in(column, value_set=values).fill_null(-1).to_numpy().astype("int64")
    return found


def _paired(left: np.ndarray, right: np.ndarray, count: int) -> np.ndarray:
    """One number for two, the second below `count`; -1 if it is -1."""
    import numpy as np

    return np.where(right < 0, -1, left * count + right)
