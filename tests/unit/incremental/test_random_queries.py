"""Every strategy that does not refuse leaves the result of the full query: random queries, data and changes, on fixed seeds.

The long run of the same is tests/benchmarks/rewrite_proof.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from mvbuild.incremental.reasons import CODES
from seeds import more_seeds
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import ACCEPTED, Wrong, seen, shrunk
from unit.incremental.queries import LATER, generated

pytestmark = pytest.mark.proof

SEEDS = (*range(600), *range(LATER + 1, LATER + 201, 2))
STRATEGY_FLOORS: Mapping[tuple[str, bool], int] = {
    # (strategy, whether rows went): how many cases it must accept
    ("append", False): 30,
    ("merge", False): 60,
    ("merge", True): 40,
    ("affected-keys", False): 140,
    ("affected-keys", True): 170,
    ("bag", False): 140,
    ("bag", True): 170,
    ("full-diff", False): 180,
    ("full-diff", True): 220,
}
OPERATOR_FLOORS: Mapping[str, tuple[int, int]] = {
    # operator of the query: how many cases affected-keys must accept where rows only came, and where rows went
    "avg": (9, 10),
    "computed from aggregates": (2, 3),
    "exists as a value": (1, 1),
    "group by alias": (1, 1),
    "lateral alias": (1, 1),
    "lateral select": (1, 1),
    "star except": (2, 2),
    "subquery in OR": (2, 2),
    "bit": (2, 3),
    "bool": (4, 2),
    "comma join": (12, 17),
    "correlated inequality": (0, 1),
    "correlated scalar subquery": (2, 3),
    "count": (1, 5),
    "count distinct": (1, 1),
    "count_if": (1, 2),
    "cross join": (21, 25),
    "cte": (5, 8),
    "cte twice": (2, 4),
    "derived table": (20, 32),
    "distinct": (10, 17),
    "equality of unlike types": (20, 30),
    "except": (2, 2),
    "except all": (0, 2),
    "exists": (3, 3),
    "filter": (47, 63),
    "filter clause": (7, 8),
    "full join": (6, 6),
    "global aggregate": (0, 0),
    "group by": (58, 60),
    "having": (5, 7),
    "in": (5, 12),
    "inner join": (43, 50),
    "intersect": (1, 3),
    "intersect all": (1, 1),
    "join with more conditions": (24, 28),
    "left anti join": (6, 8),
    "left join": (14, 16),
    "left semi join": (8, 9),
    "limit": (0, 0),
    "min max": (18, 23),
    "nested aggregate": (1, 5),
    "not exists": (4, 4),
    "not in": (1, 1),
    "null-safe equality": (26, 24),
    "order of rows": (2, 3),
    "qualify": (2, 4),
    "right join": (7, 8),
    "row_number": (1, 1),
    "scalar subquery": (2, 1),
    "set operation of unlike types": (18, 20),
    "sum": (6, 6),
    "sum distinct": (2, 3),
    "theta join": (12, 11),
    "union": (1, 2),
    "union all": (3, 6),
    "using": (2, 4),
    "window": (8, 15),
}
MOVING = 0.45
"""The part of the cases in which the result is another one than before, at least."""


@dataclass
class Ran:
    accepted: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """(operator or "", strategy, whether rows went)."""
    codes: set[str] = field(default_factory=set)
    wrong: list[Wrong] = field(default_factory=list)
    moving: int = 0


@pytest.fixture(scope="module")
def ran() -> Ran:
    found = Ran()
    connection = connected()
    for seed in (*SEEDS, *more_seeds(200)):
        case = generated(seed)
        outcome = seen(case, connection)
        found.wrong.extend(outcome.wrong)
        found.moving += outcome.moves
        goes = any(table.minus for table in case.tables)
        for strategy, code in outcome.codes.items():
            found.codes.add(code)
            if code == ACCEPTED:
                found.accepted.update((operator, strategy, goes) for operator in ("", *case.operators))
    return found


def test_what_is_not_refused_is_right(ran: Ran) -> None:
    connection = connected()
    shown = [str(shrunk(one, connection)) for one in ran.wrong[:3]]
    assert not ran.wrong, f"{len(ran.wrong)} wrong; the first of them:\n\n" + "\n\n".join(shown)


def test_refusals_have_a_code_of_the_table(ran: Ran) -> None:
    assert ran.codes - {ACCEPTED} <= CODES.keys()


@pytest.mark.parametrize(("strategy", "goes"), STRATEGY_FLOORS)
def test_every_strategy_is_taken_often(ran: Ran, strategy: str, goes: bool) -> None:
    assert ran.accepted[("", strategy, goes)] >= STRATEGY_FLOORS[(strategy, goes)]


@pytest.mark.parametrize("operator", OPERATOR_FLOORS)
def test_every_operator_is_refreshed_often(ran: Ran, operator: str) -> None:
    came, went = (ran.accepted[(operator, "affected-keys", goes)] for goes in (False, True))
    least_came, least_went = OPERATOR_FLOORS[operator]
    assert came >= least_came
    assert went >= least_went


def test_most_changes_change_the_result(ran: Ran) -> None:
    assert ran.moving >= MOVING * len(SEEDS)
