"""an entry of a metastore that Trino wrote -> what it is."""

from __future__ import annotations

import base64
import json

import pytest

from mvbuild.adapters.iceberg.trino_views import view_of_trino


def encoded(sql: object) -> str:
    return base64.b64encode(json.dumps({"originalSql": sql, "columns": []}).encode()).decode()


OF_TRINO = [
    (
        {"presto_view": "true", "comment": "Presto Materialized View", "metadata_location": "s3://lake/hidden.metadata.json"},
        f"/* Presto Materialized View: {encoded('SELECT day,  sum(x) s FROM raw.t GROUP BY day')} */",
        "a materialized view of Trino, whose rows are in a table without a name; its query is: SELECT day, sum(x) s FROM raw.t GROUP BY day",
    ),
    (
        {"presto_view": "true"},
        f"/* Presto View: {encoded('SELECT 1')} */",
        "a view of Trino, which no other engine reads; its query is: SELECT 1",
    ),
    (
        {"presto_view": "TRUE", "comment": "Presto Materialized View"},
        None,
        "a materialized view of Trino, whose rows are in a table without a name",
    ),
    ({}, "/* Presto Materialized View: bm8ganNvbg== */", "a materialized view of Trino, whose rows are in a table without a name"),
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
