"""Tests of the project's own kinds, thresholds and stored failures, on Spark and Iceberg."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from mvbuild import api
from spark.projects import Project, orders

pytestmark = pytest.mark.proof

RAW = orders((1, 1, "2026-01-01", "10.00"), (2, 1, "2026-01-01", "-5.00"), (3, 2, "2026-01-02", "-7.00"))
FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/daily.sql": "SELECT order_date, sum(amount) AS amount, count(*) AS n FROM raw.orders GROUP BY order_date\n",
    "tests/generic/not_negative.sql": "{% test not_negative(model, column_name) %}"
    "select order_date, {{ column_name }} from {{ model }} where {{ column_name }} < 0{% endtest %}",
}


def _yaml(settings: str) -> str:
    return f"models: [{{name: daily, columns: [{{name: amount, data_tests: [{{not_negative: {settings}}}]}}]}}]\n"


def test_a_test_of_ones_own_stops_an_mv(project: Callable[[Mapping[str, str]], Project]) -> None:
    shop = project({**FILES, "models/daily.yml": _yaml("{}")})
    shop.make("raw.orders", RAW)
    result = shop.run()
    (test,) = result.all_tests
    assert (test.status, test.failures, test.message) == ("fail", 1, "1 row violates its rule")
    assert shop.statuses() == {"daily": "error"}


def test_thresholds_are_dbts(project: Callable[[Mapping[str, str]], Project]) -> None:
    shop = project({**FILES, "models/daily.yml": _yaml("{error_if: '> 5', warn_if: '>= 5', fail_calc: '-sum(amount)'}")})
    shop.make("raw.orders", RAW)
    (test,) = shop.run().all_tests
    assert (test.status, test.failures) == ("fail", 7)
    shop.write({"models/daily.yml": _yaml("{error_if: '> 7', warn_if: '>= 7', fail_calc: '-sum(amount)'}")})
    (test,) = shop.run().all_tests
    assert (test.status, test.message) == ("warn", "-sum(amount) is 7, which is a warning if >= 7")
    shop.write({"models/daily.yml": _yaml("{error_if: '> 7', warn_if: '> 7', fail_calc: '-sum(amount)'}")})
    assert [t.status for t in api.test(shop.root, spark=shop.spark).tests] == ["pass"]


def test_failures_are_stored_in_one_commit(project: Callable[[Mapping[str, str]], Project]) -> None:
    shop = project({**FILES, "models/daily.yml": _yaml("{store_failures: true, severity: warn, name: negative_days}")})
    shop.make("raw.orders", RAW)
    assert [t.status for t in shop.run().all_tests] == ["warn"]
    table = shop.table("main_dbt_test__audit.negative_days")
    assert len(table.history()) == 1
    assert shop.arrow("main_dbt_test__audit.negative_days").num_rows == 1
    shop.write({"models/daily.sql": "SELECT order_date, abs(sum(amount)) AS amount, count(*) AS n FROM raw.orders GROUP BY order_date\n"})
    assert [t.status for t in shop.run().all_tests] == ["pass"]
    assert shop.arrow("main_dbt_test__audit.negative_days").num_rows == 0


VALUES = {
    "texts of numbers": ("STRING", "[1, 2]", "('1'), ('2')", 0),
    "texts that are no numbers": ("STRING", "[1, 2]", "('abc'), ('1')", 1),
    "texts that are other numbers": ("STRING", "[1, 2]", "('01'), (' 1')", 2),
    "texts and numbers": ("STRING", "[a, 1]", "('a'), ('1'), ('b')", 1),
    "texts of truth": ("STRING", "[true]", "('true'), ('yes')", 1),
    "integers": ("INT", "[1, 2]", "(1), (3)", 1),
    "quoted integers": ("INT", "['1', '2']", "(1), (3)", 1),
    "decimals": ("DECIMAL(10, 2)", "[1.1]", "(1.10), (1.11)", 1),
    "doubles": ("DOUBLE", "[1, .inf]", "(1), (double('inf')), (2)", 1),
    "booleans": ("BOOLEAN", "[true]", "(true), (false)", 1),
    "dates": ("DATE", "[2026-01-31]", "(DATE'2026-01-31'), (DATE'2026-02-01')", 1),
    "integers without quotes": ("INT", "[1, 2], quote: false", "(1), (3)", 1),
    "NULL is no violation": ("INT", "[1]", "(NULL), (1)", 0),
}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_accepted_values_of_every_type(ansi: str, project: Callable[[Mapping[str, str]], Project]) -> None:
    models = {
        f"models/m{at:02}.sql": f"{{{{ config(materialized='view') }}}} SELECT CAST(c AS {type_}) AS x FROM VALUES {rows} AS t (c)\n"
        for at, (type_, _, rows, _) in enumerate(VALUES.values())
    }
    listed = "".join(
        f"  - {{name: m{at:02}, columns: [{{name: x, data_tests: [accepted_values: {{values: {values}}}]}}]}}\n"
        for at, (_, values, _, _) in enumerate(VALUES.values())
    )
    shop = project({"mvbuild.yml": "name: shop\n", **models, "models/all.yml": f"models:\n{listed}"})
    shop.spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        shop.run()
        found = {t.name: t.failures for t in api.test(shop.root, spark=shop.spark).tests}
    finally:
        shop.spark.conf.unset("spark.sql.ansi.enabled")
    assert list(found.values()) == [wrong for _, _, _, wrong in VALUES.values()], found


def test_an_mv_that_was_never_published_is_not_tested(project: Callable[[Mapping[str, str]], Project]) -> None:
    """Its storage exists, and is empty."""
    test = "models: [{name: wrong, columns: [{name: id, data_tests: [accepted_values: {values: [2]}]}]}]\n"
    shop = project({"mvbuild.yml": "name: shop\n", "models/wrong.sql": "SELECT 1 AS id\n", "models/wrong.yml": test})
    assert not shop.run().ok
    (found,) = api.test(shop.root, spark=shop.spark).tests
    assert (found.status, found.message) == ("skipped", "lake.main.wrong was never refreshed")
