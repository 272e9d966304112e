"""a condition of the query on one table -> Predicates with certainly the same meaning in Spark and Iceberg; none if that is uncertain.

A mistake would lose rows, so these are left out: floats (NaN), timestamps with a time zone, collations, comparisons after a cast that is
not exact, strings with escapes, and everything that does not compare a column with a constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Context, Decimal, localcontext
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.ports.changes import AnyOf, Comparison, Operator, Predicate

Columns = Mapping[str, tuple[str, Any]]
"""Name in the tree -> (column of the table, its Iceberg type)."""

_OPERATORS: Mapping[type[exp.Expr], Operator] = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_MIRRORED: Mapping[Operator, Operator] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED: Mapping[Operator, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_RANGES = {"int": 2**31, "long": 2**63}
_BIGINT_DIGITS = 20
_MAX_DIGITS = 38
_OPERANDS = {"this", "expression", "expressions", "low", "high"}
_EXACT = Context(prec=200)
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def translated(condition: exp.Expr, columns: Columns, *, strings: bool) -> tuple[Predicate, ...]:
    """Predicates that hold whenever the condition is true; empty if none are known. `strings`: string literals can be trusted."""
    with localcontext(_EXACT):
        return _Translation(columns, strings).all_of(condition)


@dataclass(frozen=True, slots=True)
class _Translation:
    columns: Columns
    strings: bool

    def all_of(self, condition: exp.Expr) -> tuple[Predicate, ...]:
        found = condition.unnest()
        if not _is_plain(found):
            return ()
        if isinstance(found, exp.And):
            return (*self.all_of(found.left), *self.all_of(found.right))
        if isinstance(found, exp.Or):
            return _any_of(self.all_of(found.left), self.all_of(found.right))
        if isinstance(found, exp.Not):
            return self._not(found.this.unnest())
        if isinstance(found, exp.Between):
            return self._between(found)
        one = self._one(found)
        return () if one is None else (one,)

    def _one(self, node: exp.Expr) -> Comparison | None:
        if isinstance(node, exp.Column):
            name, type_ = self._column(node)
            return Comparison(name, "=", True) if type_ == "boolean" else None
        if isinstance(node, exp.Is):
            return self._is_null(node, "is null")
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Like | exp.StartsWith):
            return self._prefix(node)
        if isinstance(node, exp.NullSafeEQ):
            is_null = any(isinstance(side.unnest(), exp.Null) for side in (node.left, node.right))
            return self._is_null(node, "is null") if is_null else self._compared(node, "=")
        operator = _OPERATORS.get(type(node))
        return self._compared(node, operator) if operator else None

    def _not(self, node: exp.Expr) -> tuple[Predicate, ...]:
        if isinstance(node, exp.Not):
            return self.all_of(node.this)
        if not _is_plain(node):
            return ()
        found: Comparison | None = None
        if isinstance(node, exp.Column):
            name, type_ = self._column(node)
            found = Comparison(name, "=", False) if type_ == "boolean" else None
        elif isinstance(node, exp.Is):
            found = self._is_null(node, "is not null")
        elif type(node) in _OPERATORS and _OPERATORS[type(node)] in _NEGATED:
            found = self._compared(node, _NEGATED[_OPERATORS[type(node)]])
        return () if found is None else (found,)

    def _is_null(self, node: exp.Expr, operator: Operator) -> Comparison | None:
        assert isinstance(node, exp.Binary)
        name, type_ = self._column(node.left)
        if not name or not isinstance(node.right.unnest(), exp.Null) or not _has_null_count(type_):
            return None
        return Comparison(name, operator)

    def _compared(self, node: exp.Expr, operator: Operator) -> Comparison | None:
        assert isinstance(node, exp.Binary)
        for own, other, read in ((node.left, node.right, operator), (node.right, node.left, _MIRRORED[operator])):
            name, type_ = self._column(own)
            value = self._value(other, type_) if name else None
            if value is not None:
                return Comparison(name, read, value)
        return None

    def _between(self, node: exp.Between) -> tuple[Predicate, ...]:
        name, type_ = self._column(node.this)
        if not name:
            return ()
        low, high = self._value(node.args["low"], type_), self._value(node.args["high"], type_)
        ends: tuple[tuple[Operator, Any], ...] = ((">=", low), ("<=", high))
        return tuple(Comparison(name, operator, value) for operator, value in ends if value is not None)

    def _in(self, node: exp.In) -> Comparison | None:
        name, type_ = self._column(node.this)
        if not name or not node.expressions:
            return None
        # A NULL in the list never matches a row.
        values = [self._value(one, type_) for one in node.expressions if not isinstance(one.unnest(), exp.Null)]
        if not values or any(value is None for value in values):
            return None
        return Comparison(name, "in", tuple(dict.fromkeys(values)))

    def _prefix(self, node: exp.Expr) -> Comparison | None:
        name, type_ = self._column(node.this)
        value = self._value(node.args["expression"], type_) if name and type_ == "string" else None
        if value is None:
            return None
        if isinstance(node, exp.StartsWith):
            return Comparison(name, "starts with", value)
        prefix = value.rstrip("%")
        if not prefix or "%" in prefix or "_" in prefix:
            return None
        return Comparison(name, "starts with" if prefix != value else "=", prefix)

    def _column(self, node: exp.Expr) -> tuple[str, Any]:
        found = node.unnest()
        return self.columns.get(found.name, ("", None)) if isinstance(found, exp.Column) else ("", None)

    def _value(self, node: exp.Expr, type_: Any) -> Any:
        """The constant as a value of the column's type; None if it is not exactly one."""
        found = node.unnest()
        if not isinstance(type_, str):
            return None
        if type_ in _RANGES:
            return _integer(found, _RANGES[type_])
        if type_ == "string":
            return _string(found) if self.strings else None
        if type_ == "boolean":
            return found.this if isinstance(found, exp.Boolean) else None
        if type_ == "date":
            return _date(found.this if _is_cast(found, exp.DType.DATE) else found)
        if type_ == "timestamp":
            return _timestamp(found)
        decimal = _DECIMAL.fullmatch(type_)
        return _decimal(found, int(decimal[1]), int(decimal[2])) if decimal else None


