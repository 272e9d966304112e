"""Iceberg types and expressions -> Kind: the part of a type that the algebra needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sqlglot import exp

Kind = Literal["integer", "decimal", "float", "string", "other", "uncomparable", "unknown"]
"""float: sums depend on the order of rows · uncomparable: contains a map, a variant, or floats in an array or struct · unknown: may be any.
"""

_NUMBERS = frozenset({"integer", "decimal", "float"})
_INTEGERS = (exp.Count, exp.CountIf, exp.Length, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Extract, exp.DateDiff, exp.IntDiv)
_FLOATS = (exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Sin, exp.Cos, exp.Tan, exp.Stddev, exp.Variance, exp.Corr)
_OTHERS = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)
_STRINGS = (exp.Upper, exp.Lower, exp.Substring, exp.Concat, exp.Trim)
_BY_NAME: Mapping[str, Kind] = {
    "int": "integer",
    "long": "integer",
    "float": "float",
    "double": "float",
    "string": "string",
    "variant": "uncomparable",
}


def of_iceberg(type_: Any) -> Kind:
    """The kind of a type in the JSON of an Iceberg schema.

    >>> of_iceberg("double"), of_iceberg("long"), of_iceberg({"type": "map"})
    ('float', 'integer', 'uncomparable')
    """
    if isinstance(type_, str):
        return "decimal" if type_.startswith("decimal") else _BY_NAME.get(type_, "other")
    if type_["type"] == "map":
        return "uncomparable"
    inner = [field["type"] for field in type_["fields"]] if type_["type"] == "struct" else [type_["element"]]
    # Inside an array, 0.0 and -0.0 are equal for one operator and different for the next.
    return "uncomparable" if any(of_iceberg(one) in ("uncomparable", "float") for one in inner) else "other"


def of_expression(node: exp.Expr, columns: Mapping[str, Kind]) -> Kind:
    """`columns`: name -> kind."""
    if isinstance(node, exp.Column):
        return columns.get(node.name, "unknown")
    if isinstance(node, exp.Literal):
        return "string" if node.is_string else "float" if "e" in node.name.lower() else "decimal" if "." in node.name else "integer"
    if isinstance(node, exp.Null):
        return "integer"
    if isinstance(node, exp.Cast):
        return _of_cast(node.to)
    if isinstance(node, _INTEGERS):
        return "integer"
    if isinstance(node, _FLOATS):
        return "float"
    if isinstance(node, _OTHERS):
        return "other"
    if isinstance(node, _STRINGS):
        return "string"
    if isinstance(node, exp.Min | exp.Max | exp.Paren | exp.Filter):
        return of_expression(node.this, columns)
    if isinstance(node, exp.Distinct):
        return of_expression(node.expressions[0], columns)
    if isinstance(node, exp.Avg):
        return "decimal" if of_expression(node.this, columns) == "decimal" else "float"
    if isinstance(node, exp.Sum | exp.Neg | exp.Abs | exp.Round):
        return _number(of_expression(node.this, columns))
    if isinstance(node, exp.Case | exp.If | exp.Coalesce | exp.Nullif | exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.SafeDivide):
        return _widest(node, columns)
    if isinstance(node, exp.Greatest | exp.Least):
        return _widest(node, columns)
    return "unknown"


def _widest(node: exp.Expr, columns: Mapping[str, Kind]) -> Kind:
    kinds = {of_expression(part, columns) for part in _values(node)}
    if "uncomparable" in kinds or "unknown" in kinds:
        return "unknown"
    if isinstance(node, exp.Div | exp.SafeDivide) and "decimal" not in kinds:
        return "float"
    if len(kinds) == 1:
        return _number(kinds.pop()) if isinstance(node, exp.Binary) else kinds.pop()
    if not kinds <= _NUMBERS:  # depends on the engine's casts
        return "unknown"
    return next(kind for kind in ("float", "decimal", "integer") if kind in kinds)


def _number(kind: Kind) -> Kind:
    """The kind of a value that Spark uses as a number. It casts strings, to a type that depends on the other operands."""
    return "unknown" if kind == "string" else kind


def _values(node: exp.Expr) -> list[exp.Expr]:
    """The parts that determine the value, without conditions."""
    if isinstance(node, exp.Case):
        found = [branch.args["true"] for branch in node.args["ifs"]]
        return [*found, node.args["default"]] if node.args.get("default") is not None else found
    if isinstance(node, exp.If):
        return [part for part in (node.args.get("true"), node.args.get("false")) if part is not None]
    if isinstance(node, exp.Binary):
        return [node.left, node.right]
    return [part for part in (node.this, *node.expressions) if isinstance(part, exp.Expr)]


def _of_cast(to: exp.DataType) -> Kind:
    if to.this in exp.DataType.INTEGER_TYPES:
        return "integer"
    if to.this == exp.DataType.Type.DECIMAL:
        return "decimal"
    if to.this in exp.DataType.TEXT_TYPES:
        return "string"
    if to.this in (exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE):
        return "float"
    return (
        "uncomparable" if to.this in (exp.DataType.Type.MAP, exp.DataType.Type.VARIANT) else "unknown" if to.args.get("nested") else "other"
    )
