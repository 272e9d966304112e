"""the tables of a query + its auxiliary views as a refresh leaves them -> Inputs of the query over both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.freshness.observed import Leaf, Pin
from mvbuild.incremental.inputs import Input, Inputs
from mvbuild.ports.states import TableState
from mvbuild.storage.names import known_as


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptInput:
    """An auxiliary view as a refresh leaves it: the table and the snapshot to read. `uuid`: of the view, whose rows may be in another table
    until they are published."""

    table: TableState
    snapshot_id: int
    uuid: str


def over(given: Inputs, kept: Mapping[int, KeptInput], since: Mapping[int, int]) -> Inputs:
    """The tables of the MV's query and its auxiliary views; `since`: the earlier snapshot of those whose change counts."""
    tables = [replace(one, old=since.get(at, one.new)) for at, one in enumerate(given.inputs)]
    views = [_input(kept[leaf], since.get(leaf, kept[leaf].snapshot_id)) for leaf in sorted(kept)]
    return replace(given, inputs=(*tables, *views))


def _input(view: KeptInput, old: int) -> Input:
    name = known_as(view.table)
    pin = Pin(table=view.table, snapshot_id=view.snapshot_id, ref=None, moves=True)
    return Input(leaf=Leaf(node=f"auxiliary view.{name}"), pin=pin, old=old, is_auxiliary_view=True)
