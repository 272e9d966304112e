"""What a scalar subquery computes from its aggregate, around it."""

from __future__ import annotations

import pytest

from mvbuild.equivalence.lifted_aggregates import with_lifted_aggregates


@pytest.mark.parametrize(
    ("value", "lifted"),
    [
        ("coalesce(sum(x), 0)", "(coalesce((SELECT sum(x) FROM t WHERE t.k = c.k), 0))"),
        ("max(x) IS NULL", "((SELECT max(x) FROM t WHERE t.k = c.k) IS NULL)"),
        ("c.v - COUNT( * ) AS n", "(c.v - (SELECT COUNT( * ) FROM t WHERE t.k = c.k))"),
        ("round(avg(coalesce(x, ')')), 2)", "(round((SELECT avg(coalesce(x, ')')) FROM t WHERE t.k = c.k), 2))"),
    ],
)
def test_it_is_lifted(value: str, lifted: str) -> None:
    assert with_lifted_aggregates(f"SELECT (SELECT {value} FROM t WHERE t.k = c.k) FROM c") == f"SELECT {lifted} FROM c"


@pytest.mark.parametrize(
    "subquery",
    [
        "SELECT sum(x) FROM t",
        "SELECT sum(x) AS s FROM t",
        "SELECT sum(x) + count(*) FROM t",
        "SELECT sum(x) + 1, 2 FROM t",
        "SELECT sum(x) + 1 FROM t GROUP BY k",
        "SELECT sum(x) + 1 FROM t HAVING count(*) > 1",
        "SELECT sum(x) + 1 FROM t UNION ALL SELECT 1",
        "SELECT sum(x) + 1 FROM t LIMIT 0",
        "SELECT sum(DISTINCT x) + 1 FROM t",
        "SELECT DISTINCT sum(x) + 1 FROM t",
        "SELECT sum(x) FILTER (WHERE x > 1) + 1 FROM t",
        "SELECT sum(x) OVER () + 1 FROM t",
        "SELECT x + 1 FROM t",
        "SELECT sum(x) + (SELECT 1) FROM t",
        "SELECT 1",
    ],
)
def test_it_stays(subquery: str) -> None:
    sql = f"SELECT ({subquery}) AS n FROM c"
    assert with_lifted_aggregates(sql) == sql


def test_text_that_cannot_be_read() -> None:
    assert with_lifted_aggregates("SELECT 'x") == "SELECT 'x"
