"""Which queries depend on the time zone of the session."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from mvbuild.freshness.zones import dependence_on_zone
from unit.freshness.zone_trials import SCHEMAS, connected, depends, query

STRUCT = {"type": "struct", "fields": [{"id": 7, "name": "at", "type": "timestamptz"}]}
TYPES = {"id": "long", "ts": "timestamptz", "d": "date", "n": "timestamp", "s": "string", "st": STRUCT}
A = {"fields": [{"id": at, "name": name, "type": type_} for at, (name, type_) in enumerate(TYPES.items())]}
"""raw.a"""
B = {"fields": [{"id": 1, "name": "id", "type": "long"}, {"id": 2, "name": "ts", "type": "date"}]}
"""raw.b, whose `ts` is another thing."""

INDEPENDENT = (
    "SELECT id, ts FROM raw.a",
    "SELECT * FROM raw.a",
    "SELECT a.* FROM raw.a a",
    "SELECT count(*), count(ts), count(DISTINCT ts), max(ts) AS m FROM raw.a",
    "SELECT ts, sum(id) AS x FROM raw.a GROUP BY ts ORDER BY ts DESC LIMIT 3",
    "SELECT id, row_number() OVER (PARTITION BY id ORDER BY ts) AS r FROM raw.a",
    "WITH m AS (SELECT id, max(ts) AS last FROM raw.a GROUP BY id) SELECT a.id, a.ts FROM raw.a a JOIN m ON a.id = m.id AND a.ts = m.last WHERE ts IS NOT NULL",
    "SELECT id, year(d) AS y, CAST(n AS DATE) AS e FROM raw.a WHERE d >= DATE '2026-01-01' AND s LIKE 'x%'",
    "SELECT st.at, st FROM raw.a",
    "SELECT id FROM raw.a WHERE EXISTS (SELECT 1 FROM raw.b b WHERE b.id = a.id)",
    "SELECT id, CAST(s AS DECIMAL(10,2)) + 1 AS v, CASE WHEN id > 1 THEN 'a' ELSE 'b' END AS c FROM raw.a",
    "SELECT id FROM raw.a UNION ALL SELECT id FROM raw.b",
    "SELECT max(ts) OVER (PARTITION BY id) AS m FROM raw.a",
    "SELECT DISTINCT ts FROM raw.a",
    "SELECT /*+ BROADCAST(a) */ id FROM raw.a VERSION AS OF 5",
    "SELECT id, min(ts) FILTER (WHERE id > 1) AS f FROM raw.a GROUP BY ALL",
    "SELECT x.ts FROM (SELECT ts FROM raw.a) x",
    "SELECT id FROM raw.a WHERE id IN (1,2) AND s BETWEEN 'a' AND 'b'",
    "SELECT to_date(s) FROM raw.a",
    "SELECT trunc(d, 'MM') AS m, add_months(d, 1) AS n, last_day(n) AS l, max(ts) AS t FROM raw.a GROUP BY ALL",
)
DEPENDENT = (
    "SELECT CAST(ts AS DATE) AS day FROM raw.a",
    "SELECT date(ts) FROM raw.a",
    "SELECT ts FROM raw.a WHERE ts >= '2026-01-01'",
    "SELECT ts FROM raw.a WHERE ts >= DATE '2026-01-01'",
    "SELECT ts FROM raw.a WHERE ts > n",
    "SELECT ts FROM raw.a WHERE ts >= TIMESTAMP '2026-01-01 00:00:00'",
    "SELECT hour(ts) FROM raw.a",
    "SELECT date_trunc('day', d) FROM raw.a",
    "SELECT date_trunc('day', ts) FROM raw.a",
    "SELECT trunc(ts, 'MM') FROM raw.a",
    "SELECT last_day(ts) FROM raw.a",
    "SELECT ts FROM raw.a UNION ALL SELECT d FROM raw.a",
    "SELECT coalesce(ts, d) FROM raw.a",
    "SELECT CAST(a AS STRING) FROM raw.a AS a",
    "SELECT to_json(st) FROM raw.a",
    "SELECT CAST(st.at AS STRING) FROM raw.a",
    "SELECT st.at || '' AS x FROM raw.a",
    "SELECT concat_ws('|', *) FROM raw.a",
    "SELECT p FROM raw.a AS t(i, p, d, n, s, st) WHERE CAST(p AS DATE) = d",
    "SELECT d + INTERVAL 1 HOUR FROM raw.a",
    "SELECT id FROM raw.a WHERE d = (SELECT max(ts) FROM raw.a)",
    "SELECT id FROM raw.a WHERE d IN (SELECT ts FROM raw.a)",
    "SELECT id FROM raw.a WHERE d IN (SELECT * FROM raw.a)",
    "WITH x AS (SELECT ts AS q FROM raw.a) SELECT year(q) FROM x",
    "SELECT CAST(s AS TIMESTAMP) FROM raw.a",
    "SELECT TIMESTAMP '2026-01-01 00:00:00' AS x",
    "SELECT from_unixtime(id) FROM raw.a",
    "SELECT unix_timestamp(s) FROM raw.a",
    "SELECT to_timestamp(s) FROM raw.a",
    "SELECT f(id) FROM raw.a",
    "SELECT months_between(d, n) FROM raw.a",
    "SELECT date_format(d, 'yyyy') FROM raw.a",
    "SELECT to_date(s, 'yyyy') FROM raw.a",
    "SELECT ts BETWEEN n AND n FROM raw.a",
    "SELECT CASE WHEN ts > n THEN 1 END FROM raw.a",
    "SELECT max(ts) + 1 FROM raw.a",
    "SELECT * FROM raw.a UNION ALL SELECT * FROM raw.b",
    "SELECT m FROM (SELECT max(ts) AS m FROM raw.a) WHERE m > '2026'",
    "SELECT struct(ts) FROM raw.a",
    "SELECT lag(ts, 1, n) OVER (ORDER BY id) FROM raw.a",
    "SELECT greatest(ts, n) FROM raw.a",
    "SELECT id FROM raw.a PIVOT (max(s) FOR ts IN ('2026-01-01'))",
    "SELECT CAST(ts AS LONG) FROM raw.a",
    "SELECT current_timezone() FROM raw.a",
    "SELECT window(ts, '1 day') FROM raw.a",
    "SELECT extract(hour FROM ts) FROM raw.a",
    "SELECT from_json(s, 'a timestamp') FROM raw.a",
)


@pytest.mark.parametrize("sql", INDEPENDENT)
def test_the_same_everywhere(sql: str) -> None:
    assert dependence_on_zone([sql], [A]) == ""


@pytest.mark.parametrize("sql", DEPENDENT)
def test_not_known_to_be_the_same(sql: str) -> None:
    assert dependence_on_zone([sql], [A])


def test_a_name_that_is_an_instant_in_one_table_only() -> None:
    for sql in ("SELECT a.id FROM raw.a JOIN raw.b USING (ts)", "SELECT a.id FROM raw.a NATURAL JOIN raw.b", "SELECT max(ts) FROM raw.b"):
        assert dependence_on_zone([sql], [A, B])
    assert dependence_on_zone(["SELECT a.id FROM raw.a JOIN raw.b USING (id)"], [A, B]) == ""


def test_a_field_that_is_an_instant_in_one_struct_only() -> None:
    def struct(id_: int, of: str) -> object:
        return {"type": "struct", "fields": [{"id": id_, "name": "a", "type": of}]}

    schema = {
        "fields": [{"id": 1, "name": "s1", "type": struct(3, "timestamptz")}, {"id": 2, "name": "s2", "type": struct(4, "timestamp")}]
    }
    assert dependence_on_zone(["SELECT 1 AS x FROM t WHERE s1.a = s2.a"], [schema])
    both = {"fields": [{**schema["fields"][0]}, {"id": 2, "name": "s2", "type": struct(4, "timestamptz")}]}
    assert not dependence_on_zone(["SELECT 1 AS x FROM t WHERE s1.a = s2.a"], [both])


def test_a_view_below_counts() -> None:
    assert dependence_on_zone(["SELECT day FROM v", "SELECT CAST(ts AS DATE) AS day FROM raw.a"], [A]) == "CAST(ts AS DATE)"


def test_without_instants_dates_and_functions_are_free() -> None:
    assert dependence_on_zone(["SELECT year(ts) AS y, CAST(ts AS STRING) AS s, id FROM raw.b UNION ALL SELECT 1, '2', 3"], [B]) == ""


@pytest.mark.proof
def test_no_random_query_that_differs_is_taken_for_the_same() -> None:
    random, db, seen = Random(12), connected(), Counter[tuple[bool, bool]]()
    for _ in range(1500):
        sql = query(random)
        differs = depends(db, sql)
        if differs is not None:
            found = bool(dependence_on_zone([sql], SCHEMAS))
            assert found or not differs, sql
            seen[found, differs] += 1
    assert seen[True, True] > 100
    assert seen[False, False] > 100
