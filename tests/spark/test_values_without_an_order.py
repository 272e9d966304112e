"""Random changes of values that Iceberg's bounds order in another way than Spark: NaN, -0.0, and bytes that are not valid text.

Files stay as they are, because rows are deleted by position: what plain Spark returns of the rows that stay does not change.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from seeds import seeds
from spark.projects import Project, messages
from spark.refresh_histories import as_if_large
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

QUERIES = {
    "zeros": "SELECT count(*) AS n FROM raw.t WHERE x = 0",
    "above": "SELECT k, count(*) AS n, sum(id) AS s, count(id) AS c FROM raw.t WHERE x > 0.1D GROUP BY k",
    "picked": "SELECT id, x FROM (SELECT id, x + x AS x FROM raw.t) WHERE x >= 1 OR x = 0",
    "nested": "SELECT id FROM raw.t WHERE s.f < 1",
    "first": "SELECT id, x FROM raw.t WHERE x > -1 ORDER BY id LIMIT 4",
    "joined": "SELECT a.id, b.w FROM raw.t a JOIN raw.u b ON a.name = b.name",
    "left_joined": "SELECT a.id, b.w FROM raw.t a LEFT JOIN raw.u b ON a.name = b.name",
    "matched": "SELECT a.id FROM raw.t a JOIN raw.u b ON a.x > b.y",
}
NUMBERS = ("double('NaN')", "-0.0D", "0.0D", "0.5D", "2.0D", "-3.0D", "NULL")
TEXTS = ("X'FF'", "X'FE'", "X'C328'", "X'61'", "X'7A'", "X'C3A9'", "NULL")
STEPS = 7
FILES = {
    "mvbuild.yml": "name: order\nmodels: {+refresh_policy: incremental}\n",
    **{f"models/{name}.sql": f"{sql}\n" for name, sql in QUERIES.items()},
}


def changes(choose: random.Random) -> Iterator[str]:
    """Statements, each of which writes at most one file to a table."""
    last = 0
    while True:
        if last and choose.random() < 0.4:
            table, number = choose.choice((("t", "id"), ("t", "id"), ("u", "w")))
            yield f"DELETE FROM lake.raw.{table} WHERE {number} IN ({choose.randint(1, last)}, {choose.randint(1, last)})"
            continue
        # Bounds of bytes alone that are not valid text can be in the wrong order.
        rows, table, texts = [], choose.choice("ttu"), choose.choice((TEXTS, TEXTS[:3]))
        for _ in range(choose.choice((1, 2, 3, 4))):
            last += 1
            number, text = choose.choice(NUMBERS), f"CAST({choose.choice(texts)} AS STRING)"
            rows.append(
                f"SELECT {last}, {last % 3}, {number}, struct({number}), {text}" if table == "t" else f"SELECT {text}, {last}, {number}"
            )
        yield f"INSERT INTO lake.raw.{table} SELECT /*+ COALESCE(1) */ * FROM ({' UNION ALL '.join(rows)})"


@pytest.fixture
def tables(project: MakeProject) -> Project:
    made = project(FILES)
    modes = ", ".join(f"'write.{of}.mode' = 'merge-on-read'" for of in ("delete", "update", "merge"))
    made.sql("CREATE NAMESPACE lake.raw")
    for columns in ("t (id INT, k INT, x DOUBLE, s STRUCT<f: DOUBLE>, name STRING)", "u (name STRING, w INT, y DOUBLE)"):
        made.sql(f"CREATE TABLE lake.raw.{columns} USING iceberg TBLPROPERTIES ('format-version' = '2', {modes})")
    return made


@pytest.mark.parametrize("seed", seeds(2))
def test_what_is_stored_is_what_spark_returns(tables: Project, seed: int) -> None:
    statements = changes(random.Random(seed))
    with as_if_large() if seed % 2 else nullcontext():
        for _ in range(STEPS):
            for _ in range(3):
                tables.sql(next(statements))
            result = tables.run()
            assert result.ok, messages(result)
            for name, sql in QUERIES.items():
                stored = tables.bag(f"SELECT * FROM lake.main.{name}__storage")
                assert stored == tables.bag(sql.replace("raw.", "lake.raw.")), name


KEYED = {
    "by_variant": "SELECT variant_get(j, '$.a', 'int') AS a, count(*) AS n, max(id) AS last FROM raw.e GROUP BY 1",
    "by_map": "SELECT m['a'] AS a, count(*) AS n, max(id) AS last FROM raw.e GROUP BY 1",
    "by_field": "SELECT s.q['a'] AS a, max(id) AS last FROM raw.e GROUP BY 1",
    "joined_by_map": "SELECT e.id, w.name FROM raw.e JOIN raw.w ON e.m['a'] = w.a",
}
ROW = "{n}, parse_json('{{\"a\":' || {n} % 3 || '}}'), map('a', {n} % 3), named_struct('q', map('a', {n} % 2))"


def test_a_column_without_an_order_in_a_key(project: MakeProject) -> None:
    """A large input is read within the bounds of its keys; a map, a variant, and a struct with one of these have none."""
    made = project({"mvbuild.yml": FILES["mvbuild.yml"], **{f"models/{name}.sql": f"{sql}\n" for name, sql in KEYED.items()}})
    made.sql("CREATE NAMESPACE lake.raw")
    made.sql(
        "CREATE TABLE lake.raw.e (id INT, j VARIANT, m MAP<STRING, INT>, s STRUCT<q: MAP<STRING, INT>>) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    made.sql("CREATE TABLE lake.raw.w (a INT, name STRING) USING iceberg")
    made.sql("INSERT INTO lake.raw.w VALUES (0, 'zero'), (1, 'one')")
    made.sql(f"INSERT INTO lake.raw.e SELECT {ROW.format(n='n')} FROM range(12) AS r(n)")
    assert made.run().ok
    for change in (f"INSERT INTO lake.raw.e SELECT {ROW.format(n=50)}", "DELETE FROM lake.raw.e WHERE id = 4"):
        made.sql(change)
        with as_if_large():
            done = made.run()
        assert done.ok, messages(done)
        assert "full" not in {one.details.get("strategy") for one in done.results}
        for name, sql in KEYED.items():
            assert made.bag(f"SELECT * FROM lake.main.{name}") == made.bag(sql.replace("raw.", "lake.raw.")), (name, change)
