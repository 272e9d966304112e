"""Columns, types, tables and origins that mvbuild finds in queries -> those of Spark's analyzer. Nothing is computed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from mvbuild.lineage.model import Column
from mvbuild.lineage.schemas import of_schema
from mvbuild.lineage.statement import BoundQuery, Input, bind_query
from mvbuild.parse.model import Query
from mvbuild.parse.project import parse_text
from spark.test_tpch import QUERIES as TPCH
from spark.test_tpch import analyzed_tables, in_sequence

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
import tpcds_queries

pytestmark = pytest.mark.proof

TPCH_TABLES = {
    "customer": "c_custkey bigint, c_name string, c_address string, c_nationkey bigint, c_phone string, c_acctbal decimal(15,2), "
    "c_mktsegment string, c_comment string",
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity decimal(15,2), "
    "l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag string, l_linestatus string, "
    "l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string, l_comment string",
    "nation": "n_nationkey bigint, n_name string, n_regionkey bigint, n_comment string",
    "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus string, o_totalprice decimal(15,2), o_orderdate date, "
    "o_orderpriority string, o_clerk string, o_shippriority int, o_comment string",
    "part": "p_partkey bigint, p_name string, p_mfgr string, p_brand string, p_type string, p_size int, p_container string, "
    "p_retailprice decimal(15,2), p_comment string",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost decimal(15,2), ps_comment string",
    "region": "r_regionkey bigint, r_name string, r_comment string",
    "supplier": "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, s_phone string, s_acctbal decimal(15,2), "
    "s_comment string",
}
SHAPES = {
    "t": "id bigint, a int, b string, c double, d date, ts timestamp, p decimal(12,2), arr array<int>, m map<string,int>, "
    "s struct<x:int,y:struct<z:string>>, items array<struct<sku:string,qty:int>>, ok boolean, f float, si smallint, n timestamp_ntz, y binary",
    "u": "id bigint, a int, e string, t_id bigint",
    "v": "id bigint, w string",
}
DUCKDB_SCHEMA = """
import duckdb, duckdb_extensions, json
duckdb_extensions.import_extension("tpcds")
connection = duckdb.connect()
connection.execute("LOAD tpcds")
connection.execute("CALL dsdgen(sf=0)")
print(json.dumps(connection.execute("SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY 1, ordinal_position").fetchall()))
"""

RIGHT = [
    "SELECT * FROM t",
    "SELECT t.*, u.e FROM t JOIN u USING (id)",
    "SELECT ID, T.A AS x FROM t",
    "SELECT id FROM t RIGHT JOIN v USING (id)",
    "SELECT id, v.id AS other FROM t FULL JOIN v USING (id)",
    "SELECT * FROM t NATURAL JOIN v",
    "SELECT u.* FROM t JOIN u USING (a)",
    "SELECT u.* FROM u JOIN t USING (a)",
    "SELECT u.*, v.* FROM u RIGHT JOIN v USING (id)",
    "SELECT u.* FROM u FULL JOIN t USING (a)",
    "SELECT * FROM u LEFT SEMI JOIN t USING (a)",
    "SELECT * FROM u LEFT ANTI JOIN t USING (a, id)",
    "SELECT p * -1 AS n, p + (1) AS o, -(p) AS m, abs(p) AS ap, abs(b) AS ab, -b AS nb, positive(a) AS po, negative(p) AS ne FROM t",
    "SELECT timestampdiff(MINUTE, ts, ts) AS td, dateadd(DAY, 1, d) AS da, date_add(DAY, 1, ts) AS dt, bit_count(a) AS bc, "
    "regexp_count(b, 'x') AS rc, json_array_length(b) AS ja, weekday(d) AS wd, width_bucket(c, 0, 1, 5) AS wb, array_position(arr, 1) AS ap, "
    "crc32(b) AS cr, rint(c) AS ri, sign(a) AS sg, sign(p) AS sp FROM t",
    "SELECT std(a) AS sd, median(a) AS me, median(p) AS mp, percentile_approx(p, 0.5) AS pa, percentile_approx(b, 0.5) AS pb FROM t",
    "SELECT concat('c', a) AS ca, 'c' || p AS cp, concat(b, ts) AS ct, array_intersect(arr, array(1.5D)) AS ai, array_except(arr, arr) AS ae, "
    "array_remove(arr, 1L) AS ar FROM t",
    "SELECT a FROM t UNION SELECT p FROM t",
    "SELECT coalesce(si, f) AS sf, CASE WHEN ok THEN a ELSE c END AS ac, nullif(p, a) AS np, lag(p, 1, 0) OVER (ORDER BY a) AS lp FROM t",
    "SELECT s.x, s.y.z, s.y, arr[0] AS first, m['k'] AS k, m.k AS k2, items.sku, items[0].qty FROM t",
    "SELECT S.X AS q, t.s.Y.z, lake.lineage.t.s.x AS w FROM t",
    "SELECT lake.lineage.t.id, lineage.t.a FROM lineage.t",
    "SELECT a + 1 AS one, one * 2 AS twice FROM t",
    "SELECT x.id FROM (SELECT id, id FROM t) x",
    "WITH q AS (SELECT id, count(*) AS n FROM t GROUP BY id) SELECT one.n, two.id FROM q one JOIN q two ON one.id = two.id",
    "WITH t AS (SELECT 1 AS one) SELECT one FROM t",
    "SELECT e.it.sku, it.qty, id FROM t LATERAL VIEW explode(items) e AS it",
    "SELECT k, val, pos, col FROM t LATERAL VIEW OUTER explode(m) AS k, val LATERAL VIEW posexplode(arr) p",
    "SELECT explode(m), id FROM t",
    "SELECT inline(items) FROM t",
    "SELECT stack(2, a, id, a, id) AS (one, two), b FROM t",
    "SELECT transform(arr, X -> x + a) AS r, filter(items, i -> i.qty > id) AS f, aggregate(arr, 0, (acc, x) -> acc + x) AS g FROM t",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id AND e = b) AND a IN (SELECT a FROM u WHERE u.id = t.id)",
    "SELECT (SELECT max(e) FROM u WHERE u.t_id = t.id) AS m FROM t",
    "SELECT a, b FROM t UNION ALL SELECT id, e FROM u",
    "SELECT a AS k FROM t INTERSECT SELECT a FROM u EXCEPT SELECT CAST(id AS int) FROM v ORDER BY k",
    "SELECT * EXCEPT (a, s, m) FROM t",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
    "SELECT * FROM (SELECT id, b, p FROM t) PIVOT (sum(p) AS s, count(*) AS n FOR b IN ('x', 'y' AS yy))",
    "SELECT x FROM (SELECT id, b, p FROM t) PIVOT (sum(p) AS s FOR b IN ('x', 'y' AS yy)) WHERE x > 1",
    "SELECT * FROM (SELECT id, a, id AS k FROM u) UNPIVOT (v FOR name IN (a, k AS kk))",
    "SELECT u.id, l.z FROM u, LATERAL (SELECT u.a + 1 AS z) l",
    "SELECT t.id FROM t LEFT SEMI JOIN u ON t.id = u.id LEFT ANTI JOIN v ON v.id = t.id",
    "SELECT b AS grp, count(*) FROM t GROUP BY grp ORDER BY grp LIMIT 3",
    "SELECT b, count(*) AS c FROM t GROUP BY ALL HAVING c > 1 ORDER BY c DESC",
    "SELECT b, d, sum(p) AS total FROM t GROUP BY ROLLUP (b, d)",
    "SELECT b, sum(a) FROM t GROUP BY 1 HAVING sum(a) > 2 ORDER BY max(id)",
    "SELECT s.* FROM t",
    "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS x(n, l)",
    "VALUES (1, 'a')",
    "SELECT id AS i FROM range(10)",
    "SELECT col1 FROM VALUES (1), (2)",
    "SELECT b, row_number() OVER w AS rn, lag(p) OVER w AS pr, sum(p) OVER (PARTITION BY b) AS su FROM t WINDOW w AS (PARTITION BY b ORDER BY d)",
    "SELECT b, grouping(b) AS g, grouping_id(b, d) AS gi FROM t GROUP BY CUBE (b, d)",
    "SELECT CAST(a AS string), CAST(a AS decimal(10,2)) * p AS x, a / 2 AS y, p / 3 AS z, p + 1 AS w, avg(p) OVER () AS v, p - 0.5 AS q FROM t",
    "SELECT p * p AS pp, p * p * p AS ppp, p / p AS pd, p % 7 AS pm, p + id AS pi, p * c AS pc, -p AS np, a % 2 AS am, id + a AS ia, si + si AS ss FROM t",
    "SELECT round(p, 1) AS r1, round(p) AS r0, round(c, 2) AS rc, ceil(p) AS cp, floor(c) AS fc, ceil(a) AS ca, abs(p) AS ap, round(a) AS ra FROM t",
    "SELECT sum(a) AS sa, sum(p) AS sp, sum(c) AS sc, sum(f) AS sf, avg(a) AS aa, avg(p) AS avp, min(b) AS mb, max(d) AS md, count(DISTINCT a) AS cd FROM t",
    "SELECT stddev(a) AS sd, variance(c) AS va, corr(a, c) AS co, approx_count_distinct(b) AS ad, collect_list(b) AS cl, collect_set(a) AS cs, "
    "max_by(b, a) AS mb, count_if(ok) AS ci, bool_or(ok) AS bo, any_value(d) AS av, percentile(a, 0.5) AS pe, first(b) AS fi, mode(b) AS mo FROM t",
    "SELECT year(d) AS y, month(ts) AS mo, date_add(d, 1) AS d1, d + 1 AS d2, d - d AS dd, date_sub(d, 2) AS d3, datediff(d, d) AS df, last_day(d) AS ld, "
    "add_months(d, 1) AS am, months_between(d, d) AS mb, trunc(d, 'MM') AS tr, date_trunc('day', ts) AS dt, to_date(b) AS td, hour(ts) AS h FROM t",
    "SELECT d + INTERVAL 1 DAY AS a1, ts + INTERVAL '1' HOUR AS a2, d - INTERVAL 1 MONTH AS a3, n + INTERVAL 1 DAY AS a4, d + INTERVAL '1' YEAR AS a5 FROM t",
    "SELECT datediff(DAY, d, d) AS x, timestampadd(HOUR, 1, ts) AS y, timestampdiff(MINUTE, ts, ts) AS z, extract(YEAR FROM d) AS e, date_part('year', d) AS q FROM t",
    "SELECT current_date AS cd, current_timestamp() AS ct, user AS us, now() AS nw FROM t",
    "SELECT upper(b) AS u, length(b) AS l, substring(b, 1, 2) AS s, concat(b, b) AS c, b || 'x' AS d, trim(b) AS t, split(b, ',') AS sp, "
    "instr(b, 'x') AS i, lpad(b, 3, ' ') AS lp, regexp_replace(b, 'a', 'b') AS rr, concat_ws(',', b, b) AS cw, md5(b) AS m5, substring(y, 1, 2) AS sy FROM t",
    "SELECT coalesce(a, id) AS co, nvl(b, 'x') AS nv, if(ok, a, id) AS i, CASE WHEN ok THEN p ELSE a END AS ca, greatest(a, id) AS g, nullif(a, 1) AS nu, "
    "coalesce(p, 0) AS c0, CASE a WHEN 1 THEN 'x' END AS cx, CASE WHEN ok THEN NULL ELSE d END AS cn FROM t",
    "SELECT struct(a, b AS bb) AS st, named_struct('q', 1, 'r', s.y) AS ns, array(1, 2) AS ar, map('a', 1) AS mp, map_keys(m) AS mk, size(arr) AS sz, "
    "array_contains(arr, 1) AS ac, element_at(m, 'k') AS ea, array_max(arr) AS ax, sort_array(arr) AS so, array_distinct(arr) AS ads FROM t",
    "SELECT 1 AS i, 3000000000 AS l, 1.50 AS d, .05 AS d2, 1e3 AS e, 1.5D AS dd, 10L AS ll, NULL AS n, true AS t, 'x' AS s, X'1F' AS b, DATE '2020-01-01' AS dt",
    "SELECT 1, 'x', NULL, count(*), sum(a), CAST(1 AS string) AS c FROM t",
    "SELECT sqrt(a) AS sq, power(a, 2) AS pw, ln(c) AS l, exp(c) AS ex, rand() AS r, hash(a) AS h, xxhash64(a) AS xh, a div 2 AS dv, a & 1 AS an, pi() AS pi FROM t",
    "SELECT a = 1 AS e, a <=> NULL AS n, b LIKE 'x%' AS l, a BETWEEN 1 AND 2 AS bt, a IS NULL AS i, NOT ok AS nt, b RLIKE 'x' AS r, ok AND a > 1 AS an FROM t",
    "SELECT to_timestamp(b) AS tt, unix_timestamp(ts) AS ut, from_unixtime(a) AS fu, date_format(d, 'y') AS df, to_utc_timestamp(ts, 'UTC') AS tu FROM t",
    "SELECT string(a) AS s, int(b) AS i, ts::date AS d, try_cast(b AS bigint) AS t, get_json_object(b, '$.a') AS j, to_json(s) AS tj FROM t",
    "SELECT hash(*) AS h, struct(*) AS st FROM v AS t",
    "SELECT `id`, `t`.`a` FROM t",
    "SELECT a AS `A b`, `A b` + 1 AS n FROM t",
    "SELECT k.id FROM (t JOIN v USING (id)) AS k",
    "SELECT x.id, z.w FROM t x JOIN (u y JOIN v z ON y.id = z.id) ON x.id = y.id",
    "SELECT t.id FROM t TABLESAMPLE (10 PERCENT)",
    "SELECT x.q FROM (SELECT id, a FROM u) AS x(q, r)",
    "SELECT id FROM t ORDER BY b, t.c",
    "SELECT d AS day FROM t WHERE day(d) = 1 GROUP BY day",
    "SELECT CAST(a AS bigint), items[0].qty AS q FROM t",
    "SELECT x.* FROM t LEFT JOIN (SELECT id AS k, count(*) AS n, max(e) AS e FROM u GROUP BY id) x ON x.k = t.id",
    "SELECT a FROM t WHERE a NOT IN (SELECT id FROM v)",
    "SELECT sum(a) FILTER (WHERE ok) AS s, count(*) FILTER (WHERE a > 1) AS n FROM t",
    "SELECT id FROM t WHERE (a, id) IN (SELECT a, id FROM u)",
    "SELECT max(struct(d, a)).a AS last, max_by(a, d) AS same FROM t",
    "WITH a AS (SELECT id FROM t), b AS (WITH a AS (SELECT t_id AS z FROM u) SELECT z FROM a) SELECT a.id, b.z FROM a, b",
    "SELECT concat(arr, arr) AS aa, reverse(arr) AS ra, slice(arr, 1, 2) AS sl, explode(arr) AS ex FROM t",
    "SELECT first_value(a) OVER w AS f, last_value(b) OVER w AS l, ntile(4) OVER w AS nt, percent_rank() OVER w AS pr, nth_value(d, 2) OVER w AS nv "
    "FROM t WINDOW w AS (PARTITION BY b ORDER BY d)",
    "SELECT weekofyear(d) AS w, dayofweek(d) AS dw, quarter(d) AS q, make_date(2020, 1, 1) AS md, next_day(d, 'MO') AS nd, minute(ts) AS mi FROM t",
    "SELECT replace(b, 'a', 'b') AS r, repeat(b, 2) AS rp, initcap(b) AS ic, reverse(b) AS rv, reverse(a) AS ra, reverse(d) AS rd, reverse(ok) AS ro, left(b, 1) AS le, right(b, 1) AS ri, sha2(b, 256) AS s2, "
    "translate(b, 'a', 'b') AS tr, substring_index(b, ',', 1) AS si, ascii(b) AS asc, base64(y) AS b6, hex(y) AS hx, uuid() AS uu, regexp_extract(b, 'x', 0) AS re FROM t",
    "SELECT isnull(a) AS i, isnotnull(a) AS n2, isnan(c) AS nn, startswith(b, 'x') AS st, contains(b, 'x') AS ct, arrays_overlap(arr, arr) AS ao, exists(arr, x -> x > 1) AS ex FROM t",
    "SELECT f + 1 AS f1, f * p AS fp, f / 2 AS fd, si + 1 AS s1, si * id AS sb, c % 2 AS cm, p / 2 AS p2, 1 - p AS m1, a * 1.5 AS a15, id / p AS ip FROM t",
    "SELECT sum(p * a) AS spa, sum(p * (1 - p)) AS sp1, avg(p / 3) AS ap3, sum(p) / count(*) AS mean, sum(CASE WHEN ok THEN p ELSE 0 END) AS sc FROM t",
    "SELECT avg(f) AS af, max(s) AS ms, min(arr) AS ma, sum(si) AS ss, bool_and(ok) AS ba, every(ok) AS ev, any(ok) AS an, percentile_approx(a, 0.5) AS pa FROM t",
    "SELECT trim(BOTH 'x' FROM b) AS tb, ltrim(b) AS lt, char_length(b) AS cl, position('x' IN b) AS po, locate('x', b) AS lo, overlay(b PLACING 'x' FROM 1) AS ov FROM t",
    "SELECT unix_date(d) AS ud, date_from_unix_date(a) AS df, from_utc_timestamp(ts, 'UTC') AS fu, date_trunc('month', d) AS dm, date_trunc('day', n) AS dn FROM t",
    "SELECT coalesce(si, a) AS c1, coalesce(f, p) AS c2, coalesce(c, a) AS c3, nvl2(a, b, b) AS nv, ifnull(d, ts) AS dt, coalesce(arr, array(1)) AS ca FROM t",
    "SELECT flatten(array(arr, arr)) AS fl, map_values(m) AS mv, array_position(arr, 1) AS ap, array_join(array(b), ',') AS aj, cardinality(arr) AS cd, array_min(arr) AS am FROM t",
    "SELECT bigint(a) AS b1, boolean(a) AS b2, double(a) AS b3, date(b) AS b4, timestamp(b) AS b5, binary(b) AS b6, float(a) AS b7, decimal(a) AS b8 FROM t",
    "SELECT sign(a) AS sg, cbrt(a) AS cb, log(2, a) AS lg, log10(a) AS l10, degrees(a) AS dg, atan2(a, a) AS a2, factorial(3) AS fc, pmod(a, 2) AS pm, bit_count(a) AS bc FROM t",
    "SELECT from_json(b, 'x int').x AS fx, json_tuple(b, 'k') AS jt FROM t",
    "SELECT t.a, q.n FROM t CROSS JOIN (SELECT count(*) AS n FROM u) q WHERE t.a = (SELECT min(a) FROM u WHERE u.id = t.id)",
    "SELECT a FROM (SELECT a, b FROM t UNION SELECT a, e FROM u) WHERE b IS NOT NULL",
    "SELECT DISTINCT b, dense_rank() OVER (ORDER BY max(a)) AS dr FROM t GROUP BY b",
    "SELECT if(ok, 1, NULL) AS i, CASE WHEN ok THEN 1 WHEN NOT ok THEN 2.5 END AS c, CASE WHEN ok THEN arr ELSE NULL END AS ca FROM t",
    "SELECT v.id FROM v LEFT OUTER JOIN u ON v.id = u.id AND u.e LIKE 'x%' WHERE u.id IS NULL",
    "SELECT id FROM t WHERE a IN (1, 2.5) AND d = '2020-01-01' AND ts > d AND b = 1 AND ok = 'true'",
]
"""Spark takes them, and so must we; what we say of names and types must be what Spark says."""

WRONG = {
    "SELECT nope FROM t": "unknown-column",
    "SELECT t.nope FROM t": "unknown-column",
    "SELECT x.id FROM t": "unknown-column",
    "SELECT t.id FROM t AS x": "unknown-column",
    "SELECT s.q FROM t": "unknown-column",
    "SELECT arr.x FROM t": "unknown-column",
    "SELECT a.x FROM t": "unknown-column",
    "SELECT b.x FROM t": "unknown-column",
    "SELECT id FROM t JOIN u ON t.id = u.id": "ambiguous-column",
    "SELECT t.id FROM t JOIN t ON true": "ambiguous-column",
    "SELECT x.id FROM (SELECT id, t_id AS id FROM u) x": "ambiguous-column",
    "SELECT u.id FROM t LEFT SEMI JOIN u ON t.id = u.id": "unknown-column",
    "SELECT z.id FROM (SELECT x.id FROM t x) y": "unknown-column",
    "SELECT * EXCEPT (nope) FROM t": "unknown-column",
    "SELECT nope.* FROM t": "unknown-column",
    "SELECT * FROM t JOIN v USING (w)": "unknown-column",
    "SELECT a FROM t ORDER BY nope": "unknown-column",
    "SELECT a FROM t GROUP BY a HAVING nope > 1": "unknown-column",
    "SELECT later + 1 AS m, a AS later FROM t": "unknown-column",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.nope = t.id)": "unknown-column",
    "SELECT transform(arr, x -> x + nope) FROM t": "unknown-column",
    "WITH q AS (SELECT nope FROM t) SELECT 1 AS one": "unknown-column",
    "SELECT q.id FROM t, (SELECT t.id FROM v) q": "unknown-column",
    "SELECT a FROM t UNION ALL SELECT a, id FROM u": "column-count",
    "SELECT * FROM (SELECT id, a FROM u) x(k)": "column-count",
    "WITH q(k) AS (SELECT id, a FROM u) SELECT k FROM q": "column-count",
    "SELECT arr FROM t UNION ALL SELECT a FROM u": "type-mismatch",
    "SELECT d FROM t UNION ALL SELECT a FROM u": "type-mismatch",
    "SELECT id FROM t WHERE arr = 1": "type-mismatch",
    "SELECT id FROM t WHERE s > 'x'": "type-mismatch",
    "SELECT id FROM t WHERE m = arr": "type-mismatch",
    "SELECT id FROM t WHERE d = 1": "type-mismatch",
    "SELECT id FROM t WHERE ts > 1.5": "type-mismatch",
    "SELECT id FROM t WHERE arr IN (1)": "type-mismatch",
    "SELECT id FROM t WHERE a": "type-mismatch",
    "SELECT id FROM t JOIN v USING (id) WHERE d": "type-mismatch",
    "SELECT t.id FROM t JOIN v ON t.id": "type-mismatch",
    "SELECT sum(arr) FROM t": "type-mismatch",
    "SELECT sum(ok) FROM t": "type-mismatch",
    "SELECT avg(d) FROM t": "type-mismatch",
    "SELECT sum(s) FROM t": "type-mismatch",
    "SELECT arr + 1 FROM t": "type-mismatch",
    "SELECT s * 2 FROM t": "type-mismatch",
    "SELECT current_catalog FROM t": "unknown-column",
    "SELECT x.a FROM t x WHERE x.id = (SELECT max(u.id) FROM u WHERE u.t_id = x.nope)": "unknown-column",
    "SELECT grouping(nope) FROM t GROUP BY CUBE (b)": "unknown-column",
    "SELECT CASE WHEN nope THEN 1 END FROM t": "unknown-column",
    "SELECT sum(a) OVER (PARTITION BY nope) FROM t": "unknown-column",
    "SELECT e.q FROM t LATERAL VIEW explode(items) e AS it": "unknown-column",
    "SELECT it.nope FROM t LATERAL VIEW explode(items) e AS it": "unknown-column",
    "SELECT id FROM v UNION SELECT nope FROM u": "unknown-column",
}
"""What is a finding here is an error of Spark's analyzer, in ANSI mode and out of it."""


