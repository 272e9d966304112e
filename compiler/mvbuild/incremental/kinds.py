"""Spark's type of a column or an expression -> Kind: the part of a type that the algebra needs."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from mvbuild.lineage.expression_type import Types, type_of
from mvbuild.lineage.types import FRACTIONS, INTEGERS, Array, Decimal, Map, Struct, Type

Kind = Literal["integer", "decimal", "float", "string", "other", "uncomparable", "unknown"]
"""float: sums depend on the order of rows · uncomparable: contains a map, a variant, or floats in an array or struct · unknown: may be any.
"""
__all__ = ["Kind", "Types", "is_exact", "kind_of", "kind_of_type"]


def kind_of(expression: exp.Expr, columns: Types) -> Kind:
    """The kind of an expression. `columns`: name -> type.

    >>> kind_of(exp.condition("price * 2"), {"price": "double"}), kind_of(exp.condition("mine(price)"), {"price": "double"})
    ('float', 'unknown')
    """
    return kind_of_type(type_of(expression, columns))


def kind_of_type(type_: Type | None) -> Kind:
    """The kind of a type; None is one that is not known."""
    if type_ is None or type_ == "void":  # NULL takes the type of what is beside it
        return "unknown"
    if isinstance(type_, Decimal):
        return "decimal"
    if isinstance(type_, Array | Struct):
        return _kind_of_parts([type_.element] if isinstance(type_, Array) else [inner for _, inner in type_.fields])
    if isinstance(type_, Map) or type_ == "variant":
        return "uncomparable"
    if type_ in INTEGERS:
        return "integer"
    return "float" if type_ in FRACTIONS else "string" if type_ == "string" else "other"


def is_exact(type_: Type | None) -> bool:
    """Whether equal values of the type are the same: not 0.0 and -0.0."""
    return kind_of_type(type_) in ("integer", "decimal", "string", "other")


def _kind_of_parts(types: list[Type | None]) -> Kind:
    """Inside an array, 0.0 and -0.0 are equal for one operator and different for the next."""
    kinds = {kind_of_type(inner) for inner in types}
    return "uncomparable" if kinds & {"uncomparable", "float"} else "unknown" if "unknown" in kinds else "other"
