"""JSON value + Shape -> RecordError with the first field that does not fit, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mvbuild.formats.metadata_fields import NESTED_TYPES
from mvbuild.formats.record import RecordError
from mvbuild.formats.shapes import (
    DIGITS,
    LONG_MAX,
    PRIMITIVE,
    Anything,
    Choice,
    ColumnType,
    Integer,
    ListOf,
    MapOf,
    Shape,
    Struct,
    Tagged,
    Text,
)


def check(path: str, value: object, shape: Shape) -> None:
    """Raise RecordError with the first field, such as `versions[0].version-id`, whose value does not have its shape."""
    if isinstance(shape, Struct):
        _check_struct(path, value, shape)
    elif isinstance(shape, ListOf):
        _check_list(path, value, shape)
    elif isinstance(shape, MapOf):
        for key, inner in _object(path, value).items():
            check(f"{path}.{key}", inner, _of_key(f"{path}.{key}", key, shape))
    elif isinstance(shape, Tagged):
        _check_tagged(path, value, shape.variants)
    elif isinstance(shape, ColumnType) and isinstance(value, dict):
        _check_tagged(path, value, NESTED_TYPES)
    elif not _fits(value, shape):
        raise RecordError(path, f"must be {expected(shape)}, not {_shown(value)}")


def expected(shape: Shape) -> str:
    """A description of the values of a shape without parts."""
    if isinstance(shape, Integer):
        least = f" of at least {shape.minimum}" if shape.minimum > -LONG_MAX - 1 else ""
        return f"an integer{least}" + (" or its digits" if shape.digits else "")
    if isinstance(shape, Choice):
        return " or ".join(f"'{value}'" for value in shape.values)
    if isinstance(shape, Text):
        return shape.means
    return "the name or the object of an Iceberg type" if isinstance(shape, ColumnType) else "true or false"


def is_integer(value: object, least: int = -LONG_MAX - 1, most: int = LONG_MAX) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fits(value: object, shape: Shape) -> bool:
    if isinstance(shape, Integer):
        if shape.digits and isinstance(value, str) and re.fullmatch(DIGITS, value):
            value = int(value)
        return is_integer(value, shape.minimum, shape.maximum)
    if isinstance(shape, Text):
        return isinstance(value, str) and (not shape.pattern or re.fullmatch(shape.pattern, value, re.DOTALL) is not None)
    if isinstance(shape, Choice):
        return isinstance(value, str) and value in shape.values
    if isinstance(shape, ColumnType):
        return isinstance(value, str) and _is_primitive(value)
    return isinstance(shape, Anything) or isinstance(value, bool)


def _is_primitive(name: str) -> bool:
    if not re.fullmatch(PRIMITIVE, name):
        return False
    precision, *scale = re.findall("[0-9]+", name) if name.startswith("decimal") else ["0"]
    return not scale or int(scale[0]) <= int(precision)


def _of_key(path: str, key: str, shape: MapOf) -> Shape:
    for known in shape.keys:
        if key == known.starts and not known.rest:
            return known.of
        if key.startswith(known.starts) and known.rest:
            if not re.fullmatch(known.rest, key[len(known.starts) :]):
                raise RecordError(path, f"must end with {known.means}")
            return known.of
    return shape.of


def _check_struct(path: str, value: object, struct: Struct) -> None:
    given = _object(path, value)
    for field in struct.fields:
        if given.get(field.name) is not None:
            check(join(path, field.name), given[field.name], field.shape)
        elif field.required:
            raise RecordError(join(path, field.name), "must not be null" if field.name in given else "is missing")
    if struct.others is not None:
        known = {field.name for field in struct.fields}
        for name in given.keys() - known:
            check(join(path, name), given[name], struct.others)


def _check_list(path: str, value: object, shape: ListOf) -> None:
    if not isinstance(value, list):
        raise RecordError(path, f"must be a list, not {_shown(value)}")
    if shape.filled and not value:
        raise RecordError(path, "must not be empty")
    for at, inner in enumerate(value):
        check(f"{path}[{at}]", inner, shape.of)
    seen: set[Any] = set()
    for at, inner in enumerate(value):
        if shape.identity:
            if inner[shape.identity] in seen:
                raise RecordError(f"{path}[{at}].{shape.identity}", f"duplicate {inner[shape.identity]!r}")
            seen.add(inner[shape.identity])


def _check_tagged(path: str, value: object, variants: Mapping[str, Struct]) -> None:
    tag = _object(path, value).get("type")
    if tag is None:
        raise RecordError(join(path, "type"), "is missing")
    if not isinstance(tag, str) or tag not in variants:
        raise RecordError(join(path, "type"), f"must be {expected(Choice(values=tuple(variants)))}, not {_shown(tag)}")
    _check_struct(path, value, variants[tag])


def _object(path: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise RecordError(path or "metadata", f"must be a JSON object, not {_shown(value)}")
    return value


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
