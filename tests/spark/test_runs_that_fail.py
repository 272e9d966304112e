"""Data tests and queries that fail at run time: what is shown, what stays readable, what goes on."""

from __future__ import annotations

import json

import pytest

from spark.projects import Project, named, of, order
from spark.shop import FILES, MORE, MakeProject, shop

pytestmark = pytest.mark.proof

MODEL = "models/marts/revenue_daily.sql"


@pytest.fixture
def built(project: MakeProject) -> Project:
    made = shop(project, MORE)
    made.run()
    return made


def test_a_failing_data_test_keeps_the_old_data_and_shows_the_line_of_the_yaml(built: Project) -> None:
    before = built.bag("SELECT * FROM lake.mart.revenue_daily__storage")
    version = built.view_version("mart.revenue_daily")
    built.write({MODEL: FILES[MODEL].replace("o.order_date, c", "nullif(o.order_date, DATE'2026-02-01') AS order_date, c", 1)})
    built.sql("INSERT INTO lake.raw.customers VALUES (4, 'DE', true)")
    done = built.command("run")
    assert done.returncode == 1, done.stderr
    assert "error[test-failed]" in done.stderr
    assert "--> models/marts/revenue_daily.yml:7:" in done.stderr
    assert "Traceback" not in done.stderr
    assert "1 row violates its rule" in done.stdout + done.stderr
    assert built.bag("SELECT * FROM lake.mart.revenue_daily__storage") == before
    assert built.view_version("mart.revenue_daily") == version
    assert built.bag("SELECT * FROM lake.mart.revenue_daily") == built.bag(
        "SELECT o.order_date, c.country, sum(o.amount), count(*) FROM lake.raw.orders o JOIN lake.raw.customers c USING (customer_id) "
        "WHERE active GROUP BY ALL"
    )
    built.assert_tidy()
    results = json.loads((built.root / "target" / "run_results.json").read_text(encoding="utf-8"))["results"]
    found = {r["unique_id"].split(".")[2]: r for r in results}
    assert {k: r["status"] for k, r in found.items()} == {
        "active_customers": "success",
        "revenue_daily": "error",
        "revenue_total": "skipped",
        "countries": "success",
        "not_null_revenue_daily_order_date": "fail",
    }
    assert found["active_customers"]["adapter_response"]["reused"]
    assert found["not_null_revenue_daily_order_date"]["failures"] == 1
    assert "data test" in found["revenue_daily"]["message"]
    assert "revenue_daily" in found["revenue_total"]["message"]
    assert "nullif(o.order_date" in found["revenue_daily"]["compiled_code"]


def test_a_query_that_fails_at_run_time_is_shown_at_its_place(built: Project) -> None:
    before = built.bag("SELECT * FROM lake.mart.revenue_daily__storage")
    built.write({MODEL: FILES[MODEL].replace("count(*)", "sum(1 / (o.order_id - 1))")})
    built.append("raw.orders", order(1, 1, "2026-01-05", "1.00"))
    result = built.run()
    assert named(result) == {"active_customers": "reused", "revenue_daily": "error", "revenue_total": "skipped", "countries": "reused"}
    (diagnostic,) = of(result, "revenue_daily").diagnostics
    assert diagnostic.code == "query-failed"
    assert diagnostic.span is not None
    assert diagnostic.span.file.path == MODEL
    assert diagnostic.span.file.text[diagnostic.span.start : diagnostic.span.end] == "1 / (o.order_id - 1)"
    assert "zero" in diagnostic.message
    assert built.bag("SELECT * FROM lake.mart.revenue_daily__storage") == before
    built.assert_tidy()
    # Fixed: everything continues from here.
    built.write({MODEL: FILES[MODEL]})
    assert built.refreshed() == {"revenue_daily", "revenue_total"}


def test_a_failing_first_refresh_leaves_no_readable_half(project: MakeProject) -> None:
    made = shop(project, {"models/marts/bad.sql": "SELECT 1 / (order_id - 1) AS x FROM raw.orders\n"})
    result = made.run()
    assert named(result) == {"active_customers": "success", "revenue_daily": "success", "bad": "error"}
    assert "bad" not in [row.viewName for row in made.sql("SHOW VIEWS IN lake.mart")]
    assert made.codes("bad") == ["never-refreshed"]
    made.assert_tidy()
    made.write({"models/marts/bad.sql": "SELECT order_id AS x FROM raw.orders\n"})
    assert made.refreshed() == {"bad"}
    assert made.only_reused()


def test_a_warning_of_a_data_test_does_not_stop_anything(built: Project) -> None:
    built.write(
        {
            "models/marts/revenue_daily.yml": FILES["models/marts/revenue_daily.yml"].replace(
                "[not_null]", "[{unique: {config: {severity: warn}}}]"
            ),
        }
    )
    built.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    result = built.run()
    assert result.ok
    assert [t.status for t in of(result, "revenue_daily").tests] == ["warn"]


def test_all_unresolved_columns_of_a_run_are_told(project: MakeProject) -> None:
    made = shop(
        project,
        {
            "models/marts/one.sql": "SELECT order_id,\n       nonsense\nFROM raw.orders\n",
            "models/marts/two.sql": "SELECT order_id\nFROM raw.orders\nWHERE rubbish > 1\n",
        },
    )
    result = made.run()
    places = {}
    for name in ("one", "two"):
        (diagnostic,) = of(result, name).diagnostics
        assert diagnostic.span is not None
        places[diagnostic.span.file.path] = diagnostic.span.file.text[diagnostic.span.start : diagnostic.span.end]
    assert places == {"models/marts/one.sql": "nonsense", "models/marts/two.sql": "rubbish"}
