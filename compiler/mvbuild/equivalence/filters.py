"""conditions of one query before and after -> whether the rows that pass one also pass the other, if that is certain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from sqlglot import exp

from mvbuild.equivalence.tidy import shown

Direction = Literal["narrowed", "widened"]
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}:\d{2})?\Z")
_BOUNDS = (exp.LT, exp.LTE)


def direction(old: Sequence[exp.Expr], new: Sequence[exp.Expr]) -> Direction | None:
    """The direction for conditions that all must hold. None if neither is certain, or both are the same."""
    narrows, widens = _follow_from(old, new), _follow_from(new, old)
    return None if narrows == widens else "narrowed" if narrows else "widened"


def _follow_from(conditions: Sequence[exp.Expr], others: Sequence[exp.Expr]) -> bool:
    """Whether each condition is implied by one of the others. Conditions with equal text in the others are not compared one by one."""
    known = {shown(other) for other in others}
    return all(any(implies(other, one) for other in others) for one in conditions if shown(one) not in known)


def implies(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether the other condition is true for every row for which this one is; NULL is not true.

    >>> implies(exp.condition("x < 5"), exp.condition("x < 9")), implies(exp.condition("x < 9"), exp.condition("x < 5"))
    (True, False)
    """
    if shown(one) == shown(other):
        return True
    if isinstance(one, exp.Or):
        return all(implies(part, other) for part in one.flatten(unnest=False))
    if isinstance(other, exp.Or):
        return any(implies(one, part) for part in other.flatten(unnest=False))
    if isinstance(other, exp.And):
        return all(implies(one, part) for part in other.flatten(unnest=False))
    if isinstance(one, exp.And):
        return any(implies(part, other) for part in one.flatten(unnest=False))
    return _fewer_values(one, other) or _tighter(one, other)


def _fewer_values(one: exp.Expr, other: exp.Expr) -> bool:
    """`x IN (1, 2)` and `x IN (1, 2, 3)`: literals of one kind, because all of a list get one common type."""
    if not isinstance(one, exp.In) or not isinstance(other, exp.In) or shown(one.this) != shown(other.this):
        return False
    mine, its = one.args.get("expressions"), other.args.get("expressions")
    if not mine or not its or len({_kind(v) for v in (*mine, *its)}) != 1 or _kind(mine[0]) is None:
        return False
    return {shown(v) for v in mine} <= {shown(v) for v in its}


def _kind(node: exp.Expr) -> str | None:
    """Literals of one kind have one type, or are compared with one."""
    if not isinstance(node, exp.Literal):
        return None
    return "string" if node.is_string else "integer" if node.is_int else None


def _tighter(one: exp.Expr, other: exp.Expr) -> bool:
    """`x < 5` and `x < 9`, `10 <= x` and `5 < x`: bounds by literals whose order is certain."""
    mine, its = _bound(one), _bound(other)
    if mine is None or its is None or mine[:2] != its[:2]:
        return False
    _, is_upper, value, strict = mine
    _, _, limit, limit_strict = its
    ordered = _ordered(value, limit) if is_upper else _ordered(limit, value)
    return ordered == "less" or (ordered == "equal" and (strict or not limit_strict))


def _bound(node: exp.Expr) -> tuple[str, bool, exp.Expr, bool] | None:
    """What is bounded, whether from above, by which literal, and whether the bound itself is excluded."""
    if not isinstance(node, _BOUNDS):
        return None
    strict = isinstance(node, exp.LT)
    if _literal(node.expression) is not None and _literal(node.this) is None:
        return shown(node.this), True, node.expression, strict
    if _literal(node.this) is not None and _literal(node.expression) is None:
        return shown(node.expression), False, node.this, strict
    return None


def _literal(node: exp.Expr) -> tuple[str, float | str] | None:
    """Its kind, and a Python value with the same order."""
    if isinstance(node, exp.Neg):
        inner = _literal(node.this)
        return ("number", -inner[1]) if inner and isinstance(inner[1], float) else None
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string and _DATE.match(node.this.name):
        return f"{shown(node.to)}:{len(node.this.name)}", node.this.name
    if isinstance(node, exp.Literal) and node.is_string:
        # The same order as text and as a date.
        return (f"date:{len(node.name)}", node.name) if _DATE.match(node.name) else None
    return ("number", float(node.name)) if isinstance(node, exp.Literal) and len(node.name) < 16 else None


def _ordered(one: exp.Expr, other: exp.Expr) -> Literal["less", "equal", "more"] | None:
    mine, its = _literal(one), _literal(other)
    if mine is None or its is None or mine[0] != its[0]:
        return None
    if mine[1] == its[1]:
        return "equal"
    return "less" if mine[1] < its[1] else "more"  # type: ignore[operator]
