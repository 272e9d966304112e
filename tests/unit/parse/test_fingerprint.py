from __future__ import annotations

from itertools import combinations

import pytest

from mvbuild.parse.fingerprint import fingerprint

SAME = [
    ("select a from t", "SELECT a\n  FROM T -- c\n;", "select /* x */ a from t;;"),
    ("select sum(x) as A from t group by y order by z", "Select SUM( X ) AS A from t group  by Y order\nby Z"),
    ("select `a b` from t", "select  `a b`  from t"),
    ("select count(*) n from a join b on a.id=b.id", "select COUNT(*) n from A join B on A.ID = B.id"),
    ("select a from t where b = 1 and c in (1,2)", "select a from t where B=1 AND C IN ( 1 , 2 )"),
    ("with c as (select x from t) select y from c", "WITH C AS (SELECT X FROM T) SELECT y FROM C"),
    ("select lake.raw.t.id from lake.raw.t", "select LAKE.Raw.t.id from Lake.raw.T"),
    ("select case when a then b end as c from t", "select CASE WHEN A then B end AS c from t"),
    ("select date '2020-01-01' as d", "select DATE '2020-01-01' as d"),
    ("select a from t1, t2 where t2.x = t1.y", "select a from t1, t2 where T2.X = T1.Y"),
]

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


def test_different_queries_differ():
    fingerprints = {sql: fingerprint(sql) for sql in DIFFERENT}
    assert [(a, b) for a, b in combinations(DIFFERENT, 2) if fingerprints[a] == fingerprints[b]] == []


def test_the_hash_is_sha256_and_stable():
    assert fingerprint("select 1") == fingerprint("SELECT 1")
    assert len(fingerprint("select 1")) == 64
