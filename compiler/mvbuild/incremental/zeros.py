"""values of a type -> an expression that distinguishes values that are equal but not the same: 0.0 and -0.0, whose texts differ.

Joins, groups and windows of Spark treat both zeros as one value. A full refresh keeps whichever the query returns, so every other refresh
must do the same. All NaNs are the same: nothing in SQL distinguishes two of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

_FLOATS = ("float", "double")


def has_zeros(type_: Any) -> bool:
    """Whether values of an Iceberg type contain floats."""
    if not isinstance(type_, Mapping):
        return type_ in _FLOATS
    if type_["type"] == "struct":
        return any(has_zeros(field["type"]) for field in type_["fields"])
    return any(has_zeros(type_[part]) for part in ("element", "key", "value") if part in type_)


def zero_of(value: exp.Expr, type_: Any) -> exp.Expr:
    """The same for two equal values if, and only if, they are the same: the text of a zero, and of everything that contains floats."""
    text = exp.cast(value.copy(), "text")
    if isinstance(type_, Mapping):
        return text
    return exp.Case(ifs=[exp.If(this=exp.EQ(this=exp.paren(value.copy()), expression=exp.Literal.number(0)), true=text)])
