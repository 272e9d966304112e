from __future__ import annotations

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.parse import placeholder
from mvbuild.parse.model import Query
from mvbuild.parse.project import parse_text
from mvbuild.parse.sql import parse_query
from mvbuild.source import MappedText, SourceFile


def parsed(sql: str) -> Query:
    query, diagnostics = parse_query(MappedText.of(SourceFile("m.sql", sql)))
    assert [(d.code, d.message, str(d.span)) for d in diagnostics] == []
    assert query is not None
    for read in query.reads:
        assert read.span.text == query.sql.text[read.start : read.end]
    return query


def reads(sql: str) -> list[str]:
    """Each read as `text`, `text=alias`, with its qualifiers after it: `text[a b]`."""
    query = parsed(sql)
    text = query.sql.text
    out = []
    for read in query.reads:
        qualifiers = " ".join(f"{text[start:end]}@{start}" for start, end in read.qualifiers)
        out.append(
            f"{text[read.start : read.end]}@{read.start}"
            + (f"={read.alias}" if read.alias else "")
            + (f" [{qualifiers}]" if qualifiers else "")
        )
    return out


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", []),
        ("select * from t", ["t@14"]),
        ("select * from a.b.c.d", ["a.b.c.d@14"]),
        ("select * from a.b.c.d.e.f x", ["a.b.c.d.e.f@14=x"]),
        ("select * from a . b /* c */ . c", ["a . b /* c */ . c@14"]),
        ("select * from `a``x`.`b c`.`d.e` as `x y`", ["`a``x`.`b c`.`d.e`@14=x y"]),
        ("select * from 2020_t join t_2020.1a", ["2020_t@14", "t_2020.1a@26"]),
        ("select * from delta.`/p/x`", ["delta.`/p/x`@14"]),
        ("from t select a", ["t@5"]),
        ("from t", ["t@5"]),
        ("table t", ["t@6"]),
        ("table a.b union all table c", ["a.b@6", "c@26"]),
        ("with c as (table t) table c", ["t@17"]),
        ("select * from (table t) x where a in (table u)", ["t@21", "u@44"]),
        ("select * from f(table t)", ["t@22"]),
        ("select * from f(1, table(a.t))", ["a.t@25"]),
        ("select * from f(input => table(t), n => 1)", ["t@31"]),
        ("select * from f(table(select * from u))", ["u@36"]),
        ("values (1, 2)", []),
        ("select * from values (1) v(a), t", ["t@31"]),
        ("select * from range(10), explode(array(1)) e(x), inline(a), a.b.f(1), t x", ["t@70=x"]),
        ("select stack(2, 1, 2) as (a, b) from t", ["t@37"]),
        ("select * from t lateral view outer explode(t.arr) e as x", ["t@14 [t@43]"]),
        ("select * from t, lateral (select * from u where u.a = t.a) z", ["t@14 [t@54]", "u@40 [u@48]"]),
        ("select * from t cross join lateral explode(t.a) x", ["t@14 [t@43]"]),
        ("select * from t pivot (sum(a) for b in (1, 2)) as p where p.b = t.c", ["t@14 [t@64]"]),
        ("select * from t as x pivot (sum(a) for b in (1, 2))", ["t@14=x"]),
        ("select * from t unpivot (v for n in (a, b)) u", ["t@14"]),
        ("select * from t tablesample (10 percent) x", ["t@14=x"]),
        ("select * from t with ('split-size' = 5) x", ["t@14=x"]),
        ("select * from t join u using (id) natural join v left semi join w on t.a = w.a", ["t@14 [t@69]", "u@21", "v@47", "w@64 [w@75]"]),
        ("select * from (t join (select * from z) s on t.a = s.a)", ["t@15 [t@45]", "z@37"]),
        ("select * from ((t join u) join v)", ["t@16", "u@23", "v@31"]),
        (
            "select (select max(a) from u) from t where exists (select 1 from v) and x in (select y from w)",
            ["u@27", "t@35", "v@65", "w@92"],
        ),
        ("(select * from t) union (select * from u) except select * from v intersect select * from w", ["t@15", "u@39", "v@63", "w@89"]),
        ("select * from a minus select * from b", ["a@14", "b@36"]),
        ("select a from t group\nby a order \r\n\tby a", ["t@14"]),
        ("select a from t |> where t.a = 1", ["t@14 [t@25]"]),
        ("from t |> where t.a = 1 |> select t.b |> join u on u.x = t.b", ["t@5 [t@16 t@34 t@57]", "u@46 [u@51]"]),
        ("select transform(a) using 'cat' as (x) from t", ["t@44"]),
        ("select /*+ BROADCAST(raw.t, u), COALESCE(3) */ * from raw.t join u x", ["raw.t@54 [raw.t@21]", "u@65=x"]),
        ("select extract(year from t.d), trim(both 'x' from t.a), t.a is not distinct from t.b from t", ["t@90 [t@25 t@50 t@56 t@81]"]),
    ],
)
def test_reads(sql: str, expected: list[str]):
    assert reads(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("with c as (select * from b), d as (select * from c) select * from d, C union all select * from e", ["b@25", "e@95"]),
        ("with a as (select * from b), b as (select * from a) select * from b", ["b@25"]),
        ("with c as (select * from c) select * from c", ["c@25"]),
        ("with recursive r(n) as (select 1 union all select n + 1 from r) select * from r", []),
        ("with c as (select 1) select * from (with d as (select * from c, d) select * from d, c) x", ["d@64"]),
        ("with c as (select 1) select * from s.c", ["s.c@35"]),
        ("with c as (select 1) select * from `C`", []),
        ("select * from (with c as (select 1) select * from c) x join c", ["c@60"]),
        ("with c as (select 1) (select * from c) union select * from c", []),
        ("with c as (from t) from c select * where exists (select 1 from c)", ["t@16"]),
        ("with c as (select 1) select * from t where t.a in (select x from c)", ["t@35 [t@43]"]),
    ],
)
def test_a_name_that_a_with_defines_is_no_table(sql: str, expected: list[str]):
    assert reads(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select lake.raw.t.a, raw.t.a, t.a, t.*, T.b.c, x.a, a from lake.raw.t", ["lake.raw.t@59 [lake.raw.t@7 raw.t@21 t@30 t@35 T@40]"]),
        ("select `t`.a, `b-c`.t.x from a.`b-c`.t", ["a.`b-c`.t@29 [`t`@7 `b-c`.t@14]"]),
        ("select x.t.a, y.t.a from x.t join y.t", ["x.t@25 [x.t@7]", "y.t@34 [y.t@14]"]),
        ("select * from x.t where exists (select 1 from y.t where x.t.a = y.t.a and t.b)", ["x.t@14 [x.t@56]", "y.t@46 [y.t@64 t@74]"]),
        ("select t.a from raw.t as o join raw.u", ["raw.t@16=o", "raw.u@32"]),
        ("select t.a from raw.t, u as t", ["raw.t@16", "u@23=t"]),
        ("select * from (select orders.name from staging s) x join orders on orders.id = x.id", ["staging@39=s", "orders@57 [orders@67]"]),
        ("with c as (select t.a from s) select t.b from t, c", ["s@27", "t@46 [t@37]"]),
        ("select filter(arr, t -> t.b > 1), t.c from t", ["t@43 [t@34]"]),
        ("select * except (t.a) from t", ["t@27 [t@17]"]),
        ("select count(t.*), struct(t.*), t.m['k'], t.a.b[0].c from t", ["t@58 [t@13 t@26 t@32 t@42]"]),
        ("(select * from t) order by t.a", ["t@15 [t@27]"]),
        ("select a from t union select b from u order by t.a", ["t@14 [t@47]", "u@36"]),
        ("select t.a from (select * from t) order by t.b", ["t@31"]),
        ("select t.a.b.c.d.e from x.t", ["x.t@24 [t@7]"]),
        ("select sum(t.a) filter (where t.b) over (partition by t.c order by t.d) from t", ["t@77 [t@11 t@30 t@54 t@67]"]),
    ],
)
def test_qualifiers(sql: str, expected: list[str]):
    assert reads(sql) == expected


