"""Unit tests of models in Spark: what passes, what is caught, and how fast."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mvbuild import api
from mvbuild.diagnostics import ProjectError
from mvbuild.refresh.result import RunResult
from spark.projects import Project

SAMPLE = Path(__file__).parents[2] / "sample_project"
FAULTS = {
    "order_facts": ("sum(quantity)", "count(quantity)"),
    "daily_revenue": ("count(distinct sales.order_id)", "count(sales.order_id)"),
    "product_sales": ("initcap(trim(products.category))", "initcap(products.category)"),
    "customer_lifetime_value": (">= {{ var('gold_from_eur') }}", "> {{ var('gold_from_eur') }}"),
    "product_ranking": ("order by revenue_eur desc", "order by revenue_eur"),
    "return_rates": ("left join returned", "inner join returned"),
    "monthly_summary": ("lag(revenue.revenue_eur)", "lead(revenue.revenue_eur)"),
}
MODELS = {
    "mvbuild.yml": "name: shop\nvars: {least: 10}\n",
    "seeds/rates.csv": "code,rate\nEUR,1.0\n",
    "macros/m.sql": "{% macro least() %}{{ var('least') }}{% endmacro %}\n",
    "models/big.sql": "SELECT id, upper(name) AS name, amount, CAST(amount AS decimal(10,2)) AS exact, current_date() AS today\n"
    "FROM raw.orders WHERE amount >= {{ least() }} AND ts < current_timestamp()\n",
    "models/inner_one.sql": "{{ config(materialized='ephemeral') }} SELECT id, count(*) AS n FROM raw.orders GROUP BY id\n",
    "models/outer_one.sql": "SELECT n, array_sort(collect_list(id)) AS ids FROM {{ ref('inner_one') }} GROUP BY n\n",
    "models/sources.yml": "sources: [{name: raw, tables: [{name: orders, columns: ["
    "{name: id, data_type: int}, {name: name, data_type: string}, {name: amount, data_type: double}, {name: ts, data_type: timestamp}]}]}]\n",
}
UNIT = """
unit_tests:
  - name: the_clock_and_nulls
    model: big
    overrides: {vars: {least: 5}, clock: '2026-01-31 12:00:00'}
    given:
      - input: source('raw', 'orders')
        rows:
          - {id: 1, name: ada, amount: 5, ts: '2026-01-31 11:59:59'}
          - {id: 2, amount: 7.5, ts: '2026-01-01 00:00:00'}
          - {id: 3, name: late, amount: 9, ts: '2026-01-31 12:00:00'}
          - {id: 4, name: small, amount: 4.99, ts: '2026-01-01 00:00:00'}
    expect:
      rows:
        - {id: 2, name: null, amount: 7.5, exact: 7.50, today: 2026-01-31}
        - {id: 1, name: ADA, amount: 5, exact: 5, today: 2026-01-31}
  - name: a_macro
    model: big
    overrides: {macros: {least: 8}}
    given:
      - {input: raw.orders, format: sql, rows: "SELECT 1 AS id, 'x' AS name, 7.9D AS amount, TIMESTAMP '2020-01-01' AS ts"}
    expect: {rows: []}
  - name: through_an_ephemeral_model
    model: outer_one
    given:
      - {input: raw.orders, rows: [{id: 2}, {id: 1}, {id: 3}, {id: 3}]}
    expect: {rows: [{n: 1, ids: [1, 2]}, {n: 2, ids: [3]}]}
  - name: any_rows
    model: big
    given: [{input: raw.orders, random: 50}]
