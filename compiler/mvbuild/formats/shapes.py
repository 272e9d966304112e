"""What a JSON value of the MV metadata file may be: the words that `metadata_fields` states each of its fields in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DIGITS = r"-?[0-9]{1,19}"
_TO_38 = r"0?[0-9]|[12][0-9]|3[0-8]"
_FROM_1_TO_38 = r"0?[1-9]|[12][0-9]|3[0-8]"
PRIMITIVE = (
    r"boolean|int|long|float|double|date|time|timestamp|timestamptz|timestamp_ns|timestamptz_ns|string|uuid|binary|unknown|variant"
    rf"|decimal\(\s*({_FROM_1_TO_38})\s*,\s*({_TO_38})\s*\)|fixed\[\s*[0-9]{{1,9}}\s*\]|geometry(\(.*\))?|geography(\(.*\))?"
)
"""A decimal's scale must not be more than its precision either, which is beyond a pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer:
    minimum: int = -LONG_MAX - 1
    maximum: int = LONG_MAX
    digits: bool = False
    """Its decimal digits in a string are taken too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    pattern: str = ""
    """What the whole string must match; empty: anything."""
    means: str = "a string"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Anything:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    of: Shape
    identity: str = ""
    """The field whose value no two elements may share."""
    filled: bool = False
    """It must not be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Keys of a map that this format gives a meaning: those that start so, and what may follow."""

    starts: str
    of: Shape
    rest: str = ""
    """What the rest of the key must match; empty: only the key itself is meant."""
    means: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    of: Shape
    keys: tuple[Keys, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    name: str
    fields: tuple[Field, ...]
    others: Shape | None = None
    """What fields that are not stated must be; None: anything."""
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """One of several structs; the field `type` says which."""

    variants: Mapping[str, Struct]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """The name of a primitive type, or a struct of `NESTED_TYPES`, whose own fields have types again."""


Shape = Integer | Text | Choice | Boolean | Anything | ListOf | MapOf | Struct | Tagged | ColumnType


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    name: str
    shape: Shape
    required: bool
    doc: str
