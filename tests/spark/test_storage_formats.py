"""Both storage formats on real tables: what a run publishes, what it leaves alone, and what others can read of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from mvbuild import api
from mvbuild.formats import metadata_file
from mvbuild.formats.metadata_file import MvMetadata
from mvbuild.refresh.result import Started
from spark.conftest import Lake
from spark.projects import Project, arrow_bag, bag, messages, named, order
from spark.shop import DAILY, FILES, MORE, MakeProject, shop
from spark.test_two_runs import two_at_once

pytestmark = pytest.mark.proof

MODEL = "models/marts/revenue_daily.sql"
YAML = "models/marts/revenue_daily.yml"
CTE = (
    "WITH lines AS (SELECT o.order_date, c.country, o.amount FROM raw.orders o JOIN {{ ref('active_customers') }} c\n"
    "  ON o.customer_id = c.customer_id)\n"
    "SELECT order_date, country, sum(amount) AS revenue, count(*) AS orders FROM lines GROUP BY order_date, country\n"
)
EMBEDDED = "name: shop\nmodels: {+storage: {format: metadata-file}, marts: {+namespace: mart}}\n"


@pytest.fixture(params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, project: MakeProject) -> Project:
    made = shop(project, MORE | ({"mvbuild.yml": EMBEDDED} if request.param == "metadata-file" else {}))
    assert made.refreshed() == {"active_customers", "revenue_daily", "revenue_total", "countries"}
    return made


def storage(of: Project, name: str = "mart.revenue_daily") -> Any:
    """The storage as PyIceberg reads it: from the catalog, or from the table metadata that the MV's file names."""
    pointer = of.view(name)["properties"].get(metadata_file.METADATA_LOCATION)
    if pointer is None:
        return of.table(f"{name}__storage")
    return StaticTable.from_metadata(mv_file(of, name).storage_metadata_location)


def mv_file(of: Project, name: str = "mart.revenue_daily") -> MvMetadata:
    return metadata_file.read(Path(of.view(name)["properties"][metadata_file.METADATA_LOCATION].removeprefix("file://")).read_bytes())


def rows(of: Project, name: str = "mart.revenue_daily") -> Counter[str]:
    return arrow_bag(storage(of, name).scan().to_arrow())


def assert_right(of: Project) -> None:
    assert rows(of) == bag(tuple(r) for r in of.sql(DAILY))
    assert of.only_reused()
    of.assert_tidy()


def test_it_is_built_reused_and_refreshed(built: Project) -> None:
    assert_right(built)
    built.append("raw.orders", order(4, 2, "2026-02-02", "7.00"))
    assert built.refreshed() == {"revenue_daily", "revenue_total"}
    assert_right(built)
    assert rows(built, "mart.revenue_total") == bag([tuple(built.sql(f"SELECT sum(revenue) FROM ({DAILY})")[0])])


def test_a_new_column_and_another_order_of_columns(built: Project) -> None:
    built.write({MODEL: FILES[MODEL].replace("count(*) AS orders", "max(o.amount) AS most, count(*) AS orders")})
    assert "revenue_daily" in built.refreshed()
    assert storage(built).scan().to_arrow().column_names == ["order_date", "country", "revenue", "most", "orders"]
    built.write({MODEL: FILES[MODEL]})
    assert "revenue_daily" in built.refreshed()
    assert_right(built)


def test_cte_names_are_proven_equal_by_spark_and_a_filter_is_not(built: Project) -> None:
    built.write({MODEL: CTE})
    assert built.refreshed() >= {"revenue_daily"}
    before = storage(built).metadata
    built.write({MODEL: CTE.replace("lines", "sold")})
    result = built.run()
    assert named(result)["revenue_daily"] == "reused"
    assert "sold" in built.view("mart.revenue_daily")["versions"][-1]["representations"][0]["sql"]
    after = storage(built)
    assert after.metadata.current_snapshot_id == before.current_snapshot_id
    assert_right(built)
    built.write({MODEL: CTE.replace("lines", "sold").replace("c.customer_id)", "c.customer_id WHERE o.amount > 2)")})
    assert "revenue_daily" in built.refreshed()
    assert rows(built) != bag(tuple(r) for r in built.sql(DAILY))


def test_partitioning_follows_the_configuration_without_a_rebuild(built: Project) -> None:
    before = storage(built).metadata
    built.write(
        {YAML: FILES[YAML].replace("[month(order_date)]", "[country]").replace("data_tests:", "description: The day., data_tests:")}
    )
    assert named(built.run())["revenue_daily"] == "reused"
    after = storage(built).metadata
    assert [f.name for f in after.spec().fields] == ["country"]
    assert after.current_snapshot_id == before.current_snapshot_id
    assert after.schema().find_field("order_date").doc == "The day."
    assert {r.col_name: r.comment for r in built.sql("DESCRIBE lake.mart.revenue_daily")}["order_date"] == "The day."
    assert_right(built)
    built.append("raw.orders", order(5, 1, "2026-03-02", "3.00"))
    assert "revenue_daily" in built.refreshed()
    assert_right(built)


