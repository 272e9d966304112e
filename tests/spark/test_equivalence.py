from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from mvbuild.adapters.spark.releases import installed_release
from mvbuild.equivalence.spark_proof import missing_proof, same_plan
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.ports.engine import QueryError
from unit.equivalence.edits import SAME as EDITS

pytestmark = pytest.mark.proof


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Two tables at snapshots. In a query `T`, `U` and `OLD` (T before its last snapshot) stand for them."""

    lake: Any
    t: str
    u: str
    old: str

    def pinned(self, sql: str) -> str:
        words = {"T": self.t, "U": self.u, "OLD": self.old}
        return " ".join(words.get(word, word) for word in sql.replace("(", "( ").replace(")", " )").split(" "))


@pytest.fixture(scope="module")
def tables(lake: Any) -> Tables:
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.same")
    lake.sql(
        "CREATE TABLE lake.same.t (id BIGINT, a INT, b INT, s STRING, d DECIMAL(10, 2), f DOUBLE, day DATE, k STRING, arr ARRAY<INT>,"
        " m MAP<STRING, INT>, st STRUCT<x: INT, y: INT>) PARTITIONED BY (k, day)"
    )
    rows = (
        "SELECT id, CAST(id % 7 AS INT), CAST(nullif(id % 5, 0) AS INT), string(id % 3), id, id / 3, DATE'2024-01-01' + CAST(id % 2 AS INT),"
        " if(id % 2 = 0, 'x', 'y'), array(1, CAST(id AS INT)), map('p', 1, 'q', 2), named_struct('x', 1, 'y', 2) FROM range(40)"
    )
    lake.sql(f"INSERT INTO lake.same.t {rows}")
    lake.sql("CREATE TABLE lake.same.u AS SELECT id, CAST(id % 4 AS INT) AS a, 'n' AS name FROM range(20)")
    old = lake.catalog.load_table("same.t").metadata.current_snapshot_id
    lake.sql(f"INSERT INTO lake.same.t {rows}")
    versions = {name: lake.catalog.load_table(f"same.{name}").metadata.current_snapshot_id for name in "tu"}
    return Tables(
        lake=lake,
        t=f"lake.same.t VERSION AS OF {versions['t']}",
        u=f"lake.same.u VERSION AS OF {versions['u']}",
        old=f"lake.same.t VERSION AS OF {old}",
    )


SAME = {
    "a CTE gets another name": ("WITH c AS (SELECT a, id FROM T) SELECT c.a FROM c", "WITH e AS (SELECT a, id FROM T) SELECT e.a FROM e"),
    "a table gets another alias": ("SELECT o.a FROM T AS o WHERE o.s = '1'", "SELECT x.a FROM T x WHERE x.s = '1'"),
    "a subquery gets another alias": ("SELECT q.a FROM (SELECT a FROM T) AS q", "SELECT z.a FROM (SELECT a FROM T) AS z"),
    "a CTE becomes a subquery": ("WITH c AS (SELECT a FROM T) SELECT c.a FROM c", "SELECT c.a FROM (SELECT a FROM T) AS c"),
    "CTEs change places": (
        "WITH c AS (SELECT a FROM T WHERE a > 1), e AS (SELECT a FROM U) SELECT c.a FROM c JOIN e ON c.a = e.a",
        "WITH e AS (SELECT a FROM U), c AS (SELECT a FROM T WHERE a > 1) SELECT c.a FROM c JOIN e ON c.a = e.a",
    ),
    "a CTE that is not used goes": (
        "WITH c AS (SELECT a FROM T), e AS (SELECT 1) SELECT a FROM c",
        "WITH c AS (SELECT a FROM T) SELECT a FROM c",
    ),
    "idle parentheses go": ("SELECT a FROM T WHERE (a > 1) AND ((b) = 2)", "SELECT a FROM T WHERE a > 1 AND b = 2"),
    "a column inside gets another name": (
        "WITH c AS (SELECT s, sum(a) AS total FROM T GROUP BY s) SELECT s, total FROM c WHERE total > 3",
        "WITH c AS (SELECT s, sum(a) AS amount FROM T GROUP BY s) SELECT s, amount AS total FROM c WHERE amount > 3",
    ),
    "a self-join": (
        "SELECT l.a, r.id FROM T AS l JOIN T AS r ON l.id = r.id WHERE l.f > 2",
        "SELECT x.a, y.id FROM T AS x JOIN T AS y ON x.id = y.id WHERE x.f > 2",
    ),
    "a CTE read twice": (
        "WITH c AS (SELECT id, a + 1 AS n FROM T) SELECT p.n, q.id FROM c AS p LEFT JOIN c AS q ON p.id = q.id",
        "WITH z AS (SELECT id, a + 1 AS v FROM T) SELECT g.v AS n, h.id FROM z AS g LEFT JOIN z AS h ON g.id = h.id",
    ),
    "CTEs that read CTEs": (
        "WITH c AS (SELECT id, a FROM T), e AS (SELECT a, count(b.id) AS n FROM c b GROUP BY a) SELECT * FROM e",
        "WITH g AS (SELECT id, a FROM T), h AS (SELECT a, count(w.id) AS n FROM g w GROUP BY a) SELECT * FROM h",
    ),
    "windows": (
        "SELECT id, rank() OVER (PARTITION BY o.s ORDER BY o.f DESC) AS r FROM T o",
        "SELECT id, rank() OVER (PARTITION BY p.s ORDER BY p.f DESC) AS r FROM T p",
    ),
    "subqueries": (
        "SELECT o.a FROM T o WHERE o.a > (SELECT avg(i.a) FROM U i) AND EXISTS (SELECT 1 FROM U e WHERE e.id = o.id)",
        "SELECT x.a FROM T x WHERE x.a > (SELECT avg(y.a) FROM U y) AND EXISTS (SELECT 1 FROM U z WHERE z.id = x.id)",
    ),
    "lateral views": (
        "SELECT e.v FROM T LATERAL VIEW explode(arr) e AS v WHERE e.v > 1",
        "SELECT g.v FROM T LATERAL VIEW explode(arr) g AS v WHERE g.v > 1",
    ),
    "unions": (
        "WITH c AS (SELECT a FROM T) SELECT a, 'l' AS w FROM c UNION ALL SELECT a, 'r' AS w FROM U AS u",
        "WITH z AS (SELECT a FROM T) SELECT a, 'l' AS w FROM z UNION ALL SELECT a, 'r' AS w FROM U AS y",
    ),
    "partition filters": ("SELECT o.id FROM T o WHERE o.day = DATE'2024-01-01'", "SELECT i.id FROM T i WHERE i.day = DATE'2024-01-01'"),
    "lambdas": ("SELECT transform(o.arr, x -> x + o.a) AS z FROM T o", "SELECT transform(i.arr, x -> x + i.a) AS z FROM T i"),
    "structs": ("SELECT o.st.x, o.m['p'] AS p FROM T o", "SELECT i.st.x, i.m['p'] AS p FROM T i"),
}

TWO_TABLES = "WITH p AS (SELECT a FROM T WHERE s IN {}), q AS (SELECT a FROM T WHERE s IN {}) "

DIFFERENT = {
    "partitions": ("SELECT id FROM T WHERE day = DATE'2024-01-01'", "SELECT id FROM T WHERE day = DATE'2024-01-02'"),
    "string partitions": ("SELECT id FROM T WHERE k = 'x'", "SELECT id FROM T WHERE k = 'y'"),
    "answers from metadata": ("SELECT min(a) AS v FROM T", "SELECT max(a) AS v FROM T"),
    "metadata columns": ("SELECT max(a) AS v FROM T", "SELECT max(b) AS v FROM T"),
    "snapshots": ("SELECT a FROM T", "SELECT a FROM OLD"),
    "commas in strings": ("SELECT a FROM T WHERE s IN ('a', 'b, 1')", "SELECT a FROM T WHERE s IN ('a, b', '1')"),
    "commas of CTEs that change places": (
        TWO_TABLES.format("('0, 1', '2')", "('0', '1, 2')") + "SELECT 'l' AS w, a FROM p UNION ALL SELECT 'r', a FROM q",
        TWO_TABLES.format("('0, 1', '2')", "('0', '1, 2')") + "SELECT 'l' AS w, a FROM q UNION ALL SELECT 'r', a FROM p",
    ),
    "NULL and 'null'": ("SELECT a, coalesce(s, NULL) AS v FROM T", "SELECT a, coalesce(s, 'null') AS v FROM T"),
    "NULL of a CASE": (
        "SELECT CASE WHEN a = 1 THEN s ELSE NULL END AS v FROM T",
        "SELECT CASE WHEN a = 1 THEN s ELSE 'NULL' END AS v FROM T",
    ),
    "1 and '1' in an array of anything": ("SELECT to_json(array(1)) AS v, a FROM T", "SELECT to_json(array('1')) AS v, a FROM T"),
    "a cast that is folded": (
        "SELECT hash(array(CAST('1' AS INT)), a) AS v FROM T",
        "SELECT hash(array('1'), a) AS v FROM T",
    ),
    "constants that look alike": (
        "SELECT hash(array(c), a) AS v FROM (SELECT '1' AS c, 1 AS e, a FROM T)",
        "SELECT hash(array(e), a) AS v FROM (SELECT '1' AS c, 1 AS e, a FROM T)",
    ),
    "constants that are compared": (
        "SELECT hash(array(s), id) AS v FROM T WHERE s = '1' AND a = '1'",
        "SELECT hash(array(a), id) AS v FROM T WHERE s = '1' AND a = '1'",
    ),
    "int and bigint": ("SELECT hash(array(1), a) AS v FROM T", "SELECT hash(array(1L), a) AS v FROM T"),
    "decimal and double": ("SELECT hash(array(1.0), a) AS v FROM T", "SELECT hash(array(1.0D), a) AS v FROM T"),
    "dates and strings": ("SELECT hash(array(DATE'2024-01-01'), a) AS v FROM T", "SELECT hash(array('2024-01-01'), a) AS v FROM T"),
    "true and 'true'": ("SELECT hash(array(true), a) AS v FROM T", "SELECT hash(array('true'), a) AS v FROM T"),
    "time zones of timestamps": (
        "SELECT hash(array(TIMESTAMP_NTZ'2024-01-01 00:00:00'), a) AS v FROM T",
        "SELECT hash(array(TIMESTAMP_LTZ'2024-01-01 00:00:00'), a) AS v FROM T",
    ),
    "names of struct fields": ("SELECT to_json(struct(a AS x)) AS v FROM T", "SELECT to_json(struct(a AS y)) AS v FROM T"),
    "names of fields by alias": (
        "SELECT to_json(struct(n)) AS v FROM (SELECT a + 1 AS n FROM T)",
        "SELECT to_json(struct(p)) AS v FROM (SELECT a + 1 AS p FROM T)",
    ),
    "keys of maps": ("SELECT map('p', a, 'q', b) AS v FROM T", "SELECT map('q', a, 'p', b) AS v FROM T"),
    "values of maps": ("SELECT m['p'] AS v FROM T", "SELECT m['q'] AS v FROM T"),
    "fields": ("SELECT st.x AS v FROM T", "SELECT st.y AS v FROM T"),
    "elements": ("SELECT arr[0] AS v FROM T", "SELECT arr[1] AS v FROM T"),
    "left and inner joins": ("SELECT l.a FROM T l LEFT JOIN U r ON l.id = r.id", "SELECT l.a FROM T l JOIN U r ON l.id = r.id"),
    "sides of a join": ("SELECT l.a FROM T l JOIN U r ON l.id = r.id", "SELECT r.a FROM T l JOIN U r ON l.id = r.id"),
    "sides of a self-join": ("SELECT l.a FROM T l LEFT JOIN T r ON l.id = r.a", "SELECT r.a FROM T l LEFT JOIN T r ON l.id = r.a"),
    "columns of a join": ("SELECT l.a FROM T l JOIN U r ON l.id = r.id", "SELECT l.a FROM T l JOIN U r ON l.id = r.a"),
    "tables": ("SELECT a FROM T", "SELECT a FROM U"),
    "semi and anti": (
        "SELECT a FROM T l WHERE EXISTS (SELECT 1 FROM U r WHERE r.id = l.id)",
        "SELECT a FROM T l WHERE NOT EXISTS (SELECT 1 FROM U r WHERE r.id = l.id)",
    ),
    "IN and EXISTS": (
        "SELECT a FROM T l WHERE l.b NOT IN (SELECT a FROM U)",
        "SELECT a FROM T l WHERE NOT EXISTS (SELECT 1 FROM U r WHERE r.a = l.b)",
    ),
    "NULL-safe equality": ("SELECT a FROM T WHERE b <=> 2", "SELECT a FROM T WHERE b = 2"),
    "NULL-safe joins": ("SELECT l.a FROM T l JOIN T r ON l.b <=> r.b", "SELECT l.a FROM T l JOIN T r ON l.b = r.b"),
    "distinct": ("SELECT DISTINCT a FROM T", "SELECT a FROM T"),
    "union and union all": ("SELECT a FROM T UNION SELECT a FROM U", "SELECT a FROM T UNION ALL SELECT a FROM U"),
    "set operators": ("SELECT a FROM T EXCEPT SELECT a FROM U", "SELECT a FROM T INTERSECT SELECT a FROM U"),
    "sides of EXCEPT": ("SELECT a FROM T EXCEPT SELECT a FROM U", "SELECT a FROM U EXCEPT SELECT a FROM T"),
    "count": ("SELECT s, count(*) AS c FROM T GROUP BY s", "SELECT s, count(b) AS c FROM T GROUP BY s"),
    "count distinct": ("SELECT s, count(a) AS c FROM T GROUP BY s", "SELECT s, count(DISTINCT a) AS c FROM T GROUP BY s"),
    "sum distinct": ("SELECT s, sum(a) AS c FROM T GROUP BY s", "SELECT s, sum(DISTINCT a) AS c FROM T GROUP BY s"),
    "aggregates": ("SELECT s, sum(a) AS c FROM T GROUP BY s", "SELECT s, sum(b) AS c FROM T GROUP BY s"),
    "filtered aggregates": (
        "SELECT s, sum(a) FILTER (WHERE b > 1) AS c FROM T GROUP BY s",
        "SELECT s, sum(a) FILTER (WHERE b > 2) AS c FROM T GROUP BY s",
    ),
    "groups": ("SELECT count(a) AS c FROM T GROUP BY a", "SELECT count(a) AS c FROM T GROUP BY a, b"),
    "grouping sets": ("SELECT a, count(id) AS c FROM T GROUP BY a WITH ROLLUP", "SELECT a, count(id) AS c FROM T GROUP BY a"),
    "rollup and cube": (
        "SELECT a, s, count(id) AS c FROM T GROUP BY ROLLUP (a, s)",
        "SELECT a, s, count(id) AS c FROM T GROUP BY CUBE (a, s)",
    ),
    "frames": (
        "SELECT id, sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM T",
        "SELECT id, sum(a) OVER (ORDER BY b RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM T",
    ),
    "bounds of frames": (
        "SELECT id, sum(a) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM T",
        "SELECT id, sum(a) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS v FROM T",
    ),
    "order in windows": (
        "SELECT id, rank() OVER (ORDER BY b NULLS FIRST) AS v FROM T",
        "SELECT id, rank() OVER (ORDER BY b NULLS LAST) AS v FROM T",
    ),
    "ranks": ("SELECT id, rank() OVER (ORDER BY b) AS v FROM T", "SELECT id, dense_rank() OVER (ORDER BY b) AS v FROM T"),
    "nulls of windows": (
        "SELECT id, lead(b) IGNORE NULLS OVER (ORDER BY id) AS v FROM T",
        "SELECT id, lead(b) OVER (ORDER BY id) AS v FROM T",
    ),
    "order and limit": ("SELECT a FROM T ORDER BY id LIMIT 3", "SELECT a FROM T ORDER BY id DESC LIMIT 3"),
    "limits": ("SELECT a FROM T ORDER BY id LIMIT 3", "SELECT a FROM T ORDER BY id LIMIT 4"),
    "offsets": ("SELECT a FROM T ORDER BY id LIMIT 3 OFFSET 1", "SELECT a FROM T ORDER BY id LIMIT 3"),
    "nulls in order": ("SELECT b FROM T ORDER BY b NULLS LAST LIMIT 3", "SELECT b FROM T ORDER BY b LIMIT 3"),
    "IN lists": ("SELECT id FROM T WHERE a IN (1, 2)", "SELECT id FROM T WHERE a IN (1, 3)"),
    "long IN lists": (
        "SELECT id FROM T WHERE a IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
        "SELECT id FROM T WHERE a IN (1, 2, 3, 4, 5, 6, 17, 8, 9, 10, 11, 12)",
    ),
    "AND and OR": ("SELECT id FROM T WHERE a = 1 OR b = 2 AND f > 1", "SELECT id FROM T WHERE (a = 1 OR b = 2) AND f > 1"),
    "patterns": ("SELECT id FROM T WHERE s LIKE '1%'", "SELECT id FROM T WHERE s LIKE '1_'"),
    "escapes": (r"SELECT id FROM T WHERE s LIKE '\\%'", r"SELECT id FROM T WHERE s LIKE '\\\\%'"),
    "raw strings": (r"SELECT concat(s, r'\n') AS v FROM T", r"SELECT concat(s, '\n') AS v FROM T"),
    "collations": ("SELECT id FROM T WHERE s = 'A' COLLATE UTF8_LCASE", "SELECT id FROM T WHERE s = 'A' COLLATE UTF8_BINARY"),
    "casts": ("SELECT CAST(CAST(f AS INT) AS DOUBLE) AS v FROM T", "SELECT f AS v FROM T"),
    "try_cast": ("SELECT try_cast(s AS INT) AS v FROM T", "SELECT CAST(s AS INT) AS v FROM T"),
    "lambdas": ("SELECT transform(arr, (x, i) -> x) AS v FROM T", "SELECT transform(arr, (x, i) -> i) AS v FROM T"),
    "lambda bodies": ("SELECT filter(arr, x -> x > 1) AS v FROM T", "SELECT filter(arr, x -> x > 2) AS v FROM T"),
    "lambda folds": (
        "SELECT aggregate(arr, 0, (acc, x) -> acc + x) AS v FROM T",
        "SELECT aggregate(arr, 0, (x, acc) -> acc + acc) AS v FROM T",
    ),
    "lateral views": ("SELECT v FROM T LATERAL VIEW explode(arr) e AS v", "SELECT v FROM T LATERAL VIEW OUTER explode(arr) e AS v"),
    "generators": ("SELECT v FROM T LATERAL VIEW explode(arr) e AS v", "SELECT v FROM T LATERAL VIEW explode(array(a)) e AS v"),
    "columns of generators": (
        "SELECT p AS v FROM T LATERAL VIEW posexplode(arr) e AS p, q",
        "SELECT q AS v FROM T LATERAL VIEW posexplode(arr) e AS p, q",
    ),
    "generated constants": (
        "SELECT hash(array(c), id) AS v FROM (SELECT explode(array(1, 2)) AS c, id FROM T)",
        "SELECT hash(array(c), id) AS v FROM (SELECT explode(array('1', '2')) AS c, id FROM T)",
    ),
    "pivots": (
        "SELECT * FROM (SELECT k, s, a FROM T) PIVOT (sum(a) FOR k IN ('x' AS p, 'y' AS q))",
        "SELECT * FROM (SELECT k, s, a FROM T) PIVOT (sum(a) FOR k IN ('y' AS p, 'x' AS q))",
    ),
    "samples": ("SELECT a FROM T TABLESAMPLE (50 PERCENT) REPEATABLE (1)", "SELECT a FROM T TABLESAMPLE (50 PERCENT) REPEATABLE (2)"),
    "values": ("SELECT v FROM VALUES (1), (2) AS x (v)", "SELECT v FROM VALUES (1), (3) AS x (v)"),
    "columns by position": ("SELECT p AS v FROM (SELECT a, b FROM T) AS x (p, q)", "SELECT p AS v FROM (SELECT a, b FROM T) AS x (q, p)"),
    "order of columns": ("SELECT a, b FROM T", "SELECT b, a FROM T"),
    "names of columns": ("SELECT a AS v FROM T", "SELECT a AS w FROM T"),
    "case of names": ("SELECT a AS v FROM T", "SELECT a AS V FROM T"),
    "types of columns": ("SELECT a AS v FROM T", "SELECT CAST(a AS BIGINT) AS v FROM T"),
    "an alias that captures a column": ("SELECT c.a FROM T c JOIN U e ON c.id = e.id", "SELECT c.a FROM T e JOIN U c ON c.id = e.id"),
    "names that change places": (
        "SELECT p.n, q.n AS o FROM (SELECT a AS n FROM T) p JOIN (SELECT b AS n FROM T) q ON p.n = q.n + 1",
        "SELECT q.n, p.n AS o FROM (SELECT a AS n FROM T) p JOIN (SELECT b AS n FROM T) q ON p.n = q.n + 1",
    ),
    "a name inside that becomes a column": (
        "SELECT sum(n) AS v FROM (SELECT a AS n, * FROM T)",
        "SELECT sum(id) AS v FROM (SELECT a AS id2, * FROM T)",
    ),
    "strings that look like ids": (
        "SELECT id FROM T WHERE s = 'a#1' AND k = concat(s, '1')",
        "SELECT id FROM T WHERE s = concat(k, '1') AND k = 'a#1'",
    ),
}

NOT_PROVEN = {
    "random": "SELECT rand() AS r, {0}.a FROM T {0}",
    "the time": "SELECT current_timestamp() AS n, {0}.a FROM T {0}",
    "the date, without brackets": "SELECT {0}.a FROM T {0} WHERE {0}.day < current_date",
    "the date, as a string": "SELECT {0}.a FROM T {0} WHERE {0}.day < DATE'today'",
    "a sample": "SELECT {0}.a FROM T TABLESAMPLE (50 PERCENT) {0}",
    "no rows at all": "SELECT {0}.a FROM T {0} WHERE false",
    "an answer from metadata": "SELECT min({0}.a) AS v FROM T {0}",
    "a name like an expression": "SELECT {0}.a AS `a + 1` FROM T {0}",
    "a query that fails": "SELECT {0}.nothing FROM T {0}",
}


@pytest.mark.parametrize("case", SAME)
def test_names_alone_are_proven_equal(tables: Tables, case: str) -> None:
    one, other = (tables.pinned(sql) for sql in SAME[case])
    assert missing_proof(tables.lake.engine, one, other) == ""
    assert _rows(tables, one) == _rows(tables, other)
    assert missing_proof(tables.lake.engine, one, other, has_travel=True)


@pytest.mark.parametrize("case", DIFFERENT)
def test_different_queries_are_never_equal(tables: Tables, case: str) -> None:
    one, other = (tables.pinned(sql) for sql in DIFFERENT[case])
    assert missing_proof(tables.lake.engine, one, other)


@pytest.mark.parametrize("case", NOT_PROVEN)
def test_what_no_plan_tells_is_not_proven(tables: Tables, case: str) -> None:
    one, other = (tables.pinned(NOT_PROVEN[case].format(alias)) for alias in ("o", "i"))
    assert missing_proof(tables.lake.engine, one, other)


BLIND = (
    "a cast that is folded",
    "constants that look alike",
    "decimal and double",
    "generated constants",
    "int and bigint",
    "nulls of windows",
    "strings that look like ids",
    "time zones of timestamps",
    "true and 'true'",
)


CASE = {
    "a key of a map": ("SELECT map('Foo', a, 'foo', b).Foo AS x FROM T", "SELECT map('Foo', a, 'foo', b).foo AS x FROM T"),
    "a key in an array": (
        "SELECT array(map('Foo', a, 'foo', b))[0].Foo AS x FROM T",
        "SELECT array(map('Foo', a, 'foo', b))[0].foo AS x FROM T",
    ),
    "a key behind an alias": (
        "SELECT q.Foo AS x FROM (SELECT map('Foo', a, 'foo', b) AS q FROM T) AS q",
        "SELECT q.foo AS x FROM (SELECT map('Foo', a, 'foo', b) AS q FROM T) AS q",
    ),
    "values of UNPIVOT": (
        "SELECT n FROM (SELECT a, b FROM T) UNPIVOT (v FOR n IN (A, b))",
        "SELECT n FROM (SELECT a, b FROM T) UNPIVOT (v FOR n IN (a, b))",
    ),
    "names of UNPIVOT": (
        "SELECT n FROM (SELECT a, b FROM T) UNPIVOT (v FOR n IN (a AS Foo, b))",
        "SELECT n FROM (SELECT a, b FROM T) UNPIVOT (v FOR n IN (a AS foo, b))",
    ),
    "a field of JSON": ("SELECT to_json(struct(day AS Date)) AS j FROM T", "SELECT to_json(struct(day AS date)) AS j FROM T"),
    "a field without AS": ("SELECT to_json(struct(A)) AS j FROM T", "SELECT to_json(struct(a)) AS j FROM T"),
    "a field of a type": (
        "SELECT to_json(CAST(named_struct('x', a) AS STRUCT<Foo: INT>)) AS j FROM T",
        "SELECT to_json(CAST(named_struct('x', a) AS STRUCT<foo: INT>)) AS j FROM T",
    ),
    "columns of a subquery": (
        "SELECT to_json(struct(q.*)) AS j FROM (SELECT a, b FROM T) AS q(Foo, bar)",
        "SELECT to_json(struct(q.*)) AS j FROM (SELECT a, b FROM T) AS q(foo, bar)",
    ),
    "zipped arrays": (
        "SELECT to_json(arrays_zip(Xs, Ys)) AS j FROM (SELECT arr AS Xs, arr AS Ys FROM T) AS q",
        "SELECT to_json(arrays_zip(xs, ys)) AS j FROM (SELECT arr AS Xs, arr AS Ys FROM T) AS q",
    ),
    "a tuple": ("SELECT to_json((A, b)) AS j FROM T", "SELECT to_json((a, b)) AS j FROM T"),
    "a field in an aggregate": (
        "SELECT to_json(max_by(struct(day AS Time), id)) AS j FROM T",
        "SELECT to_json(max_by(struct(day AS time), id)) AS j FROM T",
    ),
    "a column of PIVOT": (
        "SELECT to_json(struct(q.*)) AS j FROM (SELECT * FROM (SELECT a, k FROM T) PIVOT (sum(a) FOR k IN ('x' AS Foo, 'y' AS bar))) AS q",
        "SELECT to_json(struct(q.*)) AS j FROM (SELECT * FROM (SELECT a, k FROM T) PIVOT (sum(a) FOR k IN ('x' AS foo, 'y' AS bar))) AS q",
    ),
}
"""Names whose case is data."""


@pytest.mark.parametrize("case", CASE)
def test_case_that_is_data_is_never_equal(tables: Tables, case: str) -> None:
    one, other = (tables.pinned(sql) for sql in CASE[case])
    assert fingerprint(one) != fingerprint(other)
    first, second = (sorted(map(repr, tables.lake.sql(sql))) for sql in (one, other))
    assert missing_proof(tables.lake.engine, one, other) or first == second


def test_case_that_is_no_data_is_proven_equal(tables: Tables) -> None:
    one, other = tables.pinned("SELECT A + 1 AS x FROM T WHERE B > 1"), tables.pinned("SELECT a + 1 AS x FROM T WHERE b > 1")
    assert missing_proof(tables.lake.engine, one, other) == ""


@pytest.mark.parametrize("case", BLIND)
def test_plans_alone_do_not_tell(tables: Tables, case: str) -> None:
    """Why the texts are a second check. If this fails, Spark prints more than it did, and the proof may require less."""
    one, other = (tables.pinned(sql) for sql in DIFFERENT[case])
    assert same_plan(tables.lake.engine.explain(one), tables.lake.engine.explain(other))


def test_a_wide_table_is_not_cut_short(tables: Tables) -> None:
    columns = ", ".join(f"a + {n} AS c{n}" for n in range(60))
    one, other = (tables.pinned(f"SELECT {columns}, {alias}.id FROM T {alias}") for alias in ("o", "i"))
    assert missing_proof(tables.lake.engine, one, other) == ""


def _rows(tables: Tables, sql: str) -> list[str]:
    return sorted(map(str, tables.lake.engine.rows(sql, 10_000).rows))


@pytest.fixture(scope="module")
def edited(tables: Tables) -> Iterator[Any]:
    """The tables that `unit.equivalence.edits` reads, with NULLs."""
    tables.lake.sql(f"CREATE OR REPLACE TEMPORARY VIEW t AS SELECT id, a, b, s, day FROM {tables.t}")
    tables.lake.sql(f"CREATE OR REPLACE TEMPORARY VIEW u AS SELECT id, nullif(a, 3) AS x, CAST(id % 3 AS INT) AS y FROM {tables.u}")
    yield tables.lake
    for name in "tu":
        tables.lake.sql(f"DROP VIEW {name}")


@pytest.mark.parametrize("name", EDITS)
def test_what_a_text_shows_holds(edited: Any, name: str) -> None:
    old, new, *_ = EDITS[name]
    if "::" in old and installed_release().spark == "3.5":
        with pytest.raises(QueryError, match=r"^Syntax error at or near ':'\.$"):
            edited.engine.prepare(old)
        return
    one, other = (edited.engine.prepare(sql).schema for sql in (old, new))
    assert [(f["name"], f["type"]) for f in one["fields"]] == [(f["name"], f["type"]) for f in other["fields"]]
    assert sorted(map(repr, edited.sql(old))) == sorted(map(repr, edited.sql(new)))
