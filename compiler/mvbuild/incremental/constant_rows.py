"""VALUES in FROM -> a UNION ALL of rows of constants, and the names of its columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvbuild.incremental.algebra import Item, OneRow, Project, Relation, union
from mvbuild.incremental.building import Building
from mvbuild.incremental.scopes import aliased
from mvbuild.incremental.syntax import require, unsupported
from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.scopes import Tables
from mvbuild.lineage.types import Type, text

_LITERAL = (exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Cast, exp.DataType, exp.DataTypeParam)
"""The parts of a literal with a sign or a type, as DATE '2026-01-01'."""


def rows_of_values(building: Building, node: exp.Values) -> tuple[Relation, Tables]:
    """Raises Refused if a value is not a literal, or if the values of a column have several types, which Spark makes one of."""
    require(node, {"expressions", "alias"}, "unsupported-operator")
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    if len({len(row) for row in rows}) != 1:
        raise unsupported(node)
    for row in rows:
        for value in row:
            if not all(isinstance(part, _LITERAL) for part in value.walk()):
                raise unsupported(node)
    types = [_type(values, node) for values in zip(*rows, strict=True)]
    alias = node.args.get("alias")
    given = [column.name for column in alias.columns] if alias is not None else []
    names = given or [f"col{at}" for at in range(1, len(types) + 1)]
    if len(names) != len(types):
        raise unsupported(node)
    columns = tuple((name, building.fresh(name, type_)) for name, type_ in zip(names, types, strict=True))
    parts: list[Relation] = [
        Project(OneRow(), tuple(Item(name, _typed(value, type_)) for (_, name), type_, value in zip(columns, types, row, strict=True)))
        for row in rows
    ]
    return union(parts), aliased(node, columns, "")


def _type(values: Sequence[exp.Expr], node: exp.Values) -> Type:
    """The type that all values of a column but NULL have."""
    types = {type_of(value, {}) for value in values if not isinstance(value, exp.Null)}
    found = types.pop() if len(types) == 1 else None
    if found is None or found == "void":
        raise unsupported(node)
    return found


def _typed(value: exp.Expr, type_: Type) -> exp.Expr:
    """A row alone, as a part of a change, says of NULL what its type is."""
    written = text(type_) if isinstance(value, exp.Null) else None
    return exp.cast(exp.null(), written, dialect="spark") if written is not None else value.copy()
