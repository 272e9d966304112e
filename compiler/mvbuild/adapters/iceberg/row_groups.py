"""Parquet file + positions, or a range of a column -> the row groups to read, and which of their rows are wanted."""

from __future__ import annotations

from dataclasses import field
from threading import Lock
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.exact_files import Inexact
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]


@dataclass(slots=True, kw_only=True)
class Within:
    """A range of a column, and how many values and bytes may still be read to find its rows: files are read in parallel."""

    id: int
    """The field id of the column: an int, a long or a date."""
    low: int
    high: int
    values: int
    bytes: int
    _lock: Lock = field(default_factory=Lock)

    def take(self, values: int, size: int) -> None:
        """Raises Inexact if these are too many."""
        with self._lock:
            self.values -= values
            self.bytes -= size
            if min(self.values, self.bytes) < 0:
                raise Inexact("too much to read")


def with_positions(file: ParquetFile, positions: np.ndarray | None) -> tuple[Sequence[int], np.ndarray | None]:
    """The row groups with these positions, and the positions among the rows of those groups. None: all rows."""
    import numpy as np

    if positions is None:
        return range(file.metadata.num_row_groups), None
    of = _group_of(file, positions)
    groups = np.unique(of).tolist()
    return groups, _among(file, groups, positions, of)


def rows_within_range(file: ParquetFile, names: dict[int, str], within: Within, hidden: np.ndarray | None) -> pa.Table:
    """The rows in a range, but not those at the hidden positions: from the row groups whose statistics allow such rows. `names`: field id
    -> the name of the column in the file. Raises Inexact if there is too much to read."""
    import numpy as np
    import pyarrow as pa

    columns, key = list(names.values()), names.get(within.id)
    # In a file without the column, it is NULL in every row.
    groups = [at for at in range(file.metadata.num_row_groups) if key is not None and _may_have(file, at, key, within)]
    for group in groups:
        within.take(*_size(file, group, columns))
    table = file.read_row_groups(groups, columns=columns)
    if key is None or not table.num_rows:
        return table
    stays = _is_within(table.column(key), within)
    if hidden is not None and len(hidden):
        of = _group_of(file, hidden)
        is_read = np.isin(of, groups)
        stays[_among(file, groups, hidden[is_read], of[is_read])] = False
    return table.filter(pa.array(stays))


def _sizes(file: ParquetFile) -> np.ndarray:
    """The number of rows of each row group."""
    import numpy as np

    return np.array([file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)], dtype=np.int64)


def _group_of(file: ParquetFile, positions: np.ndarray) -> np.ndarray:
    """The row group of each position."""
    import numpy as np

    ends = np.cumsum(_sizes(file))
    if len(positions) and positions[-1] >= (ends[-1] if len(ends) else 0):
        raise Inexact("a position that the file does not have")
    return np.searchsorted(ends, positions, side="right")


def _among(file: ParquetFile, groups: Sequence[int], positions: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Positions in a file, each in one of these row groups -> the positions among the rows of those groups."""
    import numpy as np

    sizes = _sizes(file)
    read = sizes[groups]
    # How many rows before each group are not read.
    skipped = (np.cumsum(sizes) - sizes)[groups] - (np.cumsum(read) - read)
    found: np.ndarray = positions - skipped[np.searchsorted(groups, of)]
    return found


def _size(file: ParquetFile, group: int, names: Sequence[str]) -> tuple[int, int]:
    """How many values these columns have, where a text also counts for its bytes, and how many bytes in the file."""
    parts = file.metadata.row_group(group)
    chunks = [one for at in range(parts.num_columns) if (one := parts.column(at)).path_in_schema in names]
    texts = sum(one.total_uncompressed_size for one in chunks if one.physical_type == "BYTE_ARRAY")
    return int(parts.num_rows) * len(names) + int(texts) // 8, sum(one.total_compressed_size for one in chunks)


def _may_have(file: ParquetFile, group: int, name: str, within: Within) -> bool:
    parts = file.metadata.row_group(group)
    # A nested column may have the same path as a column with a dot in its name.
    found = [one for at in range(parts.num_columns) if (one := parts.column(at)).path_in_schema == name]
    statistics = found[0].statistics if len(found) == 1 else None
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min_raw <= within.high and statistics.max_raw >= within.low)


def _is_within(column: pa.ChunkedArray, within: Within) -> np.ndarray:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    values = column.cast(pa.int64())
    found = pc.and_(pc.greater_equal(values, within.low), pc.less_equal(values, within.high))
    return np.array(pc.fill_null(found, False).to_numpy(), dtype=bool)
