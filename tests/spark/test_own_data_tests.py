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
