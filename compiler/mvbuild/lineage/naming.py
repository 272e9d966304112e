"""an expression without an alias -> the name that Spark gives its column; None if only Spark knows it."""

from __future__ import annotations

from sqlglot import exp

_CALLED: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Min: "min", exp.Max: "max", exp.Count: "count"}


def output_name(node: exp.Expr) -> str | None:
    """The name of a column, a field, a plain literal, or a common aggregate of one column."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return node.expression.name if _is_path(node) else None
    if isinstance(node, exp.Literal):
        return node.name if node.is_string or node.name.isdigit() else None
    if isinstance(node, exp.Null):
        return "NULL"
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if type(node) in _CALLED:
        return _of_call(node)
    return None


def _is_path(node: exp.Expr) -> bool:
    while isinstance(node, exp.Dot):
        node = node.this
    return isinstance(node, exp.Column)


def _of_call(node: exp.Expr) -> str | None:
    argument = node.this
    if isinstance(node, exp.Count) and isinstance(argument, exp.Star) and not argument.args.get("except_"):
        return "count(1)"
    if isinstance(argument, exp.Column) and not isinstance(argument.this, exp.Star) and len(argument.parts) == 1 and not node.expressions:
        return f"{_CALLED[type(node)]}({argument.name})"
    return None