def _is_plain(condition: exp.Expr) -> bool:
    """Whether it has no part but its operands. Another one may turn its meaning around, as sqlglot's `negate` of LIKE does."""
    return condition.args.keys() - _OPERANDS <= {key for key, value in condition.args.items() if not value}


def _any_of(*branches: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
    """None if a branch gives no predicate."""
    return (AnyOf(branches),) if all(branches) else ()


def _has_null_count(type_: Any) -> bool:
    """Nested columns have no counts of their own, and the formats differ in what they count for the others."""
    return type_ in (*_RANGES, "string", "boolean", "date", "timestamp") or (isinstance(type_, str) and bool(_DECIMAL.fullmatch(type_)))


def _number(node: exp.Expr) -> tuple[Decimal, int, int] | None:
    """Value, integer digits and fractional digits of a literal that Spark reads as an integer or decimal."""
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this.unnest()
    if isinstance(node, exp.Cast) and node.to.this in exp.DataType.SIGNED_INTEGER_TYPES:
        written = node.this.unnest()
        found = _number(written)
        bits = {exp.DType.BIGINT: 63, exp.DType.INT: 31}.get(node.to.this)
        if found is None or found[2] or bits is None or abs(found[0]) >= 2**bits:
            return None
        return sign * found[0], found[1], 0
    if not isinstance(node, exp.Literal) or node.is_string or not _NUMBER.fullmatch(node.name):
        return None
    whole, _, fraction = node.name.partition(".")
    return sign * Decimal(node.name), len(whole) if fraction else max(len(whole), _BIGINT_DIGITS), len(fraction)


def _integer(node: exp.Expr, limit: int) -> int | None:
    found = _number(node)
    if found is None or found[2] > _MAX_DIGITS - _BIGINT_DIGITS or found[0] != found[0].to_integral_value():
        return None
    return int(found[0]) if -limit <= found[0] < limit else None


def _decimal(node: exp.Expr, precision: int, scale: int) -> Decimal | None:
    found = _number(node)
    if found is None:
        return None
    value, whole, fraction = found
    # Spark compares both in a type with the digits of both; if there are too many, it rounds.
    if max(precision - scale, whole) + max(scale, fraction) > _MAX_DIGITS:
        return None
    shifted = value.scaleb(scale)
    if shifted != shifted.to_integral_value() or abs(shifted) >= 10**precision:
        return None
    return Decimal(int(shifted)).scaleb(-scale)


def _string(node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Literal) or not node.is_string or "\\" in node.name:
        return None
    text = str(node.name)
    return text if all(c.isprintable() for c in text) else None


def _date(node: exp.Expr) -> date | None:
    found: date | None = _read(node, _DATE, date.fromisoformat)
    return found


def _timestamp(node: exp.Expr) -> datetime | None:
    if _is_cast(node, exp.DType.DATE):
        found = _date(node.this)
        return datetime(found.year, found.month, found.day) if found else None
    if not _is_cast(node, exp.DType.TIMESTAMPNTZ):
        return None
    read: datetime | None = _read(node.this, _TIMESTAMP, datetime.fromisoformat)
    return read


def _read(node: exp.Expr, form: re.Pattern[str], read: Callable[[str], Any]) -> Any:
    if not isinstance(node, exp.Literal) or not node.is_string or not form.fullmatch(node.name) or not node.name.isascii():
        return None
    try:
        return read(node.name)
    except ValueError:
        return None


def _is_cast(node: exp.Expr, to: exp.DType) -> bool:
    return isinstance(node, exp.Cast) and node.to.this == to and not node.args.get("format") and not node.args.get("default")


def predicate_text(predicates: tuple[Predicate, ...]) -> str:
    """The predicate, as the user could have written it."""
    return " AND ".join(_single_text(one) for one in predicates)


def _single_text(predicate: Predicate) -> str:
    if isinstance(predicate, AnyOf):
        return f"({' OR '.join(predicate_text(branch) for branch in predicate.branches)})"
    name, operator, value = predicate.column, predicate.operator, predicate.value
    if operator in ("is null", "is not null"):
        return f"{name} {operator.upper()}"
    if operator == "starts with":
        return f"{name} LIKE {_literal(value + '%')}"
    if operator == "in":
        shown = [_literal(one) for one in value[:5]]
        return f"{name} IN ({', '.join([*shown, *(['...'] if len(value) > len(shown) else [])])})"
    return f"{name} {operator} {_literal(value)}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP_NTZ '{value}'"
    return f"DATE '{value}'" if isinstance(value, date) else str(value)
