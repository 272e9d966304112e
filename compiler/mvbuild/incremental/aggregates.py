"""expressions with aggregate functions + the Grouping of the rows -> an Aggregate, and the expressions over its columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvbuild.incremental.algebra import Item, Relation, column, names_in
from mvbuild.incremental.building import Building
from mvbuild.incremental.functions import called, is_aggregate, is_scalar, unwrapped
from mvbuild.incremental.grouping_sets import Grouping
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import Scope, known, only_child, placed, replaced, resolved
from mvbuild.incremental.syntax import unsupported

CLAUSES = (exp.Star, exp.Where, exp.Ordered, exp.Order, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""The parts of an aggregate or window function that are not values."""


def aggregated(building: Building, scope: Scope, grouping: Grouping, written: Sequence[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
    """Scalar subqueries are evaluated after the aggregate."""
    values: list[Item] = []
    results: list[exp.Expr] = []
    subqueries: list[tuple[int, str, exp.Expr]] = []
    for at, one in enumerate(written):
        holder = exp.paren(one.copy(), copy=False)
        for number, found in enumerate(list(holder.find_all(exp.Subquery))):
            if found.find_ancestor(exp.Subquery) is not None:
                continue
            marker = f"mvbuild_subquery_{at}_{number}"
            subqueries.append((at, marker, found.this))
            found.replace(known(marker))
        results.append(_over(building, resolved(holder.this, scope), grouping, values))
    made: Relation = grouping.aggregate(values)
    for at, marker, subquery in subqueries:
        made, scalar = building.scalar(building, made, subquery, scope.below)
        results[at] = replaced(results[at], marker, scalar)
    _require_grouped(results, set(made.columns))
    return made, results


def _require_grouped(results: Sequence[exp.Expr], allowed: set[str]) -> None:
    """Raise Refused for a column that is neither a key nor an aggregate."""
    for result in results:
        if names_in(result) <= allowed or result.find(exp.Window):
            continue
        unknown = next((n for n in result.walk() if isinstance(n, exp.Func) and not is_scalar(n)), None)
        if unknown is not None:
            name = called(unknown) or unknown.sql_name().lower()
            raise Refused("unsupported-operator", f"{name}() is not a function that mvbuild refreshes incrementally", unknown)
        raise Refused("unsupported-operator", "a column that is neither grouped nor aggregated", result)


def _over(building: Building, expression: exp.Expr, grouping: Grouping, values: list[Item]) -> exp.Expr:
    """The expression with keys and aggregate functions replaced by the aggregate's columns."""
    holder = exp.paren(expression, copy=False)
    pending = [holder.this]
    while pending:
        node = pending.pop(0)
        known_value = grouping.value(node)
        if known_value is not None:
            node.replace(placed(known_value, node))
            continue
        function = unwrapped(node)
        if is_aggregate(function) and not isinstance(node.parent, exp.Window):
            node.replace(placed(_value(building, node, values), node))
            continue
        # What a window function is given may be an aggregate.
        pending.extend((function if isinstance(node.parent, exp.Window) and node.arg_key == "this" else node).iter_expressions())
    return only_child(holder)


def _value(building: Building, node: exp.Expr, values: list[Item]) -> exp.Expr:
    found = next((v for v in values if v.expression == node), None)
    if found is None:
        function = unwrapped(node)
        for part in node.walk():
            if part is function or isinstance(part, (*CLAUSES, exp.Lambda)):
                continue
            if not is_scalar(part):
                raise unsupported(part)
        found = Item(building.computed(type(node).__name__, node), node.copy())
        values.append(found)
    return column(found.name)