@pytest.fixture(scope="module")
def spark(lake: Any) -> Any:
    session = lake.session.newSession()
    session.sql("CREATE NAMESPACE IF NOT EXISTS lake.lineage")
    for name, columns in SHAPES.items():
        session.sql(f"CREATE TABLE lake.lineage.{name} ({columns}) USING iceberg")
    session.sql("USE lake.lineage")
    return session


def known(tables: Mapping[str, str], spark: Any, namespace: str) -> dict[str, tuple[Column, ...]]:
    """By way of Iceberg's own schemas, as Spark reads the tables."""
    found = {}
    for name in tables:
        fields = spark.table(f"lake.{namespace}.{name}").schema.fields
        found[name] = tuple(Column(f.name, f.dataType.simpleString()) for f in fields)
    return found


def bound(sql: str, tables: Mapping[str, tuple[Column, ...]], namespace: str) -> tuple[Query, BoundQuery]:
    query = parse_text("q.sql", sql)
    inputs = []
    for read in query.reads:
        name = read.parts[-1].lower()
        spellings = (tuple(p.lower() for p in read.parts), ("lake", namespace, name))
        inputs.append(Input(columns=tables[name], complete=True, spellings=spellings))
    return query, bind_query(query, inputs)


@pytest.fixture(scope="module")
def shapes(spark: Any) -> dict[str, tuple[Column, ...]]:
    return known(SHAPES, spark, "lineage")


