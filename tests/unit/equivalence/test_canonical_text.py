from __future__ import annotations

import pytest

from mvbuild.equivalence.canonical_text import same_but_names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "WITH c AS (SELECT s, sum(a) AS total FROM t GROUP BY s) SELECT s, total FROM c WHERE total > 3",
            "WITH e AS (SELECT s, sum(a) amount FROM t GROUP BY s) SELECT s, amount AS total FROM e WHERE amount > 3",
        ),
        (
            "WITH a AS (SELECT x FROM t), b AS (SELECT x FROM a) SELECT b.x FROM b JOIN a ON a.x = b.x",
            "WITH p AS (SELECT x FROM t), q AS (SELECT x FROM p) SELECT z.x FROM q z JOIN p ON p.x = z.x",
        ),
        (
            "WITH a AS (SELECT o.x FROM t o), b AS (SELECT o.y FROM u o) SELECT a.x FROM a JOIN b ON a.x = b.y",
            "WITH a AS (SELECT t.x FROM t AS t), b AS (SELECT o.y FROM u o) SELECT a.x FROM a JOIN b ON a.x = b.y",
        ),
        (
            "WITH a AS (WITH b AS (SELECT x FROM t) SELECT x FROM b) SELECT x FROM a",
            "WITH z AS (WITH z AS (SELECT x FROM t) SELECT x FROM z) SELECT x FROM z",
        ),
        ("WITH a AS (SELECT x -- last\n) SELECT x FROM a", "WITH a AS (SELECT x) SELECT x FROM a"),
        ("SELECT a.x FROM t VERSION AS OF 1 AS a", "SELECT b.x FROM t VERSION AS OF 1 AS b"),
        ("WITH c (a) AS (SELECT 1) SELECT a FROM c", "WITH e (a) (SELECT 1) SELECT a FROM e"),
        ("WITH c (x, y) AS (SELECT a, b FROM t) SELECT d.x AS v FROM c d", "SELECT c.x AS v FROM (SELECT a, b FROM t) AS c (x, y)"),
        ("WITH c (x, y) AS (SELECT a, b FROM t) SELECT p AS v FROM c AS d (p, q)", "SELECT p AS v FROM (SELECT a, b FROM t) AS c (p, q)"),
    ],
)
def test_names_inside_do_not_count(one: str, other: str) -> None:
    assert same_but_names(one, other)
    assert same_but_names(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a AS v FROM t", "SELECT a AS w FROM t"),
        ("SELECT * FROM (SELECT a AS v FROM t)", "SELECT * FROM (SELECT a AS w FROM t)"),
        (
            "WITH c AS (SELECT a AS v FROM t), e AS (SELECT * FROM c) SELECT * FROM e",
            "WITH c AS (SELECT a AS w FROM t), e AS (SELECT * FROM c) SELECT * FROM e",
        ),
        ("SELECT l.a FROM t l JOIN t r ON l.id = r.p", "SELECT r.a FROM t l JOIN t r ON l.id = r.p"),
        ("SELECT x FROM (SELECT '1' AS x, 1 AS y FROM t)", "SELECT y AS x FROM (SELECT '1' AS x, 1 AS y FROM t)"),
        ("SELECT a FROM t WHERE a IN (1)", "SELECT a FROM t WHERE a IN ('1')"),
        ("SELECT a FROM t WHERE a = 1", "SELECT a FROM t WHERE a = 1L"),
        ("SELECT a FROM t VERSION AS OF 1", "SELECT a FROM t VERSION AS OF 2"),
        ("SELECT a FROM t WHERE a OR b AND c", "SELECT a FROM t WHERE (a OR b) AND c"),
        ("SELECT sum(x) AS v FROM (SELECT a AS x, b AS y FROM t)", "SELECT sum(x) AS v FROM (SELECT a AS x, b AS x FROM t)"),
        (
            "WITH c AS (SELECT 1 AS a), e AS (SELECT '1' AS a) SELECT c.a, e.a AS b FROM c JOIN e",
            "WITH c AS (SELECT 1 AS a), e AS (SELECT '1' AS a) SELECT e.a, c.a AS b FROM c JOIN e",
        ),
        (
            "WITH c AS (SELECT a FROM t WHERE a = 1), e AS (SELECT a FROM t WHERE a = '1') SELECT 'l', a FROM c UNION ALL SELECT 'r', a FROM e",
            "WITH c AS (SELECT a FROM t WHERE a = 1), e AS (SELECT a FROM t WHERE a = '1') SELECT 'l', a FROM e UNION ALL SELECT 'r', a FROM c",
        ),
        ("WITH RECURSIVE c AS (SELECT 1 AS a) SELECT a FROM c", "WITH RECURSIVE e AS (SELECT 1 AS a) SELECT a FROM e"),
        ("WITH c (x, y) AS (SELECT a, b FROM t) SELECT x AS v FROM c", "WITH c (y, x) AS (SELECT a, b FROM t) SELECT x AS v FROM c"),
        ("WITH c (x, y) AS (SELECT a, b FROM t) SELECT x AS v FROM c", "WITH c (x, y) AS (SELECT b, a FROM t) SELECT x AS v FROM c"),
        (
            "WITH c (x, y) AS (SELECT a, b FROM t) SELECT x AS v FROM c e",
            "WITH c (x, y) AS (SELECT a, b FROM t) SELECT x AS v FROM c e (y, x)",
        ),
        ("SELECT mvbuild__t0.a FROM t AS mvbuild__t0", "SELECT x.a FROM t AS x"),
        ("not sql", "not sql either"),
    ],
)
def test_what_may_count_does(one: str, other: str) -> None:
    assert not same_but_names(one, other)
    assert not same_but_names(other, one)


def test_ctes_that_grow_without_end_are_left_alone() -> None:
    ctes = ", ".join(f"c{n + 1} AS (SELECT l.a FROM c{n} l JOIN c{n} r ON l.a = r.a)" for n in range(30))
    sql = f"WITH c0 AS (SELECT a FROM t), {ctes} SELECT a FROM c30"
    assert not same_but_names(sql, sql.replace("c0", "z0"))
