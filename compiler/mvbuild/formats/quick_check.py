"""Shape -> a fast yes or no, for the files of a whole project.

`metadata_check.check` finds what is wrong, and is only called if this check fails. Both are derived from the same declarations, and nothing
passes here that would fail there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from mvbuild.formats import metadata_check
from mvbuild.formats.metadata_fields import FILE, NESTED_TYPES
from mvbuild.formats.record import RecordError
from mvbuild.formats.shapes import Anything, Boolean, Choice, ColumnType, Integer, ListOf, MapOf, Shape, Struct, Tagged, Text

Fits = Callable[[Any], bool]
_TEXT = frozenset((str,))


@lru_cache
def of_file() -> Fits:
    """The check of a whole file."""
    return _fits(FILE)


def _fits(shape: Shape) -> Fits:
    if isinstance(shape, Struct):
        return _struct(shape)
    if isinstance(shape, ListOf):
        return _list(shape)
    if isinstance(shape, MapOf):
        return _map(shape)
    if isinstance(shape, Tagged):
        return _tagged({tag: _struct(struct) for tag, struct in shape.variants.items()})
    if isinstance(shape, ColumnType):
        return _column_type
    return _scalar(shape)


def _scalar(shape: Integer | Text | Choice | Boolean | Anything) -> Fits:
    if isinstance(shape, Integer) and not shape.digits:
        least, most = shape.minimum, shape.maximum
        return lambda value: type(value) is int and least <= value <= most
    if isinstance(shape, Text):
        if not shape.pattern:
            return lambda value: type(value) is str
        matches = re.compile(shape.pattern, re.DOTALL).fullmatch
        return lambda value: type(value) is str and matches(value) is not None
    if isinstance(shape, Choice):
        values = frozenset(shape.values)
        return lambda value: type(value) is str and value in values
    if isinstance(shape, Boolean):
        return lambda value: type(value) is bool
    if isinstance(shape, Anything):
        return lambda _: True
    return lambda value: _passes(value, shape)


def _struct(struct: Struct) -> Fits:
    fields = tuple((field.name, _fits(field.shape), field.required) for field in struct.fields)
    known = frozenset(field.name for field in struct.fields)
    others = _fits(struct.others) if struct.others is not None else None

    def fits(value: Any) -> bool:
        if not _is_object(value):
            return False
        for name, inner_fits, required in fields:
            inner = value.get(name)
            if required if inner is None else not inner_fits(inner):
                return False
        return others is None or all(others(inner) for name, inner in value.items() if name not in known)

    return fits


def _list(shape: ListOf) -> Fits:
    of, identity, filled = _fits(shape.of), shape.identity, shape.filled

    def fits(value: Any) -> bool:
        if type(value) is not list or (filled and not value) or not all(map(of, value)):
            return False
        return not identity or len({inner.get(identity) for inner in value}) == len(value)

    return fits


def _map(shape: MapOf) -> Fits:
    of, starts = _fits(shape.of), tuple(known.starts for known in shape.keys)

    def fits(value: Any) -> bool:
        if not _is_object(value) or not all(map(of, value.values())):
            return False
        special = [name for name in value if name.startswith(starts)] if starts else ()
        return all(_passes({name: value[name]}, shape) for name in special)

    return fits


def _tagged(variants: dict[str, Fits]) -> Fits:
    def fits(value: Any) -> bool:
        tag = value.get("type") if type(value) is dict else None
        return type(tag) is str and tag in variants and variants[tag](value)

    return fits


def _column_type(value: Any) -> bool:
    return _primitive(value) if type(value) is str else _nested()(value)


@lru_cache(1024)
def _primitive(name: str) -> bool:
    return _passes(name, ColumnType())


@lru_cache
def _nested() -> Fits:
    return _fits(Tagged(variants=NESTED_TYPES))


def _is_object(value: Any) -> bool:
    return type(value) is dict and _TEXT.issuperset(map(type, value))


def _passes(value: Any, shape: Shape) -> bool:
    try:
        metadata_check.check("", value, shape)
    except RecordError:
        return False
    return True
