"""Relation -> what in it depends on the order of its rows, such as `first` or a sum of floats: a compaction changes the order, but not the
rows, so that an earlier value cannot be computed again.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Item,
    Join,
    Limit,
    Project,
    Ref,
    Relation,
    Scalar,
    Sessions,
    SetOperation,
    Window,
    names_in,
    walk,
)
from mvbuild.incremental.functions import POSITIONS, SUMS, is_ordered_aggregate
from mvbuild.incremental.kinds import Types, kind_of
from mvbuild.incremental.reasons import Refused


def nondeterministic_part(relation: Relation, types: Types) -> exp.Expr | None:
    """A function in it whose value depends on the order of rows."""
    return next((found for _, found in _unsteady(relation, types)), None)


def require_local(rows: Relation, table: Ref, types: Types) -> None:
    """Check rows that are computed again for some keys. What is not restricted to the keys also computes rows that stay; if it depends on
    the order of rows, these could get other values now."""
    for node, found in _unsteady(rows, types):
        if not any(isinstance(below, Ref) and below.name == table.name for below in walk(node)):
            raise Refused("nondeterministic-order", "the order of the rows matters to a function that all rows share", found)


def _unsteady(relation: Relation, types: Types) -> Iterator[tuple[Relation, exp.Expr]]:
    """Each operator in it that is unsteady, and its function."""
    numbered = [node.child for node in walk(relation) if isinstance(node, Project) and _only_numbers(node)]
    for node in walk(relation):
        found = is_unsteady(node, types)
        if found is not None and not any(node is one for one in numbered):
            yield node, found


def _only_numbers(project: Project) -> bool:
    """Whether nothing of the rows below is left but their numbers, from 1 to how many there are: a spine of dates that is counted up."""
    if not isinstance(project.child, Window):
        return False
    read = frozenset().union(*(names_in(item.expression) for item in project.items))
    values = [item.expression for item in project.child.values if item.name in read]
    is_number = len(values) == 1 and isinstance(values[0], exp.Window) and isinstance(values[0].this, exp.RowNumber)
    return is_number and read <= {item.name for item in project.child.values}


def is_unsteady(relation: Relation, types: Types) -> exp.Expr | None:
    if isinstance(relation, Limit):
        return relation.limit or relation.offset
    items: list[Item] = []
    if isinstance(relation, Aggregate | Sessions):
        items = list(relation.values)
    if isinstance(relation, Window):
        items = [item for item in relation.values if not _has_one_order(item.expression, relation.child)]
    for item in items:
        for node in item.expression.walk():
            if is_ordered_aggregate(node) or isinstance(node, POSITIONS) or _counts_rows(node):
                return node
            if isinstance(node, SUMS) and kind_of(_argument(node), types) not in ("integer", "decimal"):
                return node
    return None


def _has_one_order(window: exp.Expr, rows: Relation) -> bool:
    """Whether no two rows of a partition are equal for ORDER BY of a window function."""
    order = window.args.get("order")
    parts = [*(window.args.get("partition_by") or ()), *((one.this for one in order.expressions) if order is not None else ())]
    return are_different(rows, frozenset(part.name for part in parts if isinstance(part, exp.Column)))


def are_different(relation: Relation, names: frozenset[str]) -> bool:
    """Whether no two rows have the same values in these columns, whatever is in its tables."""
    if isinstance(relation, Aggregate):
        return names >= {item.name for item in relation.keys}
    if isinstance(relation, Distinct) or (isinstance(relation, SetOperation) and not relation.all):
        return names >= {*relation.columns}
    if type(relation) is Project:
        below = (item.expression.name for item in relation.items if item.name in names and isinstance(item.expression, exp.Column))
        return are_different(relation.child, frozenset(below))
    if isinstance(relation, Filter | Scalar | Window) or (isinstance(relation, Join) and relation.kind in ("semi", "anti", "mark")):
        return are_different(relation.children[0], names)
    return False


def _counts_rows(node: exp.Expr) -> bool:
    """Whether a window function sees only some of the rows with equal order keys."""
    spec = node.args.get("spec") if isinstance(node, exp.Window) else None
    if spec is None or (spec.args.get("kind") or "").upper() != "ROWS":
        return False
    sides = ((spec.args.get(side), spec.args.get(f"{side}_side")) for side in ("start", "end"))
    return tuple(sides) != (("UNBOUNDED", "PRECEDING"), ("UNBOUNDED", "FOLLOWING"))


def _argument(node: exp.Expr) -> exp.Expr:
    found: exp.Expr = node.this
    return found.expressions[0] if isinstance(found, exp.Distinct) else found
