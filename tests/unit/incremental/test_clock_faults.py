"""Random queries that read the day, which is another one after the change: every strategy is right; and each of these wrong rules is
detected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from functools import cache
from itertools import islice
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental import clock, delta, merged_groups
from mvbuild.incremental.algebra import Filter, Relation
from mvbuild.incremental.delta import Deltas
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.strategies import STRATEGIES
from seeds import more_seeds
from unit.incremental.on_duckdb import OnDuckDB, Table, connected
from unit.incremental.oracle import ACCEPTED, seen, shrunk
from unit.incremental.queries import CLOCKED, Generated, generated

pytestmark = pytest.mark.proof

Patch = pytest.MonkeyPatch
SEEDS = range(CLOCKED, CLOCKED + 200)
MORE = range(CLOCKED, CLOCKED + 6000)
MOST = 500
"""Cases that are tried for each fault."""
FLOORS = {"merge": 6, "affected-keys": 40, "bag": 40, "full-diff": 60}
"""Strategy -> how many of the cases that read the day it must accept."""


@cache
def _case(seed: int) -> Generated:
    return generated(seed)


def test_every_strategy_is_right_and_taken_often() -> None:
    connection, accepted = connected(), Counter[str]()
    cases = map(generated, (*SEEDS, *(CLOCKED + seed for seed in more_seeds(100))))
    for case in (one for one in cases if "{today}" in one.query):
        found = seen(case, connection)
        assert not found.wrong, "\n\n".join(str(shrunk(one, connection)) for one in found.wrong[:3])
        accepted.update(strategy for strategy, code in found.codes.items() if code == ACCEPTED)
    assert {strategy: accepted[strategy] >= least for strategy, least in FLOORS.items()} == dict.fromkeys(FLOORS, True)


def test_a_condition_on_the_kept_side_of_a_left_join_is_not_a_filter() -> None:
    """A row of that side remains, with or without a partner."""
    tables = [Table(name, {"k": "int", "t": "date"}, [(1, None)], [(1, None)]) for name in "ab"]
    case = OnDuckDB("SELECT a.k, b.t FROM {a} AS a LEFT JOIN {b} AS b ON a.k = b.k AND a.t >= {today}", tables)
    with pytest.raises(Refused) as caught:
        case.refreshed("bag")
    assert caught.value.code == "clock-moved"


ORDERS = {"k": "int", "v": "int", "t": "date"}
ABOVE = (
    "SELECT k, count(*) AS n, sum(v) AS s, count(v) AS c, sum(v) / day({today}) AS z FROM {a} GROUP BY k",
    "SELECT k, count(*) AS n, {today} AS as_of FROM {a} GROUP BY k",
    "SELECT k, count(*) AS n, count(*) + day({today}) AS z FROM {a} WHERE t <= {today} GROUP BY k",
    "SELECT count(*) AS n, count(*) * day({today}) AS z FROM {a}",
    "SELECT k, count(*) AS n FROM {a} GROUP BY k HAVING count(*) > day({today}) - 30",
    "SELECT a.n + day({today}) AS z FROM (SELECT k, count(*) AS n FROM {a} GROUP BY k) AS a JOIN {a} AS b ON a.k = b.v",
    "SELECT k, day({today}) AS d FROM {a} UNION SELECT v, 1 FROM {a}",
    "SELECT k, array_contains(filter(array(k, v), k_0 -> k_0 < day({today})), 3) AS z FROM {a}",
)


@pytest.mark.parametrize("query", ABOVE)
@pytest.mark.parametrize("change", ["nothing", "inserts", "deletes"])
def test_a_time_above_groups_changes_all_of_them(query: str, change: str) -> None:
    old = [(1, 1, date(2025, 1, 1)), (2, 2, date(2025, 12, 30)), (2, None, date(2026, 1, 1)), (3, 5, date(2025, 12, 31))]
    new = {"nothing": old, "inserts": [*old, (1, 7, date(2025, 5, 5))], "deletes": old[1:]}[change]
    case = OnDuckDB(query, [Table("a", ORDERS, old, new)])
    accepted = 0
    for strategy in STRATEGIES:
        with suppress(Refused):
            assert case.is_full(case.refreshed(strategy)), strategy
            accepted += 1
    assert accepted


# --- wrong rules --------------------------------------------------------------------------------------------------------------------


def around(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """`change` gets the true function as its first argument."""
    true = getattr(owner, name)
    patch.setattr(owner, name, lambda *args: change(true, *args))


def rows_that_leave_are_forgotten(patch: Patch) -> None:
    around(patch, delta, "differing", lambda true, *args: (true(*args)[0], ()))


def rows_that_enter_are_forgotten(patch: Patch) -> None:
    around(patch, delta, "differing", lambda true, *args: ((), true(*args)[1]))


def values_of_rows_stay_what_they_were(patch: Patch) -> None:
    patch.setattr(Deltas, "_recomputed", lambda self, project: ((), ()))


def the_earlier_result_is_computed_at_the_new_time(patch: Patch) -> None:
    patch.setattr(delta, "at_values", lambda relation, values: relation)


def a_condition_that_is_null_is_never_false(patch: Patch) -> None:
    patch.setattr(clock, "_not_true", lambda part: exp.Not(this=exp.paren(part.copy())))


def two_conditions_count_a_row_twice(patch: Patch) -> None:
    def differing(true: Callable[..., Any], relation: Filter, values: Any) -> tuple[Sequence[Relation], Sequence[Relation]]:
        came, went = true(relation, values)
        return (*came, *came[1:]), (*went, *went[1:])

    around(patch, delta, "differing", differing)


def a_limit_moves_in_one_direction_only(patch: Patch) -> None:
    patch.setattr(clock, "_excludes", lambda these, other: clock._compared(these) is not None)


def days_are_not_added(patch: Patch) -> None:
    """`today + 1` is the earlier day at the earlier time."""
    around(patch, clock, "_reading", lambda true, name, value, days: true(name, value, 0))


def only_the_first_value_of_a_row_moves(patch: Patch) -> None:
    around(patch, delta, "boundary", lambda true, expressions, values: true(expressions[:1], values))


def a_time_above_groups_changes_those_with_rows(patch: Patch) -> None:
    patch.setattr(merged_groups, "_require_steady", lambda computed, clock: None)


def a_part_of_a_lambda_is_taken_for_one_of_the_row(patch: Patch) -> None:
    patch.setattr(clock, "_outside_lambdas", lambda node: node)


FAULTS = (
    a_part_of_a_lambda_is_taken_for_one_of_the_row,
    a_time_above_groups_changes_those_with_rows,
    rows_that_leave_are_forgotten,
    rows_that_enter_are_forgotten,
    values_of_rows_stay_what_they_were,
    the_earlier_result_is_computed_at_the_new_time,
    a_condition_that_is_null_is_never_false,
    two_conditions_count_a_row_twice,
    a_limit_moves_in_one_direction_only,
    days_are_not_added,
    only_the_first_value_of_a_row_moves,
)
CAUGHT_BY = {
    "a_part_of_a_lambda_is_taken_for_one_of_the_row": 20007,
    "a_time_above_groups_changes_those_with_rows": 20083,
    "rows_that_leave_are_forgotten": 20000,
    "rows_that_enter_are_forgotten": 20014,
    "values_of_rows_stay_what_they_were": 20009,
    "the_earlier_result_is_computed_at_the_new_time": 20010,
    "a_condition_that_is_null_is_never_false": 20194,
    "two_conditions_count_a_row_twice": 20194,
    "a_limit_moves_in_one_direction_only": 20000,
    "days_are_not_added": 20017,
    "only_the_first_value_of_a_row_moves": 20023,
}
"""Fault -> a case that detects it, so that few are tried."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_it_is_caught(fault: Callable[[Patch], None], monkeypatch: Patch) -> None:
    connection = connected()
    fault(monkeypatch)
    first = [_case(CAUGHT_BY[fault.__name__])] if fault.__name__ in CAUGHT_BY else []
    cases = (case for case in map(_case, MORE) if "{today}" in case.query)
    assert any(seen(case, connection).wrong for case in (*first, *islice(cases, MOST))), fault.__doc__
