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

SEEDS = (*range(300), *range(LATER + 1, LATER + 101, 2))
STRATEGY_FLOORS: Mapping[tuple[str, bool], int] = {
    # (strategy, whether rows went): how many cases it must accept
    ("append", False): 20,
    ("merge", False): 43,
    ("merge", True): 26,
    ("affected-keys", False): 99,
    ("affected-keys", True): 103,
    ("bag", False): 99,
    ("bag", True): 104,
    ("full-diff", False): 127,
    ("full-diff", True): 144,
}
OPERATOR_FLOORS: Mapping[str, tuple[int, int]] = {
    # operator of the query: how many cases affected-keys must accept where rows only came, and where rows went
    "avg": (4, 11),
    "computed from aggregates": (2, 1),
    "exists as a value": (1, 1),
    "group by alias": (0, 1),
    "lateral alias": (1, 1),
    "lateral rows": (3, 0),
    "lateral select": (1, 0),
    "star except": (2, 0),
    "subquery in OR": (2, 1),
    "bit": (2, 1),
    "bool": (3, 4),
    "comma join": (15, 13),
    "correlated inequality": (1, 1),
    "correlated scalar subquery": (2, 3),
    "count": (2, 1),
    "count distinct": (2, 2),
    "count_if": (2, 1),
    "cross join": (17, 17),
    "cte": (4, 4),
    "cte twice": (2, 2),
    "derived table": (14, 20),
    "distinct": (16, 14),
    "equality of unlike types": (18, 22),
    "except": (4, 4),
    "except all": (1, 3),
    "exists": (2, 2),
    "filter": (36, 39),
    "filter clause": (5, 4),
    "full join": (3, 3),
    "global aggregate": (0, 0),
    "group by": (44, 41),
    "having": (6, 4),
    "in": (3, 3),
    "inner join": (32, 29),
    "intersect": (3, 4),
    "intersect all": (1, 1),
    "join with more conditions": (21, 17),
    "left anti join": (5, 7),
    "left join": (17, 12),
    "left semi join": (7, 4),
    "limit": (0, 0),
    "min max": (12, 10),
    "nested aggregate": (2, 4),
    "not exists": (3, 2),
    "not in": (1, 2),
    "null-safe equality": (18, 16),
    "order of rows": (2, 1),
    "qualify": (3, 4),
    "right join": (2, 9),
    "scalar subquery": (1, 1),
    "set operation of unlike types": (16, 14),
    "sum": (7, 3),
    "sum distinct": (2, 1),
    "theta join": (4, 9),
    "union": (3, 4),
    "union all": (9, 8),
    "using": (2, 1),
    "window": (4, 11),
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
    for seed in (*SEEDS, *more_seeds(100)):
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
