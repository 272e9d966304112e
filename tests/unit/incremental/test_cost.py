"""Seconds of a refresh: a full one has the fewest statements, so it wins for small tables; earlier refreshes correct the estimate."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mvbuild.incremental.choose import _Choosing
from mvbuild.incremental.cost import Cost
from mvbuild.incremental.experience import HIGHEST, corrections, often_falls_short, took_longer
from mvbuild.incremental.fixed_costs import Steps, steps_of, steps_of_full
from mvbuild.incremental.samples import case
from mvbuild.incremental.statements import by_value, difference
from mvbuild.incremental.stored_rows import Stored
from mvbuild.incremental.strategies import STRATEGIES

GROUPED = "SELECT customer_id, count(*) AS n, sum(id) AS total, count(id) AS ids FROM {orders} GROUP BY customer_id"


def seconds(strategy: str, sql: str, *, is_proven: bool = True, **how: bool) -> float:
    made = STRATEGIES[strategy](case(sql))
    stored = Stored(types={name: "long" for _, name in made.outputs})
    return steps_of(difference(made, stored), 1, is_proven=is_proven, **how).seconds


@pytest.mark.parametrize("strategy", ["merge", "affected-keys", "bag"])
def test_what_replaces_rows_has_a_higher_fixed_cost_than_a_full_refresh(strategy: str) -> None:
    assert steps_of_full(case(GROUPED).shape.root).seconds < seconds(strategy, GROUPED) < seconds(strategy, GROUPED, is_proven=False)


def test_rows_are_appended_in_one_statement_without_deletes() -> None:
    rows = "SELECT id FROM {orders}"
    assert seconds("append", rows) < steps_of_full(case(rows).shape.root).seconds < seconds("append", rows, is_proven=False)


@pytest.mark.parametrize("strategy", ["merge", "affected-keys", "bag"])
def test_few_rows_that_come_back_cost_less_than_statements_that_write_them(strategy: str) -> None:
    assert seconds(strategy, GROUPED, is_fetched=True, is_written_here=True) < seconds(strategy, GROUPED)


def test_a_bag_by_value_reads_no_storage_and_is_one_statement() -> None:
    made = STRATEGIES["bag"](case("SELECT id FROM {orders} WHERE amount > 0", removed=True))
    small: Any = SimpleNamespace(is_searched_here=True, is_read_here=True)
    by_position, valued = difference(made, Stored(types={"id": "long"})), by_value(made, small)
    assert valued is not None
    few = {"is_proven": True, "is_fetched": True, "is_written_here": True}
    assert steps_of(valued, 1, **few) == Steps(fetches=1, changes=1, scans=2)
    assert steps_of(valued, 1, **few).seconds < steps_of(by_position, 1, **few).seconds / 2
    assert by_value(STRATEGIES["affected-keys"](case(GROUPED)), small) is None


def test_all_rows_are_compared_here_if_the_storage_is_small() -> None:
    made = STRATEGIES["full-diff"](replace(case(GROUPED), has_children=True))
    small, larger = SimpleNamespace(is_searched_here=True, is_read_here=True), SimpleNamespace(is_searched_here=True, is_read_here=False)
    names: Any = small, larger
    valued, by_engine = (by_value(made, held) for held in names)
    assert by_engine is None
    assert valued is not None
    assert valued.is_whole
    few = {"is_proven": True, "is_fetched": True}
    assert steps_of(valued, 1, **few, is_written_here=True) == Steps(fetches=1, changes=1, scans=1, operators=1)
    assert steps_of(valued, 1, **few) == Steps(fetches=1, appends=1, deletes=1, changes=1, scans=1, operators=1)


def chosen(full: float, policy: str = "auto", **others: float) -> str:
    """By seconds alone."""
    anything: Any = SimpleNamespace(policy=policy)
    costs = {name.replace("_", "-"): Cost(bytes=0, rows=0, work=spent) for name, spent in others.items()}
    weighed = _Choosing(question=anything, storage=anything, given=anything, shape=anything, changes={})._weighed
    made: Any = {name: (None, None, cost) for name, cost in costs.items()}
    return weighed(made, [], Cost(bytes=0, rows=0, work=full)).strategy


def test_only_what_is_clearly_cheaper_is_chosen() -> None:
    assert chosen(10, merge=7, bag=6) == "bag"
    assert chosen(10, merge=9, bag=12) == "full"


def test_a_full_diff_may_cost_more_for_the_mvs_that_read_this_one() -> None:
    assert chosen(10, merge=9, full_diff=14) == "full-diff"
    assert chosen(10, merge=9, full_diff=16) == "full"


@pytest.mark.parametrize("policy", ["incremental", "incremental_strict"])
def test_everything_is_computed_only_if_nothing_else_is_right(policy: str) -> None:
    assert chosen(1, policy, affected_keys=9, bag=8, full_diff=2) == "bag"
    assert chosen(1, policy, full_diff=2) == "full-diff"


def past(strategy: str, seconds: float | None, expected: float | None, views: int = 0, reason: str = "") -> Any:
    return SimpleNamespace(strategy=strategy, seconds=seconds, expected_seconds=expected, auxiliary_views=views, reason=reason)


def test_only_a_difference_between_strategies_is_corrected() -> None:
    """All take three times as long on this machine; `merge` takes half as long again."""
    found = [past(strategy, 3 * factor, 1.0) for strategy, factor in (("full", 1), ("merge", 1.5), ("append", 1)) for _ in range(2)]
    assert corrections(found) == {"merge": pytest.approx(1.5), "append": pytest.approx(1.0)}


def test_nothing_is_corrected_before_both_kinds_were_seen_twice() -> None:
    assert corrections([past("merge", 9, 1)] * 5 + [past("full", 1, 1)]) == {}
    assert corrections([past("merge", 9, 1)] + [past("full", 1, 1)] * 2 + [past("merge", None, 1), past("merge", 9, None)]) == {}


def test_refreshes_from_auxiliary_views_do_not_count() -> None:
    assert corrections([past("merge", 9, 1, views=2)] * 5 + [past("full", 1, 1)] * 2) == {}


def test_full_refreshes_after_an_attempt_do_not_count() -> None:
    attempts = [past("full", 9, 1, reason="first-rows-removed")] * 5
    assert corrections([*[past("top-k", 1, 1)] * 2, *attempts]) == {}


def test_a_strategy_that_often_falls_short() -> None:
    right, short = past("top-k", 1, 1), past("full", 1, 1, reason="first-rows-removed")
    assert [often_falls_short("top-k", of) for of in ([right] * 9, [short], [short, right, short], [short, short, *[right] * 5])] == [
        False,
        False,
        True,
        False,
    ]
    assert not often_falls_short("min-max", [short] * 5)
    assert not often_falls_short("merge", [right] * 5)


def test_what_computes_everything_and_took_much_longer_than_full_refreshes() -> None:
    """Also if no full refresh has an estimate, so that nothing is corrected: the first one, and those that were requested."""
    full, slow, fast = past("full", 1.7, None), past("full-diff", 4.4, 2.1), past("full-diff", 2.5, 2.1)
    assert took_longer("full-diff", [full, slow, slow]) == "recent refreshes by full-diff took 4.4s, and full ones 1.7s"
    assert corrections([full, slow, slow]) == {}
    assert not took_longer("full-diff", [full, slow])
    assert not took_longer("full-diff", [slow, slow])
    assert not took_longer("full-diff", [full, fast, fast])
    assert not took_longer("full-diff", [full, *[slow] * 5, *[fast] * 3])
    assert not took_longer("full-diff", [full, *[past("full-diff", 4.4, 2.1, views=1)] * 5])
    assert not took_longer("full-diff", [past("full", 1.7, 1, reason="incremental-failed"), slow, slow])
    assert not took_longer("merge", [full, *[past("merge", 9, 1)] * 5])


def test_the_last_refreshes_count_and_one_is_not_enough_to_go_far() -> None:
    slow, fast = [past("merge", 100, 1)] * 5, [past("merge", 1, 1)] * 5
    full = [past("full", 1, 1)] * 2
    assert corrections([*full, *fast, *slow]) == {"merge": HIGHEST}
    assert corrections([*full, *slow, *fast]) == {"merge": 1.0}


def test_a_correction_is_not_recorded_as_an_estimate() -> None:
    """Otherwise the next comparison would find nothing to correct."""
    found = Cost(bytes=1, rows=1, fixed=1.0, work=3.0).corrected(1.5)
    assert (found.seconds, found.uncorrected, found.correction) == (6.0, 4.0, 1.5)
