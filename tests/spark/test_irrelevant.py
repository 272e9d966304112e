"""Changes whose rows no query needs: the record moves on without Spark, and readers downstream see no change."""

from __future__ import annotations

import pytest

from mvbuild.refresh.result import NodeResult
from spark.projects import NoSpark, Project, named, order, orders
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

RECENT = "SELECT order_date, sum(amount) AS revenue FROM lake.raw.orders WHERE order_date >= DATE '2026-02-01' GROUP BY order_date"
FILES = {
    "mvbuild.yml": "name: shop\nmodels: {+namespace: mart}\n",
    "models/recent.sql": RECENT.replace("lake.", "") + "\n",
    "models/recent_total.sql": "SELECT sum(revenue) AS revenue FROM {{ ref('recent') }}\n",
    "models/all_total.sql": "SELECT sum(amount) AS revenue FROM raw.orders\n",
}


@pytest.fixture
def built(project: MakeProject) -> Project:
    made = project(FILES)
    made.make("raw.orders", orders((1, 1, "2026-01-05", "10.00"), (2, 2, "2026-02-05", "5.50")))
    assert made.refreshed() == {"recent", "recent_total", "all_total"}
    return made


def result(of: Project, model: str, *select: str) -> NodeResult:
    """Of a run that may not use Spark."""
    done = of.run(*select, spark=NoSpark())
    assert done.ok
    return next(r for r in done.results if r.node.endswith(f".{model}"))


def recorded(of: Project, mv: str = "recent") -> int:
    uuid = of.table("raw.orders").metadata.table_uuid
    return int(of.table(f"mart.{mv}__storage").properties[f"iceberg.base.snapshot.{uuid}"])


def test_an_append_of_rows_that_the_query_leaves_out(built: Project) -> None:
    before = [built.table(f"mart.{n}__storage").metadata for n in ("recent", "recent_total")]
    built.append("raw.orders", order(3, 1, "2026-01-31", "7.00"))
    done = result(built, "recent", "recent", "recent_total")
    assert done.status == "reused"
    assert done.message == "no row that changed in lake.raw.orders has order_date >= DATE '2026-02-01'"
    after = [built.table(f"mart.{n}__storage").metadata for n in ("recent", "recent_total")]
    assert [m.snapshots for m in after] == [m.snapshots for m in before]
    # The record of the upper MV names what is below the lower one too, for readers that know only the specification: it moves on as well.
    assert [recorded(built, n) for n in ("recent", "recent_total")] == [built.table("raw.orders").metadata.current_snapshot_id] * 2
    assert built.codes("recent") == []
    # Who reads all rows is refreshed, and that alone.
    assert built.refreshed() == {"all_total"}
    assert built.bag("SELECT * FROM lake.mart.recent__storage") == built.bag(RECENT)
    built.assert_tidy()


def test_an_append_of_rows_that_the_query_reads(built: Project) -> None:
    built.append("raw.orders", order(3, 1, "2026-01-31", "7.00"))
    built.append("raw.orders", order(4, 1, "2026-02-07", "3.00"))
    assert built.refreshed() == {"recent", "recent_total", "all_total"}
    assert built.bag("SELECT * FROM lake.mart.recent__storage") == built.bag(RECENT)
    assert built.only_reused()


def test_rows_that_are_deleted_and_updated(built: Project) -> None:
    built.append("raw.orders", order(3, 1, "2026-01-31", "7.00"))
    built.run()
    built.sql("ALTER TABLE lake.raw.orders SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    built.sql("DELETE FROM lake.raw.orders WHERE order_id = 3")
    assert named(built.run("recent", "recent_total", spark=NoSpark())) == {"recent": "reused", "recent_total": "reused"}
    built.sql("UPDATE lake.raw.orders SET order_date = DATE '2026-02-20' WHERE order_id = 1")
    assert built.refreshed() == {"recent", "recent_total", "all_total"}
    assert built.bag("SELECT * FROM lake.mart.recent__storage") == built.bag(RECENT)


def test_partitions_and_columns_of_another_name(built: Project) -> None:
    built.sql("ALTER TABLE lake.raw.orders ADD PARTITION FIELD month(order_date)")
    built.sql("ALTER TABLE lake.raw.orders ADD PARTITION FIELD bucket(4, customer_id)")
    built.sql("ALTER TABLE lake.raw.orders SET TBLPROPERTIES ('write.metadata.metrics.default' = 'none')")
    built.sql("INSERT INTO lake.raw.orders VALUES (3, 1, DATE '2026-01-31', 7.00), (4, 2, DATE '2025-12-01', 1.00)")
    assert named(built.run("recent", spark=NoSpark())) == {"recent": "reused"}
    built.sql("ALTER TABLE lake.raw.orders RENAME COLUMN order_date TO day")
    built.write({"models/recent.sql": FILES["models/recent.sql"].replace("order_date", "day")})
    built.run()
    built.sql("INSERT INTO lake.raw.orders VALUES (5, 1, DATE '2026-01-30', 7.00)")
    assert named(built.run("recent", spark=NoSpark())) == {"recent": "reused"}
    built.sql("INSERT INTO lake.raw.orders VALUES (6, 1, DATE '2026-02-03', 7.00)")
    assert "recent" in built.refreshed()
    assert built.bag("SELECT * FROM lake.mart.recent__storage") == built.bag(RECENT.replace("order_date", "day"))
