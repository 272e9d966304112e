"""VALUES, or a recursive query without tables -> Constant, and its names: rows that no change can affect."""

from __future__ import annotations

from sqlglot import exp

from mvbuild.incremental.algebra import Constant, Relation
from mvbuild.incremental.building import Building, require_scalar
from mvbuild.incremental.functions import is_scalar
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import aliased
from mvbuild.incremental.syntax import require, unsupported
from mvbuild.lineage.expression_type import type_of
from mvbuild.lineage.scopes import Tables

_OF_RECURSION = (exp.Query, exp.With, exp.CTE, exp.From, exp.Where, exp.Table, exp.TableAlias, exp.Alias, exp.Join, exp.Star)


def values_of(building: Building, node: exp.Values) -> tuple[Relation, Tables]:
    """The rows of VALUES in FROM, and the names of its columns."""
    require(node, {"expressions", "alias"}, "unsupported-operator")
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    if len({len(row) for row in rows}) != 1:
        raise unsupported(node)
    for row in rows:
        for value in row:
            require_scalar(value)
            if value.find(exp.Column) is not None:
                raise unsupported(value)
    alias = node.args.get("alias")
    names = [c.name for c in alias.columns] if alias is not None and alias.columns else [f"col{at + 1}" for at in range(len(rows[0]))]
    if len(names) != len(rows[0]):
        raise unsupported(node)
    columns = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        types = {type_of(value, {}) for value in values if not isinstance(value, exp.Null)}
        columns.append((name, building.fresh(name, types.pop() if len(types) == 1 else None)))
    bare = node.copy()
    bare.set("alias", None)
    return Constant(tuple(unique for _, unique in columns), bare), aliased(node, columns, "")


def recursive(building: Building, clause: exp.With, node: exp.Table) -> tuple[Relation, Tables]:
    """The rows of a recursive query. Raises Refused if it reads a table: then a change of the table is a change of every step.

    `clause`: the last common table expression is the one that is read.
    """
    known = {cte.alias.lower() for cte in clause.expressions}
    for part in clause.walk():
        if isinstance(part, exp.Limit | exp.Offset) or not (isinstance(part, _OF_RECURSION) or is_scalar(part)):
            raise unsupported(part)
        if isinstance(part, exp.Table) and part.name.lower() not in known:
            raise Refused("unsupported-operator", "a recursive query over tables is not refreshed incrementally", clause)
    cte = clause.expressions[-1]
    shown = [c.name for c in cte.args["alias"].columns]
    first = cte.this
    while isinstance(first, exp.SetOperation):
        first = first.left
    shown = shown or [one.alias_or_name for one in first.expressions]
    if len(shown) != len(first.expressions) or any(isinstance(one, exp.Star) for one in first.expressions):
        raise unsupported(cte)
    # Spark may widen the types of the first step.
    columns = [(name, building.fresh(name, None)) for name in shown]
    table = exp.Table(this=exp.to_identifier(cte.alias))
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table), with_=clause.copy())
    return Constant(tuple(unique for _, unique in columns), query), aliased(node, columns, node.name)
