"""A change described by files -> how many rows the estimate expects on each side, and what finding them costs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from mvbuild.incremental.algebra import Scan, column
from mvbuild.incremental.effort import Estimator
from mvbuild.incremental.key_ranges import Ranges
from mvbuild.incremental.sizes import FEW, Sizes, TableSize
from mvbuild.ports.changes import ChangePart, FileGroup, TableChange

NOTHING: Any = None
WHOLE = SimpleNamespace(schema={"fields": [{"name": "a", "type": "long"}]}, rows=10_000)


def side(version: Any, *, added: int = 0, removed: int = 0, altered: int = 0, deleted: int = 0, here: bool = False) -> TableSize:
    return sizes(added=added, removed=removed, altered=altered, deleted=deleted, here=here).of(Scan(0, (("a", "a"),), version))


def sizes(*, added: int = 0, removed: int = 0, altered: int = 0, deleted: int = 0, here: bool = False) -> Sizes:
    files = {"added": added, "removed": removed, "altered": altered}
    groups: Any = {name: FileGroup(files=rows and 1, rows=rows, bytes=rows * 8) for name, rows in files.items()}
    part = ChangePart(old=1, new=2, **groups, only_deletes=True, had_deletes=False, deleted_rows=deleted, files=NOTHING)
    change = TableChange(table=NOTHING, old=1, new=2, parts=(part,), manifests_read=1, manifest_bytes_read=1)
    inputs: Any = [WHOLE]
    read: Any = SimpleNamespace(reads_here=lambda change, columns: here)
    return Sizes(inputs=inputs, changes={0: change}, storage=NOTHING, read=read)


def test_nothing_is_expected_of_a_clock() -> None:
    held: Any = SimpleNamespace(changes_in_few=lambda changed: changed == FEW)
    found = replace(sizes(added=FEW - 10, altered=50, deleted=10), storage=held)
    assert found.changes_in_few
    assert not replace(found, moved=True).changes_in_few


def test_files_that_came_hold_what_came() -> None:
    assert side("plus", added=100).rows == 100
    assert side("minus", added=100).rows == 0


def test_files_that_lost_rows_hold_what_they_held_but_for_those() -> None:
    plus, minus = (side(version, added=900, removed=1000) for version in ("plus", "minus"))
    assert (plus.rows, minus.rows) == (0, 100)
    assert (plus.read, minus.read) == (plus.compared, minus.compared) == (900, 1000)


def test_nothing_tells_how_many_rows_an_update_touched() -> None:
    plus, minus = (side(version, added=1000, removed=1000) for version in ("plus", "minus"))
    assert (plus.rows, minus.rows) == (30, 30)
    assert (plus.compared, minus.compared) == (1000, 1000)


def test_deletes_hide_a_few_rows_of_whole_files() -> None:
    found = side("minus", altered=1000, deleted=10)
    assert (found.rows, found.read) == (10, 1000)
    assert found.compared == side("plus", added=1).compared == 0


def test_what_is_compared_without_an_engine_costs_less_also_where_the_query_leaves_out_half() -> None:
    def effort(*, here: bool) -> float:
        found = sizes(added=900, removed=1000, here=here)
        half = {0: column("a") > 1}
        return Estimator(Ranges(found), filters=half).flow(Scan(0, (("a", "a"),), "minus"), {}).cost

    assert side("minus", added=900, removed=1000, here=True).here
    assert 0 < effort(here=True) < effort(here=False)
