"""sqlglot tree -> the names of a query's output columns, as far as its text determines them."""

from __future__ import annotations

from sqlglot import exp


def output_columns(tree: exp.Expr) -> tuple[str, ...] | None:
    """None if Spark determines the names: for a star, a generator or an expression without an alias."""
    while isinstance(tree, (exp.Subquery, exp.SetOperation)):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return None
    names: list[str] = []
    for projection in tree.expressions:
        named = _names(projection)
        if named is None:
            return None
        names += named
    return tuple(names) or None


def _names(projection: exp.Expr) -> tuple[str, ...] | None:
    if isinstance(projection, exp.Alias):
        return (projection.alias,)
    if isinstance(projection, exp.Aliases):
        return tuple(identifier.name for identifier in projection.expressions)
    if isinstance(projection, exp.Column) and not isinstance(projection.this, exp.Star):
        return (projection.name,)
    if isinstance(projection, exp.Dot) and isinstance(projection.expression, exp.Identifier):
        return (projection.expression.name,)
    return None
