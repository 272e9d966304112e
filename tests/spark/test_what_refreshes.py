"""Changes by other writers, and of the project's files -> which MVs a run refreshes."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from spark.projects import NoSpark, Project, order, orders
from spark.shop import DAILY, FILES, MORE, MakeProject, shop

pytestmark = pytest.mark.proof

INCREMENTAL = {"mvbuild.yml": "name: shop\nmodels: {marts: {+namespace: mart, +refresh_policy: incremental}}\n"}
"""Whatever it costs: over tables as small as these, a full refresh is often the cheapest."""
MODEL = "models/marts/revenue_daily.sql"
DESCENDANTS = {"revenue_daily", "revenue_total"}


@pytest.fixture(scope="module")
def house(project: MakeProject) -> Project:
    made = shop(project, {**MORE, **INCREMENTAL})
    assert made.refreshed() == {"active_customers", "revenue_daily", "revenue_total", "countries"}
    return made


@pytest.fixture
def built(house: Project) -> Project:
    """The same project for all tests: each starts from the original files, with everything fresh."""
    house.write({**FILES, **INCREMENTAL})
    if ("raw", "orders") not in house.catalog.list_tables("raw"):
        house.make("raw.orders", orders((1, 1, "2026-01-05", "10.00"), (2, 2, "2026-01-05", "5.50")))
    house.append("raw.orders", order(1, 1, "2026-01-05", "10.00"), order(2, 2, "2026-01-05", "5.50"))
    house.run()
    return house


def assert_right(of: Project) -> None:
    assert of.bag("SELECT * FROM lake.mart.revenue_daily__storage") == of.bag(DAILY)
    assert of.only_reused()
    of.assert_tidy()


def recorded(of: Project, table: str) -> int:
    uuid = of.table(table).metadata.table_uuid
    return int(of.table("mart.revenue_daily__storage").properties[f"iceberg.base.snapshot.{uuid}"])


def storage_snapshots(of: Project) -> list[int | None]:
    names = ("revenue_daily", "revenue_total", "countries")
    return [of.table(f"mart.{n}__storage").metadata.current_snapshot_id for n in names]


def test_an_append_by_pyiceberg(built: Project) -> None:
    built.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    assert built.refreshed() == DESCENDANTS
    assert_right(built)


def test_an_append_by_spark(built: Project) -> None:
    built.sql("INSERT INTO lake.raw.customers VALUES (4, 'DE', true)")
    assert built.refreshed() == {"countries"}, "a customer without orders changes no row of the others"
    assert_right(built)
    assert built.only_reused()
    built.sql("INSERT INTO lake.raw.customers VALUES (1, 'DE', true)")
    assert built.refreshed() == {*DESCENDANTS, "countries"}
    assert_right(built)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM lake.raw.orders WHERE order_id = 1",
        "UPDATE lake.raw.orders SET amount = 99 WHERE order_id = 1",
        "MERGE INTO lake.raw.orders t USING (SELECT 1 AS order_id) s ON t.order_id = s.order_id WHEN MATCHED THEN UPDATE SET amount = 3",
        "TRUNCATE TABLE lake.raw.orders",
    ],
    ids=["delete", "update", "merge", "truncate"],
)
def test_row_level_changes(built: Project, statement: str) -> None:
    built.sql(statement)
    assert built.refreshed() == DESCENDANTS
    assert_right(built)


def test_compacting_a_base_table_refreshes_nothing_and_moves_the_record_on(built: Project) -> None:
    for number in range(10, 15):
        built.append("raw.orders", order(number, 1, "2026-01-05", "1.00"))
    built.run()
    before = storage_snapshots(built)
    (done,) = built.sql("CALL lake.system.rewrite_data_files(table => 'raw.orders', options => map('min-input-files', '2'))")
    assert done.rewritten_data_files_count >= 5
    assert built.codes("revenue_daily") == ["base-table-compacted"]
    assert built.refreshed(spark=NoSpark()) == set()
    assert storage_snapshots(built) == before
    assert recorded(built, "raw.orders") == built.table("raw.orders").metadata.current_snapshot_id
    assert built.codes("revenue_daily") == []
    assert_right(built)


def test_compacting_a_base_table_and_writing_to_it_refreshes(built: Project) -> None:
    for number in range(10, 13):
        built.append("raw.orders", order(number, 1, "2026-01-05", "1.00"))
    built.run()
    built.sql("CALL lake.system.rewrite_data_files(table => 'raw.orders', options => map('rewrite-all', 'true'))")
    built.append("raw.orders", order(20, 1, "2026-01-05", "1.00"))
    built.sql("CALL lake.system.rewrite_data_files(table => 'raw.orders', options => map('rewrite-all', 'true'))")
    assert built.refreshed() == DESCENDANTS
    assert_right(built)


def test_compacting_deletes_and_manifests_of_a_base_table_refreshes_nothing(built: Project) -> None:
    built.sql("ALTER TABLE lake.raw.orders SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    built.sql("DELETE FROM lake.raw.orders WHERE order_id = 2")
    built.run()
    built.sql("CALL lake.system.rewrite_data_files(table => 'raw.orders', options => map('delete-file-threshold', '1'))")
    built.sql("CALL lake.system.rewrite_manifests('raw.orders')")
    assert built.refreshed(spark=NoSpark()) == set()
    assert_right(built)


def test_compacting_a_storage_table_leaves_it_fresh(built: Project) -> None:
    (done,) = built.sql(
        "CALL lake.system.rewrite_data_files(table => 'mart.revenue_daily__storage', options => map('rewrite-all', 'true'))"
    )
    assert done.rewritten_data_files_count > 0
    assert built.codes("revenue_daily") == []
    # Its reader, revenue_total, sees a compacted base table: only its record moves on.
    assert built.refreshed(spark=NoSpark()) == set()
    assert_right(built)
    built.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    assert built.refreshed() == DESCENDANTS
    assert_right(built)


def test_a_foreign_write_to_a_storage_table_is_undone(built: Project) -> None:
    built.sql("DELETE FROM lake.mart.revenue_daily__storage WHERE country = 'FR'")
    assert built.codes("revenue_daily") == ["storage-changed"]
    # Its rows are again those that revenue_total read.
    assert built.refreshed() == {"revenue_daily"}
    assert_right(built)


def test_properties_of_a_base_table_do_not_matter(built: Project) -> None:
    built.sql("ALTER TABLE lake.raw.orders SET TBLPROPERTIES ('of' = 'shop')")
    built.sql("ALTER TABLE lake.raw.orders CREATE TAG v1")
    assert_right(built)


@pytest.mark.parametrize(
    "edit",
    [
        lambda sql: sql.replace("\n", "\n\n   "),
        lambda sql: "-- what it is\n" + sql.replace("GROUP BY", "/* per day */ GROUP BY") + "-- done\n",
        lambda sql: sql.replace("SELECT", "select").replace(" FROM ", " from ").replace("GROUP BY", "group By"),
        lambda sql: sql.replace("{{ ref('active_customers') }}", "active_customers"),
    ],
    ids=["whitespace", "comments", "case", "name for ref"],
)
def test_reformatting_a_model_refreshes_nothing(built: Project, edit: object) -> None:
    snapshots, version = storage_snapshots(built), built.view_version("mart.revenue_daily")
    built.write({MODEL: edit(FILES[MODEL])})  # type: ignore[operator]
    assert_right(built)
    assert storage_snapshots(built) == snapshots
    # The catalog's view has the new text, unless only comments at its ends differ.
    assert built.view_version("mart.revenue_daily") in (version, version + 1)
    assert built.table("mart.revenue_daily__storage").properties["iceberg.view.version"] == str(built.view_version("mart.revenue_daily"))


def test_changing_what_a_model_means_refreshes_it_and_its_descendants(built: Project) -> None:
    version = built.view_version("mart.revenue_daily")
    built.write({MODEL: FILES[MODEL].replace("GROUP BY", "WHERE c.country = 'FR'\nGROUP BY")})
    assert built.codes("revenue_daily") == ["definition-changed"]
    assert built.refreshed() == DESCENDANTS
    assert built.view_version("mart.revenue_daily") == version + 1
    assert built.table("mart.revenue_daily__storage").properties["iceberg.view.version"] == str(version + 1)
    assert set(built.arrow("mart.revenue_daily__storage")["country"].to_pylist()) == {"FR"}
    assert built.only_reused()
    built.write({MODEL: FILES[MODEL]})
    assert built.refreshed() == DESCENDANTS
    assert built.view_version("mart.revenue_daily") == version + 2
    assert_right(built)


def test_changing_a_child_view(built: Project) -> None:
    version = built.view_version("main.active_customers")
    built.write({"models/active_customers.sql": FILES["models/active_customers.sql"].replace("WHERE active", "WHERE active OR NOT active")})
    # The customers that are new have no orders: revenue_total reads the same rows.
    assert built.refreshed() == {"active_customers", "revenue_daily"}
    assert built.view_version("main.active_customers") == version + 1
    uuid = built.view("main.active_customers")["view-uuid"]
    assert built.table("mart.revenue_daily__storage").properties[f"iceberg.child.view.version.{uuid}"] == str(version + 1)
    assert built.only_reused()


def test_rolling_a_base_table_back(built: Project) -> None:
    first = built.table("raw.orders").metadata.current_snapshot_id
    built.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    built.run()
    built.sql(f"CALL lake.system.rollback_to_snapshot('raw.orders', {first})")
    assert built.codes("revenue_daily") == ["base-table-rolled-back"]
    assert built.refreshed() == DESCENDANTS
    assert recorded(built, "raw.orders") == first
    assert_right(built)


def test_a_base_table_that_was_dropped_and_made_again(built: Project) -> None:
    old = built.table("raw.orders").metadata.table_uuid
    built.catalog.drop_table("raw.orders")
    built.make("raw.orders", orders((1, 1, "2026-01-05", "10.00")))
    assert built.codes("revenue_daily") == ["base-table-recreated"]
    assert built.refreshed() == DESCENDANTS
    assert f"iceberg.base.snapshot.{old}" not in built.table("mart.revenue_daily__storage").properties
    assert_right(built)


def test_create_or_replace_of_a_base_table(built: Project) -> None:
    built.sql("CREATE OR REPLACE TABLE lake.raw.orders USING iceberg AS SELECT * FROM lake.raw.orders WHERE order_id = 1")
    assert built.refreshed() == DESCENDANTS
    assert_right(built)


def test_a_base_table_that_does_not_exist_is_an_error_of_its_reader_only(built: Project) -> None:
    before = built.bag("SELECT * FROM lake.mart.revenue_daily__storage")
    built.catalog.drop_table("raw.orders")
    built.sql("INSERT INTO lake.raw.customers VALUES (4, 'DE', true)")
    result = built.run()
    statuses = {r.node.rpartition(".")[2]: r.status for r in result.results}
    assert statuses["revenue_daily"] == "error"
    assert statuses["countries"] == "success"
    assert not result.ok
    assert built.bag("SELECT * FROM lake.mart.revenue_daily__storage") == before


def test_expired_snapshots(built: Project) -> None:
    built.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    (done,) = built.sql(f"CALL lake.system.expire_snapshots(table => 'raw.orders', older_than => TIMESTAMP '{now}', retain_last => 1)")
    assert done.deleted_manifest_lists_count > 0
    assert built.codes("revenue_daily") == ["snapshot-expired"]
    assert built.refreshed() == DESCENDANTS
    assert_right(built)


def test_expiring_snapshots_of_a_storage_table_leaves_it_fresh(built: Project) -> None:
    built.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    built.run()
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    built.sql(
        f"CALL lake.system.expire_snapshots(table => 'mart.revenue_daily__storage', older_than => TIMESTAMP '{now}', retain_last => 1)"
    )
    assert_right(built)
