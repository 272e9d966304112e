"""The first rows of random queries in random orders: `top-k` leaves those of the full query, or says that the next ones are not stored."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental.delta import Cte
from mvbuild.incremental.first_rows import FirstRows
from mvbuild.incremental.reasons import Refused
from seeds import more_seeds
from unit.incremental.on_duckdb import OnDuckDB, Table
from unit.incremental.oracle import ACCEPTED, outcomes
from unit.incremental.queries import CLOCKED, Generated, generated

ORDERS = {"k": "int", "v": "int", "t": "date"}
A, B, C, D = (1, 5, date(2025, 12, 30)), (2, 4, date(2026, 1, 1)), (3, None, None), (4, 9, date(2025, 12, 31))
OLD = (A, B, C, D)
FIRST = "SELECT k, v FROM {a} ORDER BY v DESC, k LIMIT 2"
CASES = (*range(8_000_000, 8_000_200), *range(CLOCKED + 7_000, CLOCKED + 7_040))


def after(query: str, *new: tuple[Any, ...]) -> OnDuckDB:
    return OnDuckDB(query, [Table("a", ORDERS, OLD, new)])


@pytest.mark.parametrize(
    "new",
    [(*OLD, (5, 7, None)), (*OLD, (5, 1, None)), (A, B, D), (A, D, (2, 3, None)), ((1, 6, None), B, C, D), (B, C, D, (5, 6, None))],
    ids=[
        "a row comes among them",
        "a row comes after them",
        "a row goes after them",
        "a row changes after them",
        "one changes",
        "one is replaced",
    ],
)
def test_they_follow_the_changed_rows_alone(new: tuple[tuple[Any, ...], ...]) -> None:
    case = after(FIRST, *new)
    assert case.is_full(case.refreshed("top-k"))


@pytest.mark.parametrize(
    "new", [OLD[1:3], (B, C, D, (5, 3, None)), ((1, 0, None), B, C, D)], ids=["two go", "another comes too late", "one falls"]
)
def test_the_next_row_is_not_stored(new: tuple[tuple[Any, ...], ...]) -> None:
    with pytest.raises(Refused) as caught:
        after(FIRST, *new).refreshed("top-k")
    assert caught.value.code == "first-rows-removed"


@pytest.mark.parametrize(
    "new", [(A, B), (), (*OLD, (5, 7, None)), ((5, 7, None),)], ids=["two go", "all go", "one comes", "another one alone"]
)
def test_a_storage_with_fewer_rows_has_all(new: tuple[tuple[Any, ...], ...]) -> None:
    case = after(FIRST.replace("LIMIT 2", "LIMIT 5"), *new)
    assert case.is_full(case.refreshed("top-k"))


def test_parentheses_around_the_number_of_a_column() -> None:
    query = "SELECT k, v FROM {a} ORDER BY (2) DESC, (1) LIMIT 2"
    case = after(query, B, C, D, (5, 6, None))
    assert case.is_full(case.refreshed("top-k"))


def test_a_removed_row_that_the_storage_should_have() -> None:
    """Its value was another one: what else is stored may be wrong too."""
    case = after("SELECT k, v FROM {a} ORDER BY k LIMIT 3", B, C, D)
    case.connection.execute("UPDATE storage SET c1 = 99 WHERE c0 = 1")
    with pytest.raises(Refused) as caught:
        case.refreshed("top-k")
    assert caught.value.code == "first-rows-removed"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT k FROM {a} ORDER BY v LIMIT 2", "limit"),
        ("SELECT k FROM {a} ORDER BY k LIMIT 2 OFFSET 1", "limit"),
        ("SELECT k FROM {a} LIMIT 2", "limit"),
        ("SELECT k FROM {a}", "no-limit"),
        ("SELECT k FROM (SELECT k FROM {a} ORDER BY k LIMIT 2) AS a WHERE k > 1", "no-limit"),
        ("SELECT k, t FROM {a} ORDER BY t > {today}, k LIMIT 2", "limit"),
        ("SELECT k, v FROM {a} ORDER BY v * 2, k LIMIT 2", "limit"),
        ("SELECT k, v FROM {a} ORDER BY ALL LIMIT 2", "limit"),
    ],
)
def test_what_is_not_stored_in_order_is_refused(query: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        after(query, *OLD, (5, 7, None)).refreshed("top-k")
    assert caught.value.code == code


def limited(seed: int, connection: Any) -> Generated:
    """The first rows of a random query, in an order that leaves no choice."""
    case, choose = generated(seed), random.Random(seed)
    names = OnDuckDB(case.query, case.tables, connection).outputs
    order = [f"{one}{choose.choice(('', ' DESC'))}{choose.choice(('', ' NULLS FIRST', ' NULLS LAST'))}" for one in names]
    choose.shuffle(order)
    query = f"SELECT * FROM ({case.query}) AS q ({', '.join(names)}) ORDER BY {', '.join(order)} LIMIT {choose.choice((1, 2, 3, 5, 9))}"
    return replace(case, query=query)


@pytest.mark.proof
def test_random_queries() -> None:
    codes, wrong = outcomes("top-k", limited, (*CASES, *more_seeds(100)))
    assert not wrong, "\n\n".join(map(str, wrong[:3]))
    assert codes[ACCEPTED] > 110
    assert codes["first-rows-removed"] > 20


# --- wrong rules --------------------------------------------------------------------------------------------------------------------


def rows_after_the_last_one_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FirstRows, "_is_before_the_rest", lambda _: exp.true())


def too_few_rows_are_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FirstRows, "expected", lambda _, gone, *__: Cte("expected", gone))


def a_storage_is_always_full(patch: pytest.MonkeyPatch) -> None:
    """Rows that come after the last one of a storage with fewer rows are left out."""
    patch.setattr(FirstRows, "_has_all", lambda _: exp.false())


@pytest.mark.proof
@pytest.mark.parametrize("fault", [rows_after_the_last_one_count, too_few_rows_are_enough, a_storage_is_always_full])
def test_faults_are_found(fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert outcomes("top-k", limited, CASES[:120])[1]
