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

_ODD = 0x9E3779B97F4A7C15
_SHIFT = 32
_BLOCK = 1 << 16
"""Rows that are compared at once: few enough for the caches of a processor."""
_WORD = 8
"""The width in bytes of the largest numbers that are compared at once."""


def cancelled(plus: pa.Table, minus: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both tables without the shared rows. They must have the same columns, of numbers, times, text or bytes, without nesting."""
    if not plus.num_rows or not minus.num_rows:
        return plus, minus
    head = _alike(plus, minus)
    plus, minus = plus.slice(head), minus.slice(head)
    tail = _alike(plus, minus, at_end=True)
    plus, minus = plus.slice(0, plus.num_rows - tail), minus.slice(0, minus.num_rows - tail)
    if not plus.num_rows or not minus.num_rows:
        return plus, minus
    left, right = equal_pairs(plus, minus)
    return without(plus, left), without(minus, right)


def equal_pairs(one: pa.Table, other: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The positions of rows that are equal, in pairs: of copies of a row, as many as both tables have."""
    import pyarrow as pa

    both = [pa.chunked_array([*one[name].chunks, *other[name].chunks]) for name in one.column_names]
    found = (cell for column in both for cell in _cells(column, nullable=bool(column.null_count)))
    cells = [(cell[: one.num_rows], cell[one.num_rows :]) for cell in found]
    left, right = _of_one_hash(*map(_hashes, zip(*cells, strict=True)))
    for ours, theirs in cells:
        same = ours[left] == theirs[right]
        if not same.all():
            left, right = left[same], right[same]
    return left, right


def without(rows: pa.Table, places: np.ndarray) -> pa.Table:
    """The rows at all other positions."""
    import numpy as np
    import pyarrow as pa

    stays = np.ones(rows.num_rows, dtype=bool)
    stays[places] = False
    return rows.filter(pa.array(stays))


def _alike(one: pa.Table, other: pa.Table, *, at_end: bool = False) -> int:
    """How many rows at the beginning or the end are equal: writers that rewrite a file usually omit rows and keep the order."""
    rows: int = min(one.num_rows, other.num_rows)
    for name in one.column_names:
        left, right = (side[name].slice(len(side[name]) - rows if at_end else 0, rows) for side in (one, other))
        rows = _alike_of_column(left, right, at_end=at_end)
    return rows


def _alike_of_column(left: pa.ChunkedArray, right: pa.ChunkedArray, *, at_end: bool) -> int:
    """The same for two columns of one length, in blocks: what is behind the first difference is not looked at."""
    import numpy as np
    import pyarrow as pa

    rows: int = len(left)
    for begin in range(0, rows, _BLOCK):
        length = min(_BLOCK, rows - begin)
        at = rows - begin - length if at_end else begin
        ours, theirs = left.slice(at, length), right.slice(at, length)
        # For Arrow, 0.0 and -0.0 are equal.
        if not pa.types.is_floating(ours.type) and ours.equals(theirs):
            continue
        same = _are_equal(ours, theirs)
        if not same.all():
            return begin + int(np.argmin(same[::-1] if at_end else same))
    return rows


def _are_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray:
    """For each row of two columns of one length, whether both have the same value."""
    import numpy as np
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    if _has_words(left.type):
        nullable = bool(left.null_count or right.null_count)
        words = zip(_cells(left, nullable=nullable), _cells(right, nullable=nullable), strict=True)
        same: np.ndarray = np.logical_and.reduce([one == other for one, other in words])
        return same
    equal = pc.fill_null(pc.equal(left, right), fill_value=False)
    return np.asarray(pc.or_(equal, pc.and_(left.is_null(), right.is_null())))


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


def _cells(column: pa.ChunkedArray, *, nullable: bool) -> Iterator[np.ndarray]:
    """Integers that are equal in two rows if and only if the values are."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif not _has_words(column.type):
        column = pa.chunked_array([chunk.indices for chunk in column.dictionary_encode().chunks])
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # which copies even one chunk
    if not nullable:
        yield from _words(array)
        return
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    yield valid.astype(np.int8)
    for word in _words(array):
        yield np.where(valid, word, 0)  # the data under a NULL is undefined


def _has_words(type_: pa.DataType) -> bool:
    """Whether equal values have equal bits, all of one length."""
    import pyarrow as pa

    return bool(pa.types.is_primitive(type_) or pa.types.is_decimal(type_))


def _words(array: pa.Array) -> Iterator[np.ndarray]:
    """The bits of the values."""
    import numpy as np

    size = array.type.byte_width
    words = max(1, size // _WORD)
    bits = np.frombuffer(array.buffers()[1], dtype=f"i{min(size, _WORD)}")
    found = bits[array.offset * words : (array.offset + len(array)) * words].reshape(-1, words)
    for at in range(words):
        yield found[:, at]
