"""TPC-DS: its 24 tables at a tiny scale, and statements that change its sales and returns.

The tables come from `tpcgen-cli`, the generator that `tpchgen-cli` became: below scale 1 the facts have 120,000 rows at most.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark.draws import Draw
from spark.projects import Project

NEW_KEYS = 10**9
"""A round has the ticket and order numbers from (round + 1) * 10**9 on for itself."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A table of sales, the table of its returns, and for each the columns that updates change."""

    sales: str
    order: str
    date: str
    sales_updates: tuple[str, str, str, str]
    """A quantity, an amount of money, a customer, a date."""
    returns: str
    returned_order: str
    returns_updates: tuple[str, str, str, str]


CHANNELS = (
    Channel(
        sales="store_sales",
        order="ss_ticket_number",
        date="ss_sold_date_sk",
        sales_updates=("ss_quantity", "ss_ext_sales_price", "ss_customer_sk", "ss_sold_date_sk"),
        returns="store_returns",
        returned_order="sr_ticket_number",
        returns_updates=("sr_return_quantity", "sr_return_amt", "sr_customer_sk", "sr_returned_date_sk"),
    ),
    Channel(
        sales="catalog_sales",
        order="cs_order_number",
        date="cs_sold_date_sk",
        sales_updates=("cs_quantity", "cs_ext_sales_price", "cs_bill_customer_sk", "cs_sold_date_sk"),
        returns="catalog_returns",
        returned_order="cr_order_number",
        returns_updates=("cr_return_quantity", "cr_return_amount", "cr_refunded_customer_sk", "cr_returned_date_sk"),
    ),
    Channel(
        sales="web_sales",
        order="ws_order_number",
        date="ws_sold_date_sk",
        sales_updates=("ws_quantity", "ws_ext_sales_price", "ws_bill_customer_sk", "ws_sold_date_sk"),
        returns="web_returns",
        returned_order="wr_order_number",
        returns_updates=("wr_return_quantity", "wr_return_amt", "wr_refunded_customer_sk", "wr_returned_date_sk"),
    ),
)
_DEMOGRAPHICS = ("c_current_cdemo_sk", "ss_cdemo_sk", "sr_cdemo_sk", "cs_bill_cdemo_sk", "cs_ship_cdemo_sk", "cr_refunded_cdemo_sk")
_DEMOGRAPHICS += ("cr_returning_cdemo_sk", "ws_bill_cdemo_sk", "ws_ship_cdemo_sk", "wr_refunded_cdemo_sk", "wr_returning_cdemo_sk")


def tables(directory: Path, *, scale: float = 0.01, share: float = 1.0) -> dict[str, pa.Table]:
    """The tables, generated into the directory unless it has them. Of the facts the share of the orders; of the two million demographics
    those that a row refers to."""
    if not directory.exists():
        options = ["-s", f"{scale:g}", "--quiet", "--output-dir", str(directory)]
        subprocess.run([_generator(), "tpcds", "parquet", *options], check=True)
    found = {path.stem: _read(path) for path in sorted(directory.glob("*.parquet")) if path.stem != "dbgen_version"}
    for channel in CHANNELS:
        for table, order in ((channel.sales, channel.order), (channel.returns, channel.returned_order)):
            found[table] = _sample(found[table], order, share)
    found["inventory"] = _sample(found["inventory"], "inv_item_sk", share)
    used = [table[column].combine_chunks() for table in found.values() for column in _DEMOGRAPHICS if column in table.column_names]
    demographics = found["customer_demographics"]
    found["customer_demographics"] = demographics.filter(pc.is_in(demographics["cd_demo_sk"], pc.unique(pa.concat_arrays(used))))
    return found


