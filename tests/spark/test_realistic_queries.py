"""Each realistic query that is refreshed incrementally: Spark takes its tree, written as SQL again, for the same query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mvbuild.incremental.algebra import Ref, Scan
from mvbuild.parse.clock_reads import clock_reads, values_at, with_values
from mvbuild.refresh.round_trip import round_trip_difference
from mvbuild.source import MappedText, SourceFile
from spark.conftest import Lake
from unit.incremental import newest_rows, operator_queries
from unit.incremental.realistic import INCREMENTAL, QUERIES, REQUIRED, TABLES, Realistic

pytestmark = pytest.mark.proof

NAMESPACE = "lake.realistic"
_SQL_TYPES = {"long": "BIGINT", "timestamptz": "TIMESTAMP"}


def sql_type(type_: Any) -> str:
    if isinstance(type_, str):
        return _SQL_TYPES.get(type_, type_.upper())
    if type_["type"] == "list":
        return f"ARRAY<{sql_type(type_['element'])}>"
    fields = (f"{field['name']}: {sql_type(field['type'])}" for field in type_["fields"])
    return f"STRUCT<{', '.join(fields)}>"


def create_table(name: str, columns: Mapping[str, Any]) -> str:
    listed = (f"{column} {sql_type(type_)}{' NOT NULL' if column == REQUIRED[name] else ''}" for column, type_ in columns.items())
    return f"CREATE TABLE IF NOT EXISTS {NAMESPACE}.{name} ({', '.join(listed)}) USING iceberg"


@pytest.fixture(scope="module")
def shop(lake: Lake) -> Lake:
    lake.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")
    for name, columns in TABLES.items():
        lake.sql(create_table(name, columns))
    return lake


def difference(lake: Lake, query: Realistic) -> str:
    def source(read: Scan | Ref) -> str:
        assert isinstance(read, Scan)
        return f"{NAMESPACE}.{query.tables[read.leaf]}"

    written = query.sql.format(**{name: f"{NAMESPACE}.{name}" for name in query.tables})
    names = [read.name for read in clock_reads(written)]
    at_first = with_values(MappedText.of(SourceFile("q", written)), values_at(names, 0, "UTC"))
    return round_trip_difference(lake.engine, at_first.text, query.shape, source)


CHOSEN = [query for query in (*QUERIES, *newest_rows.QUERIES, *operator_queries.QUERIES) if query.refresh == INCREMENTAL]


@pytest.mark.parametrize("query", CHOSEN, ids=[query.name for query in CHOSEN])
def test_spark_proves_the_round_trip(shop: Lake, query: Realistic) -> None:
    assert difference(shop, query) == ""
