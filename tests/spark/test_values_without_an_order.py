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
