"""PIVOT, window() and session_window(): every strategy is right on random queries, wrong rules are detected, and what Spark does with counts and names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental import pivots
from mvbuild.incremental.algebra import Aggregate, Relation, Sessions, TimeWindow, walk
from mvbuild.incremental.delta import Delta, Deltas
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.samples import formula, shape
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import ACCEPTED, seen, shrunk
from unit.incremental.queries import PIVOTED, SESSIONED, TIMED, generated
from unit.incremental.realistic import Realistic

Patch = pytest.MonkeyPatch
ROWS = "(SELECT customer_id, status, amount, order_date FROM {orders})"


@pytest.mark.parametrize(
    ("functions", "value"),
    [
        ("count(*)", "CASE WHEN rows > 0 THEN new END"),
        ("count(amount) AS n, sum(amount) AS s", "CASE WHEN rows > 0 THEN new_n END"),
        ("count(*) AS n, max(order_date) AS m", "new_n"),
        ("sum(amount)", "new"),
    ],
)
def test_a_count_of_no_rows_is_null_unless_a_function_has_a_date(functions: str, value: str) -> None:
    root = shape(f"SELECT * FROM {ROWS} PIVOT ({functions} FOR status IN ('new'))").root
    texts = [formula(node) for node in walk(root)]
    is_null = any(text.startswith("pivot[") and "CASE WHEN rows > 0" in text for text in texts)
    assert is_null == value.startswith("CASE")


def test_columns_that_pivot_does_not_name_are_its_keys() -> None:
    groups = next(
        node
        for node in walk(shape(f"SELECT * FROM {ROWS} PIVOT (sum(amount) FOR status IN ('new', 'old'))").root)
        if isinstance(node, Aggregate)
    )
    assert [key.name.rpartition("_")[0] for key in groups.keys] == ["customer_id", "order_date"]


def test_spark_gets_pivot_even_if_some_columns_are_not_read() -> None:
    made = sql_of(
        shape(f"SELECT new_n FROM {ROWS} PIVOT (count(*) AS n, max(order_date) AS m FOR status IN ('new', 'old'))").root, lambda _: "T"
    )
    assert "PIVOT(COUNT(*) AS `f0`, MAX(`order_date_5`) AS `f1` FOR `status_4` IN ('new' AS c0, 'old' AS c1))" in made


@pytest.mark.parametrize(
    "pivot",
    [
        "sum(amount) FOR status IN (1)",
        "sum(amount) FOR order_date IN ('2026-01-01')",
        "sum(amount) FOR (status, order_date) IN (('new', '2026-01-01'))",
        "sum(amount), max(amount) FOR status IN ('new')",
        "first(amount) FOR status IN ('new')",
        "sum(amount) FOR status IN ('new', 'new')",
    ],
)
def test_pivots_that_may_cast_or_whose_names_are_unknown_are_refused(pivot: str) -> None:
    with pytest.raises(Refused):
        shape(f"SELECT * FROM {ROWS} PIVOT ({pivot})")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window(happened_at, '1 day'), window(happened_at, '2 days') AS b FROM {events}",
        "SELECT window(CAST(happened_at AS DATE), '1 day') AS w FROM {events}",
        "SELECT session_window(happened_at, '1 hour') AS w FROM {events}",
        "SELECT kind, count(*) AS n FROM {events} GROUP BY ROLLUP (kind), session_window(happened_at, '1 hour')",
        "SELECT kind, session_window(happened_at, concat(kind, ' hours')) AS w FROM {events} GROUP BY ALL",
        "SELECT kind, window(happened_at, '1 hour').start AS a FROM {events} GROUP BY kind, session_window(happened_at, '1 hour')",
        "SELECT kind, max(session_window(happened_at, '1 hour').end) AS w FROM {events} GROUP BY kind",
        "SELECT kind, count(*) AS n FROM {events} GROUP BY kind HAVING max(window(happened_at, '1 day').start) IS NULL",
    ],
)
def test_windows_that_spark_computes_otherwise_are_refused(sql: str) -> None:
    with pytest.raises(Refused):
        _ = Realistic("refused", sql).shape


@pytest.mark.proof
@pytest.mark.parametrize(("first", "least"), [(PIVOTED, 30), (TIMED, 35), (SESSIONED, 30)])
def test_every_strategy_is_right_and_taken_often(first: int, least: int) -> None:
    connection, accepted = connected(), 0
    for seed in range(first, first + 60):
        found = seen(generated(seed), connection)
        assert not found.wrong, "\n\n".join(str(shrunk(one, connection)) for one in found.wrong[:3])
        accepted += found.codes.get("bag") == ACCEPTED
    assert accepted >= least


# --- wrong rules --------------------------------------------------------------------------------------------------------------------


def the_rows_of_other_cases_count_too(patch: Patch) -> None:
    patch.setattr(pivots, "_where", lambda function, condition: function.copy())


def a_case_is_every_other_value(patch: Patch) -> None:
    true: Any = pivots._where
    patch.setattr(pivots, "_where", lambda function, condition: true(function, exp.Not(this=exp.paren(condition.copy()))))


def a_row_is_only_in_its_last_window(patch: Patch) -> None:
    true: Any = Deltas.of

    def change(self: Deltas, relation: Relation) -> Delta:
        made: Delta = true(self, relation)
        return Delta(tuple(map(_last, made.plus)), made.minus) if isinstance(relation, TimeWindow) else made

    patch.setattr(Deltas, "of", change)


def _last(part: Relation) -> Relation:
    assert isinstance(part, TimeWindow)
    generator = part.generator.copy()
    generator.set("expressions", generator.expressions[:2])
    return replace(part, generator=generator)


def a_row_is_in_no_session_with_others(patch: Patch) -> None:
    true: Any = Deltas.of

    def change(self: Deltas, relation: Relation) -> Delta:
        if not isinstance(relation, Sessions):
            return true(self, relation)
        plus, minus = (
            [replace(relation, child=one) for one in side] for side in (self.of(relation.child).plus, self.of(relation.child).minus)
        )
        return Delta(tuple(plus), tuple(minus))

    patch.setattr(Deltas, "of", change)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("first", "fault"),
    [
        (PIVOTED, the_rows_of_other_cases_count_too),
        (PIVOTED, a_case_is_every_other_value),
        (TIMED, a_row_is_only_in_its_last_window),
        (SESSIONED, a_row_is_in_no_session_with_others),
    ],
)
def test_it_is_caught(first: int, fault: Callable[[Patch], None], monkeypatch: Patch) -> None:
    connection = connected()
    fault(monkeypatch)
    assert any(seen(generated(seed), connection).wrong for seed in range(first, first + 60))
