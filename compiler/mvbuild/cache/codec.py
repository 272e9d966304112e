"""values of dataclasses, with places in one file <-> JSON text. Reading a text that another user wrote runs nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import date
from sys import intern
from types import MappingProxyType
from typing import Any

from mvbuild.source import MappedText, Segment, SourceFile, SourceMap, Span

_PLAIN = frozenset((type(None), str, int, float, bool))
"""Types that JSON has."""


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
        if kind in _PLAIN:
            return value
        if kind is Span:
            if value.file is not file:
                raise Uncacheable
            return [0, value.start, value.end]
        if kind is tuple:
            return [1, *self._all(value, file)]
        if kind is list:
            return [2, *self._all(value, file)]
        if kind in (dict, MappingProxyType):
            return [3 if kind is dict else 4, *self._all((part for pair in value.items() for part in pair), file)]
        if kind is date:
            return [5, value.isoformat()]
        if kind is MappedText:
            return [6, value.text, *_flat(value.map, file)]
        index, names = self._names.get(kind, (None, ()))
        if index is None:
            raise Uncacheable
        return [index + 7, *self._all([getattr(value, name) for name in names], file)]

    def _all(self, values: Iterable[Any], file: SourceFile) -> list[Any]:
        return [value if type(value) in _PLAIN else self._plain(value, file) for value in values]

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
