"""Base tables of the three types -> what a run reads of them, what it records, and when it refreshes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from mvbuild.refresh.result import Started
from spark.projects import Project, bag, messages, of
from unit.imports import imported

pytestmark = pytest.mark.proof

MakeProject = Callable[[Mapping[str, str]], Project]

SOURCES = """
sources:
  - name: crm
    catalog: crm_store
    properties: {type: sql, uri: "{{ env_var('CRM_URI') }}", warehouse: "{{ env_var('CRM_WAREHOUSE') }}"}
    tables: [{name: customers}]
  - name: files
    tables:
      - {name: orders, type: iceberg-filesystem, path: outside/orders}
      - name: prices
        type: deltalake-filesystem
        path: "file://{{ env_var('FILES') }}/the prices/"
        columns: [{name: item, data_tests: [not_null]}]
"""
PROJECT = {
    "mvbuild.yml": "name: shop\n",
    "models/sources.yml": SOURCES,
    "models/of_customers.sql": "SELECT customer, country FROM {{ source('crm', 'customers') }}\n",
    "models/of_orders.sql": "SELECT customer, item FROM {{ source('files', 'orders') }}\n",
    "models/of_prices.sql": "SELECT item, price FROM {{ source('files', 'prices') }}\n",
    "models/of_all.sql": (
        "SELECT country, sum(prices.price) AS spent\n"
        "FROM {{ source('files', 'orders') }}\n"
        "JOIN {{ source('files', 'prices') }} ON orders.item = prices.item\n"
        "JOIN crm_store.crm.customers USING (customer)\nGROUP BY country\n"
    ),
}
CUSTOMERS = pa.schema([("customer", pa.int64()), ("country", pa.string())])
ORDERS = pa.schema([("customer", pa.int64()), ("item", pa.string())])
PRICES = pa.schema([("item", pa.string()), ("price", pa.int64())])


def rows(schema: pa.Schema, *values: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in values], schema=schema)


@dataclass
class Shop:
    """The project, and the hands of the writers of its base tables."""

    project: Project
    crm: SqlCatalog
    orders_catalog: SqlCatalog
    """It writes the table that mvbuild knows by its path alone."""

    @property
    def prices(self) -> Path:
        return self.project.root / "outside/the prices"

    def add_customer(self, *row: Any) -> None:
        self.crm.load_table("crm.customers").append(rows(CUSTOMERS, row))

    def add_order(self, *row: Any) -> None:
        self.orders_catalog.load_table("any.orders").append(rows(ORDERS, row))

    def add_price(self, *row: Any) -> None:
        write_deltalake(self.prices, rows(PRICES, row), mode="append")

    def recorded(self, model: str) -> dict[str, str]:
        properties = self.project.table(f"main.{model}__storage").properties
        found = {k.removeprefix("iceberg.base.snapshot."): v for k, v in properties.items() if k.startswith("iceberg.base.snapshot.")}
        return {uuid: value for uuid, value in found.items() if uuid not in properties["mvbuild.record.indirect"]}


def sql_catalog(name: str, folder: Path) -> SqlCatalog:
    folder.mkdir(parents=True)
    catalog = load_catalog(name, type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    assert isinstance(catalog, SqlCatalog)
    return catalog


@pytest.fixture
def shop(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = project(PROJECT)
    outside = made.root / "outside"
    crm, writer = sql_catalog("crm_store", outside / "crm"), sql_catalog("writer", outside / "writer")
    monkeypatch.setenv("CRM_URI", f"sqlite:///{outside}/crm/catalog.db")
    monkeypatch.setenv("CRM_WAREHOUSE", f"file://{outside}/crm")
    monkeypatch.setenv("FILES", str(outside))
    crm.create_namespace("crm")
    crm.create_table("crm.customers", CUSTOMERS)
    writer.create_namespace("any")
    writer.create_table("any.orders", ORDERS, location=f"file://{outside}/orders")
    shop = Shop(project=made, crm=crm, orders_catalog=writer)
    shop.add_customer(1, "DE")
    shop.add_order(1, "tea")
    shop.add_price("tea", 3)
    return shop


def spent(shop: Shop) -> dict[str, int]:
    return {row["country"]: row["spent"] for row in shop.project.arrow("main.of_all__storage").to_pylist()}


def test_each_base_table_refreshes_what_reads_it_and_nothing_else(shop: Shop) -> None:
    project = shop.project
    assert project.refreshed() == {"of_customers", "of_orders", "of_prices", "of_all"}
    assert spent(shop) == {"DE": 3}
    assert project.only_reused()

    shop.add_customer(2, "FR")
    assert project.codes("of_customers") == ["base-table-changed"]
    assert project.codes("of_all") == ["base-table-changed"]
    assert project.codes("of_orders") == project.codes("of_prices") == []
    assert project.refreshed() == {"of_customers", "of_all"}
    assert project.only_reused()

    shop.add_order(2, "tea")
    assert project.codes("of_orders") == ["base-table-changed"]
    assert project.refreshed() == {"of_orders", "of_all"}
    assert spent(shop) == {"DE": 3, "FR": 3}
    assert project.only_reused()

    shop.add_order(2, "rum")
    shop.add_price("rum", 9)
    assert project.codes("of_prices") == ["base-table-changed"]
    assert project.refreshed() == {"of_orders", "of_prices", "of_all"}
    assert spent(shop) == {"DE": 3, "FR": 12}
    assert project.only_reused()
    project.assert_tidy()


def test_what_is_recorded_is_what_was_read_while_others_write(shop: Shop) -> None:
    version = DeltaTable(shop.prices).version()
    snapshots = [
        c.load_table(n).metadata.current_snapshot_id for c, n in ((shop.crm, "crm.customers"), (shop.orders_catalog, "any.orders"))
    ]
    written: list[str] = []

    def write(event: Any) -> None:
        if isinstance(event, Started) and not written:
            written.append("all")
            shop.add_customer(1, "FR")
            shop.add_order(1, "tea")
            shop.add_price("tea", 100)

    result = shop.project.run(on_event=write)
    assert result.ok, messages(result)
    assert written
    assert spent(shop) == {"DE": 3}
    assert sorted(shop.recorded("of_all").values()) == sorted(map(str, (version, *snapshots)))
    assert of(result, "of_prices").details["base_snapshots"] == {str(shop.prices): version}
    assert shop.project.codes("of_all") == ["base-table-changed"] * 3
    assert shop.project.refreshed() == {"of_customers", "of_orders", "of_prices", "of_all"}


def test_only_a_changed_delta_table_is_read_again(shop: Shop) -> None:
    project = shop.project
    shop.add_price("rum", 9)
    project.refreshed()
    DeltaTable(shop.prices).optimize.compact()
    assert project.codes("of_prices") == ["base-table-compacted"]
    assert project.only_reused()
    assert project.codes("of_prices") == []

    DeltaTable(shop.prices).delete("item = 'rum'")
    assert project.refreshed() == {"of_prices", "of_all"}
    DeltaTable(shop.prices).restore(1)
    assert project.codes("of_prices") == ["base-table-changed"]
    assert project.refreshed() == {"of_prices", "of_all"}
    assert project.arrow("main.of_prices__storage").num_rows == 2


def test_tables_that_are_made_anew_at_their_path(shop: Shop) -> None:
    project = shop.project
    project.refreshed()
    shutil.rmtree(shop.prices)
    assert project.codes("of_prices") == ["base-table-missing"]
    shop.add_price("tea", 5)
    assert project.codes("of_prices") == ["base-table-recreated"]
    shop.orders_catalog.purge_table("any.orders")
    shutil.rmtree(project.root / "outside/orders")
    shop.orders_catalog.create_table("any.orders", ORDERS, location=f"file://{project.root}/outside/orders")
    assert project.codes("of_orders") == ["base-table-recreated"]
    assert project.refreshed() == {"of_prices", "of_orders", "of_all"}
    assert spent(shop) == {}
    shop.add_order(1, "tea")
    assert project.refreshed() == {"of_orders", "of_all"}
    assert spent(shop) == {"DE": 5}


def test_new_columns_are_seen(shop: Shop) -> None:
    project = shop.project.write(
        {
            "models/of_orders.sql": "SELECT * FROM {{ source('files', 'orders') }}\n",
            "models/of_prices.sql": "SELECT * FROM {{ source('files', 'prices') }}\n",
            "models/of_customers.sql": "SELECT * FROM {{ source('crm', 'customers') }}\n",
        }
    )
    project.refreshed()
    with shop.orders_catalog.load_table("any.orders").update_schema() as update:
        update.add_column("note", pa_string())
    with shop.crm.load_table("crm.customers").update_schema() as update:
        update.add_column("note", pa_string())
    more = rows(pa.schema([*PRICES, ("note", pa.string())]), ("rum", 9, "new"))
    write_deltalake(shop.prices, more, mode="append", schema_mode="merge")
    assert project.run("of_orders", "of_customers", full_refresh=True).ok
    assert project.refreshed() == {"of_prices", "of_all"}
    for model in ("of_orders", "of_prices", "of_customers"):
        assert "note" in project.arrow(f"main.{model}__storage").schema.names
    project.assert_tidy()


def pa_string() -> Any:
    from pyiceberg.types import StringType

    return StringType()


def test_a_table_of_sparks_hadoop_catalog(shop: Shop) -> None:
    project, spark = shop.project, shop.project.spark
    spark.conf.set("spark.sql.catalog.hadoop", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.hadoop.type", "hadoop")
    spark.conf.set("spark.sql.catalog.hadoop.warehouse", f"file://{project.root}/hadoop")
    project.sql("CREATE TABLE hadoop.raw.stock (item STRING, pieces INT)")
    project.write(
        {
            "models/stock.yml": "sources: [{name: store, type: iceberg-filesystem, tables: [{name: stock, path: hadoop/raw/stock}]}]\n",
            "models/of_stock.sql": "SELECT * FROM {{ source('store', 'stock') }}\n",
        }
    )
    assert project.run("of_stock").ok
    assert project.arrow("main.of_stock__storage").num_rows == 0
    project.sql("INSERT INTO hadoop.raw.stock VALUES ('tea', 5)")
    assert project.codes("of_stock") == ["base-table-changed"]
    assert project.statuses("of_stock") == {"of_stock": "success"}
    snapshot = project.sql("SELECT snapshot_id FROM hadoop.raw.stock.snapshots")[0][0]
    project.sql("ALTER TABLE hadoop.raw.stock ADD COLUMN place STRING")
    project.sql("INSERT INTO hadoop.raw.stock VALUES ('rum', 1, 'cellar')")
    assert project.statuses("of_stock") == {"of_stock": "success"}
    assert project.bag("SELECT * FROM lake.main.of_stock__storage") == project.bag("SELECT * FROM hadoop.raw.stock")
    # A version that the user chose has the columns that it had.
    project.write({"models/of_stock.sql": f"SELECT * FROM {{{{ source('store', 'stock') }}}} VERSION AS OF {snapshot}\n"})
    assert project.statuses("of_stock") == {"of_stock": "success"}
    assert project.bag("SELECT * FROM lake.main.of_stock__storage") == bag([("tea", 5)])


def test_spark_reads_the_views_of_mvs_on_delta_tables_and_on_other_metastores(shop: Shop) -> None:
    shop.project.refreshed()
    shop.add_price("rum", 9)
    shop.add_customer(2, "FR")
    assert len(shop.project.sql("SELECT * FROM lake.main.of_prices")) == 2
    assert len(shop.project.sql("SELECT * FROM lake.main.of_customers")) == 2


def test_data_tests_and_the_commands_that_need_no_spark(shop: Shop) -> None:
    from mvbuild import api

    shop.project.refreshed()
    result = api.test(shop.project.root, spark=shop.project.spark)
    assert [(t.name, t.status) for t in result.tests] == [("source_not_null_files_prices_item", "pass")]
    modules = imported("status", "--project-dir", str(shop.project.root))
    assert "deltalake" in modules
    assert "pyspark" not in modules


def test_a_version_of_a_delta_table_that_the_user_chose(shop: Shop) -> None:
    shop.project.write({"models/of_prices.sql": "SELECT item, price FROM {{ source('files', 'prices') }} VERSION AS OF 0\n"})
    shop.project.refreshed()
    shop.add_price("rum", 9)
    assert shop.project.codes("of_prices") == []
    assert shop.project.refreshed() == {"of_all"}
    assert shop.project.arrow("main.of_prices__storage").num_rows == 1


def test_a_session_that_cannot_read_delta_tables(shop: Shop) -> None:
    from mvbuild import api
    from mvbuild.ports.engine import EngineError

    class Conf:
        def get(self, key: str, default: Any = None) -> Any:
            return default

        def set(self, key: str, value: str) -> None:
            """Never read."""

    class Session:
        conf, version = Conf(), "4.1.4"

    with pytest.raises(EngineError, match="cannot read Delta tables") as caught:
        api.run(shop.project.root, spark=Session())
    assert "io.delta:delta-spark_4.1_2.13" in caught.value.help