def test_a_failed_data_test_leaves_the_old_rows_and_the_old_record(built: Project) -> None:
    old = rows(built)
    built.write({YAML: FILES[YAML].replace("data_tests: [not_null]", "data_tests: [unique]")})
    built.append("raw.orders", order(6, 2, "2026-01-05", "1.00"), order(7, 1, "2026-01-05", "1.00"))
    result = built.run()
    assert named(result)["revenue_daily"] == "error"
    assert rows(built) == old
    built.assert_tidy()
    built.write({YAML: FILES[YAML]})
    assert "revenue_daily" in built.refreshed()
    assert_right(built)


def test_rollback_and_roll_forward_move_data_and_record(built: Project) -> None:
    first = rows(built)
    built.append("raw.orders", order(8, 2, "2026-02-03", "9.00"))
    assert "revenue_daily" in built.refreshed()
    second = rows(built)
    _, _outcome, freshness = api.rollback(built.root, "revenue_daily", 1)
    assert (rows(built), freshness.state) == (first, "stale")
    assert {r.code for r in freshness.reasons} == {"base-table-changed"}
    _, _, freshness = api.rollback(built.root, "mart.revenue_daily", 2)
    assert (rows(built), freshness.state) == (second, "fresh")
    assert_right(built)
    api.rollback(built.root, "revenue_daily", 1)
    assert built.refreshed() == {"revenue_daily", "revenue_total"}
    assert_right(built)
    past = api.history(built.root, "revenue_daily")[1]
    assert [(p.refresh_id, p.is_current) for p in past] == [(1, False), (2, False), (3, True)]


def test_an_mv_is_migrated_there_and_back_with_rows_history_and_uuid(built: Project) -> None:
    built.append("raw.orders", order(9, 2, "2026-02-04", "2.00"))
    assert built.run().ok
    before, past = storage(built).metadata, api.history(built.root, "revenue_daily")[1]
    for to in ("metadata-file", "table-properties", "metadata-file", "table-properties"):
        built.write({"mvbuild.yml": EMBEDDED.replace("metadata-file", to)})
        assert api.migrate(built.root, to=to).ok  # type: ignore[arg-type]
        after = storage(built).metadata
        assert (after.table_uuid, after.current_snapshot_id) == (before.table_uuid, before.current_snapshot_id)
        assert [s.snapshot_id for s in after.snapshots] == [s.snapshot_id for s in before.snapshots]
        assert {k: v for k, v in after.properties.items() if k.startswith("write.")} == {
            k: v for k, v in before.properties.items() if k.startswith("write.")
        }
        assert api.history(built.root, "revenue_daily")[1] == past
        assert_right(built)
        tables = {t[-1] for t in built.catalog.list_tables("mart")}
        assert ("revenue_daily__storage" in tables) == (to == "table-properties")
    built.append("raw.orders", order(10, 2, "2026-02-04", "2.00"))
    assert built.refreshed() == {"revenue_daily", "revenue_total"}
    assert_right(built)


def test_an_upstream_is_migrated_after_the_run_has_planned(built: Project) -> None:
    to = "metadata-file" if storage(built).metadata.location.endswith("__storage") else "table-properties"
    migrated = []

    def migrate(event: object) -> None:
        if isinstance(event, Started) and not migrated:
            migrated.append(api.migrate(built.root, to=to, select=["revenue_daily"]))  # type: ignore[arg-type]

    result = built.run("revenue_total", full_refresh=True, on_event=migrate)
    assert migrated[0].ok
    assert named(result) == {"revenue_total": "success"}, messages(result)
    built.assert_tidy()


def test_two_runs_at_once_in_the_metadata_file_format(project: MakeProject, lake: Lake) -> None:
    made = shop(project, {**MORE, "mvbuild.yml": EMBEDDED}).over(lake.remote)
    two_at_once(made)
    assert_right(made)
    made.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    made.write({MODEL: FILES[MODEL].replace("count(*) AS orders", "count(*) AS orders, max(o.amount) AS most")})
    two_at_once(made)
    made.write({MODEL: FILES[MODEL]})
    assert made.run().ok
    assert_right(made)
    file = mv_file(made)
    assert [r["refresh-id"] for r in file.refreshes] == [file.raw["current-refresh-id"]]
