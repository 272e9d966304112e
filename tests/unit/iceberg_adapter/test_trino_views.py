"""an entry of a metastore that Trino wrote -> what it is."""

from __future__ import annotations

import base64
import json

import pytest

from mvbuild.adapters.iceberg.trino_views import view_of_trino


def encoded(sql: object, **more: object) -> str:
    return base64.b64encode(json.dumps({"originalSql": sql, "columns": [], **more}).encode()).decode()


OF_TRINO = [
    (
        {"presto_view": "true", "comment": "Presto Materialized View", "metadata_location": "s3://lake/hidden.metadata.json"},
        f"/* Presto Materialized View: {encoded('SELECT day,  sum(x) s FROM raw.t GROUP BY day')} */",
        "a Trino materialized view, which stores its rows in a table without a name; it reads raw.t; its query is: SELECT day, sum(x) s FROM raw.t GROUP BY day",
    ),
    (
        {"presto_view": "true"},
        f"/* Presto View: {encoded('SELECT 1')} */",
        "a Trino view, which other engines cannot read; its query is: SELECT 1",
    ),
    (
        {"presto_view": "TRUE", "comment": "Presto Materialized View"},
        None,
        "a Trino materialized view, which stores its rows in a table without a name",
    ),
    ({}, "/* Presto Materialized View: bm8ganNvbg== */", "a Trino materialized view, which stores its rows in a table without a name"),
]


@pytest.mark.parametrize(("parameters", "text", "expected"), OF_TRINO)
def test_views_of_trino_are_named(parameters: dict[str, str], text: str | None, expected: str) -> None:
    assert view_of_trino(parameters, text) == expected


@pytest.mark.parametrize(("parameters", "text"), [({}, None), ({"table_type": "ICEBERG"}, ""), ({"comment": "Presto View"}, "SELECT 1")])
def test_what_else_a_metastore_holds(parameters: dict[str, str], text: str | None) -> None:
    assert view_of_trino(parameters, text) is None


def test_a_long_query_is_cut() -> None:
    found = view_of_trino({}, f"/* Presto View: {encoded('SELECT ' + 'a, ' * 500)} */")
    assert found is not None
    assert found.endswith(" ...")
    assert len(found) < 400


def test_the_tables_that_a_view_of_trino_reads_are_named() -> None:
    sql = "WITH recent AS (SELECT * FROM orders) SELECT * FROM recent JOIN lake.ref.countries USING (id) WHERE id IN (SELECT id FROM other.raw.ids)"
    found = view_of_trino({}, f"/* Presto Materialized View: {encoded(sql, catalog='lake', schema='raw')} */")
    assert found is not None
    assert "; it reads raw.orders, other.raw.ids, ref.countries; its query is: WITH recent" in found


@pytest.mark.parametrize("sql", ["SELECT FROM WHERE (", "", 7, None, ["SELECT 1"]])
def test_a_query_that_cannot_be_parsed_names_no_tables(sql: object) -> None:
    found = view_of_trino({}, f"/* Presto Materialized View: {encoded(sql)} */")
    assert found is not None
    assert found.startswith("a Trino materialized view")
    assert "it reads" not in found
