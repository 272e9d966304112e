"""`run --branch`, `diff`, `publish`, `branch` on real tables: main does not change until the whole branch becomes current."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from mvbuild import api
from mvbuild.diagnostics import ProjectError
from mvbuild.refresh.result import RunResult
from mvbuild.verify.comparison import Comparison
from spark.projects import NoSpark, Project, messages, named
from spark.shop import DAILY, FILES, MakeProject, shop

pytestmark = pytest.mark.proof

PR = "pr-42"
NINE = {"order_id": 9, "customer_id": 2, "order_date": date(2026, 2, 3), "amount": Decimal("7.00")}
STORAGES = ("mart.revenue_daily__storage", "mart.revenue_monthly__storage")
MONTHLY = {
    "models/marts/revenue_monthly.sql": (
        "SELECT date_trunc('MONTH', order_date) AS month, sum(revenue) AS revenue FROM {{ ref('revenue_daily') }}\n"
        "GROUP BY date_trunc('MONTH', order_date)\n"
    )
}
AVERAGE = FILES["models/marts/revenue_daily.sql"].replace("count(*) AS orders", "count(*) AS orders, max(o.amount) AS largest")
AVERAGED = DAILY.replace("count(*) AS orders", "count(*) AS orders, max(o.amount) AS largest")


def on(made: Project, branch: str = PR) -> Any:
    return api.compile(made.root, branch=branch)


def run(made: Project, branch: str = PR, spark: Any = None, **options: Any) -> RunResult:
    result = api.run(on(made, branch), spark=spark or made.spark, **options)
    assert result.ok, messages(result)
    return result


def built(result: RunResult) -> set[str]:
    return {name for name, status in named(result).items() if status == "success"}


def seen_on_main(made: Project) -> dict[str, Any]:
    """All that a reader of production sees: snapshot, schema, record; and the text of views."""
    found: dict[str, Any] = {}
    for name in STORAGES:
        table = made.table(name)
        own = {k: v for k, v in table.properties.items() if not k.startswith("mvbuild.branch.")}
        found[name] = (table.metadata.current_snapshot_id, table.schema(), table.spec(), own)
    for name in ("main.active_customers", "mart.revenue_daily", "mart.revenue_monthly"):
        raw = made.view(name)
        found[name] = (raw["current-version-id"], [v for v in raw["versions"] if v["version-id"] == raw["current-version-id"]])
    return found


@pytest.fixture
def made(project: MakeProject) -> Project:
    found = shop(project, MONTHLY)
    assert found.run().ok
    return found


def compared(made: Project, model: str, **options: Any) -> Comparison:
    (found,) = [c for c in api.diff(on(made, PR), PR, spark=made.spark, **options) if c.table.name == f"{model}__storage"]
    return found


def test_new_data_is_built_on_the_branch_alone_and_published_together(made: Project) -> None:
    before = seen_on_main(made)
    made.append("raw.orders", NINE)
    assert built(run(made)) == {"revenue_daily", "revenue_monthly"}
    assert seen_on_main(made) == before
    assert made.bag("SELECT * FROM lake.mart.revenue_daily__storage VERSION AS OF 'pr-42'") == made.bag(DAILY)
    assert made.bag("SELECT * FROM lake.mart.revenue_daily__storage") != made.bag(DAILY)
    assert set(named(run(made, spark=NoSpark())).values()) == {"reused"}
    assert made.codes("revenue_daily") == ["base-table-changed"]

    found = api.publish(made.root, PR)
    assert {str(one.identifier) for one in found} == {f"lake.{name}" for name in STORAGES}
    assert made.bag("SELECT * FROM lake.mart.revenue_daily") == made.bag(DAILY)
    assert made.only_reused()
    assert api.branch_names(made.root) == ()
    assert all(PR not in made.table(name).refs() for name in STORAGES)
    assert api.verify(made.root, spark=made.spark).ok


def test_a_changed_schema_and_a_changed_view(made: Project) -> None:
    before = seen_on_main(made)
    made.write(
        {
            "models/marts/revenue_daily.sql": AVERAGE,
            "models/active_customers.sql": FILES["models/active_customers.sql"].replace(
                "SELECT customer_id, country", "SELECT customer_id, upper(country) AS country"
            ),
        }
    )
    assert built(run(made)) == {"active_customers", "revenue_daily", "revenue_monthly"}
    assert seen_on_main(made) == before
    assert set(named(run(made, spark=NoSpark())).values()) == {"reused"}
    shown = api.show(on(made), "revenue_daily", spark=NoSpark())
    assert "largest" in shown.rows.columns

    made.append("raw.orders", {**NINE, "order_id": 10, "customer_id": 1})
    assert built(run(made)) == {"revenue_daily", "revenue_monthly"}
    assert seen_on_main(made) == before

    api.publish(made.root, PR)
    assert made.bag("SELECT * FROM lake.mart.revenue_daily") == made.bag(AVERAGED)
    assert made.only_reused()
    assert api.verify(made.root, spark=made.spark).ok


def test_a_new_mv_and_a_new_view_are_not_there_before_they_are_published(made: Project) -> None:
    made.write(
        {
            "models/new_view.sql": "{{ config(materialized='view') }}\nSELECT country FROM {{ ref('active_customers') }}\n",
            "models/marts/new_mv.sql": "SELECT country, count(*) AS n FROM {{ ref('new_view') }} GROUP BY country\n",
        }
    )
    assert built(run(made)) == {"new_view", "new_mv"}
    assert set(named(run(made, spark=NoSpark())).values()) == {"reused"}
    tables = {name for _, name in made.catalog.list_tables("mart")}
    assert "new_mv__storage" in tables
    assert made.table("mart.new_mv__storage").metadata.current_snapshot_id is None
    views = {row[1] for namespace in ("main", "mart") for row in made.sql(f"SHOW VIEWS IN lake.{namespace}")}
    assert not views & {"new_view", "new_mv"}
    assert compared(made, "new_mv").added == 2

    api.publish(made.root, PR)
    assert made.bag("SELECT * FROM lake.mart.new_mv") == made.bag("SELECT 'DE', 1 UNION ALL SELECT 'FR', 1")
    assert made.only_reused()


def test_an_mv_whose_upstream_was_dropped_is_not_published(made: Project) -> None:
    made.write({"models/marts/new_mv.sql": "SELECT order_date, revenue FROM {{ ref('revenue_daily') }}\n"})
    assert built(run(made)) == {"new_mv"}
    for statement in ("DROP VIEW lake.mart.revenue_daily", "DROP TABLE lake.mart.revenue_daily__storage"):
        made.sql(statement)
    with pytest.raises(ProjectError, match=r"lake\.mart\.new_mv reads lake\.mart\.revenue_daily, which was dropped") as refused:
        api.publish(made.root, PR)
    assert [d.code for d in refused.value.diagnostics] == ["branch-outdated"]
    assert not made.sql("SHOW VIEWS IN lake.mart LIKE 'new_mv'")


def test_dropping_a_branch_leaves_main_and_nothing_else(made: Project) -> None:
    before = seen_on_main(made)
    made.write({"models/marts/revenue_daily.sql": AVERAGE, "models/marts/new_mv.sql": "SELECT country FROM raw.customers\n"})
    run(made)
    _, files = api.drop_branch(made.root, PR)
    assert files > 0
    assert seen_on_main(made) == before
    assert {name for _, name in made.catalog.list_tables("mart")} == {name.partition(".")[2] for name in STORAGES}
    with pytest.raises(ProjectError) as raised:
        api.publish(made.root, PR)
    assert raised.value.diagnostics[0].code == "unknown-branch"


def test_a_base_table_is_read_at_its_branch_where_it_has_one(made: Project) -> None:
    made.sql("ALTER TABLE lake.raw.orders CREATE BRANCH `pr-42`")
    made.sql("INSERT INTO lake.raw.orders.`branch_pr-42` VALUES (77, 1, DATE'2026-03-01', 4.00)")
    assert built(run(made)) == {"revenue_daily", "revenue_monthly"}
    wanted = DAILY.replace("lake.raw.orders o", "lake.raw.orders VERSION AS OF 'pr-42' o")
    assert made.bag("SELECT * FROM lake.mart.revenue_daily__storage VERSION AS OF 'pr-42'") == made.bag(wanted)
    found = compared(made, "revenue_daily")
    assert (found.key, found.added, found.removed, found.changed) == (("order_date", "country"), 1, 0, 0)
    made.sql("CALL lake.system.fast_forward('raw.orders', 'main', 'pr-42')")
    api.publish(made.root, PR)
    assert made.only_reused()


def test_what_was_built_on_an_older_main_is_not_published(made: Project) -> None:
    made.append("raw.orders", NINE)
    run(made)
    assert made.run().ok
    before = seen_on_main(made)
    with pytest.raises(ProjectError) as raised:
        api.publish(made.root, PR)
    assert {d.code for d in raised.value.diagnostics} == {"branch-outdated"}
    assert seen_on_main(made) == before
    assert set(named(run(made, spark=NoSpark())).values()) == {"reused"}


def refused(made: Project) -> list[tuple[str, str]]:
    """Why the branch is not published."""
    before = seen_on_main(made)
    with pytest.raises(ProjectError) as raised:
        api.publish(made.root, PR)
    assert seen_on_main(made) == before
    return [(d.code, d.message) for d in raised.value.diagnostics]


def test_rows_that_failed_their_tests_are_not_passed_over(made: Project) -> None:
    made.write({"tests/below.sql": "SELECT * FROM {{ ref('revenue_daily') }} WHERE revenue >= 1000\n"})
    made.append("raw.orders", {**NINE, "amount": Decimal("7000.00")})
    assert not api.run(on(made), spark=made.spark).ok
    (why,) = refused(made)
    assert why[0] == "not-published"
    assert why[1].startswith("the newest rows of lake.mart.revenue_daily failed their data tests on branch 'pr-42': below")
    made.sql("DELETE FROM lake.raw.orders WHERE order_id = 9")
    run(made)
    made.append("raw.orders", NINE)
    run(made)
    api.publish(made.root, PR)
    assert made.only_reused()


def test_a_branch_renames_nothing(made: Project) -> None:
    (made.root / "models/marts/revenue_monthly.sql").rename(made.root / "models/marts/per_month.sql")
    made.write({"models/marts/renamed.yml": "models: [{name: per_month, config: {previous_name: revenue_monthly}}]\n"})
    first = run(made)
    assert [d.message for d in first.diagnostics] == [
        "lake.mart.revenue_monthly is not renamed on a branch: 'per_month' is built there as a new model"
    ]
    assert [d.message for d in run(made, spark=NoSpark()).diagnostics] == [d.message for d in first.diagnostics]
    with pytest.raises(ProjectError) as raised:
        api.publish(made.root, PR)
    (why,) = raised.value.diagnostics
    assert why.message == "'per_month' is lake.mart.revenue_monthly under a new name; publishing would make it a second MV"
    assert why.help.startswith("`mvbuild branch drop pr-42`")
    (failed,) = [r for r in made.run().results if r.status == "error"]
    assert [d.message.partition("renamed to ")[2] for d in failed.diagnostics] == [
        "lake.mart.per_month__storage, which branch 'pr-42' has built as a new table"
    ]
    api.drop_branch(made.root, PR)
    assert made.run().ok
    assert made.only_reused()


def test_differences_by_key(made: Project) -> None:
    made.sql("UPDATE lake.raw.orders SET amount = 100 WHERE order_id = 2")
    made.sql("DELETE FROM lake.raw.orders WHERE order_id = 3")
    run(made)
    found = compared(made, "revenue_daily")
    assert (found.rows_before, found.rows_after) == (3, 2)
    assert (found.added, found.removed, found.changed) == (0, 1, 1)
    by_name = {c.name: c.changed for c in found.columns}
    assert by_name == {"order_date": None, "country": None, "revenue": 1, "orders": 0}
    assert [what for what, _ in found.samples] == ["before", "after", "removed"]
    bags = compared(made, "revenue_daily", key=["orders"])  # is not unique
    assert (bags.key, bags.added, bags.removed, bags.changed) == ((), 1, 2, 0)
    with pytest.raises(ProjectError, match="No compared table has a column 'nothing' of --key"):
        compared(made, "revenue_daily", key=["revenue", "nothing"])
