"""Random queries that take the newest row of each key below joins: every strategy is right, and so are refreshes from auxiliary views."""

from __future__ import annotations

import pytest

from unit.incremental.on_cuts import through_cuts
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import ACCEPTED, seen, shrunk
from unit.incremental.queries import NEWEST, PROOF, generated, kind_of_seed

pytestmark = pytest.mark.proof


def test_every_strategy_is_right_and_taken_often() -> None:
    connection, accepted = connected(), 0
    for seed in range(NEWEST, NEWEST + 40):
        found = seen(generated(seed), connection)
        assert not found.wrong, "\n\n".join(str(shrunk(one, connection)) for one in found.wrong[:3])
        accepted += found.codes.get("affected-keys") == ACCEPTED
    assert accepted >= 12


def test_so_are_refreshes_from_auxiliary_views() -> None:
    connection, cuts = connected(), 0
    for seed in range(NEWEST, NEWEST + 30):
        found = through_cuts(generated(seed), connection, seed)
        assert not found.wrong, str(found.wrong[0])
        cuts += found.cuts
    assert cuts >= 40


def test_proofs_of_many_cases_have_every_kind() -> None:
    """A new kind must not take the place of all others."""
    kinds = [kind_of_seed(PROOF * 7 + at) for at in range(240)]
    assert set(kinds) == {kind_of_seed(seed) for seed in range(0, NEWEST + 1, 10_000)}
    assert max(kinds.count(kind) for kind in kinds) < 100
