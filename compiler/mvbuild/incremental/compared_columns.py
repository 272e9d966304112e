"""Relation -> the columns of each table that its conditions compare: those by which Iceberg may skip files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    Sessions,
    SetOperation,
    Union,
    Window,
    column,
    names_in,
    walk,
)
from mvbuild.incremental.restrict import partition_columns


def has_uuid(type_: Any) -> bool:
    """Whether an Iceberg type has a UUID. Iceberg orders them by signed halves and Parquet by bytes: a condition on one skips files and row
    groups that have rows for it. So mvbuild writes none, and does not rely on those of a query."""
    if not isinstance(type_, Mapping):
        return bool(type_ == "uuid")
    fields = [field["type"] for field in type_.get("fields", ())]
    return any(map(has_uuid, (*fields, *(type_[part] for part in ("element", "key", "value") if part in type_))))


def compared_columns(root: Relation) -> dict[int, frozenset[str]]:
    """Leaf -> columns. Conditions on aggregates are not among them, because they are checked after reading.

    >>> from mvbuild.incremental.samples import shape
    >>> compared_columns(shape("SELECT x FROM (SELECT amount * 2 AS x, id AS y FROM {orders}) WHERE x > 1").root)
    {0: frozenset({'amount'})}
    """
    nodes = list(walk(root))
    return _of_leaves(nodes, {name for node in nodes for condition in _conditions(node) for name in names_in(condition)}, names_in)


def condition_columns(root: Relation) -> dict[int, frozenset[str]]:
    """Leaf -> the columns for which conditions may reach a scan: those that the query compares, and those by which it groups, numbers or
    distinguishes rows, since a refresh looks for rows by their keys. Not those within concat(), which Spark evaluates itself.

    >>> from mvbuild.incremental.samples import shape
    >>> condition_columns(shape("SELECT concat(status, '') AS s, id, count(*) AS n FROM {orders} GROUP BY 1, 2").root)
    {0: frozenset({'id'})}
    """
    nodes = list(walk(root))
    parts = (part for node in nodes for part in (*_conditions(node), *_keys(node)))
    return _of_leaves(nodes, {name for part in parts for name in _outside_concat(part)}, _outside_concat)


def _of_leaves(nodes: Sequence[Relation], names: set[str], read: Callable[[exp.Expr], Iterable[str]]) -> dict[int, frozenset[str]]:
    """The columns of tables that these names come from. `read`: the names in an expression that count."""
    while more := {name for node in nodes for name in _below(node, names, read)} - names:
        names |= more
    found: dict[int, frozenset[str]] = {}
    for node in nodes:
        if isinstance(node, Scan) and (columns := frozenset(source for name, source in node.sources if name in names)):
            found[node.leaf] = found.get(node.leaf, frozenset()) | columns
    return found


def _outside_concat(expression: exp.Expr | None) -> set[str]:
    found = expression.find_all(exp.Column) if expression is not None else ()
    return {one.name for one in found if not isinstance(one.parent, exp.Concat)}


def _conditions(node: Relation) -> tuple[exp.Expr | None, ...]:
    if isinstance(node, Filter):
        return (node.predicate,)
    return (node.on,) if isinstance(node, Join) else ()


def _keys(node: Relation) -> Iterable[exp.Expr]:
    if isinstance(node, Aggregate | Sessions):
        return [item.expression for item in node.keys]
    if isinstance(node, Window):
        return [column(name) for name in partition_columns(node)]
    if isinstance(node, Limit):
        return node.order
    return [column(name) for name in node.columns] if isinstance(node, Distinct | SetOperation) else ()


def _below(node: Relation, names: set[str], read: Callable[[exp.Expr], Iterable[str]]) -> set[str]:
    """The names below an operator that these names of its result come from."""
    if isinstance(node, Project | Aggregate | Sessions):
        items = node.items if isinstance(node, Project) else node.keys
        return {name for item in items if item.name in names for name in read(item.expression)}
    if isinstance(node, Union | SetOperation):
        pairs = (pair for part in node.children for pair in zip(node.columns, part.columns, strict=True))
        return {below for name, below in pairs if name in names}
    return set()
