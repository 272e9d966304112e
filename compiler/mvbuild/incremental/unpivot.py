"""UNPIVOT behind a table of FROM -> Unpivot, and the names of its columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvbuild.incremental.algebra import Item, Project, Relation, Unpivot, column
from mvbuild.incremental.building import Building
from mvbuild.incremental.scopes import Scope, resolved, source, value_of
from mvbuild.incremental.syntax import require, unsupported
from mvbuild.lineage.scopes import Tables

_OF_UNPIVOT = set("expressions fields unpivot include_nulls alias value_columns_first".split())


def unpivoted(building: Building, relation: Relation, tables: Tables, pivots: Sequence[exp.Pivot]) -> tuple[Relation, Tables]:
    """The rows of a table with its UNPIVOT. Raises Refused for PIVOT."""
    (pivot, *others) = pivots
    is_one = not others and pivot.args.get("unpivot") and len(pivot.args.get("fields") or ()) == 1
    if not is_one or not isinstance(pivot.args["fields"][0], exp.In):
        raise unsupported(pivot)
    return _unpivot(building, relation, tables, pivot)


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
