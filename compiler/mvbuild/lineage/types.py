"""Spark or Iceberg type text -> Type, its simple form, and the common type of two types where Spark's result is always the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.names import quote


@dataclass(frozen=True, slots=True)
class Array:
    element: Type | None


@dataclass(frozen=True, slots=True)
class Map:
    key: Type | None
    value: Type | None


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[tuple[str, Type | None], ...]

    def field(self, name: str) -> tuple[bool, Type | None]:
        """Whether there is a field of that name, ignoring case, and its type."""
        name = name.lower()
        return next(((True, type_) for known, type_ in self.fields if known.lower() == name), (False, None))


@dataclass(frozen=True, slots=True)
class Decimal:
    precision: int
    scale: int


Type = str | Array | Map | Struct | Decimal
"""Primitive types under Spark's names: `bigint`, `timestamp_ntz`; `void` is the type of NULL."""

COMPLEX = (Array, Map, Struct)
INTEGERS: Mapping[str, int] = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Each with the precision of the decimal that holds all its values."""
FRACTIONS = ("float", "double")
MOMENTS = ("date", "timestamp", "timestamp_ntz")
MOST_DIGITS = 38

_PLAIN = {
    **{
        name: name
        for name in ("boolean", *INTEGERS, *FRACTIONS, "string", "binary", "date", "timestamp", "timestamp_ntz", "variant", "void")
    },
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "character": "string",
    "timestamp_ltz": "timestamp",
    "timestamptz": "timestamp",
}
_ICEBERG = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "string": "string",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "binary": "binary",
    "uuid": "string",
    "variant": "variant",
}
_STORED = {"tinyint": "int", "smallint": "int"}
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\Z")


def text(type_: Type | None) -> str | None:
    """The simple form of a type, None if a part of it is unknown.

    >>> text(parsed("STRUCT<id: LONG, tags: ARRAY<STRING>>"))
    'struct<id:bigint,tags:array<string>>'
    """
    if type_ is None or isinstance(type_, str):
        return type_
    if isinstance(type_, Decimal):
        return f"decimal({type_.precision},{type_.scale})"
    if isinstance(type_, Array):
        inner = text(type_.element)
        return f"array<{inner}>" if inner else None
    if isinstance(type_, Map):
        key, value = text(type_.key), text(type_.value)
        return f"map<{key},{value}>" if key and value else None
    parts = [(quote(name), text(inner)) for name, inner in type_.fields]
    return f"struct<{','.join(f'{name}:{inner}' for name, inner in parts)}>" if all(inner for _, inner in parts) else None


@lru_cache(maxsize=4096)
def parsed(written: str) -> Type | None:
    """A type as a user or the lock writes it; None if it is not a known type.

    >>> parsed("NUMERIC(12, 2)")
    Decimal(precision=12, scale=2)
    >>> parsed("no type") is None
    True
    """
    simple = written.strip().lower()
    if simple in _PLAIN:
        return _PLAIN[simple]
    if match := _DECIMAL.match(simple):
        return _decimal(match)
    if re.fullmatch(r"(?:varchar|char|character)\s*\(\s*\d+\s*\)", simple) or re.fullmatch(r"string collate \w+", simple):
        return "string"
    match = re.fullmatch(r"\s*(array|map|struct)\s*<(.*)>\s*", written, re.IGNORECASE | re.DOTALL)
    if match is None:
        return None
    kind, parts = match[1].lower(), _split(match[2])
    if kind == "struct":
        fields = tuple(f for part in parts if (f := _field(part)))
        return Struct(fields) if len(fields) == len(parts) else None
    types = [parsed(part) for part in parts]
    if kind == "array":
        return Array(types[0]) if len(types) == 1 and types[0] else None
    return Map(types[0], types[1]) if len(types) == 2 and types[0] and types[1] else None


def _decimal(match: re.Match[str]) -> Decimal | None:
    precision, scale = int(match[1] or 10), int(match[2] or 0)
    return Decimal(precision, scale) if 1 <= precision <= MOST_DIGITS and scale <= precision else None


def _field(part: str) -> tuple[str, Type] | None:
    match = re.match(
        r"\s*(?:`((?:[^`]|``)*)`|([^\s:`]+))\s*(?::|\s)\s*(.+?)(?:\s+not\s+null)?(?:\s+comment\s+'.*')?\s*\Z", part, re.I | re.S
    )
    type_ = parsed(match[3]) if match else None
    return ((match[1] or match[2]).replace("``", "`"), type_) if match and type_ else None


def _split(inner: str) -> list[str]:
    """Split at commas that are not inside brackets or a quoted name."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, char in enumerate(inner):
        if char == "`":
            quoted = not quoted
        elif not quoted:
            depth += (char in "<(") - (char in ">)")
            if char == "," and depth == 0:
                parts.append(inner[start:i])
                start = i + 1
    return [*parts, inner[start:]] if inner.strip() else []


