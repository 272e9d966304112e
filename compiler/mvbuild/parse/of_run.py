"""The run -> `run_started_at` and `invocation_id` in templates: values that each run has of its own.

A query with such a value is another one in each run, so its MV is never taken for fresh. Each use is reported: nothing is kept of a
template that has a warning, so a value cannot come from an earlier run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

Report = Callable[[str], None]
"""What happens where the value is used, given its name."""


class OfRun:
    """`invocation_id`."""

    __slots__ = ("_name", "_report", "_value")

    def __init__(self, name: str, value: object, report: Report) -> None:
        self._name, self._value, self._report = name, value, report

    def __str__(self) -> str:
        self._report(self._name)
        return str(self._value)


class StartedAt(OfRun):
    """`run_started_at`, in UTC as in dbt."""

    __slots__ = ()
    _value: datetime

    def strftime(self, format: str) -> str:  # noqa: A002  (Python's name)
        self._report(self._name)
        return self._value.strftime(format)

    def isoformat(self, *args: str) -> str:
        self._report(self._name)
        return self._value.isoformat(*args)
