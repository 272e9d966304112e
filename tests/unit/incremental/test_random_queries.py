"""Every strategy that does not refuse leaves what the full query gives: random queries, data and changes, on fixed seeds.

The long run of the same is tests/benchmarks/rewrite_proof.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from mvbuild.incremental.reasons import CODES
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import ACCEPTED, Wrong, seen, shrunk
from unit.incremental.queries import generated

SEEDS = range(700)
STRATEGY_FLOORS: Mapping[tuple[str, bool], int] = {
    # (strategy, whether rows went): how many cases it must accept
    ("append", False): 60,
    ("merge", False): 90,
    ("merge", True): 30,
    ("affected-keys", False): 200,
    ("affected-keys", True): 200,
    ("bag", False): 200,
    ("bag", True): 200,
    ("full-diff", False): 200,
    ("full-diff", True): 250,
}
OPERATORS = """avg bit bool|comma join|correlated inequality|correlated scalar subquery|count|count distinct|count_if|cross join|cte|cte twice
derived table|distinct|except|except all|exists|filter|filter clause|full join|global aggregate|group by|having|in|inner join|intersect
intersect all|join with more conditions|left anti join|left join|left semi join|limit|min max|nested aggregate|not exists|not in
null-safe equality|qualify|right join|row_number|scalar subquery|sum|sum distinct|theta join|union|union all|using|window"""


@dataclass
class Ran:
    accepted: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """(operator or "", strategy, whether rows went)."""
    codes: set[str] = field(default_factory=set)
    wrong: list[Wrong] = field(default_factory=list)


@pytest.fixture(scope="module")
def ran() -> Ran:
    found = Ran()
    connection = connected()
    for seed in SEEDS:
        case = generated(seed)
        outcome = seen(case, connection)
        found.wrong.extend(outcome.wrong)
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
