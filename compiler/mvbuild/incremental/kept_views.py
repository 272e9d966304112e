"""The types of a plan for auxiliary views: AuxiliaryPlan, PlannedView for each of them, and KeptInput after it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.incremental.cuts import Cut, Division
from mvbuild.incremental.inputs import Input, Inputs
from mvbuild.names import TableIdentifier
from mvbuild.ports.states import TableState
from mvbuild.storage.names import known_as

if TYPE_CHECKING:
    from mvbuild.incremental.choose import StrategyChoice


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


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptInput:
    """An auxiliary view as a refresh leaves it: its state with the snapshot to read."""

    table: TableState
    snapshot_id: int


def over(given: Inputs, kept: Mapping[int, KeptInput], since: Mapping[int, int]) -> Inputs:
    """The tables of the MV's query and its auxiliary views; `since`: the earlier snapshot of those whose change counts."""
    tables = [replace(one, old=since.get(at, one.new)) for at, one in enumerate(given.inputs)]
    views = [_input(kept[leaf], since.get(leaf, kept[leaf].snapshot_id)) for leaf in sorted(kept)]
    return replace(given, inputs=(*tables, *views))


def _input(view: KeptInput, old: int) -> Input:
    name = known_as(view.table)
    return Input(
        leaf=Leaf(node=f"auxiliary view.{name}"), pin=Pin(table=view.table, snapshot_id=view.snapshot_id, ref=None, moves=True), old=old
    )