def test_refs_and_sources():
    orders, raw = placeholder.for_ref("my.orders"), placeholder.for_source("raw", "a b")
    query = parsed(f"select {orders}.id, `my.orders`.x, `a b`.y, raw.`a b`.z, '{orders}' from {orders} join {raw}")
    ref, source = query.reads
    assert (ref.kind, ref.parts, source.kind, source.parts) == ("ref", ("my.orders",), "source", ("raw", "a b"))
    text = query.sql.text
    assert [text[a:b] for a, b in ref.qualifiers] == [orders, "`my.orders`"]
    assert [text[a:b] for a, b in source.qualifiers] == ["`a b`", "raw.`a b`"]
    assert "'my.orders'" in text


@pytest.mark.parametrize(
    ("clause", "kind", "value"),
    [
        ("version as of 12", "version", 12),
        ("VERSION AS OF '12'", "version", 12),
        ("for version as of 'main'", "version", "main"),
        ("for system_version as of 7", "version", 7),
        ("system_version  as of 'b'", "version", "b"),
        ("timestamp as of '2026-01-01'", "timestamp", "2026-01-01"),
        ("for timestamp as of 1700000000", "timestamp", 1700000000),
        ("for system_time as of '2026-01-01'", "timestamp", "2026-01-01"),
        ("system_time as of date '2026-01-01'", "timestamp", "2026-01-01"),
        ("timestamp as of timestamp'2026-01-01'", "timestamp", "2026-01-01"),
    ],
)
@pytest.mark.parametrize("after", ["", " x", " as x", " tablesample (1 percent) x"])
def test_time_travel(clause: str, kind: str, value: object, after: str):
    (read,) = parsed(f"select * from a.t {clause}{after}").reads
    assert read.travel is not None
    assert (read.travel.kind, read.travel.value, read.travel.start, read.travel.end) == (kind, value, 18, 18 + len(clause))
    assert read.alias == ("x" if after else None)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select a, b as c, t.D, s.f.g, 1 x from t", ("a", "c", "D", "g", "x")),
        ("with c as (select *) select `a b` from c union select z from d", ("a b",)),
        ("from t select a", ("a",)),
        ("select stack(2, 1, 2) as (x, y)", ("x", "y")),
        ("select a, * from t", None),
        ("select t.* from t", None),
        ("select count(*) from t", None),
        ("from t", None),
        ("values (1)", None),
        ("with c as (select a, b x from t) select * from c", ("a", "x")),
        ("with c as (select a from t), d as (select * from C where a > 1) select * from d as e order by a", ("a",)),
        ("with c(p, q) as (select a, b from t) select distinct * from c", ("p", "q")),
        ("with c as (select a from t) select * from c union all select * from u", ("a",)),
        ("with c as (with c as (select a from t) select * from c) select * from c", ("a",)),
        ("with c as (select a, b from t) select * from c as e(p, q)", ("p", "q")),
        ("with c as (select a, b from t) select * from c e(p, q) where p > 1 order by q limit 3", ("p", "q")),
        ("with c as (select a, b from t) select * from c group by all", None),
        ("with c as (select * from c) select * from c", None),
        ("with c as (select * from d), d as (select a from t) select * from c", None),
        ("with c as (select a from t) select * from s.c", None),
        ("with c as (select a from t) select c.* from c", None),
        ("with c as (select a from t) select * except (a) from c", None),
        ("with c as (select a from t) select * from c join u", None),
        ("with c as (select a from t) select * from c, u", None),
        ("with c as (select a from t) select * from c lateral view explode(a) as x", None),
        ("with c as (select a, b from t) select * from c pivot (sum(a) for b in (1, 2))", None),
    ],
)
def test_columns(sql: str, columns: tuple[str, ...] | None):
    assert parsed(sql).columns == columns


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select a, b as c, t.D from t where e > 1 order by c", ("a", "b", "d", "e")),
        ("select * from t", ()),
        ("with c(p) as (select a from t) select p, q from c", ("a", "q")),
        ("select filter(a, x -> x > y) as f from t", ("a", "y")),
        ("select a, e.v from t lateral view explode(b) e as v", ("a", "b")),
        ("select stack(2, a, 2) as (x, y), x from t", ("a",)),
        ("select u.n, s from (select count(b) as n from t) as u", ("b", "s")),
        ("select s.f, t.s.f, r.t.a, x.g.h, u.v from r.t join y x", ("a", "g", "s", "u")),
    ],
)
def test_names_that_the_tables_must_have(sql: str, names: tuple[str, ...]):
    assert parsed(sql).names == names


