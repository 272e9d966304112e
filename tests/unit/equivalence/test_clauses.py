from __future__ import annotations

import pytest

from mvbuild.equivalence.canonical_text import same_but_names
from mvbuild.equivalence.clauses import classify

CHANGES = [
    ("SELECT a FROM t", "select  a -- why\nFROM t", "formatting", "only formatting and comments"),
    ("SELECT o.a FROM t o WHERE o.a > 1", "SELECT x.a FROM t AS x WHERE x.a > 1", "names", None),
    ("WITH c AS (SELECT a FROM t) SELECT a FROM c", "WITH e AS (SELECT a FROM t) SELECT a FROM e", "names", None),
    ("WITH c AS (SELECT a FROM t) SELECT * FROM c", "SELECT * FROM (SELECT a FROM t) c", "names", None),
    ("SELECT a FROM t WHERE (a > 1) AND ((b) = 2)", "SELECT a FROM t WHERE a > 1 AND b = 2", "names", None),
    ("SELECT a FROM t", "SELECT a, b + 1 AS c FROM t", "column-added", "column 'c' was added at the end"),
    ("SELECT a FROM t", "SELECT a, b, c FROM t", "column-added", "columns 'b' and 'c' were added at the end"),
    (
        "WITH c AS (SELECT a FROM t) SELECT * FROM c",
        "WITH c AS (SELECT a, b FROM t) SELECT * FROM c",
        "column-added",
        "column 'b' was added at the end",
    ),
    ("SELECT a, c FROM t", "SELECT a, b, c FROM t", "other", "column 'b' was added"),
    ("SELECT a, b FROM t", "SELECT a FROM t", "column-removed", "column 'b' was removed"),
    ("SELECT a, b FROM t", "SELECT a, c FROM t", "column-removed", "column 'b' was removed, column 'c' was added at the end"),
    ("SELECT a, b FROM t", "SELECT a, CAST(b AS INT) AS b FROM t", "column-changed", "column 'b' was changed"),
    ("SELECT a, b FROM t", "SELECT b, a FROM t", "other", "the order of its columns"),
    ("SELECT a FROM t WHERE a > 1", "SELECT a FROM t WHERE a > 2", "filter", "WHERE was changed"),
    ("SELECT a FROM t", "SELECT a FROM t LIMIT 3", "filter", "LIMIT was changed"),
    ("SELECT a FROM t JOIN u USING (id)", "SELECT a FROM t LEFT JOIN u USING (id)", "join", "a join was changed"),
    ("SELECT a FROM t", "SELECT a FROM u", "join", "'u' is now read and 't' is no longer read"),
    ("SELECT count(a) AS c FROM t GROUP BY b", "SELECT count(a) AS c FROM t GROUP BY d", "expression", "GROUP BY was changed"),
    (
        "WITH c AS (SELECT a + 1 AS x FROM t) SELECT x FROM c",
        "WITH c AS (SELECT a + 2 AS x FROM t) SELECT x FROM c",
        "expression",
        "expressions inside were changed",
    ),
    ("SELECT a FROM t", "SELECT a, b FROM t WHERE c", "filter", "column 'b' was added at the end, WHERE was changed"),
    ("SELECT a FROM t", "((", "other", "the query as a whole"),
    ("SELECT 'a", "SELECT 'b", "other", "the query as a whole"),
    ("", "SELECT 1", "other", "the query as a whole"),
]


@pytest.mark.parametrize(("old", "new", "kind", "message"), CHANGES)
def test_a_change_is_named(old: str, new: str, kind: str, message: str | None) -> None:
    found = classify(old, new)
    assert (found.kind, found.message) == (kind, message or "only names, or the arrangement of CTEs and aliases inside")


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
        ("WITH c (a) AS (SELECT 1) SELECT a FROM c", "WITH e (a) AS (SELECT 1) SELECT a FROM e"),
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


def test_deep_and_odd_queries_raise_nothing() -> None:
    deep = "SELECT " + "(" * 5000 + "1" + ")" * 5000
    assert classify(deep, deep + " AS x").kind == "other"
    assert classify("FROM t |> WHERE a > 1", "FROM t |> WHERE a > 2").kind != "names"