@pytest.fixture(scope="module")
def tpch_tables(spark: Any) -> dict[str, tuple[Column, ...]]:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.tpch")
    for name, columns in TPCH_TABLES.items():
        spark.sql(f"CREATE TABLE lake.tpch.{name} ({columns}) USING iceberg")
    return known(TPCH_TABLES, spark, "tpch")


@pytest.fixture(scope="module")
def tpcds(spark: Any) -> tuple[dict[str, str], dict[str, tuple[Column, ...]]]:
    """The queries, and empty tables of TPC-DS."""
    try:
        queries = tpcds_queries.queries()
        kept = tpcds_queries.CACHE / "schema.json"
        if not kept.exists():
            python = tpcds_queries.CACHE / "venv" / "bin" / "python"
            kept.write_text(subprocess.run([python, "-c", DUCKDB_SCHEMA], check=True, capture_output=True, text=True).stdout)
    except (OSError, subprocess.CalledProcessError) as exc:
        pytest.skip(f"TPC-DS cannot be fetched: {exc}")
    tables: dict[str, list[str]] = {}
    for table, column, type_ in json.loads(kept.read_text(encoding="utf-8")):
        tables.setdefault(table, []).append(f"{column} {'string' if type_.startswith(('VARCHAR', 'CHAR')) else type_}")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.tpcds")
    for name, columns in tables.items():
        spark.sql(f"CREATE TABLE lake.tpcds.{name} ({', '.join(columns)}) USING iceberg")
    return queries, known(dict.fromkeys(tables, ""), spark, "tpcds")


