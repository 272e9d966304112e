from __future__ import annotations

from itertools import combinations

import pytest

from mvbuild.parse.fingerprint import fingerprint

SAME = [
    ("select a from t", "SELECT a\n  FROM t -- c\n;", "select /* x */ a from t;;"),
    ("select sum(x) as A from t group by y order by z", "Select SUM( x ) AS A from t group  by y Order\nby z"),
    ("select `a b` from t", "select  `a b`  from t"),
    ("select count(*) n from a join b on a.id=b.id", "select COUNT(*) n from a Join b ON a.id = b.id"),
    ("select a from t where b = 1 and c in (1,2)", "select a from t WHERE b=1 AND c IN ( 1 , 2 )"),
    ("with c as (select x from t) select y from c", "WITH c AS (SELECT x FROM t) SELECT y FROM c"),
    ("select case when a then b end as c from t", "select CASE WHEN a then b END AS c from t"),
    ("select date '2020-01-01' as d, cast(a as int) as i", "select DATE '2020-01-01' as d, CAST(a AS Int) AS i"),
    ("select extract(year from a) y, b + interval 1 day z from t", "SELECT EXTRACT(YEAR FROM a) y, b + INTERVAL 1 DAY z FROM t"),
    (
        "select sum(a) over (partition by b order by c desc nulls last) s from t",
        "SELECT Sum(a) Over (Partition By b Order By c DESC NULLS LAST) s FROM t",
    ),
]

ONLY_CASE = [
    ("SELECT map('Foo', a, 'foo', b).Foo AS x FROM t", "SELECT map('Foo', a, 'foo', b).foo AS x FROM t"),
    ("SELECT array(map('Foo', a))[0].Foo AS x FROM t", "SELECT array(map('Foo', a))[0].foo AS x FROM t"),
    ("SELECT m.Foo AS x FROM (SELECT map('Foo', a) AS m FROM t) AS m", "SELECT m.foo AS x FROM (SELECT map('Foo', a) AS m FROM t) AS m"),
    ("SELECT * FROM t UNPIVOT (v FOR k IN (A, b))", "SELECT * FROM t UNPIVOT (v FOR k IN (a, b))"),
    ("SELECT k FROM t UNPIVOT (v FOR k IN (a AS Foo, b))", "SELECT k FROM t UNPIVOT (v FOR k IN (a AS foo, b))"),
    ("SELECT to_json(struct(d AS Date)) AS j FROM t", "SELECT to_json(struct(d AS date)) AS j FROM t"),
    ("SELECT to_json(struct(Date)) AS j FROM t", "SELECT to_json(struct(date)) AS j FROM t"),
    ("SELECT to_json(struct(a End)) AS j FROM t", "SELECT to_json(struct(a end)) AS j FROM t"),
    ("SELECT to_json((A, b)) AS j FROM t", "SELECT to_json((a, b)) AS j FROM t"),
    ("SELECT to_json(CAST(s AS STRUCT<Foo: INT>)) AS j FROM t", "SELECT to_json(CAST(s AS STRUCT<foo: INT>)) AS j FROM t"),
    ("SELECT to_json(struct(q.*)) AS j FROM (VALUES (1)) AS q(Foo)", "SELECT to_json(struct(q.*)) AS j FROM (VALUES (1)) AS q(foo)"),
    ("SELECT to_json(arrays_zip(Xs, Ys)) AS j FROM t", "SELECT to_json(arrays_zip(xs, ys)) AS j FROM t"),
    ("SELECT max_by(struct(d AS Time), x) AS j FROM t", "SELECT max_by(struct(d AS time), x) AS j FROM t"),
    ("SELECT * FROM t PIVOT (sum(x) FOR k IN ('a' AS Foo))", "SELECT * FROM t PIVOT (sum(x) FOR k IN ('a' AS foo))"),
    ("SELECT * FROM t LATERAL VIEW explode(a) AS Foo", "SELECT * FROM t LATERAL VIEW explode(a) AS foo"),
    ("WITH c(Foo) AS (SELECT 1) SELECT * FROM c", "WITH c(foo) AS (SELECT 1) SELECT * FROM c"),
    ("SELECT Date FROM t", "SELECT date FROM t"),
    ("SELECT a Date FROM t", "SELECT a date FROM t"),
    ("SELECT Amount + 1 AS x FROM t", "SELECT amount + 1 AS x FROM t"),
]
"""Names can become data: only Spark can decide whether these are the same."""

DIFFERENT = [
    "select a from t",
    "select A from t",
    "select b as a from t",
    "select b as A from t",
    "select b A from t",
    "select `a` from t",
    "select `A` from t",
    "select current_date from t",
    "select `current_date` from t",
    "select 'a' from t",
    "select 'A' from t",
    "select a, b from t",
    "select a b from t",
    "select `a b` from t",
    "select 'a' 'b' from t",
    "select 'a''b' from t",
    "select 'ab' from t",
    "select r'a' from t",
    'select "a" from t',
    "select 10 from t",
    "select 10L from t",
    "select 10 L from t",
    "select 1.0 from t",
    "select 1.00 from t",
    "select t.1 from t",
    "select t .1 from t",
    "select percentile_cont(0.5) within group (order by x) from t",
    "select percentile_approx(x, 0.5) from t",
    "select /*+ BROADCAST(t) */ a from t",
    "select /*+ MERGE(t) */ a from t",
    "select m.Key as k from t",
    "select m.key as k from t",
    "select t.m.Key as k from t",
    "select t.m.key as k from t",
    "select struct(a) as s from t",
    "select struct(A) as s from t",
    "select * from (select a from t)",
    "select * from (select A from t)",
    "select a + b from t",
    "select A + b from t",
    "select stack(1, 2) as (a, b)",
    "select stack(1, 2) as (a, B)",
    "from t select a where b",
    "from t select A where b",
    "select a >= b as x",
    "select a > b as x",
    "select a from t union select a from t",
    "select a from t union all select a from t",
    "select a is distinct from B as x from t",
    "select a is distinct from B as y from t",
    "select 'unclosed from t",
    "select 'Unclosed from t",
]


@pytest.mark.parametrize("spellings", SAME, ids=lambda s: s[0])
def test_formatting_does_not_count(spellings: tuple[str, ...]):
    assert len({fingerprint(sql) for sql in spellings}) == 1


@pytest.mark.parametrize("spellings", ONLY_CASE, ids=lambda s: s[0])
def test_the_case_of_what_may_be_a_name_counts(spellings: tuple[str, str]):
    assert len({fingerprint(sql) for sql in spellings}) == 2


def test_different_queries_differ():
    fingerprints = {sql: fingerprint(sql) for sql in DIFFERENT}
    assert [(a, b) for a, b in combinations(DIFFERENT, 2) if fingerprints[a] == fingerprints[b]] == []


def test_the_hash_is_sha256_and_stable():
    assert fingerprint("select 1") == fingerprint("SELECT 1")
    assert len(fingerprint("select 1")) == 64
