"""Queries with parts that mvbuild cannot work with: a refusal, and never an error that would stop other MVs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental.choose import Question
from mvbuild.incremental.chosen_strategy import strategy_for
from mvbuild.incremental.cuts import divisions
from mvbuild.incremental.hypothetical import answers
from mvbuild.incremental.literals import translated
from mvbuild.incremental.samples import TABLES, shape
from mvbuild.ports.catalog import CatalogError

AGGREGATES = [
    "max_by(amount, id)",
    "min_by(amount, id)",
    "try_sum(amount)",
    "try_avg(amount)",
    "kurtosis(amount)",
    "mode(status)",
    "every(amount > 1)",
]
MANY = [
    "date_sub(current_date, 999999)",
    "date_add(current_date, 9999999)",
    "current_date - 1000000",
    "current_date - INTERVAL 900000 DAYS",
]


@pytest.mark.parametrize("function", AGGREGATES)
def test_an_aggregate_with_a_filter(function: str) -> None:
    whole = shape(f"SELECT customer_id, {function} FILTER (WHERE id > 2) AS t, count(*) AS n FROM {{orders}} GROUP BY customer_id")
    for kind in ("inserts", "deletes"):
        assert any(one.refused is None for one in answers(whole, kind) if one.strategy == "affected-keys")
    list(divisions(whole, len(TABLES)))


@pytest.mark.parametrize("day", MANY)
def test_a_day_that_python_does_not_have(day: str) -> None:
    whole = shape(f"SELECT id FROM {{orders}} WHERE CAST(status AS DATE) >= {day}")
    assert any(one.refused is None for one in answers(whole, "deletes"))


@pytest.mark.parametrize("type_", [{"type": "struct", "fields": []}, {"type": "list", "element": "int"}, "binary", "variant"])
@pytest.mark.parametrize("condition", ["st = named_struct('x', 5)", "st IN (named_struct('x', 5))", "st > array(1)", "st LIKE 'x%'", "st"])
def test_a_condition_on_a_nested_column(type_: Any, condition: str) -> None:
    assert translated(exp.condition(condition, dialect="spark"), {"st": ("st", type_)}, strings=True) == ()


def failing(error: Exception) -> Question:
    class Failing:
        def __getattr__(self, name: str) -> Any:
            raise error

    nothing: Any = Failing()
    node: Any = SimpleNamespace(storage=None)
    return Question(world=nothing, node=node, reasons=(), pins={}, has_children=False, same_layout=True, policy="auto", read=nothing)


def test_an_error_that_is_not_expected_makes_one_refresh_full() -> None:
    choice = strategy_for(failing(KeyError("x")))
    assert (choice.strategy, choice.code, choice.message) == (
        "full",
        "internal",
        "mvbuild failed to compare the strategies (KeyError: 'x')",
    )


def test_a_catalog_that_does_not_answer_is_not_such_an_error() -> None:
    with pytest.raises(CatalogError):
        strategy_for(failing(CatalogError("no answer")))
