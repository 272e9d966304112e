"""settings of a data test -> Counting: how its rows become a number, and which numbers are a failure or a warning."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from mvbuild.dataclass import dataclass

EVERY = "count(*)"
ANY = "!= 0"

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_CONDITION = re.compile(rf"\s*(?:(<=|>=|<>|!=|==|=|<|>)\s*{_NUMBER}|(not\s+)?between\s+{_NUMBER}\s+and\s+{_NUMBER})\s*", re.IGNORECASE)

Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """dbt's `fail_calc`, `error_if`, `warn_if`, `limit` and `store_failures`."""

    fail_calc: str = EVERY
    """An aggregate over the rows that the test returns."""
    error_if: str = ANY
    warn_if: str = ANY
    limit: int | None = None
    """The most rows that are counted."""
    store: bool = False
    """Whether the rows are written to a table of the catalog."""
    strict: bool = False
    """Whether what would be a warning is a failure: --warn-error."""

    def verdict(self, failures: float, severity: Literal["error", "warn"]) -> Verdict:
        """As in dbt: `error_if` counts only with severity error, and `warn_if` decides otherwise."""
        if severity == "error" and holds(self.error_if, failures):
            return "fail"
        if not holds(self.warn_if, failures):
            return "pass"
        return "fail" if self.strict else "warn"


DEFAULT = Counting()


def is_condition(text: str) -> bool:
    """Whether `error_if` and `warn_if` can be this text.

    >>> is_condition(">= 10"), is_condition("between 1 and 5"), is_condition("many")
    (True, True, False)
    """
    return _CONDITION.fullmatch(text) is not None


def holds(condition: str, number: float) -> bool:
    """Whether a number satisfies a condition.

    >>> holds("> 10", 11), holds("between 1 and 5", 7), holds("not between 1 and 5", 7)
    (True, False, True)
    """
    found = _CONDITION.fullmatch(condition)
    assert found is not None, condition
    sign, than, inverted, low, high = found.groups()
    if sign:
        return _COMPARISONS[sign](number, float(than))
    return (float(low) <= number <= float(high)) is not bool(inverted)


def counting_of(values: Mapping[str, Any]) -> Counting:
    """From the settings of a test, which have been checked."""
    given = {name: value for name in ("fail_calc", "error_if", "warn_if", "limit") if (value := values.get(name)) is not None}
    stored_as = values.get("store_failures_as")
    return Counting(**given, store=stored_as == "table" if stored_as else bool(values.get("store_failures")))


def problem_of(name: str, value: Any) -> str:
    """What is wrong with one of the settings; empty if nothing is."""
    if name in ("error_if", "warn_if") and not (isinstance(value, str) and is_condition(value)):
        return f"'{name}' must be a comparison with a number, like '> 10' or 'between 1 and 10'"
    if name == "fail_calc" and not (isinstance(value, str) and value.strip()):
        return "'fail_calc' must be an aggregate in SQL, like 'sum(copies)'"
    if name == "limit" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        return "'limit' must be an integer above 0"
    if name == "store_failures" and not isinstance(value, bool):
        return "'store_failures' must be true or false"
    if name == "store_failures_as" and value not in ("table", "ephemeral"):
        return "'store_failures_as' must be table or ephemeral"
    return ""


SETTINGS = ("error_if", "warn_if", "fail_calc", "limit", "store_failures", "store_failures_as")
