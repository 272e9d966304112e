"""Queries in which any operator is below any other one: every strategy that does not refuse is right, directly and through auxiliary views.

The long run of the same is tests/benchmarks/rewrite_proof.py.
"""

from __future__ import annotations

from collections import Counter

import pytest

from unit.incremental.on_cuts import through_cuts
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import ACCEPTED, seen
from unit.incremental.queries import COMPARED, MIXED, POSITIONED, generated

pytestmark = pytest.mark.proof

CASES = 60


def test_every_strategy_is_right_and_taken_often() -> None:
    connection, taken = connected(), Counter[str]()
    for seed in range(MIXED, MIXED + CASES):
        found = seen(generated(seed), connection)
        assert not found.wrong, found.wrong[0]
        taken.update(strategy for strategy, code in found.codes.items() if code == ACCEPTED)
    assert taken["full-diff"] > CASES * 0.8
    assert min(taken["affected-keys"], taken["bag"]) > CASES * 0.2
    assert taken["merge"] > CASES * 0.05


@pytest.mark.parametrize("first", [COMPARED, POSITIONED], ids=["the value of a subquery", "positions"])
def test_kinds_of_their_own(first: int) -> None:
    connection, taken = connected(), 0
    for seed in range(first, first + CASES):
        found = seen(generated(seed), connection)
        assert not found.wrong, found.wrong[0]
        taken += found.codes.get("bag") == ACCEPTED
    assert taken > CASES * 0.2


def test_through_auxiliary_views() -> None:
    connection, cuts = connected(), 0
    for seed in range(MIXED, MIXED + CASES // 4):
        found = through_cuts(generated(seed), connection, seed)
        assert not found.wrong, found.wrong[0]
        cuts += found.cuts
    assert cuts > CASES // 8