@pytest.mark.parametrize("sql", ["select 1", "  select 1 ;", "-- head\nselect 1;\n-- tail", "/* a */ select 1 ;; -- b", "select 1 -- b"])
def test_the_query_is_the_text_between_comments(sql: str):
    query = parsed(sql)
    assert query.sql.text == "select 1"
    assert query.sql.span(7, 8).text == "1"


@pytest.mark.parametrize(
    ("sql", "code", "place", "word"),
    [
        ("", "empty-sql", "1:1", ""),
        ("-- nothing\n;", "empty-sql", "1:1", "-- nothing\n;"),
        ("select 1;\n  select 2", "many-statements", "2:3", "select"),
        ("\n insert into x select 1", "not-a-query", "2:2", "insert"),
        ("create table x as select 1", "not-a-query", "1:1", "create"),
        ("set a = 1", "not-a-query", "1:1", "set"),
        ("show tables", "not-a-query", "1:1", "show"),
        ("explain select 1", "not-a-query", "1:1", "explain"),
        ("with c as (select 1) insert into x select * from c", "not-a-query", "1:1", "with"),
        ("from t insert into x select *", "not-a-query", "1:1", "from"),
        ("selct a from t", "sql-syntax", "1:1", "selct"),
        ("select a b c\nfrom t", "sql-syntax", "1:12", "c"),
        ("select a,, b from t", "sql-syntax", "1:9", ","),
        ("select upper(map('a',))\nfrom t", "sql-syntax", "1:14", "map"),
        ("select a,\n  date_trunc() as b from t", "sql-syntax", "2:3", "date_trunc"),
        ("select *\nfrom a.b.values v", "sql-syntax", "2:10", "values"),
        ("select *\nfrom", "sql-syntax", "2:1", "from"),
        ("select (1", "sql-syntax", "1:9", "1"),
        ("select 1)", "sql-syntax", "1:9", ")"),
        ("with a as (select 1)", "sql-syntax", "1:20", ")"),
        ("select a:b.c from t", "sql-syntax", "1:11", "."),
        ("select 'it\n", "sql-syntax", "1:8", "'"),
        ("select 'a', -- it's\n  `b", "sql-syntax", "2:3", "`"),
        ("select 'a\\'b', \"c", "sql-syntax", "1:16", '"'),
        ("select 1 /* /* */", "sql-syntax", "1:10", "/*"),
        ("select 1 -- x \\\nfrom t", "sql-syntax", "1:10", "-- x \\"),
        ('select * from "t"', "sql-syntax", "1:15", '"t"'),
        ("select * from identifier('a.b')", "sql-syntax", "1:15", "identifier"),
        ("select * from $t", "sql-syntax", "1:16", "t"),
        ("select * from t version as of 1 + 1", "bad-time-travel", "1:17", "version as of 1"),
        ("select * from t\nversion as of 1L", "bad-time-travel", "2:1", "version as of 1L"),
        ("select * from t timestamp as of 'T10:00:00'", "bad-time-travel", "1:33", "'T10:00:00'"),
        ("select * from t timestamp as of '1767225600'", "bad-time-travel", "1:33", "'1767225600'"),
        ("select * from t timestamp as of date '2026-01-01 10:00:00'", "bad-time-travel", "1:38", "'2026-01-01 10:00:00'"),
        ("select * from t timestamp as of timestamp 'yesterday'", "bad-time-travel", "1:43", "'yesterday'"),
        (
            "select * from t timestamp as of timestamp_ntz '2026-01-01 00:00:00+02:00'",
            "bad-time-travel",
            "1:47",
            "'2026-01-01 00:00:00+02:00'",
        ),
        ("select * from t timestamp as of current_date()", "bad-time-travel", "1:17", "timestamp as of current_date"),
        ("select `__mvbuild_ref__:x` from t", "sql-syntax", "1:8", "`__mvbuild_ref__:x`"),
        ("select " + "(" * 20000 + "1" + ")" * 20000, "sql-syntax", "1:1", "select"),
        ("select " + "not " * 20000 + "true", "sql-syntax", "1:1", "select"),
        ("select " + "case when a then " * 9000 + "1" + " end" * 9000, "sql-syntax", "1:1", "select"),
        ("select * from " + "(select * from " * 20000 + "t" + ") a" * 20000, "sql-syntax", "1:1", "select"),
    ],
)
def test_diagnostics(sql: str, code: str, place: str, word: str):
    _, (diagnostic,) = parse_query(MappedText.of(SourceFile("m.sql", sql)))
    assert diagnostic.span is not None
    assert (diagnostic.code, str(diagnostic.span), diagnostic.span.text) == (code, f"m.sql:{place}", word)
    assert diagnostic.help
    assert "Token" not in diagnostic.message