def differences(found: BoundQuery, frame: Any) -> list[str]:
    """Names and types, where we claim to know them."""
    fields = frame.schema.fields
    problems = [f"{f.code}: {f.message}" for f in found.findings]
    if not found.complete:
        return [*problems, "columns are not known"]
    if len(found.columns) != len(fields):
        return [*problems, f"{len(found.columns)} columns, and Spark has {len(fields)}"]
    for ours, theirs in zip(found.columns, fields, strict=True):
        type_ = theirs.dataType.simpleString()
        if ours.name not in (None, theirs.name):
            problems.append(f"name {ours.name}, and Spark has {theirs.name}")
        if ours.type not in (None, type_):
            problems.append(f"{theirs.name}: type {ours.type}, and Spark has {type_}")
    return problems


def origins(found: BoundQuery, query: Query) -> list[set[str]]:
    return [{f"{query.reads[b.read].parts[-1].lower()}.{b.column.lower()}" for b in bases} for bases in found.values]


@pytest.mark.parametrize("sql", RIGHT)
def test_what_spark_takes_has_the_columns_that_spark_says(sql: str, spark: Any, shapes: Any) -> None:
    query, found = bound(sql, shapes, "lineage")
    frame = spark.sql(sql)
    assert differences(found, frame) == []
    if (
        "stack(" not in sql and "LATERAL (" not in sql
    ):  # Spark does not distinguish the columns, or show where an outer reference comes from
        assert origins(found, query) == analyzed_origins(frame)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("sql", WRONG)
