"""VALUES written as SELECTs, for plans that show their rows."""

from __future__ import annotations

import pytest

from mvbuild.equivalence.values_text import with_selects_of_values


@pytest.mark.parametrize(
    ("sql", "made"),
    [
        (
            "SELECT * FROM (VALUES ('a, b', 1), (')', -2)) AS s(x, y)",
            "SELECT * FROM ((SELECT 'a, b' AS col1, 1 AS col2 UNION ALL SELECT ')' AS col1, -2 AS col2)) AS s(x, y)",
        ),
        ("SELECT * FROM t JOIN VALUES (DATE '2026-01-01') s(x)", "SELECT * FROM t JOIN (SELECT DATE '2026-01-01' AS col1) s(x)"),
        (
            "SELECT * FROM t, values (1), (2) AS a, VALUES (3) AS b",
            "SELECT * FROM t, (SELECT 1 AS col1 UNION ALL SELECT 2 AS col1) AS a, (SELECT 3 AS col1) AS b",
        ),
        ("WITH s AS (VALUES (1)) SELECT * FROM s", "WITH s AS ((SELECT 1 AS col1)) SELECT * FROM s"),
        # What it does not understand stays: Spark's plan hides the rows, so that nothing is proven.
        ("SELECT * FROM VALUES 1, 2 AS s(x)", "SELECT * FROM VALUES 1, 2 AS s(x)"),
        ("SELECT * FROM VALUES (1), (2, 3) AS s", "SELECT * FROM VALUES (1), (2, 3) AS s"),
        ("SELECT values, t.values FROM t -- VALUES (1)", "SELECT values, t.values FROM t -- VALUES (1)"),
        ("SELECT 'FROM VALUES (1)' AS a FROM t", "SELECT 'FROM VALUES (1)' AS a FROM t"),
    ],
)
def test_values_as_selects(sql: str, made: str) -> None:
    assert with_selects_of_values(sql) == made
