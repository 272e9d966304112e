"""A query with the values of a clock in its text has the columns, fields and types that Spark gives to the query as the user wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from mvbuild.parse.clock_reads import clock_reads, values_at, with_values
from mvbuild.source import MappedText, SourceFile

pytestmark = pytest.mark.proof

CLOCKS = (
    "current_date",
    "CURRENT_DATE",
    "current_date()",
    "curdate()",
    "current_date - 1",
    "date_sub(current_date, k)",
    "CAST(current_timestamp AS DATE)",
    "trunc(current_date, 'MM')",
    "date_trunc('HOUR', now())",
)
PLACES = (
    "SELECT {} FROM t",
    "SELECT {} AS a, k FROM t",
    "SELECT struct({}, k) AS s FROM t",
    "SELECT struct(k, {}) AS s, struct({} AS day, k) AS n, named_struct('day', {}) AS m FROM t",
    "SELECT ({}, k) AS p FROM t",
    "SELECT to_json(struct({}, k)) AS j, array({}) AS x, map('a', {}) AS m FROM t",
    "SELECT array(struct({}, k)) AS x, struct(struct({}, k), k) AS y FROM t",
    "SELECT transform(array(k), x -> struct(x, {})) AS x FROM t",
    "SELECT inline(array(struct({}, k))) FROM t",
    "SELECT * FROM (SELECT {}, k FROM t)",
    "SELECT * FROM (SELECT {} AS a, k FROM t)",
    "SELECT * FROM t JOIN LATERAL (SELECT {}) AS u",
    "SELECT * FROM t JOIN LATERAL (SELECT {}) AS u(a)",
    "SELECT k, (SELECT max({}) FROM t) FROM t",
    "SELECT k, (SELECT max({}) FROM t) AS a FROM t",
    "SELECT k FROM t WHERE EXISTS (SELECT {} FROM t AS u WHERE u.k = t.k)",
    "SELECT k FROM t WHERE (d, k) IN (SELECT {}, k FROM t)",
    "SELECT k FROM t WHERE d > {} OR k > 1",
    "SELECT 1 AS a, k FROM t UNION ALL SELECT year({}), k FROM t",
    "SELECT year({}), k FROM t UNION ALL SELECT 1, k FROM t",
    "WITH c AS (SELECT {}, k FROM t) SELECT * FROM c",
    "WITH c(a, b) AS (SELECT {}, k FROM t) SELECT * FROM c",
    "SELECT * FROM t PIVOT (sum(if(d = {}, 1, 0)), max(d) FOR k IN (1, 2))",
    "SELECT * FROM t PIVOT (sum(if(d = {}, 1, 0)) FOR k IN (1, 2))",
    "SELECT * FROM t PIVOT (sum(if(d = {}, 1, 0)) AS n, max(d) AS m FOR k IN (1, 2))",
    "SELECT k, count(*) FILTER (WHERE d = {}) FROM t GROUP BY k",
    "SELECT k, count(*) FILTER (WHERE d = {}) AS n FROM t GROUP BY k HAVING max(d) < {}",
    "SELECT col0, k FROM t LATERAL VIEW stack(2, {}, {}) AS col0",
    "SELECT k, max(struct({}, k)) AS m, collect_list(struct({}, k)) AS c FROM t GROUP BY k",
    "SELECT k, lead({}) OVER (ORDER BY k) AS a FROM t",
)


def columns(spark: Any, sql: str) -> list[tuple[str, str]]:
    return [(row.col_name, row.data_type) for row in spark.sql(f"DESCRIBE QUERY {sql}").collect()]


def test_names_and_types_are_those_of_the_users_text(lake: Any) -> None:
    lake.session.sql("SELECT 1 AS k, DATE'2026-01-31' AS d").createOrReplaceTempView("t")
    replaced, wrong = 0, []
    for place in PLACES:
        for clock in CLOCKS:
            sql = place.replace("{}", clock)
            reads = clock_reads(sql, ("k", "d"))
            if not reads:
                continue
            replaced += 1
            values = values_at([read.name for read in reads], 1_770_000_000_000, "UTC")
            made = with_values(MappedText.of(SourceFile("q", sql)), values, ("k", "d")).text
            if columns(lake.session, sql) != columns(lake.session, made):
                wrong.append((sql, columns(lake.session, sql), columns(lake.session, made)))
    lake.session.catalog.dropTempView("t")
    assert wrong == []
    assert replaced > len(PLACES) * len(CLOCKS) / 2
