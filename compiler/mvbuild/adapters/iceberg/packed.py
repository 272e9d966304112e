"""parts of metadata that most runs never read -> bytes, which are unpacked while they are used.

A run observes every table of a project and reads a few fields of each. As Python objects, the histories and schemas of ten thousand tables
would fill gigabytes. Unpacking a part takes a fraction of the time that reading it took.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, overload

_LONG = 4096
"""In bytes: compressing smaller parts costs more than it saves."""
_IN_USE = 64
"""How many parts stay unpacked: rules ask several questions about one table, then continue with the next."""

_K = TypeVar("_K")
_V = TypeVar("_V")


def _pack(value: Any) -> bytes:
    packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return b"z" + zlib.compress(packed, 1) if len(packed) > _LONG else b"p" + packed


@lru_cache(_IN_USE)
def _unpack(packed: bytes) -> Any:
    content = packed[1:]
    return pickle.loads(zlib.decompress(content) if packed[:1] == b"z" else content)


class PackedMapping(Mapping[_K, _V]):
    """A mapping of JSON values."""

    __slots__ = ("_packed",)

    def __init__(self, value: Mapping[_K, _V]) -> None:
        self._packed = _pack(dict(value))

    def __getitem__(self, key: _K) -> _V:
        found: _V = _unpack(self._packed)[key]
        return found

    def __iter__(self) -> Iterator[_K]:
        return iter(_unpack(self._packed))

    def __len__(self) -> int:
        return len(_unpack(self._packed))

    def __contains__(self, key: object) -> bool:
        return key in _unpack(self._packed)


class PackedSequence(Sequence[_V]):
    """A sequence of JSON values; its slices are tuples."""

    __slots__ = ("_packed",)

    def __init__(self, values: Sequence[_V]) -> None:
        self._packed = _pack(tuple(values))

    @overload
    def __getitem__(self, at: int) -> _V: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[_V, ...]: ...

    def __getitem__(self, at: int | slice) -> _V | tuple[_V, ...]:
        found: _V | tuple[_V, ...] = _unpack(self._packed)[at]
        return found

    def __len__(self) -> int:
        return len(_unpack(self._packed))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(_unpack(self._packed))
