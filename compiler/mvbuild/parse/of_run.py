"""The run -> `run_started_at` and `invocation_id` in templates: values that differ in each run.

A query with such a value differs in each run, so its MV is never fresh. Each use is reported. A template with a warning is not cached, so a
value cannot come from an earlier run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

Report = Callable[[str], None]
"""Called with the name of a value that is used."""


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