def make_tables(project: Project, made: Mapping[str, pa.Table], settings: Mapping[str, str]) -> None:
    """The tables in `main`, with these Iceberg table properties."""
    project.catalog.create_namespace_if_not_exists("main")
    for name, rows in made.items():
        project.catalog.create_table(f"main.{name}", rows.schema, properties=dict(settings)).append(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshStreams:
    """Spark SQL statements that change sales and returns of all three channels. Rounds are numbered from 0."""

    customers: int = 1000
    namespace: str = "lake.main"
    seed: int = 1

    def inserts(self, round: int, fraction: float) -> tuple[str, ...]:  # noqa: A002
        """Copies of random orders as they were loaded, with new numbers, up to 30 days earlier or later; and of their returns."""
        statements = []
        for channel in CHANNELS:
            for table, order in ((channel.sales, channel.order), (channel.returns, channel.returned_order)):
                draw = Draw(self.seed, round, (order,))
                new = {order: f"{order} + {(round + 1) * NEW_KEYS}"}
                if table == channel.sales:
                    new[channel.date] = _moved(channel.date, draw)
                columns = ", ".join(f"{value} AS {name}" for name, value in new.items())
                statements.append(
                    f"INSERT INTO {self.namespace}.{table} BY NAME SELECT * EXCEPT ({', '.join(new)}), {columns} "
                    f"FROM {self.namespace}.{table} WHERE {order} < {NEW_KEYS} AND {draw.happens(fraction, 'copied')}"
                )
        return tuple(statements)

    def deletes(self, round: int, fraction: float) -> tuple[str, ...]:  # noqa: A002
        """Random orders with their returns."""
        return tuple(
            f"DELETE FROM {self.namespace}.{table} WHERE {Draw(self.seed, round, (order,)).happens(fraction, 'deleted')}"
            for channel in CHANNELS
            for table, order in ((channel.sales, channel.order), (channel.returns, channel.returned_order))
        )

    def updates(self, round: int, fraction: float) -> tuple[str, ...]:  # noqa: A002
        """A fraction of the rows of each table, each changed in one column."""
        statements = []
        for channel in CHANNELS:
            for table, order, columns in (
                (channel.sales, channel.order, channel.sales_updates),
                (channel.returns, channel.returned_order, channel.returns_updates),
            ):
                draw = Draw(self.seed, round, (order, f"{order[:2]}_item_sk"))
                where = draw.happens(fraction, "updated")
                statements.append(f"UPDATE {self.namespace}.{table} SET {draw.one_changed(self._changes(columns, draw))} WHERE {where}")
        return tuple(statements)

    def all_kinds(self, round: int, fraction: float) -> tuple[str, ...]:  # noqa: A002
        """A round of the three of them."""
        return (*self.inserts(round, fraction), *self.updates(round, fraction), *self.deletes(round, fraction))

    def _changes(self, columns: tuple[str, str, str, str], draw: Draw) -> dict[str, str]:
        quantity, money, customer, date = columns
        return {
            quantity: f"CAST(1 + {draw.below(100, 'quantity')} AS INT)",
            money: draw.cents(500_000, "money", 7),
            customer: f"CAST(1 + {draw.below(self.customers, 'customer')} AS INT)",
            date: _moved(date, draw),
        }


def _moved(date: str, draw: Draw) -> str:
    return f"CAST({date} + {draw.below(61, 'days')} - 30 AS INT)"


def _generator() -> str:
    found = shutil.which("tpcgen-cli", path=sysconfig.get_path("scripts")) or shutil.which("tpcgen-cli")
    if found is None:
        raise FileNotFoundError("TPC-DS's tables are made by tpcgen-cli: pip install tpcgen-cli")
    return found


def _read(path: Path) -> pa.Table:
    """Iceberg's Python writer knows no string views, and gives its own ids to the columns."""
    found = pq.read_table(path)
    types = [pa.string() if f.type == pa.string_view() else f.type for f in found.schema]
    return found.cast(pa.schema([pa.field(f.name, t, f.nullable) for f, t in zip(found.schema, types, strict=True)]))


def _sample(rows: pa.Table, key: str, share: float) -> pa.Table:
    """By the key, so that returns stay with their sales."""
    if share >= 1:
        return rows
    mixed = pc.bit_wise_and(pc.multiply(rows[key].cast(pa.int64()), 2654435761), 0xFFFFFF)
    return rows.filter(pc.less(mixed, int(share * 0x1000000)))
