"""The outcome of one node: Outcome; and AuditFailed, if its data tests failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.refresh.result import TestResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one node."""

    message: str
    reused: bool = False
    tests: tuple[TestResult, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    sql: str | None = None
    warnings: tuple[Diagnostic, ...] = ()
    """What the plan could not foresee."""


class AuditFailed(ProjectError):
    """Data tests found wrong rows: nothing was published. Carries the results."""

    def __init__(self, error: ProjectError, tests: tuple[TestResult, ...], sql: str) -> None:
        super().__init__(error.diagnostics)
        self.tests = tests
        self.sql = sql

    def also(self, found: Diagnostic) -> AuditFailed:
        """The same failure with one more diagnostic."""
        return AuditFailed(ProjectError([*self.diagnostics, found]), self.tests, self.sql)
