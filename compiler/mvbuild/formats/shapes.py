"""The shapes of JSON values in the MV metadata file, with which `metadata_fields` declares each of its fields."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.dataclass import dataclass

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DIGITS = r"-?[0-9]{1,19}"
_TO_38 = r"0?[0-9]|[12][0-9]|3[0-8]"
_FROM_1_TO_38 = r"0?[1-9]|[12][0-9]|3[0-8]"
PRIMITIVE = (
    r"boolean|int|long|float|double|date|time|timestamp|timestamptz|timestamp_ns|timestamptz_ns|string|uuid|binary|unknown|variant"
    rf"|decimal\(\s*({_FROM_1_TO_38})\s*,\s*({_TO_38})\s*\)|fixed\[\s*[0-9]{{1,9}}\s*\]|geometry(\(.*\))?|geography(\(.*\))?"
)
"""The scale of a decimal must not exceed its precision either, which a pattern cannot express."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Integer:
    minimum: int = -LONG_MAX - 1
    maximum: int = LONG_MAX
    digits: bool = False
    """A string of decimal digits is accepted too."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Text:
    pattern: str = ""
    """The pattern for the whole string; empty: any string."""
    means: str = "a string"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneOf:
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boolean:
    pass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Anything:
    pass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListOf:
    of: Shape
    identity: str = ""
    """The field whose value must be unique among the elements."""
    filled: bool = False
    """Whether it must not be empty."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keys:
    """Keys of a map that have a meaning in this format: those with this prefix, and what may follow it."""

    starts: str
    of: Shape
    rest: str = ""
    """The pattern for the rest of the key; empty: only the prefix itself is a key."""
    means: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapOf:
    of: Shape
    keys: tuple[Keys, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Struct:
    name: str
    fields: tuple[Field, ...]
    others: Shape | None = None
    """The shape of undeclared fields; None: anything."""
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tagged:
    """One of several structs, chosen by the field `type`."""

    variants: Mapping[str, Struct]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnType:
    """The name of a primitive type, or a struct of `NESTED_TYPES`, whose own fields have types again."""


Shape = Integer | Text | OneOf | Boolean | Anything | ListOf | MapOf | Struct | Tagged | ColumnType


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    name: str
    shape: Shape
    required: bool
    doc: str
