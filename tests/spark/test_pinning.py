"""Base tables that change while a run goes on, or change their columns between runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mvbuild.adapters.spark.engine import SparkQuery
from mvbuild.refresh.result import Event, Started
from spark.projects import Project, messages, named, of, order
from spark.shop import DAILY, FILES, MORE, MakeProject, shop

pytestmark = pytest.mark.proof

MODEL = "models/marts/revenue_daily.sql"


@pytest.fixture(scope="module")
def house(project: MakeProject) -> Project:
    made = shop(project, MORE)
    made.run()
    return made


@pytest.fixture
def built(project: MakeProject) -> Project:
    made = shop(project, MORE)
    made.run()
    return made


def test_a_writer_between_planning_and_writing_is_seen_by_the_next_run(project: MakeProject) -> None:
    made = shop(project, MORE)
    pinned = made.table("raw.orders").metadata.current_snapshot_id
    written: list[str] = []

    def write_at_the_worst_moment(event: Event) -> None:
        if isinstance(event, Started) and event.node.endswith("revenue_daily"):
            made.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
            made.sql("INSERT INTO lake.raw.customers VALUES (4, 'XX', true)")
            written.append(event.node)

    assert made.refreshed(threads=1, on_event=write_at_the_worst_moment) == {
        "active_customers",
        "revenue_daily",
        "revenue_total",
        "countries",
    }
    assert len(written) == 1
    storage = made.table("mart.revenue_daily__storage")
    ids = {
        t: int(storage.properties[f"iceberg.base.snapshot.{made.table(t).metadata.table_uuid}"]) for t in ("raw.orders", "raw.customers")
    }
    assert ids["raw.orders"] == pinned
    at_pins = DAILY
    for table, snapshot in ids.items():
        at_pins = at_pins.replace(f"lake.{table}", f"lake.{table} VERSION AS OF {snapshot}")
    rows = made.bag("SELECT * FROM lake.mart.revenue_daily__storage")
    assert rows == made.bag(at_pins)
    assert rows != made.bag(DAILY)
    # Whatever ran after the write read the same snapshots.
    assert made.bag("SELECT country FROM lake.mart.countries__storage") == made.bag("SELECT * FROM VALUES ('DE'), ('FR'), ('IT')")
    assert made.codes("revenue_daily") == ["base-table-changed", "base-table-changed"]
    assert made.refreshed() == {"revenue_daily", "revenue_total", "countries"}
    assert made.bag("SELECT * FROM lake.mart.revenue_daily__storage") == made.bag(DAILY)
    assert made.only_reused()


def test_a_column_added_without_new_rows_can_be_used_at_once(built: Project) -> None:
    built.sql("ALTER TABLE lake.raw.orders ADD COLUMN channel STRING")
    assert built.only_reused()
    built.write({MODEL: FILES[MODEL].replace("count(*) AS orders", "count(*) AS orders, max(o.channel) AS channel")})
    assert built.refreshed() == {"revenue_daily", "revenue_total"}
    assert built.table("mart.revenue_daily__storage").schema().column_names[-1] == "channel"
    built.assert_tidy()
    assert built.only_reused()


def test_a_renamed_column_by_its_new_name(built: Project) -> None:
    built.sql("ALTER TABLE lake.raw.orders RENAME COLUMN amount TO gross")
    built.write({MODEL: FILES[MODEL].replace("o.amount", "o.gross")})
    assert built.refreshed() == {"revenue_daily", "revenue_total"}
    assert built.bag("SELECT * FROM lake.mart.revenue_daily__storage") == built.bag(DAILY.replace("o.amount", "o.gross"))
    built.assert_tidy()
    assert built.only_reused()


def test_a_retyped_column(built: Project) -> None:
    built.sql("ALTER TABLE lake.raw.orders ALTER COLUMN amount TYPE DECIMAL(20, 2)")
    built.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    assert built.refreshed() == {"revenue_daily", "revenue_total"}
    assert built.bag("SELECT * FROM lake.mart.revenue_daily__storage") == built.bag(DAILY)
    assert str(built.table("mart.revenue_daily__storage").schema().find_field("revenue").field_type) == "decimal(30, 2)"
    built.assert_tidy()


def test_a_dropped_column_is_told_at_its_place_and_the_old_data_stays(built: Project) -> None:
    before = built.bag("SELECT * FROM lake.mart.revenue_daily__storage")
    built.sql("ALTER TABLE lake.raw.orders DROP COLUMN amount")
    assert built.codes("revenue_daily") == ["base-table-schema-changed"]
    built.sql("INSERT INTO lake.raw.orders VALUES (5, 1, DATE'2026-01-01')")
    result = built.run()
    assert named(result)["revenue_daily"] == "error"
    assert named(result)["revenue_total"] == "skipped"
    (diagnostic,) = of(result, "revenue_daily").diagnostics
    assert diagnostic.code == "query-failed"
    assert diagnostic.span is not None
    text = diagnostic.span.file.text
    assert text[diagnostic.span.start : diagnostic.span.end] == "o.amount"
    assert "amount" in diagnostic.message
    assert built.bag("SELECT * FROM lake.mart.revenue_daily__storage") == before
    built.assert_tidy()
    assert text[: diagnostic.span.start].count("\n") == 0
    assert diagnostic.span.start == 36
    assert diagnostic.span.file.path == MODEL


def test_a_column_added_to_a_table_below_a_view(built: Project) -> None:
    built.sql("ALTER TABLE lake.raw.customers ADD COLUMN vip BOOLEAN")
    built.write(
        {"models/active_customers.sql": FILES["models/active_customers.sql"].replace("WHERE active", "WHERE active AND vip IS NULL")}
    )
    result = built.run()
    assert result.ok, messages(result)
    assert built.bag("SELECT * FROM lake.main.active_customers") == built.bag(
        "SELECT customer_id, country FROM lake.raw.customers WHERE active"
    )
    assert built.bag("SELECT * FROM lake.mart.revenue_daily__storage") == built.bag(DAILY)
    built.assert_tidy()
    assert built.only_reused()


def while_written(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], *, first: bool = False) -> None:
    """Do something once, after Spark has written to the audit branch and before it is published. `first`: before Spark writes."""
    done: list[bool] = []

    def acting(original: Callable[..., None]) -> Callable[..., None]:
        def write(self: SparkQuery, *arguments: Any, **options: Any) -> None:
            if not first:
                original(self, *arguments, **options)
            if not done:
                done.append(True)
                act()
            if first:
                original(self, *arguments, **options)

        return write

    # A full refresh overwrites, an incremental one ends with an append.
    for name in ("overwrite", "append"):
        monkeypatch.setattr(SparkQuery, name, acting(getattr(SparkQuery, name)))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO lake.mart.revenue_daily__storage VALUES (DATE'2000-01-01', 'XX', 1, 1)",
        "CALL lake.system.rewrite_data_files(table => 'mart.revenue_daily__storage', options => map('rewrite-all', 'true'))",
        "ALTER TABLE lake.mart.revenue_daily__storage SET TBLPROPERTIES ('a' = 'b')",
        "CREATE OR REPLACE VIEW lake.mart.revenue_daily AS SELECT 1 AS one",
        "DROP VIEW lake.mart.revenue_daily",
        "DROP TABLE lake.mart.revenue_daily__storage",
    ],
    ids=["insert", "compact", "property", "view", "drop view", "drop storage"],
)
def test_the_storage_or_its_view_is_changed_while_it_is_refreshed(house: Project, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    house.append("raw.orders", order(40, 2, "2026-02-01", "7.00"))
    while_written(monkeypatch, lambda: house.sql(statement))
    result = house.run(threads=1)
    assert result.ok, messages(result)
    monkeypatch.undo()
    # A view that was replaced meanwhile is seen by the next run: its version is not the recorded one.
    result = house.run()
    assert result.ok, messages(result)
    assert house.bag("SELECT * FROM lake.mart.revenue_daily__storage") == house.bag(DAILY)
    assert house.bag("SELECT * FROM lake.mart.revenue_daily") == house.bag(DAILY)
    assert house.only_reused()
    house.assert_tidy()


def test_the_storage_is_dropped_before_it_is_written(house: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not an error of the query: the same run builds the storage again."""
    while_written(monkeypatch, lambda: house.catalog.drop_table("mart.revenue_daily__storage"), first=True)
    result = house.run("revenue_daily", threads=1, full_refresh=True)
    monkeypatch.undo()
    assert result.ok, messages(result)
    assert house.bag("SELECT * FROM lake.mart.revenue_daily") == house.bag(DAILY)
    result = house.run()
    assert result.ok, messages(result)
    assert house.only_reused()
    house.assert_tidy()


