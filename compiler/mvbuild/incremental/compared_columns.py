"""Relation -> the columns of each table that its conditions compare: those by which Iceberg may skip files."""

from __future__ import annotations

from sqlglot import exp

from mvbuild.incremental.algebra import Aggregate, Filter, Join, Project, Relation, Scan, Sessions, SetOperation, Union, names_in, walk


def compared_columns(root: Relation) -> dict[int, frozenset[str]]:
    """Leaf -> columns. Conditions on aggregates are not among them, because they are checked after reading.

    >>> from mvbuild.incremental.samples import shape
    >>> compared_columns(shape("SELECT x FROM (SELECT amount * 2 AS x, id AS y FROM {orders}) WHERE x > 1").root)
    {0: frozenset({'amount'})}
    """
    nodes = list(walk(root))
    names = {name for node in nodes for condition in _conditions(node) for name in names_in(condition)}
    while more := {name for node in nodes for name in _below(node, names)} - names:
        names |= more
    found: dict[int, frozenset[str]] = {}
    for node in nodes:
        if isinstance(node, Scan) and (columns := frozenset(source for name, source in node.sources if name in names)):
            found[node.leaf] = found.get(node.leaf, frozenset()) | columns
    return found


def _conditions(node: Relation) -> tuple[exp.Expr | None, ...]:
    if isinstance(node, Filter):
        return (node.predicate,)
    return (node.on,) if isinstance(node, Join) else ()


def _below(node: Relation, names: set[str]) -> set[str]:
    """The names below an operator that these names of its result come from."""
    if isinstance(node, Project | Aggregate | Sessions):
        items = node.items if isinstance(node, Project) else node.keys
        return {name for item in items if item.name in names for name in names_in(item.expression)}
    if isinstance(node, Union | SetOperation):
        pairs = (pair for part in node.children for pair in zip(node.columns, part.columns, strict=True))
        return {below for name, below in pairs if name in names}
    return set()
