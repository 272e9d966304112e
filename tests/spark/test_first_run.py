"""What the first run of the documentation's project leaves in the catalog, for mvbuild, Spark and PyIceberg."""

from __future__ import annotations

import json

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.transforms import MonthTransform

from spark.projects import Project, arrow_bag, messages, order, properties
from spark.shop import DAILY, MORE, MakeProject, shop


@pytest.fixture(scope="module")
def built(project: MakeProject) -> Project:
    made = shop(project, MORE)
    result = made.run()
    assert result.ok, messages(result)
    return made


def test_the_view_and_its_storage_have_the_rows_of_the_query(built: Project) -> None:
    expected = built.bag(DAILY)
    assert sum(expected.values()) == 3
    assert built.bag("SELECT * FROM lake.mart.revenue_daily__storage") == expected
    assert built.bag("SELECT * FROM lake.mart.revenue_daily") == expected
    assert arrow_bag(built.arrow("mart.revenue_daily__storage")) == expected
    assert [row.viewName for row in built.sql("SHOW VIEWS IN lake.mart")] == ["countries", "revenue_daily", "revenue_total"]


def test_the_storage_is_partitioned_as_configured(built: Project) -> None:
    (field,) = built.table("mart.revenue_daily__storage").spec().fields
    assert isinstance(field.transform, MonthTransform)
    assert built.table("mart.revenue_daily__storage").schema().find_field(field.source_id).name == "order_date"
    partitions = built.sql("SELECT partition FROM lake.mart.revenue_daily__storage.partitions")
    assert len(partitions) == 2


def test_properties_are_the_specifications(built: Project) -> None:
    of_view = {r.key: r.value for r in built.sql("SHOW TBLPROPERTIES lake.mart.revenue_daily")}
    assert {k: v for k, v in of_view.items() if k.startswith("iceberg.")} == {
        "iceberg.materialized.view": "true",
        "iceberg.materialized.view.storage.table": "mart.revenue_daily__storage",
    }
    raw, child = built.table("raw.orders").metadata, built.view("main.active_customers")
    customers = built.table("raw.customers").metadata
    of_storage = {r.key: r.value for r in built.sql("SHOW TBLPROPERTIES lake.mart.revenue_daily__storage")}
    assert {k: v for k, v in of_storage.items() if k.startswith("iceberg.")} == {
        "iceberg.view.version": "1",
        f"iceberg.base.snapshot.{raw.table_uuid}": str(raw.current_snapshot_id),
        f"iceberg.base.snapshot.{customers.table_uuid}": str(customers.current_snapshot_id),
        f"iceberg.child.view.version.{child['view-uuid']}": "1",
        f"iceberg.child.view.version.{built.view('mart.revenue_daily')['view-uuid']}": "1",
    }
    assert "iceberg.materialized.view" not in {r.key for r in built.sql("SHOW TBLPROPERTIES lake.main.active_customers")}


def test_a_plain_pyiceberg_catalog_reads_rows_properties_and_refresh_state(built: Project) -> None:
    catalog = load_catalog("lake", **properties(built.root))
    storage = catalog.load_table("mart.revenue_daily__storage")
    assert storage.properties["iceberg.view.version"] == "1"
    assert storage.scan().to_arrow().num_rows == 3
    snapshot = storage.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    state = json.loads(snapshot.summary.additional_properties["refresh-state"])
    assert state["view-version-id"] == 1
    assert {(s["type"], ".".join(s["namespace"]), s["name"]) for s in state["source-states"]} == {
        ("table", "raw", "orders"),
        ("table", "raw", "customers"),
        ("view", "main", "active_customers"),
    }
    catalog.close()  # type: ignore[attr-defined]


def test_another_run_reuses_everything_and_needs_no_spark(built: Project) -> None:
    assert built.only_reused()
    built.assert_tidy()


def test_base_tables_of_a_spark_writer(project: MakeProject) -> None:
    made = project({"mvbuild.yml": "name: s\n", "models/m.sql": "SELECT k, count(*) AS c FROM raw.t GROUP BY k\n"})
    made.sql("CREATE NAMESPACE lake.raw")
    made.sql("CREATE TABLE lake.raw.t AS SELECT id % 2 AS k FROM range(5)")
    assert made.statuses() == {"m": "success"}
    assert made.bag("SELECT * FROM lake.main.m__storage") == made.bag("SELECT k, count(*) FROM lake.raw.t GROUP BY k")
    assert made.only_reused()


def test_a_window_lets_an_mv_be_a_little_behind(project: MakeProject) -> None:
    made = shop(project, {"models/marts/m.sql": "{{ config(freshness={'max_staleness': '1h'}) }}\nSELECT order_id FROM raw.orders\n"})
    made.run()
    made.append("raw.orders", order(9, 1, "2026-03-01", "1.00"))
    assert made.codes("m") == ["within-window"]
    assert made.statuses() == {"active_customers": "reused", "revenue_daily": "success", "m": "reused"}
    assert made.arrow("mart.m__storage").num_rows == 3


def test_mvbuild_leaves_nothing_else_in_the_catalog(built: Project) -> None:
    names = {".".join(i) for ns in built.catalog.list_namespaces() for i in built.catalog.list_tables(ns)}
    assert names == {
        "raw.orders",
        "raw.customers",
        "mart.revenue_daily__storage",
        "mart.revenue_total__storage",
        "mart.countries__storage",
    }
    with pytest.raises(NoSuchTableError):
        built.table("mart.revenue_daily")