def test_what_is_found_is_an_error_of_spark(sql: str, ansi: str, spark: Any, shapes: Any) -> None:
    assert [f.code for f in bound(sql, shapes, "lineage")[1].findings] == [WRONG[sql]]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(AnalysisException):
            spark.sql(sql).schema  # noqa: B018
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("name", TPCH)
def test_tpch(name: str, spark: Any, tpch_tables: Any) -> None:
    spark.sql("USE lake.tpch")
    query, found = bound(TPCH[name], tpch_tables, "tpch")
    frame = spark.sql(TPCH[name])
    assert {f"lake.tpch.{read.parts[-1].lower()}" for read in query.reads} == analyzed_tables(frame)
    assert differences(found, frame) == []
    assert not found.unsure
    assert origins(found, query) == analyzed_origins(frame)


@pytest.mark.parametrize("number", range(1, 100))
def test_tpcds(number: int, spark: Any, tpcds: Any) -> None:
    queries, tables = tpcds
    sql = queries[f"q{number:02}"]
    spark.sql("USE lake.tpcds")
    query, found = bound(sql, tables, "tpcds")
    frame = spark.sql(sql)
    assert {f"lake.tpcds.{read.parts[-1].lower()}" for read in query.reads} == analyzed_tables(frame)
    assert differences(found, frame) == []
    assert not found.unsure
    assert origins(found, query) == analyzed_origins(frame)


