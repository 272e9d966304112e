"""two queries -> the SQL of their difference: run by DuckDB if possible, otherwise its text."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from mvbuild.verify.bags import Sample, counts_sql, differences_sql, has_floats, ordered_sql

STRUCT = {
    "type": "struct",
    "fields": [{"name": "it's", "type": "int"}, {"name": "of", "type": {"type": "map", "key": "string", "value": "double"}}],
}
MAP = {"type": "map", "key": "string", "value": "int"}


def schema(**columns: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": type_} for name, type_ in columns.items()]}


AB = schema(a="int", b="string")


def run(sql: str) -> list[tuple[Any, ...]]:
    return duckdb.sql(sqlglot.transpile(sql, read="spark", write="duckdb")[0]).fetchall()


def values(*rows: str) -> str:
    return f"SELECT * FROM (VALUES {', '.join(rows)}) AS v(a, b)"


@pytest.mark.parametrize(
    ("stored", "computed", "expected"),
    [
        (["(1, 'x')", "(2, 'y')"], ["(2, 'y')", "(1, 'x')"], {}),
        (["(1, 'x')", "(1, 'x')"], ["(1, 'x')"], {(1, "x"): 1}),
        (["(1, 'x')"], ["(1, 'x')", "(1, 'x')", "(1, 'x')"], {(1, "x"): -2}),
        (["(1, NULL)", "(NULL, NULL)"], ["(NULL, NULL)", "(1, NULL)"], {}),
        (["(1, NULL)"], ["(1, '')"], {(1, None): 1, (1, ""): -1}),
    ],
)
def test_bags(stored: list[str], computed: list[str], expected: dict[tuple[Any, ...], int]) -> None:
    sql = differences_sql(values(*stored), values(*computed), AB)
    assert {row[1:]: row[0] for row in run(sql)} == expected
    counted = Counter({"extra": 0, "missing": 0})
    for copies in expected.values():
        counted["extra" if copies > 0 else "missing"] += abs(copies)
    assert run(counts_sql(sql, AB)) == [(counted["extra"], counted["missing"])]


def test_rows_that_nearly_agree_stand_together() -> None:
    sql = ordered_sql(differences_sql(values("(2, 'y')", "(1, 'x')"), values("(1, 'z')", "(2, 'v')"), AB), AB)
    assert run(sql) == [(1, 1, "x"), (-1, 1, "z"), (-1, 2, "v"), (1, 2, "y")]


def test_columns_may_have_any_names_and_any_order() -> None:
    odd = schema(copies="int", side="int", **{"select it": "int"})
    stored = "SELECT 3 AS `select it`, 1 AS copies, 2 AS side -- the end"
    computed = "WITH differences AS (SELECT 1 AS copies, 2 AS side, 4 AS `select it`) SELECT * FROM differences -- the end"
    sql = differences_sql(stored, computed, odd)
    assert sorted(run(ordered_sql(sql, odd))) == [(-1, 1, 2, 4), (1, 1, 2, 3)]
    assert run(counts_sql(sql, odd)) == [(1, 1)]


def test_a_map_is_its_entries() -> None:
    maps = schema(m=MAP)
    one, other = "SELECT map('x', 1, 'y', 2) AS m", "SELECT map('y', 2, 'x', 1) AS m"
    assert run(differences_sql(one, other, maps)) == []
    assert len(run(differences_sql(one, "SELECT map('x', 1) AS m", maps))) == 2


def test_maps_and_variants_inside_of_other_types() -> None:
    nested = {"type": "list", "element": STRUCT}
    sql = differences_sql("SELECT s, v FROM one", "SELECT s, v FROM two", schema(s=nested, v="variant"))
    entries = "array_sort(transform(map_entries(e0.of), e1 -> named_struct('key', e1.key, 'value', e1.value)))"
    assert f"transform(s, e0 -> CASE WHEN e0 IS NOT NULL THEN named_struct('it\\'s', e0.`it's`, 'of', {entries}) END) AS c0" in sql
    assert "to_json(v) AS c1" in sql
    sqlglot.parse_one(sql, read="spark")


def test_what_has_floating_point_numbers() -> None:
    assert [has_floats(t) for t in ("double", "float", "decimal(3, 1)", STRUCT, MAP)] == [True, True, False, True, False]
    assert not has_floats({"type": "map", "key": "double", "value": "int"})
    assert has_floats({"type": "list", "element": "float"})


def test_a_tolerance_pairs_rows_only_where_there_are_floats() -> None:
    exact = differences_sql("SELECT 1", "SELECT 2", AB)
    assert differences_sql("SELECT 1", "SELECT 2", AB, tolerance=1e-9) == exact
    assert differences_sql("SELECT 1", "SELECT 2", schema(a="double"), tolerance=0.0).count("row_number") == 0
    sql = differences_sql("SELECT 1", "SELECT 2", schema(a="double", s=STRUCT), tolerance=1e-9)
    assert "1e-09D * greatest" in sql
    assert "'c0', c0 IS NULL" in sql
    assert "transform(c1.of, e0 -> concat(array(CAST(e0.value AS DOUBLE))))" in sql
    assert sqlglot.parse_one(sql, read="spark").find(exp.Window)


def test_a_sample_is_of_some_columns() -> None:
    sql = differences_sql("SELECT 1", "SELECT 2", AB, sample=Sample(columns=("b",), share=0.01, seed=7))
    assert "WHERE pmod(xxhash64(7, c1), 1000000) < 10000\nGROUP BY c0, c1" in sql
    least = differences_sql("SELECT 1", "SELECT 2", AB, sample=Sample(columns=("a", "b"), share=1e-12, seed=7))
    assert "xxhash64(7, c0, c1), 1000000) < 1\n" in least


def test_zeros_of_different_signs_are_two_values() -> None:
    one, other = (f"SELECT 1 AS a, CAST('{zero}' AS DOUBLE) AS b" for zero in ("0.0", "-0.0"))
    of = schema(a="int", b="double")
    assert {repr(row) for row in run(differences_sql(one, other, of))} == {"(1, 1, 0.0)", "(-1, 1, -0.0)"}
    assert run(differences_sql(other, other, of)) == []
    assert "CASE WHEN c1 = 0" not in differences_sql(one, other, of, tolerance=1e-9)
    nested = schema(a={"type": "list", "element": "double"})
    both = (f"SELECT [CAST('{zero}' AS DOUBLE)] AS a" for zero in ("0.0", "-0.0"))
    assert len(duckdb.sql(differences_sql(*both, nested).replace("`", '"').replace("STRING", "VARCHAR")).fetchall()) == 2
