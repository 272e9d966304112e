"""The types of a run's outcome: NodeResult, TestResult, RunResult; and its progress events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.freshness.model import Reason
from mvbuild.graph.model import NodeId
from mvbuild.names import TableIdentifier
from mvbuild.ports.engine import Work

Status = Literal["success", "error", "skipped", "reused"]
TestStatus = Literal["pass", "fail", "warn", "error", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """The outcome of one data test: how many rows broke its rule, and the SQL that finds them."""

    __test__ = False

    id: NodeId
    name: str
    status: TestStatus
    failures: int | None
    message: str
    sql: str
    details: str = ""
    """Lines to print below its result: the rows of a unit test that differ."""
    started_ms: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResult:
    """The outcome of one node; the statuses are dbt's."""

    node: NodeId
    status: Status
    message: str
    reasons: tuple[Reason, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    tests: tuple[TestResult, ...] = ()
    started_ms: int = 0
    seconds: float = 0.0
    thread: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Facts for run_results.json: snapshot ids, view version, rows."""
    sql: str | None = None
    """The SQL that the engine ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The outcome of a run, in the order of the plan."""

    results: tuple[NodeResult, ...]
    tests: tuple[TestResult, ...] = ()
    """Results of tests that belong to no node of the run (`mvbuild test`)."""
    started_ms: int = 0
    seconds: float = 0.0
    diagnostics: tuple[Diagnostic, ...] = ()
    renamed: tuple[tuple[TableIdentifier, TableIdentifier], ...] = ()
    """Old and new names of views and storage tables."""
    dropped: tuple[TableIdentifier, ...] = ()
    """What `--prune` dropped."""

    @property
    def ok(self) -> bool:
        if any(d.severity == "error" for d in self.diagnostics):
            return False
        failed_test = any(t.status in ("fail", "error") for t in self.all_tests)
        return not failed_test and all(r.status in ("success", "reused") for r in self.results)

    @property
    def all_tests(self) -> tuple[TestResult, ...]:
        return (*(t for r in self.results for t in r.tests), *self.tests)


def count_rows(number: int) -> str:
    """`1 row`, `1,888 rows`."""
    return f"{number:,} row{'s' * (number != 1)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A node has begun."""

    node: NodeId
    index: int
    total: int
    expected_seconds: float | None = None
    """How long the plan expects it to take, from its earlier refreshes and its data; None if that is unknown."""


Stage = Literal["planning", "reading", "writing", "testing", "publishing"]
"""The stages of a refresh. A full one reads while it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """A refresh has entered a stage."""

    node: NodeId
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A node has ended; `left` nodes have not."""

    result: NodeResult
    index: int
    total: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A data test has ended, outside any node."""

    result: TestResult
    index: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something slow has begun, outside any node: starting Spark, resolving jars."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStarted:
    """The engine runs: from now on, `work` returns what it is doing."""

    work: Callable[[], Work | None]


Event = EngineStarted | Started | Entered | Finished | Tested | Message
