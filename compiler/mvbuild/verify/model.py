"""The types of a verification's outcome: Verified for one MV, Verification for all; and the progress event."""

from __future__ import annotations

from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.freshness.model import Reason
from mvbuild.graph.model import NodeId

VerifiedStatus = Literal["same", "different", "unverifiable", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row that one side has more often than the other, by `copies`."""

    only_in: Literal["storage", "query"]
    copies: int
    row: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of comparing the storage of one MV with its query at the snapshots that its last refresh read."""

    node: NodeId
    status: VerifiedStatus
    missing: int = 0
    """Rows of the query that the storage lacks; a row counts once per copy. In a sample, those of the sample."""
    extra: int = 0
    """Rows of the storage that the query does not return."""
    columns: tuple[str, ...] = ()
    rows: tuple[Difference, ...] = ()
    """Some of the rows that differ. A map is a list of its entries in the order of their keys."""
    reason: Reason | None = None
    """Why it cannot be verified, or failed, or differs without any row to show."""
    notes: tuple[Reason, ...] = ()
    """Notes on the comparison: storage-changed, storage-schema-changed, nondeterministic."""
    seconds: float = 0.0
    sql: str = ""
    """The SQL that returns the rows that differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of `verify`, in the order of the graph."""

    results: tuple[Verified, ...]
    sample: float | None
    seed: int | None
    """The seed of the sample; with it the same rows are compared again."""
    seconds: float = 0.0
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def ok(self) -> bool:
        failed = any(r.status in ("different", "error") for r in self.results)
        return not failed and not any(d.severity == "error" for d in self.diagnostics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An MV was verified."""

    result: Verified
    index: int
    total: int
