"""key and text pairs <-> a file with an index: only those entries of a large file are read that are needed.

head     version, offset of the index, number of entries, checksum of the index; of fixed length
texts    in sequence
index    for each text its key, offset, length and checksum; of fixed length, in the order of the keys
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO
from weakref import finalize

KEY = 32
"""The length of keys, which are plain ASCII, and of versions."""
_CHECK = 16
_HEAD = KEY + 1 + 12 + 1 + 12 + 1 + _CHECK + 1
_LINE = KEY + 1 + 12 + 1 + 12 + 1 + _CHECK + 1


class CacheFile:
    """A file as it was when it was opened."""

    def __init__(self, path: Path, version: str) -> None:
        """Raises OSError if there is none, and ValueError for one of another version or a broken one."""
        self._file: BinaryIO = path.open("rb")
        self.close = finalize(self, self._file.close)
        head = self._file.read(_HEAD).decode("ascii")
        if len(head) != _HEAD or not head.startswith(f"{version} "):
            raise ValueError("another version, or an incomplete file")
        _, start, count, check = head.split(" ")
        self._count = int(count)
        if int(start) + self._count * _LINE != self._file.seek(0, SEEK_END):
            raise ValueError("an incomplete file")
        self._file.seek(int(start))
        self._index = self._file.read()
        if _checksum(self._index) != check.rstrip("\n"):
            raise ValueError("broken")

    def __len__(self) -> int:
        return self._count

    def get(self, key: str) -> str | None:
        """None for an entry that does not exist, or is damaged."""
        wanted = key.encode()
        at = bisect_left(range(self._count), wanted, key=self._key)
        return self._text(at) if at < self._count and self._key(at) == wanted else None

    def items(self) -> Iterator[tuple[str, str]]:
        for at in range(self._count):
            text = self._text(at)
            if text is not None:
                yield self._key(at).decode(), text

    def _key(self, at: int) -> bytes:
        return self._index[at * _LINE : at * _LINE + KEY]

    def _text(self, at: int) -> str | None:
        _, start, length, check = self._index[at * _LINE : (at + 1) * _LINE].decode("ascii").split(" ")
        try:
            self._file.seek(int(start))
            text = self._file.read(int(length))
        except OSError:
            return None
        return text.decode() if _checksum(text) == check.rstrip("\n") else None


def write_cache_file(path: Path, version: str, entries: Mapping[str, str]) -> None:
    """Keys and version have KEY characters."""
    at, lines = _HEAD, []
    with path.open("wb") as file:
        file.write(b" " * _HEAD)
        for key, text in entries.items():
            content = text.encode()
            file.write(content)
            lines.append(f"{key} {at:012} {len(content):012} {_checksum(content)}\n")
            at += len(content)
        lines.sort()
        index = "".join(lines).encode("ascii")
        file.write(index)
        file.seek(0)
        file.write(f"{version} {at:012} {len(lines):012} {_checksum(index)}\n".encode("ascii"))


def _checksum(content: bytes) -> str:
    return blake2b(content, digest_size=_CHECK // 2).hexdigest()
