"""two bags of rows -> both without the rows that they share, as Arrow tables.

Hashes only find candidates: a pair is cancelled if all its values are equal, bit by bit. A pair that is not found remains on both sides,
which is also right, only more work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]

    _Cell = tuple[np.ndarray, np.ndarray]
    """A part of all values of a column, on the left and the right side."""

_ODD = 0x9E3779B97F4A7C15
_SHIFT = 32
_WORD = 8
"""The width in bytes of the largest numbers that are compared at once."""


def cancelled(plus: pa.Table, minus: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both tables without the shared rows. They must have the same columns, of numbers, times, text or bytes, without nesting."""
    if not plus.num_rows or not minus.num_rows:
        return plus, minus
    cells = _both_cells(plus, minus)
    head = _alike(cells)
    cells = [(left[head:], right[head:]) for left, right in cells]
    tail = _alike([(left[::-1], right[::-1]) for left, right in cells])
    plus, minus = plus.slice(head, plus.num_rows - head - tail), minus.slice(head, minus.num_rows - head - tail)
    if not plus.num_rows or not minus.num_rows:
        return plus, minus
    left, right = _pairs([(left[: plus.num_rows], right[: minus.num_rows]) for left, right in cells])
    return without(plus, left), without(minus, right)


def equal_pairs(one: pa.Table, other: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The positions of rows that are equal, in pairs: of copies of a row, as many as both tables have."""
    return _pairs(_both_cells(one, other))


def _both_cells(one: pa.Table, other: pa.Table) -> list[_Cell]:
    import pyarrow as pa

    return [
        (cell[: one.num_rows], cell[one.num_rows :])
        for column in one.column_names
        for cell in _cells(pa.chunked_array([*one[column].chunks, *other[column].chunks]))
    ]


def without(rows: pa.Table, places: np.ndarray) -> pa.Table:
    """The rows at all other positions."""
    import numpy as np
    import pyarrow as pa

    stays = np.ones(rows.num_rows, dtype=bool)
    stays[places] = False
    return rows.filter(pa.array(stays))


def _alike(cells: Sequence[_Cell]) -> int:
    """How many rows at the beginning are equal: writers that rewrite a file usually omit rows and keep the order."""
    import numpy as np

    rows = min(map(len, cells[0]))
    for left, right in cells:
        same = left[:rows] == right[:rows]
        if not same.all():
            rows = int(np.argmin(same))
    return rows


def _pairs(cells: Sequence[_Cell]) -> tuple[np.ndarray, np.ndarray]:
    """The positions of rows that are equal."""
    left, right = _of_one_hash(*map(_hashes, zip(*cells, strict=True)))
    for one, other in cells:
        same = one[left] == other[right]
        if not same.all():
            left, right = left[same], right[same]
    return left, right


def _hashes(cells: Sequence[np.ndarray]) -> np.ndarray:
    import numpy as np

    found = np.zeros(len(cells[0]), dtype=np.uint64)
    for cell in cells:
        found ^= cell.astype(np.uint64)
        found *= np.uint64(_ODD)
        found ^= found >> np.uint64(_SHIFT)
    return found


def _of_one_hash(lefts: np.ndarray, rights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of positions with the same hash: the first with the first, the second with the second."""
    import numpy as np

    left, right = np.argsort(lefts), np.argsort(rights)
    wanted, offered = lefts[left], rights[right]
    places = np.arange(len(wanted))
    begins = np.concatenate(([True], wanted[1:] != wanted[:-1]))
    at = np.searchsorted(offered, wanted) + places - np.maximum.accumulate(np.where(begins, places, 0))
    found = at < len(offered)
    found[found] = offered[at[found]] == wanted[found]
    return left[found], right[at[found]]


def _cells(column: pa.ChunkedArray) -> Iterator[np.ndarray]:
    """Integers that are equal in two rows if and only if the values are."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif not (pa.types.is_primitive(column.type) or pa.types.is_decimal(column.type)):
        column = pa.chunked_array([chunk.indices for chunk in column.dictionary_encode().chunks])
    array = column.combine_chunks()
    if not array.null_count:
        yield from _words(array)
        return
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    yield valid.astype(np.int8)
    for word in _words(array):
        yield np.where(valid, word, 0)  # the data under a NULL is undefined


def _words(array: pa.Array) -> Iterator[np.ndarray]:
    """The bits of the values."""
    import numpy as np

    size = array.type.byte_width
    words = max(1, size // _WORD)
    bits = np.frombuffer(array.buffers()[1], dtype=f"i{min(size, _WORD)}")
    found = bits[array.offset * words : (array.offset + len(array)) * words].reshape(-1, words)
    for at in range(words):
        yield found[:, at]
