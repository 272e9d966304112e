"""an expression + the types of its parts -> its signature, by which a table of proofs finds it: `sum(decimal)`, `CAST(int AS string)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from mvbuild.dialects.engine_types import kind
from mvbuild.lineage.types import MOST_DIGITS, Decimal, Type

TypeOf = Callable[[exp.Expr], "Type | None"]

OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
    exp.DPipe: "||",
}
MOST_EXACT_DIGITS = 15
"""A decimal with at most this many digits is a double without loss."""
_BY_VALUE = (exp.Substring, exp.Round, exp.Replace, exp.Left, exp.Right, exp.Pad, exp.StrPosition, exp.StartsWith, exp.Trim)
"""Functions whose results depend on the values of literals."""
_BY_DIGITS = (exp.Round, exp.Ceil, exp.Floor)
"""Functions whose result needs one more digit."""
_BY_UNIT = (exp.DateTrunc, exp.TimestampTrunc)
_NOTHING = ("big_int", "_type", "is_string")
"""Arguments of nodes that the parser adds and no engine sees."""


def of_cast(one: Type | None, two: Type | None, *, safe: bool = False) -> str:
    """The signature of `CAST(one AS two)`."""
    is_long = isinstance(one, Decimal) and two == "double" and one.precision > MOST_EXACT_DIGITS
    return f"{'TRY_' if safe else ''}CAST({kind(one)}{' of more than 15 digits' if is_long else ''} AS {kind(two)})"


def of_minus(type_: Type | None) -> str:
    """The signature of `-x`. Spark rounds a negated decimal to 34 digits."""
    return f"-{kind(type_)}{' of more than 34 digits' if isinstance(type_, Decimal) and type_.precision > 34 else ''}"


def of_function(node: exp.Expr, type_of: TypeOf) -> str:
    """The signature of a call, for any function."""
    name = node.sql_name() if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous) else node.name
    return f"{name.lower()}({', '.join(_arguments(node, type_of))})"


def _arguments(node: exp.Expr, type_of: TypeOf) -> Iterator[str]:
    keys = [*(k for k in node.arg_types if k in node.args), *(k for k in node.args if k not in node.arg_types)]
    for key in keys:
        value = node.args[key]
        if value is None or value is False or value == [] or key in _NOTHING or (isinstance(node, exp.Anonymous) and key == "this"):
            continue
        for one in value if isinstance(value, list) else [value]:
            yield _argument(node, one, type_of) if isinstance(one, exp.Expr) else f"{key}={one}".lower()


def _argument(of: exp.Expr, node: exp.Expr, type_of: TypeOf) -> str:
    if isinstance(node, exp.Distinct):
        return f"DISTINCT {', '.join(_argument(of, one, type_of) for one in node.expressions)}"
    if isinstance(node, exp.Star):
        return "*"
    if isinstance(of, _BY_UNIT) and node is of.args.get("unit"):
        return f"'{node.name.upper()}'"
    if isinstance(node, exp.Var):
        return node.name.upper()
    type_ = type_of(node)
    if isinstance(of, exp.Sum) and isinstance(type_, Decimal) and type_.precision > MOST_DIGITS - 10:
        return "decimal of more than 28 digits"
    if isinstance(of, _BY_DIGITS) and isinstance(type_, Decimal) and type_.precision == MOST_DIGITS:
        return "decimal of 38 digits"
    return (_literal(node) if isinstance(of, _BY_VALUE) else None) or kind(type_)


def _literal(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return "..-1"
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return "'…'" if node.name else "''"
    return ("0" if int(node.name) == 0 else "1..") if node.is_int else None


def arguments_of(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions below a call that are computed before it."""
    for child in node.iter_expressions():
        if isinstance(child, exp.Distinct):
            yield from child.expressions
        elif isinstance(node, _BY_UNIT) and child is node.args.get("unit"):
            continue
        elif not isinstance(child, (exp.Identifier, exp.DataType, exp.Var, exp.Star)):
            yield child
