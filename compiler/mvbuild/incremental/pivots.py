"""PIVOT and UNPIVOT behind a table of FROM -> Pivot and Unpivot, and the names of their columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvbuild.incremental.algebra import Item, Pivot, Project, Relation, Unpivot, column, names_in
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.functions import EXACT_AGGREGATES
from mvbuild.incremental.scopes import Scope, resolved, source, value_of
from mvbuild.incremental.syntax import require, unsupported
from mvbuild.lineage.scopes import Tables

_OF_PIVOT = set("expressions fields unpivot alias columns identify_pivot_strings prefixed_pivot_columns pivot_column_naming".split())
_OF_UNPIVOT = set("expressions fields unpivot include_nulls alias value_columns_first".split())


def pivoted(building: Building, relation: Relation, tables: Tables, pivots: Sequence[exp.Pivot]) -> tuple[Relation, Tables]:
    """The rows of a table with its PIVOT or UNPIVOT."""
    (pivot, *others) = pivots
    if others or len(pivot.args.get("fields") or ()) != 1 or not isinstance(pivot.args["fields"][0], exp.In):
        raise unsupported(pivot)
    if pivot.args.get("unpivot"):
        return _unpivot(building, relation, tables, pivot)
    return _pivot(building, relation, tables, pivot)


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


def _pivot(building: Building, relation: Relation, tables: Tables, pivot: exp.Pivot) -> tuple[Relation, Tables]:
    require(pivot, _OF_PIVOT, "unsupported-operator")
    scope, field = Scope(tables=tables), pivot.args["fields"][0]
    relation, shown = _columns_of(building, relation, tables)
    by = resolved(field.this, scope)
    functions = [resolved(one.unalias(), scope) for one in pivot.expressions]
    if not isinstance(by, exp.Column) or by.name not in relation.columns:
        raise unsupported(pivot)
    for written, function in zip(pivot.expressions, functions, strict=True):
        arguments = list(function.iter_expressions())
        if not isinstance(function, EXACT_AGGREGATES) or any(isinstance(one, exp.Star) for one in arguments):
            raise unsupported(written)
        for one in arguments:
            require_scalar(one)
    used = frozenset().union(*(names_in(function) for function in functions)) | {by.name}
    if not used <= set(relation.columns):
        raise unsupported(pivot)
    keys = [(name, unique) for name, unique in shown if unique not in used]
    values: list[Item] = []
    columns: list[tuple[str, str]] = []
    for case in field.expressions:
        literal = case.this if isinstance(case, exp.PivotAlias) else case
        if not isinstance(literal, exp.Literal):
            raise unsupported(pivot)
        name = case.args["alias"].name if isinstance(case, exp.PivotAlias) else literal.name
        for written, function in zip(pivot.expressions, functions, strict=True):
            if len(functions) > 1 and not written.alias:
                raise unsupported(pivot)
            shown_name = f"{name}_{written.alias}" if len(functions) > 1 else name
            value = _of_case(function, by, literal)
            values.append(Item(building.computed(shown_name, value), value))
            columns.append((shown_name, values[-1].name))
    made = Pivot(
        relation,
        tuple(Item(building.fresh(name, building.types.get(unique)), column(unique)) for name, unique in keys),
        tuple(values),
        by=by.name,
        cases=tuple((one.this if isinstance(one, exp.PivotAlias) else one).copy() for one in field.expressions),
        functions=tuple(functions),
    )
    shown_keys = [(name, item.name) for (name, _), item in zip(keys, made.keys, strict=True)]
    return made, source(_alias(pivot), [*shown_keys, *columns])


def _of_case(function: exp.Expr, by: exp.Expr, case: exp.Expr) -> exp.Expr:
    """The function over the rows of a case."""
    made = function.copy()
    is_one = exp.EQ(this=by.copy(), expression=case.copy())
    made.set("this", exp.Case(ifs=[exp.If(this=is_one, true=made.this.copy())]))
    return made
