"""JSON value + Shape -> RecordError with the first field that does not fit, and why.

Each shape is compiled once into a function, which returns nothing for a value that fits. Otherwise it returns the rule, and where the field
is below the value: the path is put together on the way out, so that it costs nothing for valid files, which are checked on every run. By
hand and not with pydantic, because that would add 70 ms to each start, and its errors do not have these places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from mvbuild.formats.metadata_fields import NESTED_TYPES
from mvbuild.formats.record import RecordError
from mvbuild.formats.shapes import (
    DIGITS,
    LONG_MAX,
    PRIMITIVE,
    Anything,
    Boolean,
    ColumnType,
    Integer,
    ListOf,
    MapOf,
    OneOf,
    Shape,
    Struct,
    Tagged,
    Text,
)

Problem = tuple[str, str]
"""The path below the value, such as `[0].version-id`, and what is wrong there."""
Find = Callable[[Any], "Problem | None"]
_TEXT = frozenset((str,))


def check(path: str, value: object, shape: Shape) -> None:
    """Raise RecordError with the first field, such as `versions[0].version-id`, whose value does not have its shape."""
    problem = _compiled(shape)(value)
    if problem is not None:
        raise RecordError(f"{path}{problem[0]}".removeprefix(".") or "metadata", problem[1])


def expected(shape: Shape) -> str:
    """A description of the values of a shape without parts."""
    if isinstance(shape, Integer):
        least = f" of at least {shape.minimum}" if shape.minimum > -LONG_MAX - 1 else ""
        return f"an integer{least}" + (" or its digits" if shape.digits else "")
    if isinstance(shape, OneOf):
        return " or ".join(f"'{value}'" for value in shape.values)
    if isinstance(shape, Text):
        return shape.means
    return "the name or the object of an Iceberg type" if isinstance(shape, ColumnType) else "true or false"


def is_integer(value: object, least: int = -LONG_MAX - 1, most: int = LONG_MAX) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


@lru_cache(256)
def _compiled(shape: Shape) -> Find:
    if isinstance(shape, Struct):
        return _struct(shape)
    if isinstance(shape, ListOf):
        return _list(shape)
    if isinstance(shape, MapOf):
        return _map(shape)
    if isinstance(shape, Tagged):
        return _tagged(shape.variants)
    if isinstance(shape, ColumnType):
        return _column_type
    return _scalar(shape)


def _scalar(shape: Integer | Text | OneOf | Boolean | Anything) -> Find:
    rule = expected(shape)

    def wrong(value: Any) -> Problem:
        return "", f"must be {rule}, not {_shown(value)}"

    if isinstance(shape, Integer):
        least, most = shape.minimum, shape.maximum
        if shape.digits:
            return lambda v: None if is_integer(int(v) if type(v) is str and re.fullmatch(DIGITS, v) else v, least, most) else wrong(v)
        return lambda value: None if type(value) is int and least <= value <= most else wrong(value)
    if isinstance(shape, Text):
        if not shape.pattern:
            return lambda value: None if type(value) is str else wrong(value)
        matches = re.compile(shape.pattern, re.DOTALL).fullmatch
        return lambda value: None if type(value) is str and matches(value) else wrong(value)
    if isinstance(shape, OneOf):
        values = frozenset(shape.values)
        return lambda value: None if type(value) is str and value in values else wrong(value)
    return (lambda value: None if type(value) is bool else wrong(value)) if isinstance(shape, Boolean) else lambda _: None


def _struct(struct: Struct) -> Find:
    fields = tuple((field.name, _compiled(field.shape), field.required) for field in struct.fields)
    known = frozenset(field.name for field in struct.fields)
    others = _compiled(struct.others) if struct.others is not None else None

    def find(value: Any) -> Problem | None:
        if not _is_object(value):
            return _no_object(value)
        for name, inner, required in fields:
            given = value.get(name)
            if given is None:
                if required:
                    return f".{name}", "must not be null" if name in value else "is missing"
            elif problem := inner(given):
                return _below(f".{name}", problem)
        if others is not None:
            for name, given in value.items():
                if name not in known and (problem := others(given)):
                    return _below(f".{name}", problem)
        return None

    return find


def _list(shape: ListOf) -> Find:
    of, identity = _compiled(shape.of), shape.identity

    def find(value: Any) -> Problem | None:
        if type(value) is not list:
            return "", f"must be a list, not {_shown(value)}"
        if shape.filled and not value:
            return "", "must not be empty"
        if any(map(of, value)):
            return next(_below(f"[{at}]", problem) for at, inner in enumerate(value) if (problem := of(inner)))
        if identity and len({inner[identity] for inner in value}) < len(value):
            ids = [inner[identity] for inner in value]
            at = next(at for at, id in enumerate(ids) if id in ids[:at])
            return f"[{at}].{identity}", f"duplicate {ids[at]!r}"
        return None

    return find


def _map(shape: MapOf) -> Find:
    of, starts = _compiled(shape.of), tuple(known.starts for known in shape.keys)

    def special(key: str, given: Any) -> Problem | None:
        for known in shape.keys:
            if key == known.starts and not known.rest:
                return _compiled(known.of)(given)
            if key.startswith(known.starts) and known.rest:
                return (
                    _compiled(known.of)(given)
                    if re.fullmatch(known.rest, key[len(known.starts) :])
                    else ("", f"must end with {known.means}")
                )
        return of(given)

    def find(value: Any) -> Problem | None:
        if not _is_object(value):
            return _no_object(value)
        if not starts and not any(map(of, value.values())):
            return None
        for key, given in value.items():
            if problem := special(key, given) if key.startswith(starts) else of(given):
                return _below(f".{key}", problem)
        return None

    return find


def _tagged(variants: Mapping[str, Struct]) -> Find:
    finds, tags = {tag: _struct(struct) for tag, struct in variants.items()}, expected(OneOf(values=tuple(variants)))

    def find(value: Any) -> Problem | None:
        if not _is_object(value):
            return _no_object(value)
        tag = value.get("type")
        if type(tag) is str and tag in finds:
            return finds[tag](value)
        return ".type", "is missing" if tag is None else f"must be {tags}, not {_shown(tag)}"

    return find


def _column_type(value: Any) -> Problem | None:
    if type(value) is dict:
        return _nested()(value)
    return None if type(value) is str and _is_primitive(value) else ("", f"must be {expected(ColumnType())}, not {_shown(value)}")


@lru_cache
def _nested() -> Find:
    # Not sooner: the types of its columns are column types again.
    return _tagged(NESTED_TYPES)


@lru_cache(1024)
def _is_primitive(name: str) -> bool:
    if not re.fullmatch(PRIMITIVE, name):
        return False
    precision, *scale = re.findall("[0-9]+", name) if name.startswith("decimal") else ["0"]
    return not scale or int(scale[0]) <= int(precision)


def _is_object(value: Any) -> bool:
    return type(value) is dict and _TEXT.issuperset(map(type, value))


def _no_object(value: Any) -> Problem:
    return "", f"must be a JSON object, not {_shown(value)}"


def _below(path: str, problem: Problem) -> Problem:
    return f"{path}{problem[0]}", problem[1]


def _shown(value: object) -> str:
    """A value in an error message, never longer than a line: an invalid value may have any size."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    if isinstance(value, int):
        return repr(value) if -(10**40) < value < 10**40 else "a number of more than 40 digits"
    if isinstance(value, float) or value is None:
        return "null" if value is None else repr(value)
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"
