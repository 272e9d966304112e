"""tree + the types of its tables' columns -> the tree, with a mark at each equality and each set operation whose sides differ in type.

Values that are equal after a cast are not the same: '01' = 1, and 1.00 as text is not '1'. In that case nothing may be carried from one
side to the other: no key, no expression over it, no bounds. An unknown type differs from every other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Explode,
    Join,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Union,
    Window,
    conjuncts,
    with_children,
)
from mvbuild.incremental.restrict import SAME, UNLIKE

Types = Mapping[str, "str | None"]
"""Column -> its Iceberg type, None if it is not known."""

_INTEGERS = frozenset({"int", "long"})
_FLOATS = frozenset({"float", "double"})
_TO_INT = (exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Length)
_CASTS = {
    exp.DataType.Type.INT: "int",
    exp.DataType.Type.BIGINT: "long",
    exp.DataType.Type.FLOAT: "float",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.BOOLEAN: "boolean",
    exp.DataType.Type.TEXT: "string",
}


def marked(root: Relation, leaves: Sequence[Mapping[str, Any]]) -> Relation:
    """`leaves`: for each table, column -> Iceberg type."""
    return _marked(root, leaves)[0]


def _marked(relation: Relation, leaves: Sequence[Mapping[str, Any]]) -> tuple[Relation, Types]:
    below = [_marked(child, leaves) for child in relation.children]
    relation = with_children(relation, tuple(child for child, _ in below))
    types = [found for _, found in below]
    if isinstance(relation, Scan):
        return relation, {name: _text(leaves[relation.leaf].get(source)) for name, source in relation.sources}
    if isinstance(relation, Union | SetOperation):
        return _combined(relation, types)
    if isinstance(relation, Join):
        both = {**types[0], **types[1], relation.mark: "boolean"}
        for part in conjuncts(relation.on):
            _mark(part, both)
        return relation, {name: both[name] for name in relation.columns}
    if isinstance(relation, Scalar):
        (value,) = relation.subquery.columns
        return relation, {**types[0], relation.name: types[1][value]}
    if isinstance(relation, Explode):
        return relation, {**types[0], **dict.fromkeys(relation.names)}
    if isinstance(relation, Project):
        return relation, {item.name: type_of(item.expression, types[0]) for item in relation.items}
    if isinstance(relation, Aggregate):
        made = {item.name: type_of(item.expression, types[0]) for item in (*relation.keys, *relation.values)}
        return replace(relation, loose=_may_be_float(made[item.name] for item in relation.keys)), made
    if isinstance(relation, Distinct):
        return replace(relation, loose=_may_be_float(types[0].values())), types[0]
    if isinstance(relation, Window):
        return relation, {**types[0], **{item.name: type_of(item.expression.this, types[0]) for item in relation.values}}
    return relation, types[0] if types else {}


def _may_be_float(types: Iterable[str | None]) -> bool:
    return any(type_ is None or type_ in _FLOATS for type_ in types)


def _combined(relation: Union | SetOperation, types: Sequence[Types]) -> tuple[Relation, Types]:
    columns = [[found[name] for found, name in zip(types, names, strict=True)] for names in _by_position(relation)]
    same = [found[0] if len(set(found)) == 1 else None for found in columns]
    made = dict(zip(relation.columns, same, strict=True))
    return (relation if None not in same else replace(relation, alike=False)), made


def _by_position(relation: Union | SetOperation) -> list[tuple[str, ...]]:
    return list(zip(*(child.columns for child in relation.children), strict=True))


def _mark(part: exp.Expr, types: Types) -> None:
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return
    one, other = type_of(part.left, types), type_of(part.right, types)
    if one is None or other is None or (one != other and not {one, other} <= _INTEGERS):
        part.meta[UNLIKE] = True
    elif one == other and one not in _FLOATS:
        part.meta[SAME] = True  # 0.0 = -0.0, but their texts differ


def type_of(node: exp.Expr, types: Types) -> str | None:
    """Spark's type of an expression, if it is certain."""
    if isinstance(node, exp.Column):
        return types.get(node.name)
    if isinstance(node, exp.Literal):
        return "string" if node.is_string else "int" if node.name.isdigit() and int(node.name) < 2**31 else None
    if isinstance(node, exp.Cast):
        return _of_cast(node.to)
    if isinstance(node, exp.Count | exp.CountIf):
        return "long"
    if isinstance(node, _TO_INT):
        return "int"
    if isinstance(node, exp.Paren | exp.Min | exp.Max | exp.Filter):
        return type_of(node.this, types)
    if isinstance(node, exp.Upper | exp.Lower | exp.Trim | exp.Substring):
        return "string" if type_of(node.this, types) == "string" else None
    if isinstance(node, exp.Coalesce):
        found = {type_of(part, types) for part in (node.this, *node.expressions)}
        return found.pop() if len(found) == 1 else None
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return _of_arithmetic({type_of(node.left, types), type_of(node.right, types)})
    if isinstance(node, exp.Sum):
        return _of_sum(type_of(node.this, types))
    return None


def _of_arithmetic(sides: set[str | None]) -> str | None:
    if not sides <= _INTEGERS:
        return None
    return "long" if "long" in sides else "int"


def _of_sum(type_: str | None) -> str | None:
    if type_ in _INTEGERS:
        return "long"
    if type_ is None or not type_.startswith("decimal("):
        return None
    precision, scale = (int(part) for part in type_[len("decimal(") : -1].split(","))
    return f"decimal({min(precision + 10, 38)},{scale})"


def _of_cast(to: exp.DataType) -> str | None:
    if to.this == exp.DataType.Type.DECIMAL and len(to.expressions) == 2:
        precision, scale = (part.name for part in to.expressions)
        return f"decimal({precision},{scale})"
    if to.this == exp.DataType.Type.VARCHAR or to.expressions:
        return None
    return _CASTS.get(to.this)


def _text(type_: Any) -> str | None:
    return type_.replace(" ", "") if isinstance(type_, str) else None
