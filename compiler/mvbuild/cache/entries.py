"""results of compiling a file <-> target/compile-cache: reading, rendering and parsing are not repeated while nothing changed.

An entry is found by a hash of everything that its value depends on, and contains only JSON, so that reading a file of another user runs
nothing. A file of another version, or a broken or half-written one, is ignored.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields
from datetime import date
from functools import cached_property, lru_cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import Any

from mvbuild import __version__
from mvbuild.cache.file import CacheFile, write_cache_file
from mvbuild.source import MappedText, Segment, SourceFile, SourceMap, Span

NAME = "compile-cache"
_LIBRARIES = ("sqlglot", "sqlglotc", "jinja2", "markupsafe", "pyyaml")

_PARTS = ("project", "parse", "graph", "diagnostics", "formats", "artifacts", "lineage", "dialects")
"""Packages that take part in compiling."""


class Cache:
    """Key -> JSON text, read on demand. Only entries that were used are saved."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._used: dict[str, str] = {}
        self._forgotten: set[str] = set()
        self._is_new = False
        self._is_saved = False
        """Whether all entries that were used are in the file."""
        self.is_whole = True
        """Whether all relevant entries will have been used. A command that reads a part must not write, because it would lose the rest."""

    def get(self, key: str) -> str | None:
        found = self._used.get(key)
        if found is None and self._known is not None and key not in self._forgotten:
            found = self._known.get(key)
            if found is not None:
                self._used[key] = found
        return found

    def put(self, key: str, value: str) -> None:
        if self._path is not None:
            self._used[key] = value
            self._forgotten.discard(key)
            self._is_new = True

    def forget(self, key: str) -> None:
        """Remove an entry that could not be used."""
        self._used.pop(key, None)
        self._forgotten.add(key)

    def save(self) -> None:
        """Write only into an existing folder; a command that only reads does not create one. A failure to write is ignored: it only makes
        the next run slower."""
        known = dict(self._known.items()) if self._is_saved and self._is_new and self._known is not None else {}
        is_changed = self._is_new or (not self._is_saved and len(self._used) != len(self._known or ()))
        if self._path is None or not self.is_whole or not is_changed:
            return
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            write_cache_file(temporary, code_version(), {**known, **self._used})
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            return
        # What is in the file need not be in memory: for a large project that is a lot.
        self._used.clear()
        if self._known is not None:
            self._known.close()
        self.__dict__.pop("_known", None)
        self._is_new, self._is_saved = False, True

    @cached_property
    def _known(self) -> CacheFile | None:
        with suppress(OSError, ValueError):
            return CacheFile(self._path, code_version()) if self._path is not None else None
        return None


def digest(*parts: object) -> str:
    """A key made from everything that a value depends on."""
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@lru_cache(maxsize=1)
def code_version() -> str:
    """The version of all code that takes part in compiling. An installation under development keeps one version number, so the files count
    too."""
    package = Path(__file__).parent.parent
    found = (p for part in _PARTS for pattern in ("*.py", "*.json") for p in (package / part).glob(pattern))
    stamps = sorted((str(p.relative_to(package)), (s := p.stat()).st_mtime_ns, s.st_size) for p in (*found, package / "source.py"))
    return digest(__version__, sys.version_info[:3], [_version(name) for name in _LIBRARIES], stamps)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


class Uncacheable(Exception):
    """A value that a cache does not store."""


class Codec:
    """Values of some dataclasses, with places in one file <-> JSON text."""

    def __init__(self, classes: Iterable[type[Any]]) -> None:
        self._classes = tuple(classes)
        self._names = {kind: (i, tuple(f.name for f in fields(kind))) for i, kind in enumerate(self._classes)}
        self._makers = [_maker(kind) for kind in self._classes]

    def dumps(self, value: Any, file: SourceFile) -> str:
        """Raises Uncacheable."""
        try:
            return json.dumps(self._plain(value, file), separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as exc:
            raise Uncacheable from exc

    def loads(self, text: str, file: SourceFile) -> Any:
        """Raises Uncacheable for a text that this codec did not write."""
        try:
            return self._value(json.loads(text), file)
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as exc:
            raise Uncacheable from exc

    def _plain(self, value: Any, file: SourceFile) -> Any:
        kind = type(value)
        if value is None or kind in (str, int, float, bool):
            return value
        if kind is Span:
            if value.file is not file:
                raise Uncacheable
            return [0, value.start, value.end]
        if kind is tuple:
            return [1, *[self._plain(item, file) for item in value]]
        if kind is list:
            return [2, *[self._plain(item, file) for item in value]]
        if kind in (dict, MappingProxyType):
            flat = [self._plain(part, file) for pair in value.items() for part in pair]
            return [3 if kind is dict else 4, *flat]
        if kind is date:
            return [5, value.isoformat()]
        if kind is MappedText:
            return [6, value.text, *_flat(value.map, file)]
        index, names = self._names.get(kind, (None, ()))
        if index is None:
            raise Uncacheable
        return [index + 7, *[self._plain(getattr(value, name), file) for name in names]]

    def _value(self, plain: Any, file: SourceFile) -> Any:
        if type(plain) is not list:
            return plain
        kind = plain[0]
        if kind == 0:
            return Span(file, plain[1], plain[2])
        if kind == 6:
            return MappedText(plain[1], _source_map(plain, file))
        value = self._value
        # The same few names occur again and again.
        items = [intern(item) if type(item) is str else item if type(item) is not list else value(item, file) for item in plain]
        if kind == 1:
            return tuple(items[1:])
        if kind == 2:
            return items[1:]
        if kind in (3, 4):
            found = dict(zip(items[1::2], items[2::2], strict=True))
            return found if kind == 3 else MappingProxyType(found)
        if kind == 5:
            return date.fromisoformat(items[1])
        return self._makers[kind - 7](items)


def _flat(source_map: SourceMap, file: SourceFile) -> list[int | bool]:
    """For each segment its offset, the start and end of its origin, and whether it was copied."""
    flat: list[int | bool] = []
    for segment in source_map.segments:
        origin = segment.origin
        if origin.file is not file:
            raise Uncacheable
        flat += (segment.offset, origin.start, origin.end, segment.verbatim)
    return flat


def _source_map(plain: list[Any], file: SourceFile) -> SourceMap:
    found = zip(plain[2::4], plain[3::4], plain[4::4], plain[5::4], strict=True)
    return SourceMap(tuple([Segment(offset, Span(file, start, end), verbatim) for offset, start, end, verbatim in found]))


def _maker(kind: type[Any]) -> Callable[[list[Any]], Any]:
    """Fields in order, after the number of the class -> an instance."""
    names = tuple(f.name for f in fields(kind))

    def make(items: list[Any]) -> Any:
        return kind(**dict(zip(names, items[1:], strict=True)))

    return make