# The plan of Spark's analyzer -> the base columns of each output


def analyzed_origins(frame: Any) -> list[set[str]]:
    plan = frame._jdf.queryExecution().analyzed()
    made: dict[int, set[int]] = {}
    bases: dict[int, str] = {}
    _visit(plan, made, bases, {})
    return [_bases(a.exprId().id(), made, bases, set()) for a in in_sequence(plan.output())]


def _bases(id: int, made: Mapping[int, set[int]], bases: Mapping[int, str], seen: set[int]) -> set[str]:
    if id in seen:
        return set()
    return {bases[id] for id in (id,) if id in bases}.union(*(_bases(other, made, bases, seen | {id}) for other in made.get(id, ())))


def _visit(plan: Any, made: dict[int, set[int]], bases: dict[int, str], ctes: dict[int, list[int]]) -> None:
    kind = plan.getClass().getSimpleName()
    if kind == "WithCTE":
        for definition in in_sequence(plan.cteDefs()):
            _visit(definition.child(), made, bases, ctes)
            ctes[definition.id()] = _ids(definition.child().output())
        _visit(plan.plan(), made, bases, ctes)
        return
    for child in in_sequence(plan.children()):
        _visit(child, made, bases, ctes)
    if kind == "DataSourceV2Relation":
        table = plan.table().name().split(".")[-1]
        bases.update({a.exprId().id(): f"{table}.{a.name()}".lower() for a in in_sequence(plan.output())})
    elif kind in ("CTERelationRef", "UnionLoopRef"):
        id = plan.cteId() if kind == "CTERelationRef" else plan.loopId()
        _pairs(_ids(plan.output()), [ctes.get(id, [])], made)
    elif kind in ("UnionLoop", "Union"):
        _pairs(_ids(plan.output()), [_ids(c.output()) for c in in_sequence(plan.children())], made)
    elif kind == "Generate":
        refs = _references(plan.generator(), made, bases, ctes)
        made.update(dict.fromkeys(_ids(plan.generatorOutput()), refs))
    elif kind == "Expand":
        rows = [list(in_sequence(p)) for p in in_sequence(plan.projections())]
        for i, id in enumerate(_ids(plan.output())):
            refs = set().union(*(_references(row[i], made, bases, ctes) for row in rows)) - {id}
            made.setdefault(id, set()).update(refs)
    else:
        for expressions in ("projectList", "aggregateExpressions", "windowExpressions"):
            if expressions in _METHODS.get(kind, ()):
                for e in in_sequence(getattr(plan, expressions)()):
                    if e.getClass().getSimpleName() == "Alias":
                        made[e.exprId().id()] = _references(e, made, bases, ctes)