@pytest.mark.parametrize("how", ["expire", "drop", "drop column"])
def test_what_was_pinned_is_gone_before_it_is_read(house: Project, how: str) -> None:
    house.append("raw.orders", order(41, 2, "2026-02-01", "7.00"))
    before = house.bag("SELECT * FROM lake.mart.revenue_daily__storage")
    statements = {
        "expire": [
            "INSERT INTO lake.raw.orders VALUES (42, 1, DATE'2026-01-01', 1)",
            "CALL lake.system.expire_snapshots(table => 'raw.orders', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)",
        ],
        "drop": ["ALTER TABLE lake.raw.orders RENAME TO raw.away"],
        "drop column": ["ALTER TABLE lake.raw.orders RENAME COLUMN amount TO total"],
    }

    def act(event: Event) -> None:
        if isinstance(event, Started) and event.node.endswith("revenue_daily"):
            for statement in statements[how]:
                house.sql(statement)

    result = house.run(threads=1, on_event=act)
    statuses = named(result)
    assert statuses["revenue_daily"] == ("error" if how == "drop" else "success")
    if statuses["revenue_daily"] == "error":
        assert house.bag("SELECT * FROM lake.mart.revenue_daily__storage") == before
        assert statuses["revenue_total"] == "skipped"
        (diagnostic,) = of(result, "revenue_daily").diagnostics
        assert diagnostic.code != "internal"
        assert diagnostic.span is not None
    if how == "drop":
        house.sql("ALTER TABLE lake.raw.away RENAME TO raw.orders")
    if how == "drop column":
        house.sql("ALTER TABLE lake.raw.orders RENAME COLUMN total TO amount")
    assert house.run().ok
    assert house.bag("SELECT * FROM lake.mart.revenue_daily__storage") == house.bag(DAILY)
    assert house.only_reused()
    house.assert_tidy()