def of_iceberg(type_: Any) -> Type | None:
    """The type that Spark reads for a type in the JSON of an Iceberg schema.

    >>> of_iceberg("long"), of_iceberg("timestamptz")
    ('bigint', 'timestamp')
    """
    if isinstance(type_, str):
        if type_.startswith("decimal"):
            return parsed(type_)
        return "binary" if type_.startswith("fixed") else _ICEBERG.get(type_)
    kind = type_.get("type")
    if kind == "struct":
        return Struct(tuple((f["name"], of_iceberg(f["type"])) for f in type_["fields"]))
    if kind == "list":
        return Array(of_iceberg(type_["element"]))
    return Map(of_iceberg(type_["key"]), of_iceberg(type_["value"])) if kind == "map" else None


def stored(type_: Type | None) -> Type | None:
    """The type that a column has after it was stored in an Iceberg table.

    >>> stored("smallint")
    'int'
    """
    if isinstance(type_, str):
        return _STORED.get(type_, type_)
    if isinstance(type_, Array):
        return Array(stored(type_.element))
    if isinstance(type_, Map):
        return Map(stored(type_.key), stored(type_.value))
    return Struct(tuple((name, stored(inner)) for name, inner in type_.fields)) if isinstance(type_, Struct) else type_


def is_number(type_: Type | None) -> bool:
    return isinstance(type_, Decimal) or type_ in INTEGERS or type_ in FRACTIONS


def as_decimal(type_: Type | None) -> Decimal | None:
    """The decimal that holds all values of an integer type, or the decimal itself."""
    if isinstance(type_, Decimal):
        return type_
    return Decimal(INTEGERS[type_], 0) if isinstance(type_, str) and type_ in INTEGERS else None


def common(types: Iterable[Type | None]) -> Type | None:
    """The type of a CASE, COALESCE or UNION of these types; None also if it depends on Spark's mode (ANSI or not).

    >>> common(["int", "bigint"])
    'bigint'
    >>> common(["int", "string"]) is None
    True
    """
    found: Type | None = "void"
    for type_ in types:
        found = _common(found, type_)
        if found is None:
            return None
    return found


def _common(one: Type | None, two: Type | None) -> Type | None:
    if one == two or two == "void":
        return one
    if one == "void":
        return two
    if is_number(one) and is_number(two):
        return _wider(one, two)
    times = {one, two} if isinstance(one, str) and isinstance(two, str) else set()
    if times and times <= {*MOMENTS}:
        return "timestamp" if "timestamp" in times else "timestamp_ntz"
    if isinstance(one, Array) and isinstance(two, Array):
        element = _common(one.element, two.element)
        return Array(element) if element else None
    return None


def _wider(one: Type | None, two: Type | None) -> Type | None:
    if one in INTEGERS and two in INTEGERS:
        return max(one, two, key=lambda t: INTEGERS[str(t)])
    if "double" in (one, two):
        return "double"
    if "float" in (one, two):
        # With a decimal, and in ANSI mode with an integer, the result is a double.
        return "double" if isinstance(one, Decimal) or isinstance(two, Decimal) else None
    first, second = as_decimal(one), as_decimal(two)
    assert first is not None
    assert second is not None
    scale = max(first.scale, second.scale)
    precision = max(first.precision - first.scale, second.precision - second.scale) + scale
    return Decimal(precision, scale) if precision <= MOST_DIGITS else None


def arithmetic(operator: str, one: Type | None, two: Type | None) -> Type | None:
    """The type of `one operator two` for numbers; the operator is one of + - * / %.

    >>> text(arithmetic("*", Decimal(12, 2), "int"))
    'decimal(23,2)'
    """
    if not (is_number(one) and is_number(two)):
        return None
    if isinstance(one, Decimal) or isinstance(two, Decimal):
        if one in FRACTIONS or two in FRACTIONS:
            return "double"
        first, second = as_decimal(one), as_decimal(two)
        return _of_decimals(operator, first, second) if first and second else None
    return "double" if operator == "/" else _wider(one, two) if one != two else one


def _of_decimals(operator: str, one: Decimal, two: Decimal) -> Decimal:
    (p1, s1), (p2, s2) = (one.precision, one.scale), (two.precision, two.scale)
    scale = max(s1, s2)
    if operator in "+-":
        return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return _adjusted(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(6, s1 + p2 + 1)
        return _adjusted(p1 - s1 + s2 + scale, scale)
    return _adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def _adjusted(precision: int, scale: int) -> Decimal:
    """Spark drops fractional digits, down to six, before it drops integer digits."""
    if precision <= MOST_DIGITS:
        return Decimal(precision, scale)
    return Decimal(MOST_DIGITS, max(MOST_DIGITS - (precision - scale), min(scale, 6)))