def test_the_way_out_of_a_keyword():
    _, (diagnostic,) = parse_query(MappedText.of(SourceFile("m.sql", "select values from t")))
    assert diagnostic.help == "If values is a name, quote it with backticks: `values`."
    assert reads("select `values` from t") == ["t@21"]


def test_parse_text_raises_what_is_wrong():
    assert parse_text("lake.mart.v", "select * from a.b").reads[0].parts == ("a", "b")
    with pytest.raises(ProjectError) as raised:
        parse_text("lake.mart.v", "select * from t version as of a")
    assert str(raised.value.diagnostics[0].span) == "lake.mart.v:1:17"


TPC_H = {
    "q2": """
select s_acctbal, s_name, n_name, p_partkey from part, supplier, partsupp, nation, region
where p_partkey = ps_partkey and ps_supplycost = (
  select min(ps_supplycost) from partsupp, supplier, nation, region where part.p_partkey = ps_partkey and supplier.s_suppkey = ps_suppkey)
order by s_acctbal desc limit 100""",
    "q13": """
select c_count, count(*) as custdist from (
  select c_custkey, count(o_orderkey) from customer left outer join orders on c_custkey = o_custkey and o_comment not like '%a%b%'
  group by c_custkey) as c_orders (c_custkey, c_count)
group by c_count order by custdist desc, c_count desc""",
    "q15": """
with revenue as (select l_suppkey as supplier_no, sum(l_extendedprice * (1 - l_discount)) as total_revenue from lineitem
  where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval 3 month group by l_suppkey)
select s_suppkey, total_revenue from supplier, revenue where s_suppkey = supplier_no
  and total_revenue = (select max(total_revenue) from revenue) order by s_suppkey""",
    "q21": """
select s_name, count(*) as numwait from supplier, lineitem l1, orders, nation where s_suppkey = l1.l_suppkey
  and exists (select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey)
  and not exists (select * from lineitem l3 where l3.l_orderkey = l1.l_orderkey) group by s_name""",
}


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("q2", "part supplier partsupp nation region partsupp supplier nation region"),
        ("q13", "customer orders"),
        ("q15", "lineitem supplier"),
        ("q21", "supplier lineitem orders nation lineitem lineitem"),
    ],
)
def test_tpc_h(name: str, tables: str):
    query = parsed(TPC_H[name])
    assert [read.parts for read in query.reads] == [(table,) for table in tables.split()]


def test_a_correlated_qualifier_belongs_to_the_nearest_table():
    query = parsed(TPC_H["q2"])
    counts = [len(read.qualifiers) for read in query.reads]
    assert counts == [1, 0, 0, 0, 0, 0, 1, 0, 0]
