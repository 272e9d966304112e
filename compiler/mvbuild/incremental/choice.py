"""The types of an answer of `choose`: StrategyChoice, and AuxiliaryPlan with a choice for each auxiliary view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.incremental.cost import Cost
from mvbuild.incremental.division import Cut, Division
from mvbuild.incremental.inputs import Inputs
from mvbuild.incremental.rewrite import Rewrite
from mvbuild.incremental.shape import Shape
from mvbuild.incremental.statements import Difference
from mvbuild.incremental.strategies import FULL
from mvbuild.names import TableIdentifier
from mvbuild.ports.changes import TableChange
from mvbuild.source import Span

NO_CHANGE = "no-change"
"""No change affects the query: only the record moves on."""
_FIRST = ("never-refreshed", "definition-changed", "layout-changed", "session-changed", "forced", "auxiliary-views-built")
"""Reasons for a full refresh that are not about the query, so that no policy can prevent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """A strategy, and the reason against it; `code` is empty for the one that was chosen."""

    strategy: str
    code: str
    message: str
    span: Span | None = None
    """The operator that prevents it, where the user wrote it."""
    work: Cost | None = None
    """Its work, if it could be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyChoice:
    """How an MV is refreshed."""

    strategy: str
    code: str
    """The code of the reason for a full refresh; empty for an incremental one."""
    message: str
    """Why it is full, nothing is to be done, or the strategy is chosen although it is not clearly cheaper."""
    span: Span | None = None
    considered: tuple[Considered, ...] = ()
    expected: Cost | None = None
    full: Cost | None = None
    shape: Shape | None = None
    rewrite: Rewrite | None = None
    difference: Difference | None = None
    inputs: Inputs | None = None
    changes: Mapping[int, TableChange] = field(default_factory=dict)
    auxiliary: AuxiliaryPlan | None = None
    """The auxiliary views that the refresh keeps, and from which the MV is refreshed."""

    @property
    def is_incremental(self) -> bool:
        return self.strategy != FULL

    @property
    def is_no_change(self) -> bool:
        """Whether only the record moves on."""
        return self.strategy == NO_CHANGE

    @property
    def breaks_policy(self) -> bool:
        """Whether `incremental_strict` forbids it."""
        return self.strategy == FULL and self.code not in _FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedView:
    """One auxiliary view, and how it is brought up to date; an empty strategy if that depends on a view before it."""

    cut: Cut
    name: TableIdentifier
    choice: StrategyChoice
    rows: int | None = None
    bytes: int | None = None
    """What it has now; None if it does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxiliaryPlan:
    """The auxiliary views of a refresh. `given`: the tables of the MV's own query, at the last refresh and now."""

    division: Division
    given: Inputs
    views: tuple[PlannedView, ...]
    is_followed: bool
    """Whether the rows of the storage were computed from these views, so that the change of the views is what changes in it."""
