"""PIVOT and UNPIVOT behind a table of FROM -> Pivot or Unpivot, and the names of its columns.

PIVOT is a GROUP BY of the columns that it does not name, with its functions over the rows of each case. Where a group has no such row Spark
gives NULL, also for a count, unless one of the functions has a result that `PivotFirst` of Spark cannot hold: then a count is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlglot import exp

from mvbuild.incremental.algebra import Aggregate, Item, Pivot, Project, Relation, Unpivot, column, names_in
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.functions import EXACT_AGGREGATES
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import Scope, resolved, source, value_of
from mvbuild.incremental.syntax import require, unsupported
from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.scopes import Tables
from mvbuild.lineage.types import INTEGERS, Decimal, Type

_OF_PIVOT = set("expressions fields unpivot alias columns identify_pivot_strings prefixed_pivot_columns pivot_column_naming".split())
_OF_UNPIVOT = set("expressions fields unpivot include_nulls alias value_columns_first".split())
_COUNTS = (exp.Count, exp.CountIf)
_HELD = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double")
"""Beside decimals, the types of results that `PivotFirst` holds."""


def pivoted(building: Building, relation: Relation, tables: Tables, pivots: Sequence[exp.Pivot]) -> tuple[Relation, Tables]:
    """The rows of a table with its PIVOT or UNPIVOT."""
    (pivot, *others) = pivots
    if others or len(pivot.args.get("fields") or ()) != 1 or not isinstance(pivot.args["fields"][0], exp.In):
        raise unsupported(pivot)
    made = _unpivot if pivot.args.get("unpivot") else _pivot
    return made(building, relation, tables, pivot)


def _columns_of(building: Building, relation: Relation, tables: Tables) -> tuple[Relation, list[tuple[str, str]]]:
    """(name, name in the tree) of all columns, and the relation that has nothing but these."""
    items: list[Item] = []
    shown = []
    for one in tables.star:
        value = value_of(one)
        plain = isinstance(value, exp.Column) and value.name not in [item.name for item in items]
        items.append(Item(value.name if plain else building.computed(one.name or "column", value), value))
        shown.append((one.name or "", items[-1].name))
    return Project(relation, tuple(items)), shown


def _alias(pivot: exp.Pivot) -> str:
    alias = pivot.args.get("alias")
    if alias is not None and alias.columns:
        raise unsupported(pivot)
    return alias.name.lower() if alias is not None else ""


def _unpivot(building: Building, relation: Relation, tables: Tables, pivot: exp.Pivot) -> tuple[Relation, Tables]:
    require(pivot, _OF_UNPIVOT, "unsupported-operator")
    scope, field = Scope(tables=tables), pivot.args["fields"][0]
    if len(pivot.expressions) != 1 or not isinstance(pivot.expressions[0], exp.Identifier) or not isinstance(field.this, exp.Identifier):
        raise unsupported(pivot)
    relation, shown = _columns_of(building, relation, tables)
    names = {unique: name for name, unique in shown}
    chosen, labels = [], []
    for one in field.expressions:
        value = resolved(one.this if isinstance(one, exp.PivotAlias) else one, scope)
        if not isinstance(value, exp.Column) or value.name not in names or value.name in chosen:
            raise unsupported(pivot)
        chosen.append(value.name)
        labels.append(one.args["alias"].name if isinstance(one, exp.PivotAlias) else names[value.name])
    types = {building.types.get(name) for name in chosen}
    label = building.fresh(field.this.name, "string")
    value_name = building.fresh(pivot.expressions[0].name, types.pop() if len(types) == 1 else None)
    generator = exp.Anonymous(this="unpivot", expressions=[column(name) for name in chosen])
    made = Unpivot(relation, generator, (label, value_name), bool(pivot.args.get("include_nulls")), tuple(labels))
    kept = [(name, unique) for name, unique in shown if unique not in chosen]
    return made, source(_alias(pivot), [*kept, (field.this.name, label), (pivot.expressions[0].name, value_name)])


# --- PIVOT ----------------------------------------------------------------------------------------------------------------------------


def _pivot(building: Building, relation: Relation, tables: Tables, pivot: exp.Pivot) -> tuple[Relation, Tables]:
    require(pivot, _OF_PIVOT, "unsupported-operator")
    scope, field = Scope(tables=tables), pivot.args["fields"][0]
    relation, shown = _columns_of(building, relation, tables)
    by = resolved(field.this, scope)
    functions = [_function(one, scope) for one in pivot.expressions]
    used = frozenset().union(*(names_in(one) for one in functions)) | names_in(by)
    if not isinstance(by, exp.Column) or not used <= set(relation.columns):
        raise unsupported(pivot)
    cases = _cases(field, building.types.get(by.name), pivot)
    keys = tuple((name, Item(building.fresh(name, building.types.get(one)), column(one))) for name, one in shown if one not in used)
    nothing = _count_of_nothing(building, functions, pivot)
    values: list[Item] = []
    items = [Item(item.name, column(item.name)) for _, item in keys]
    columns = [(name, item.name) for name, item in keys]
    for label, case in cases:
        here = exp.EQ(this=by.copy(), expression=case.copy())
        for written, function in zip(pivot.expressions, functions, strict=True):
            name = f"{label}_{written.alias}" if len(functions) > 1 else label
            value = _where(function, here)
            values.append(Item(building.computed(name, value), value))
            result: exp.Expr = column(values[-1].name)
            if isinstance(function, _COUNTS) and nothing == "NULL":
                rows = _where(exp.Count(this=exp.Star()), here)
                values.append(Item(building.computed("rows", rows), rows))
                some = exp.GT(this=column(values[-1].name), expression=exp.Literal.number(0))
                result = exp.Case(ifs=[exp.If(this=some, true=result)])
            items.append(Item(building.computed(name, result), result) if isinstance(result, exp.Case) else Item(result.name, result))
            columns.append((name, items[-1].name))
    groups = Aggregate(relation, tuple(item for _, item in keys), tuple(values))
    results = tuple(item.name for item in items[len(keys) :])
    made = Pivot(groups, tuple(items), by=by.name, cases=tuple(case for _, case in cases), functions=tuple(functions), results=results)
    return made, source(_alias(pivot), columns)


def _function(written: exp.Expr, scope: Scope) -> exp.Expr:
    """One of the aggregate functions, over the columns of the tree."""
    function = resolved(written.unalias(), scope)
    if not isinstance(function, EXACT_AGGREGATES):
        raise unsupported(written)
    for one in function.iter_expressions():
        if not isinstance(one, exp.Star):
            require_scalar(one)
    return function


def _cases(field: exp.In, type_: Type | None, pivot: exp.Pivot) -> list[tuple[str, exp.Expr]]:
    """(name, value): values of the type of the column, so that they are equal to it without a cast."""
    found = []
    for one in field.expressions:
        value = one.this if isinstance(one, exp.PivotAlias) else one
        is_of_type = isinstance(value, exp.Literal) and (
            type_ == "string" if value.is_string else value.name.isdigit() and isinstance(type_, str) and type_ in INTEGERS
        )
        if not is_of_type:
            raise Refused("unsupported-operator", "the values of PIVOT are not strings or integers, as its column is", one)
        found.append((one.args["alias"].name if isinstance(one, exp.PivotAlias) else value.name, value))
    names, values = ({each for each, _ in found}, {each.name for _, each in found})
    several = len(pivot.expressions) > 1 and not all(one.alias for one in pivot.expressions)
    if several or len(names) < len(found) or len(values) < len(found):
        raise unsupported(pivot)
    return found


def _count_of_nothing(building: Building, functions: Sequence[exp.Expr], pivot: exp.Pivot) -> Literal["", "NULL", "0"]:
    """What a count is where a group has no row of a case; empty without counts."""
    if not any(isinstance(one, _COUNTS) for one in functions):
        return ""
    types = [type_of(one, building.types) for one in functions]
    if any(one is None for one in types):
        raise unsupported(pivot)
    return "NULL" if all(one in _HELD or isinstance(one, Decimal) for one in types) else "0"


def _where(function: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The function over the rows that satisfy the condition."""
    return exp.Filter(this=function.copy(), expression=exp.Where(this=condition.copy()))
