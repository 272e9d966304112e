"""min and max of all rows of random queries: `min-max` leaves those of the full query, or says that the next one is not stored."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental import merged_groups
from mvbuild.incremental.reasons import Refused
from seeds import more_seeds
from unit.incremental.on_duckdb import OnDuckDB, Table
from unit.incremental.oracle import ACCEPTED, outcomes
from unit.incremental.queries import Generated, generated

COLUMNS = {"k": "int", "v": "int"}
OLD = ((1, 5), (2, 9), (3, None), (4, 2))
ENDS = "SELECT count(*) AS n, min(v) AS least, max(v) AS most FROM {a}"
CASES = range(9_000_000, 9_000_300)


def after(query: str, *new: tuple[Any, ...], old: tuple[tuple[Any, ...], ...] = OLD) -> OnDuckDB:
    return OnDuckDB(query, [Table("a", COLUMNS, old, new)])


@pytest.mark.parametrize(
    "new",
    [
        ((2, 9), (3, None), (4, 2)),
        ((1, 5), (2, 9), (4, 2)),
        ((1, 5), (2, 10), (3, None), (4, 2)),
        ((1, 5), (5, 12), (4, 1)),
        ((1, 6), (2, 9), (3, None), (4, 2)),
    ],
    ids=["one between them goes", "one without a value goes", "the largest grows", "both are replaced by more extreme ones", "one changes"],
)
def test_the_change_alone_is_enough(new: tuple[tuple[Any, ...], ...]) -> None:
    case = after(ENDS, *new)
    assert case.is_full(case.refreshed("min-max"))


@pytest.mark.parametrize(
    "new", [((1, 5), (3, None), (4, 2)), ((1, 5), (2, 8), (4, 2)), (), ((7, 5),)], ids=["it goes", "it shrinks", "all go", "one remains"]
)
def test_the_next_one_is_not_stored(new: tuple[tuple[Any, ...], ...]) -> None:
    with pytest.raises(Refused) as caught:
        after(ENDS, *new).refreshed("min-max")
    assert caught.value.code == "extreme-removed"


def test_no_value_before() -> None:
    case = after(ENDS, (1, 4), (2, None), old=((1, None), (2, None), (3, None)))
    assert case.is_full(case.refreshed("min-max"))


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT k, count(*) AS n, max(v) AS m FROM {a} GROUP BY k", "no-min-max"),
        ("SELECT count(*) AS n FROM {a}", "no-min-max"),
        ("SELECT k, v FROM {a}", "no-aggregate"),
        ("SELECT sum(v) AS s, max(v) AS m FROM {a}", "deletes-need-count"),
        ("SELECT count(DISTINCT v) AS n, max(v) AS m FROM {a}", "not-mergeable"),
    ],
)
def test_other_queries_are_refused(query: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        after(query, *OLD[1:]).refreshed("min-max")
    assert caught.value.code == code


@pytest.mark.parametrize(("one", "other"), ["ab", "ba"])
def test_a_row_on_both_sides_of_the_change_alone(one: str, other: str) -> None:
    """The pair of a removed row and an added one is added and removed, and never is in the result."""
    tables = [Table(one, COLUMNS, ((1, 50), (2, 1)), ((2, 1),)), Table(other, COLUMNS, ((1, 0), (2, 10)), ((1, 0), (1, 100), (2, 10)))]
    query = "SELECT count(*) AS n, max(a.v + b.v) AS most FROM {a} AS a JOIN {b} AS b ON a.k = b.k"
    with pytest.raises(Refused) as caught:
        OnDuckDB(query, sorted(tables, key=lambda table: table.name)).refreshed("min-max")
    assert caught.value.code == "extreme-removed"


def test_rows_that_are_only_added_are_merged() -> None:
    with pytest.raises(Refused) as caught:
        after(ENDS, *OLD, (5, 7)).refreshed("min-max")
    assert caught.value.code == "no-min-max"


def ends(seed: int, connection: Any) -> Generated:
    """The extremes of the columns of a random query."""
    case, choose = generated(seed), random.Random(seed)
    names = OnDuckDB(case.query, case.tables, connection).outputs
    drawn = [f"{choose.choice(('min', 'max'))}({choose.choice(names)}) AS e{at}" for at in range(choose.choice((1, 2, 3)))]
    return replace(case, query=f"SELECT count(*) AS n, {', '.join(drawn)} FROM ({case.query}) AS q ({', '.join(names)})")


@pytest.mark.proof
def test_random_queries() -> None:
    codes, wrong = outcomes("min-max", ends, (*CASES, *more_seeds(100)))
    assert not wrong, "\n\n".join(map(str, wrong[:3]))
    assert codes[ACCEPTED] > 50, codes
    assert codes["extreme-removed"] > 20, codes


# --- wrong rules --------------------------------------------------------------------------------------------------------------------


def it_always_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merged_groups, "_stays", lambda *_: exp.true())


def a_removed_row_as_extreme_as_the_stored_one_is_another(patch: pytest.MonkeyPatch) -> None:
    true = merged_groups._stays

    def stays(beyond: type[exp.Expr], t: exp.Expr, plus: exp.Expr, minus: exp.Expr) -> exp.Expr:
        return exp.or_(true(beyond, t, plus, minus), exp.EQ(this=t.copy(), expression=minus.copy()))

    patch.setattr(merged_groups, "_stays", stays)


@pytest.mark.proof
@pytest.mark.parametrize(
    "fault",
    [it_always_stays, a_removed_row_as_extreme_as_the_stored_one_is_another],
)
def test_faults_are_found(fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert outcomes("min-max", ends, CASES)[1]