"""


def _units(project: Project, *select: str) -> RunResult:
    return api.test(project.root, select=select or ["test_type:unit"], spark=project.spark)


def test_rows_values_overrides_and_ephemeral_models(project: Callable[[Mapping[str, str]], Project]) -> None:
    shop = project({**MODELS, "models/units.yml": UNIT})
    result = _units(shop)
    assert [(t.name, t.status, t.message) for t in result.tests] == [
        ("big::the_clock_and_nulls", "pass", ""),
        ("big::a_macro", "pass", ""),
        ("outer_one::through_an_ephemeral_model", "pass", ""),
        ("big::any_rows", "pass", ""),
    ]
    found = json.loads((shop.root / "target" / "manifest.json").read_text())["unit_tests"]["unit_test.shop.big.a_macro"]
    assert (found["model"], found["overrides"]["macros"]) == ("big", {"least": 8})
    assert [t.id for t in _units(shop, "outer_one").tests] == ["unit_test.shop.outer_one.through_an_ephemeral_model"]


def test_a_difference_shows_the_values(project: Callable[[Mapping[str, str]], Project]) -> None:
    shop = project(
        {
            **MODELS,
            "models/units.yml": UNIT.replace("name: ADA, amount: 5", "name: Ada, amount: 5").replace(
                "{id: 2, name: null", "{id: 9, name: ''"
            ),
        }
    )
    result = _units(shop, "unit_test:the_clock_and_nulls")
    (test,) = result.tests
    assert (test.status, test.failures) == ("fail", 1)
    assert test.details.splitlines() == [
        "The rows differ (2 rows, 2 expected):  +++ not expected   --- missing   ~ expected → actual",
        "@@ | id    | name      | amount | exact | today",
        "~  | 9 → 2 | '' → NULL | 7.5    | 7.50  | 2026-01-31",
        "~  | 1     | Ada → ADA | 5.0    | 5.00  | 2026-01-31",
    ]
    assert [d.code for d in result.diagnostics] == ["unit-test-failed"]


WRONG = {
    "an unknown model": (UNIT.replace("model: outer_one", "model: outer_two"), "unknown model 'outer_two'"),
    "an unknown input": (UNIT.replace("{input: raw.orders, rows", "{input: raw.order, rows"), "Unknown input raw.order"),
    "an unknown column": (
        UNIT.replace("{input: raw.orders, rows: [{id: 2}, ", "{input: ref('inner_one'), rows: [{idd: 2}, "),
        "no column 'idd'",
    ),
    "a value of another type": (UNIT.replace("[{id: 2}, ", "[{id: 2.5}, "), "'2.5' in column 'id' is not exactly a value of type int"),
    "an unknown column of the result": (UNIT.replace("{n: 1, ids", "{m: 1, ids"), "no column 'm'"),
    "too many digits": (UNIT.replace("exact: 5,", "exact: 5.001,"), "'5.001' in column 'exact'"),
    "no rows for a table": (UNIT.replace("{input: raw.orders, random: 50}", ""), "gives no rows for source('raw', 'orders')"),
}


@pytest.mark.proof
@pytest.mark.parametrize("case", WRONG, ids=str)
def test_a_wrong_test_is_an_error_with_a_place(case: str, project: Callable[[Mapping[str, str]], Project]) -> None:
    text, said = WRONG[case]
    shop = project({**MODELS, "models/units.yml": text})
    try:
        found = [d for d in _units(shop).diagnostics if d.severity == "error"]
    except ProjectError as exc:
        found = list(exc.diagnostics)
    assert {d.code for d in found} == {"bad-unit-test"}, found
    assert said in found[0].message
    assert found[0].span is not None
    assert found[0].span.file.path == "models/units.yml"


@pytest.mark.proof
def test_the_sample_project_passes_and_each_planted_fault_is_caught(project: Callable[[Mapping[str, str]], Project]) -> None:
    shop = project({"mvbuild.yml": (SAMPLE / "mvbuild.yml").read_text()})
    for folder in ("models", "macros", "seeds"):
        shutil.copytree(SAMPLE / folder, shop.root / folder)
    result = _units(shop)
    assert {t.name.partition("::")[0]: t.status for t in result.tests} == dict.fromkeys(FAULTS, "pass"), result.diagnostics
    for model, (right, wrong) in FAULTS.items():
        path = shop.root / "models" / "marts" / f"{model}.sql"
        assert right in path.read_text(), model
        path.write_text(path.read_text().replace(right, wrong))
    result = _units(shop)
    assert {t.name.partition("::")[0]: t.status for t in result.tests} == dict.fromkeys(FAULTS, "fail")


@pytest.mark.proof
def test_many_are_fast_when_warm(project: Callable[[Mapping[str, str]], Project]) -> None:
    one = UNIT[UNIT.index("  - name: through") : UNIT.index("  - name: any_rows")]
    many = "unit_tests:\n" + "".join(one.replace("through_an_ephemeral_model", f"t{i}") for i in range(60))
    shop = project({**MODELS, "models/units.yml": many})
    _units(shop, "unit_test:t1*")
    began = time.monotonic()
    result = _units(shop)
    seconds = time.monotonic() - began
    assert [t.status for t in result.tests] == ["pass"] * 60
    print(f"{60 / seconds:.1f} unit tests a second")


def test_an_incremental_test_that_cannot_be_one_says_why(project: Callable[[Mapping[str, str]], Project]) -> None:
    files = {
        **MODELS,
        "models/top.sql": "SELECT id, row_number() OVER (ORDER BY amount) AS place FROM raw.orders ORDER BY rand() LIMIT 1\n",
        "models/units.yml": "unit_tests: [{name: t, model: top, incremental: true, given: [{input: raw.orders, random: 4}]}]\n",
    }
    result = _units(project(files))
    (found,) = result.diagnostics
    assert found.code == "bad-unit-test"
    assert "cannot run as a refresh" in found.message
