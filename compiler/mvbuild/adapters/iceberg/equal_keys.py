"""equality delete files + a data file -> the positions of the rows that they remove, found in this process by comparing the keys.

Writers that do not know where a row is, as Flink does not, write its key. A row is removed if it equals a key in all columns of the delete;
NULL equals NULL (Iceberg's specification, "Equality Delete Files").
"""

from __future__ import annotations

from functools import lru_cache, partial
from math import copysign
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
_LEAST, _MOST = -(2**63), 2**63 - 1
_FLOATS = ("float", "double")
"""Types that the specification does not allow in a key: -0.0 and NaN have no agreed equality."""


class KeyBounds:
    """The bounds of some data files in the columns of keys, as arrays: Flink may leave hundreds of delete files."""

    def __init__(self, data: Sequence[FileEntry]) -> None:
        import numpy as np

        self._data = data
        self._numbers = np.array([entry.sequence_number for entry in data], dtype=np.int64)
        self._columns: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def matches(self, delete: FileEntry) -> list[FileEntry]:
        """The older files that may have rows with keys of an equality delete."""
        found = self._numbers < delete.sequence_number
        for id_ in delete.file.equality_ids or ():
            low, high, has_null = _bounds(delete, id_)
            lows, highs, nulls = self._of(id_)
            found &= ((lows <= high) & (highs >= low)) | (nulls & has_null)
        return [self._data[at] for at in found.nonzero()[0].tolist()]

    def _of(self, id_: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        import numpy as np

        if id_ not in self._columns:
            lows, highs, nulls = zip(*(_bounds(entry, id_) for entry in self._data), strict=True) if self._data else ((), (), ())
            self._columns[id_] = np.array(lows, np.int64), np.array(highs, np.int64), np.array(nulls, bool)
        return self._columns[id_]


def _bounds(entry: FileEntry, id_: int) -> tuple[int, int, bool]:
    """The lowest and the highest value of a column of integers or dates, and whether it may have NULL; the widest if a file has none."""
    try:
        type_ = _types(entry.header.meta["schema"])[id_]
        if type_ not in _ORDERED:
            return _LEAST, _MOST, True
        found = range_in([entry.file], id_, type_)
    except UNREADABLE:
        return _LEAST, _MOST, True
    if found.low is None:
        return _MOST, _LEAST, True  # every value is NULL
    low, high = ((one.toordinal() if type_ == "date" else one) for one in (found.low, found.high))
    return low, high, found.has_null


def has_nested_key(delete: FileEntry) -> bool:
    """Whether an equality delete finds rows by a field of a struct. Spark applies it or not, depending on the columns of the query."""
    known = _types(delete.header.meta.get("schema") or '{"fields": []}')
    return any(id_ not in known for id_ in delete.file.equality_ids or ())


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
        if delete.spec_id not in self._partitioned:
            return True
        return delete.spec_id == data.spec_id and all(map(_is_same, delete.partition, data.partition))

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


def _is_same(left: Any, right: Any) -> bool:
    """Whether two values of a partition are one: 0.0 and -0.0 are two partitions."""
    if isinstance(left, float) and isinstance(right, float):
        return left is right or (left == right and copysign(1, left) == copysign(1, right))
    return bool(left == right)


def equal_to_some(rows: pa.Table, keys: pa.Table) -> np.ndarray:
    """For each row, whether some key equals it in every column; NULL equals NULL. Raises Inexact for text that is not valid UTF-8: the
    reader of Iceberg compares it after it has replaced the wrong bytes."""
    import numpy as np

    if not all(_is_valid(column) for table in (rows, keys) for column in table.columns if _is_text(column.type)):
        raise Inexact("text that is not valid UTF-8")

    # Both get the same number for what they have in the columns so far; -1: no key has it.
    of_rows, of_keys = np.zeros(rows.num_rows, dtype=np.int64), np.zeros(keys.num_rows, dtype=np.int64)
    for name in keys.column_names:
        values = keys[name].unique()
        of_rows = np.where(of_rows < 0, -1, _paired(of_rows, _numbers(rows[name], values), len(values)))
        known, of_keys = np.unique(_paired(of_keys, _numbers(keys[name], values), len(values)), return_inverse=True)
        at = np.searchsorted(known, of_rows)
        of_rows = np.where(np.isin(of_rows, known), at, -1)
    return of_rows >= 0


def _is_text(type_: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_valid(text: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _numbers(column: pa.ChunkedArray, values: pa.Array) -> np.ndarray:
    """Where each value is in `values`; -1 if it is not."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    found: np.ndarray = pc.index_in(column, value_set=values).fill_null(-1).to_numpy().astype("int64")
    return found


def _paired(left: np.ndarray, right: np.ndarray, count: int) -> np.ndarray:
    """One number for two, the second below `count`; -1 if it is -1."""
    import numpy as np

    return np.where(right < 0, -1, left * count + right)