_METHODS = {"Project": ("projectList",), "Aggregate": ("aggregateExpressions",), "Window": ("windowExpressions",)}


def _ids(attributes: Any) -> list[int]:
    return [a.exprId().id() for a in in_sequence(attributes)]


def _pairs(outputs: list[int], inputs: list[list[int]], made: dict[int, set[int]]) -> None:
    for i, id in enumerate(outputs):
        made.setdefault(id, set()).update(other[i] for other in inputs if i < len(other) and other[i] != id)


def _references(expression: Any, made: dict[int, set[int]], bases: dict[int, str], ctes: dict[int, list[int]]) -> set[int]:
    """The attributes of an expression; of a scalar subquery those of its output, not those that it is correlated by."""
    if "scalar-subquery" not in expression.toString():
        return {a.exprId().id() for a in in_sequence(expression.references().toSeq())}
    kind = expression.getClass().getSimpleName()
    if kind == "ScalarSubquery":
        _visit(expression.plan(), made, bases, ctes)
        return set(_ids(expression.plan().output())[:1])
    if kind == "AttributeReference":
        return {expression.exprId().id()}
    return set().union(*(_references(c, made, bases, ctes) for c in in_sequence(expression.children())))


def test_the_types_of_iceberg_are_those_of_spark(lake: Any, spark: Any) -> None:
    table = lake.catalog.load_table("lineage.t")
    ours = [(c.name, c.type) for c in of_schema(table.schema().model_dump())]
    assert ours == [(f.name, f.dataType.simpleString()) for f in spark.table("lake.lineage.t").schema.fields]
