"""What names in a query mean: columns, their origins, and findings at the right words. Spark is asked the same in tests/spark/test_lineage.py."""

from __future__ import annotations

import pytest

from unit.lineage.bound_queries import columns, findings, origins, rows


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT ID AS x, T.B FROM t", "x bigint, B string"),
        ("SELECT * FROM v", "id bigint, w string"),
        ("SELECT v.*, 1 AS one FROM v JOIN u USING (id)", "id bigint, w string, one int"),
        ("SELECT * FROM v JOIN u USING (id)", "id bigint, w string, a int, e string, t_id bigint"),
        # A star of one table begins with the columns of USING, as `*` does.
        ("SELECT u.* FROM t JOIN u USING (a)", "a int, id bigint, e string, t_id bigint"),
        ("SELECT u.* FROM u JOIN t USING (a)", "a int, id bigint, e string, t_id bigint"),
        ("SELECT u.* FROM u FULL JOIN t USING (a)", "a int, id bigint, e string, t_id bigint"),
        ("SELECT * FROM u LEFT SEMI JOIN t USING (a)", "a int, id bigint, e string, t_id bigint"),
        ("SELECT * FROM v NATURAL JOIN u", "id bigint, w string, a int, e string, t_id bigint"),
        ("SELECT * EXCEPT (id) FROM v", "w string"),
        ("SELECT s.x, s.y.z, t.s.Y FROM t", "x int, z string, Y struct<z:string>"),
        ("SELECT raw.t.s.y.z, lake.raw.t.a FROM raw.t", "z string, a int"),
        ("SELECT s.* FROM t", "x int, y struct<z:string>"),
        (
            "SELECT arr[0] AS a, m['x'] AS b, m.x AS c, items.qty, items[0].sku AS sku FROM t",
            "a int, b int, c int, qty array<int>, sku string",
        ),
        ("SELECT a + 1 AS n, n * 2 AS m FROM t", "n int, m int"),
        ("WITH q(k) AS (SELECT id FROM t) SELECT k FROM q", "k bigint"),
        ("WITH t AS (SELECT 1 AS one) SELECT * FROM t", "one int"),
        ("WITH q AS (SELECT id FROM v), q2 AS (SELECT * FROM q) SELECT q2.id, x.w FROM q2, v x", "id bigint, w string"),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r", "n int"),
        ("SELECT k, x FROM t LATERAL VIEW explode(m) AS k, x", "k string, x int"),
        ("SELECT p.pos, col FROM t LATERAL VIEW posexplode(arr) p", "pos int, col int"),
        ("SELECT it.sku FROM t LATERAL VIEW OUTER explode(items) e AS it", "sku string"),
        ("SELECT inline(items) FROM t", "sku string, qty int"),
        ("SELECT * FROM VALUES (1, 'a') AS x(n, l)", "n int, l string"),
        ("SELECT * FROM range(3)", "id bigint"),
        ("SELECT z FROM v, LATERAL (SELECT v.id + 1 AS z) AS l", "z bigint"),
        ("SELECT * FROM (SELECT id, b, p FROM t) PIVOT (sum(p) FOR b IN ('x', 'y' AS z))", "id bigint, x decimal(22,2), z decimal(22,2)"),
        ("SELECT * FROM u UNPIVOT (val FOR name IN (id, t_id))", "a int, e string, name string, val bigint"),
        ("SELECT j.id FROM (v JOIN u USING (id)) AS j", "id bigint"),
        ("SELECT user, current_date FROM v", "user ?, ? date"),
        ("SELECT count(*), sum(a), CAST(a AS bigint) AS c, 1, NULL FROM t", "count(1) bigint, sum(a) bigint, c bigint, 1 int, NULL void"),
        ("SELECT `a b`.`id` FROM v AS `a b`", "id bigint"),
        ("SELECT größe FROM (SELECT id AS größe FROM v)", "größe bigint"),
        ("SELECT * FROM nobody", "..."),
        ("SELECT n.id, x.y.z FROM nobody n JOIN nothing x ON n.id = x.id", "id ?, z ?"),
        ("SELECT id FROM (SELECT * FROM nobody)", "id ?"),
        ("SELECT * FROM t |> WHERE a > 1", "..."),
        ("SELECT * FROM t JOIN v PIVOT (sum(p) FOR b IN ('x'))", "..."),
        ("SELECT TRANSFORM (a) USING 'cat' AS (b string) FROM t", "..."),
        ("FROM v SELECT w", "w string"),
        ("TABLE v", "id bigint, w string"),
    ],
)
def test_columns(sql: str, expected: str) -> None:
    assert columns(sql) == expected
    assert findings(sql) == []


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT nope FROM t", ["unknown-column: nope"]),
        ("SELECT t.nope, a FROM t", ["unknown-column: nope"]),
        ("SELECT x.id FROM t", ["unknown-column: x"]),
        ("SELECT one, two FROM v", ["unknown-column: one", "unknown-column: two"]),
        ("SELECT s.q, s.y.w FROM t", ["unknown-column: q", "unknown-column: w"]),
        ("SELECT arr.x FROM t", ["unknown-column: x"]),
        ("SELECT id FROM t JOIN u ON t.id = u.id", ["ambiguous-column: id"]),
        ("SELECT x.id FROM (SELECT id, t_id AS id FROM u) x", ["ambiguous-column: id"]),
        ("SELECT u.id FROM t LEFT SEMI JOIN u ON t.id = u.id", ["unknown-column: u"]),
        ("SELECT * FROM t JOIN v USING (w)", ["unknown-column: w"]),
        ("SELECT * EXCEPT (nope) FROM v", ["unknown-column: nope"]),
        ("SELECT nope.* FROM v", ["unknown-column: nope"]),
        ("SELECT n + 1 AS m, a AS n FROM t", ["unknown-column: n"]),
        ("SELECT a FROM t ORDER BY nope", ["unknown-column: nope"]),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.id = t.nope)", ["unknown-column: nope"]),
        ("SELECT filter(items, i -> i.qty > nope) AS f FROM t", ["unknown-column: nope"]),
        ("SELECT a FROM t UNION ALL SELECT id, a FROM u", ["column-count: id, a FROM u"]),
        ("WITH q(k) AS (SELECT id, a FROM u) SELECT 1 AS one FROM q", ["column-count: k"]),
        ("SELECT arr FROM t UNION ALL SELECT a FROM u", ["type-mismatch: a"]),
        ("SELECT id FROM t WHERE arr = 1", ["type-mismatch: arr = 1"]),
        ("SELECT id FROM t WHERE a", ["type-mismatch: a"]),
        ("SELECT sum(arr) AS s FROM t", ["type-mismatch: sum"]),
    ],
)
def test_findings(sql: str, expected: list[str]) -> None:
    found = findings(sql)
    assert [f.split(" = ")[0] for f in found] == [e.split(" = ")[0] for e in expected]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT anything, n.other FROM nobody n",
        "SELECT id FROM nobody JOIN t ON nobody.x = t.id",
        "SELECT x.whatever FROM nobody",
        "SELECT id FROM (SELECT id, id FROM t)",
        "SELECT sum(b), b + 1, b = 1, concat(a, b) FROM t",
        "SELECT transform(arr, X -> x + a) FROM t",
        "SELECT zip_with(arr, arr, (l, R) -> L + r) FROM t",
        "SELECT timestampadd(HOUR, 1, ts), dateadd(MONTH, 1, d), timediff(DAY, d, d) FROM t",
        "SELECT _file, _pos, t._partition FROM t",
        "SELECT grouping__id, a FROM t GROUP BY a WITH CUBE",
        "SELECT CASE WHEN ok THEN arr END FROM t UNION ALL SELECT NULL",
        "SELECT id FROM t WHERE b = 1 AND ok = 'true' AND d = '2020-01-01' AND a IN ('1', 2.5)",
        "SELECT b FROM t WHERE b",
        "SELECT a FROM t GROUP BY a ORDER BY max(id), ALL",
        "SELECT m.anything FROM t",
        "SELECT unknown_function(a, 'x') FROM t",
        "SELECT id AS new FROM t GROUP BY new HAVING new > 1",
        "SELECT u.id FROM u WHERE id IN (SELECT t_id FROM t WHERE e = b)",
    ],
)
def test_nothing_is_said_of_what_is_right_or_not_certain(sql: str) -> None:
    assert findings(sql) == []


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a + id AS n FROM t", {"n": "t.a t.id"}),
        ("WITH q AS (SELECT a AS k, id FROM t) SELECT k + 1 AS n, q.id FROM q", {"n": "t.a", "id": "t.id"}),
        ("SELECT a AS k FROM t UNION ALL SELECT id FROM u", {"k": "t.a u.id"}),
        ("SELECT a AS k FROM t EXCEPT SELECT id FROM u", {"k": "t.a"}),
        ("SELECT sum(a) OVER (PARTITION BY b ORDER BY d) AS n FROM t", {"n": "t.a t.b t.d"}),
        ("SELECT row_number() OVER w AS n FROM t WINDOW w AS (PARTITION BY b)", {"n": "t.b"}),
        ("SELECT id FROM v FULL JOIN u USING (id)", {"id": "u.id v.id"}),
        ("SELECT id FROM v RIGHT JOIN u USING (id)", {"id": "u.id"}),
        ("SELECT (SELECT max(e) FROM u WHERE u.t_id = v.id) AS n FROM v", {"n": "u.e"}),
        ("SELECT it.sku FROM t LATERAL VIEW explode(items) e AS it", {"sku": "t.items"}),
        ("SELECT transform(arr, x -> x + a) AS n FROM t", {"n": "t.a t.arr"}),
        ("SELECT stack(2, a, id, a, t_id) AS (k, n) FROM u", {"k": "u.a", "n": "u.id u.t_id"}),
        ("SELECT count(*) AS n, 1 AS one FROM t", {"n": "", "one": ""}),
        ("SELECT one.id AS a, two.id AS b FROM v one JOIN u two ON one.id = two.id", {"a": "v.id", "b": "u.id"}),
        ("SELECT x.id FROM (SELECT * FROM nobody) x", {"id": "nobody.id"}),
        ("SELECT id FROM nobody, nothing", {"id": "?"}),
        ("SELECT val FROM u UNPIVOT (val FOR name IN (id, t_id))", {"val": "u.id u.t_id"}),
        ("WITH RECURSIVE r(n) AS (SELECT a FROM t UNION ALL SELECT r.n + u.id FROM r JOIN u) SELECT n FROM r", {"n": "t.a u.id"}),
        ("SELECT CASE WHEN ok THEN a END AS n FROM t", {"n": "t.a t.ok"}),
    ],
)
def test_origins(sql: str, expected: dict[str, str]) -> None:
    assert origins(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t WHERE b = 'x'", "t.b"),
        ("SELECT w FROM v JOIN u ON v.id = u.t_id", "u.t_id v.id"),
        ("SELECT w FROM v JOIN u USING (id)", "u.id v.id"),
        ("SELECT b, sum(a) AS n FROM t GROUP BY b HAVING n > 1", "t.a t.b"),
        ("SELECT b AS k, sum(a) AS n FROM t GROUP BY ALL", "t.b"),
        ("SELECT b AS k FROM t GROUP BY 1", "t.b"),
        ("SELECT DISTINCT a FROM t", "t.a"),
        ("SELECT a FROM t UNION SELECT id FROM u", "t.a u.id"),
        ("SELECT a FROM t UNION ALL SELECT id FROM u", ""),
        ("SELECT a FROM t ORDER BY b", ""),
        ("SELECT a FROM t ORDER BY b LIMIT 1", "t.b"),
        ("SELECT w FROM v WHERE EXISTS (SELECT 1 FROM u WHERE u.t_id = v.id AND e = 'x')", "u.e u.t_id v.id"),
        ("SELECT w FROM v WHERE id IN (SELECT t_id FROM u WHERE a > 1)", "u.a u.t_id v.id"),
        ("WITH q AS (SELECT id FROM t WHERE a > 1), unused AS (SELECT id FROM u WHERE e = 'x') SELECT * FROM q", "t.a"),
        ("SELECT k FROM t LATERAL VIEW explode(arr) AS k", "t.arr"),
        ("SELECT b FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY d) = 1", "t.b t.d"),
    ],
)
def test_what_decides_on_rows(sql: str, expected: str) -> None:
    assert rows(sql) == expected


def test_a_long_chain_of_operators_and_unions_is_no_problem() -> None:
    sql = "SELECT " + " + ".join(["a"] * 1500) + " AS n FROM t"
    assert columns(sql) == "n int"
    assert origins(" UNION ALL ".join(["SELECT a AS n FROM t"] * 300)) == {"n": "t.a"}
