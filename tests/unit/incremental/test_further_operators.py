"""Random queries with VALUES, recursive queries without tables, PIVOT and UNPIVOT: every strategy is right, and wrong rules are detected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from mvbuild.incremental import column_pruning
from mvbuild.incremental.algebra import Constant, Pivot, Relation, with_children
from mvbuild.incremental.delta import Delta, Deltas
from mvbuild.incremental.reasons import Refused
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import ACCEPTED, seen, shrunk
from unit.incremental.queries import SHAPED, generated
from unit.incremental.realistic import Realistic

pytestmark = pytest.mark.proof

SEEDS = range(SHAPED, SHAPED + 120)
FLOORS = {"values": 8, "recursive": 8, "pivot": 12, "unpivot": 20}
"""Operator -> how many of the cases with it affected-keys must accept."""


def test_every_strategy_is_right_and_taken_often() -> None:
    connection, accepted = connected(), Counter[str]()
    for seed in SEEDS:
        case = generated(seed)
        found = seen(case, connection)
        assert not found.wrong, "\n\n".join(str(shrunk(one, connection)) for one in found.wrong[:3])
        if found.codes.get("affected-keys") == ACCEPTED:
            accepted.update(case.operators)
    assert {name: accepted[name] >= least for name, least in FLOORS.items()} == dict.fromkeys(FLOORS, True)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "WITH RECURSIVE up (id) AS (SELECT customer_id FROM {customers} UNION ALL SELECT id + 1 FROM up WHERE id < 9) SELECT id FROM up",
            "a recursive query over tables is not refreshed incrementally",
        ),
        (
            "SELECT * FROM (SELECT customer_id, channel, amount FROM {orders}) PIVOT (first(amount) FOR channel IN ('web' AS web))",
            "`FIRST(amount)` is not refreshed incrementally",
        ),
        ("SELECT v.a FROM VALUES (1), (2, 3) AS v(a)", "`VALUES (1), (2, 3) AS v(a)` is not refreshed incrementally"),
    ],
)
def test_what_is_refused(sql: str, message: str) -> None:
    with pytest.raises(Refused) as caught:
        _ = Realistic("refused", sql).shape
    assert caught.value.message == message


# --- wrong rules --------------------------------------------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def _around(patch: Patch, change: Callable[[Deltas, Relation], Delta | None]) -> None:
    true: Any = Deltas.of

    def of(self: Deltas, relation: Relation) -> Delta:
        found = change(self, relation)
        return true(self, relation) if found is None else found

    patch.setattr(Deltas, "of", of)


def a_pivot_has_only_the_rows_of_the_change(patch: Patch) -> None:
    def change(self: Deltas, relation: Relation) -> Delta | None:
        if not isinstance(relation, Pivot):
            return None
        below = self.of(relation.child)
        plus, minus = (tuple(with_children(relation, (part,)) for part in side) for side in (below.plus, below.minus))
        return Delta(plus, minus)

    _around(patch, change)


def constants_come_again_with_each_change(patch: Patch) -> None:
    _around(patch, lambda self, relation: Delta((relation,)) if isinstance(relation, Constant) else None)


def a_pivot_groups_by_the_columns_that_are_read(patch: Patch) -> None:
    patch.setattr(column_pruning, "Pivot", Constant)


FAULTS = (a_pivot_has_only_the_rows_of_the_change, constants_come_again_with_each_change, a_pivot_groups_by_the_columns_that_are_read)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_it_is_caught(fault: Callable[[Patch], None], monkeypatch: Patch) -> None:
    connection = connected()
    fault(monkeypatch)
    assert any(seen(generated(seed), connection).wrong for seed in SEEDS)
