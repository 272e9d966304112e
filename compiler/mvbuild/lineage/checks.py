"""types of operands -> type of the result, or a Finding if no mode of Spark accepts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from mvbuild.lineage import functions
from mvbuild.lineage.binding import Binding
from mvbuild.lineage.types import COMPLEX, Decimal, Type, arithmetic, is_number, parsed, text
from mvbuild.lineage.values import Value

ARITHMETIC: Mapping[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_CASTS: Mapping[exp.DType, Type] = {
    exp.DType.BOOLEAN: "boolean",
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.TEXT: "string",
    exp.DType.VARCHAR: "string",
    exp.DType.CHAR: "string",
    exp.DType.BINARY: "binary",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DType.VARIANT: "variant",
}


def operator_type(node: exp.Expr, one: Type | None, two: Type | None, left: exp.Expr, binding: Binding) -> Type | None:
    """The type of `one node two`."""
    sign = ARITHMETIC.get(type(node))
    if sign is None:
        return functions.function_type(node, [one, two])
    if isinstance(one, COMPLEX) or isinstance(two, COMPLEX):
        _no_arithmetic(node, one, two, binding)
        return None
    if isinstance(node.expression, exp.Interval) and sign in "+-":
        return _shifted(one, node.expression)
    if sign in "+-" and one == "date":
        return "date" if two in ("tinyint", "smallint", "int") else None
    if isinstance(one, Decimal) or isinstance(two, Decimal):
        one, two = _literal_decimal(left, one), _literal_decimal(node.expression, two)
    return arithmetic(sign, one, two)


def _no_arithmetic(node: exp.Expr, one: Type | None, two: Type | None, binding: Binding) -> None:
    nested, other = (one, two) if isinstance(one, COMPLEX) else (two, one)
    if other is not None:
        binding.find(
            "type-mismatch", f"A value of type {shown(nested)} cannot be used in arithmetic", node, "Use one of its elements or fields."
        )


def _shifted(type_: Type | None, interval: exp.Expr) -> Type | None:
    unit = interval.args.get("unit")
    if type_ == "date":
        return "date" if isinstance(unit, exp.Var) and unit.name.upper().rstrip("S") in ("DAY", "MONTH", "YEAR") else None
    return type_ if type_ in ("timestamp", "timestamp_ntz") else None


def _literal_decimal(node: exp.Expr, type_: Type | None) -> Type | None:
    """Beside a decimal, an integer literal needs only as many digits as it has."""
    node = node.unnest()
    node = node.this if isinstance(node, exp.Neg) else node
    if type_ in ("int", "bigint") and isinstance(node, exp.Literal):
        return Decimal(max(len(node.name.lstrip("0")), 1), 0)
    return type_


def check_comparable(node: exp.Expr, one: Type | None, two: Type | None, binding: Binding) -> None:
    """Report operands that no mode of Spark can compare."""
    if not are_comparable(one, two):
        message = f"A value of type {shown(one)} cannot be compared with one of type {shown(two)}"
        binding.find("type-mismatch", message, node, "Compare one of its elements or fields, or cast one of the two.")


def are_comparable(one: Type | None, two: Type | None) -> bool:
    """False only if it is certain that they cannot be compared."""
    if one is None or two is None or "void" in (one, two) or "variant" in (one, two):
        return True
    if isinstance(one, COMPLEX) or isinstance(two, COMPLEX):
        return type(one) is type(two)
    numbers_and_times = ("date", "timestamp", "timestamp_ntz")
    return not ((is_number(one) and two in numbers_and_times) or (is_number(two) and one in numbers_and_times))


def shown(type_: Type | None) -> str:
    """A type as messages show it."""
    return text(type_) or type(type_).__name__.lower()


def check_numbers(node: exp.Expr, found: Sequence[Value], binding: Binding) -> None:
    """Report sums of values that are not numbers in any mode of Spark."""
    name = functions.name_of(node)
    type_ = found[0].type if found else None
    if name in functions.NUMBERS_ONLY and (isinstance(type_, COMPLEX) or type_ in functions.NO_NUMBERS):
        binding.find("type-mismatch", f"{name}() of values of type {shown(type_)}", node, "Aggregate a number.")


def cast_type(to: exp.Expr) -> Type | None:
    """The type that a CAST names."""
    if not isinstance(to, exp.DataType):
        return None
    if to.args.get("collate"):
        return None
    plain = _CASTS.get(to.this) if isinstance(to.this, exp.DType) else None
    return plain if plain is not None else parsed(to.sql("spark"))


def literal_type(node: exp.Expr) -> Type | None:
    if node.args.get("is_string"):
        return "string"
    written = node.name
    if written.isdecimal():
        if len(written) > 38:
            return None
        number = int(written)
        if number < 2**63:
            return "int" if number < 2**31 else "bigint"
        return Decimal(len(written), 0)
    if "e" in written.lower():
        return "double"
    whole, _, fraction = written.partition(".")
    digits = whole.lstrip("0") + fraction
    if not digits.isdigit() or len(digits) > 38:
        return None
    return Decimal(max(len(digits), len(fraction)), len(fraction))
