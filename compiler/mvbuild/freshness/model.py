"""The types of the result: Freshness, and the Reasons for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from mvbuild.dataclass import dataclass
from mvbuild.formats.failed_tests import FailedTests
from mvbuild.formats.record import RefreshRecord
from mvbuild.graph.model import NodeId
from mvbuild.names import TableIdentifier

if TYPE_CHECKING:
    from mvbuild.equivalence.edit import Edit

State = Literal["fresh", "stale", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One fact about one MV. `effect` is its effect on the MV: `fresh` facts explain why a difference does not count."""

    code: str
    message: str
    effect: State
    table: TableIdentifier | None = None
    """The table or view of the fact."""
    recorded: int | None = None
    """Snapshot id or view version in the record."""
    current: int | None = None
    """Snapshot id or view version in the catalog."""
    edit: Edit | None = None
    """For a changed definition: how it was changed."""
    lag_ms: int | None = None
    """Current minus recorded snapshot timestamp, the difference that a window is compared with."""
    unseen_since_ms: int | None = None
    """The time of the first snapshot that the MV has not seen."""
    heals: bool = False
    """Whether a metadata commit corrects it, because the rows are those of the definition."""


def state_of(reasons: Iterable[Reason]) -> State:
    """Stale if that is certain, else unknown if something is."""
    effects = {r.effect for r in reasons}
    return "stale" if "stale" in effects else "unknown" if "unknown" in effects else "fresh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Whether an MV's storage may be read instead of its query, with every reason."""

    node: NodeId
    state: State
    reasons: tuple[Reason, ...]
    record: RefreshRecord | None
    unseen: tuple[Reason, ...] = ()
    """Unseen changes of tables: its own differences, and those of the MVs that it was computed from, at any depth."""
    failed: FailedTests | None = None
    """Newer data than that of the storage was computed, and its data tests failed. It never affects `state`."""

    @property
    def is_fresh(self) -> bool:
        return self.state == "fresh"

    @property
    def has_right_rows(self) -> bool:
        """Whether the rows are what the query returns, even if other engines may not find them."""
        return all(r.effect == "fresh" or r.heals for r in self.reasons)

    @property
    def was_refreshed(self) -> bool:
        """Whether there is a record of a refresh that can be read."""
        return self.record is not None

    @property
    def refreshed_ms(self) -> int | None:
        """When the recorded refresh began; None if it is not known."""
        return self.record.refresh_start_ms if self.record is not None else None

    def has(self, code: str) -> bool:
        return any(r.code == code for r in self.reasons)
