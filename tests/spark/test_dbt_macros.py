"""Values of dbt's macros for dates and texts, in a time zone with summer time.

The expected values are facts: dbt_macros.json has what Spark 4.1 returned for the SQL that dbt-core 1.11 with dbt-spark 1.11 rendered for
the same calls and rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mvbuild.parse.dbt_macros import DBT
from mvbuild.parse.dbt_utils import date_spine

from .conftest import Lake

pytestmark = pytest.mark.proof

FACTS = json.loads((Path(__file__).parent / "dbt_macros.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def spark(lake: Lake) -> Iterator[SparkSession]:
    session = lake.session
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    times = ", ".join(f"({i}, timestamp'{a}', timestamp'{b}', {n})" for i, (a, b, n) in enumerate(FACTS["times"]))
    texts = ", ".join(f"({i}, '{s}', '{d}')" for i, (s, d) in enumerate(FACTS["texts"]))
    session.sql(f"create or replace temporary view dbt_times as select * from values {times} as t(i, a, b, n)")
    session.sql(f"create or replace temporary view dbt_texts as select * from values {texts} as t(i, s, d)")
    yield session
    session.conf.set("spark.sql.session.timeZone", before)


def values(spark: SparkSession, expressions: list[str], view: str) -> list[list[str | None]]:
    columns = ", ".join(f"cast({expression} as string) as c{i}" for i, expression in enumerate(expressions))
    rows = spark.sql(f"select {columns} from {view} order by i").collect()
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("macro", ["dateadd", "datediff", "last_day", "split_part"])
def test_values_are_those_of_dbt_spark(spark: SparkSession, macro: str) -> None:
    calls = {call: expected for call, expected in FACTS["values"].items() if call.startswith(f"{macro}(")}
    arguments = {call: json.loads(f"[{call.partition('(')[2][:-1].replace(chr(39), chr(34))}]") for call in calls}
    assert len(calls) >= 4
    found = values(spark, [DBT[macro](*arguments[call]) for call in calls], "dbt_texts" if macro == "split_part" else "dbt_times")
    assert dict(zip(calls, found, strict=True)) == calls


@pytest.mark.parametrize(
    ("part", "start", "end", "expected"),
    [
        ("day", "date'2024-02-27'", "date'2024-03-01'", ["2024-02-27", "2024-02-28", "2024-02-29"]),
        ("month", "date'2024-01-31'", "date'2024-04-01'", ["2024-01-31", "2024-02-29", "2024-03-31"]),
        ("day", "date'2024-03-01'", "date'2024-03-01'", []),
        ("day", "date'2024-03-02'", "date'2024-03-01'", []),
    ],
)
def test_a_spine_ends_before_its_end(spark: SparkSession, part: str, start: str, end: str, expected: list[str]) -> None:
    rows = spark.sql(f"select date_format(date_{part}, 'yyyy-MM-dd HH:mm') from ({date_spine(part, start, end)}) order by 1").collect()
    assert [row[0] for row in rows] == [f"{day} 00:00" for day in expected]
