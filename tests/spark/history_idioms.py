"""Queries as real projects have them, over `{%a}` and `{%b}` with the columns k, v, day, s, f and d: each has one right bag of rows, however ties fall."""

from __future__ import annotations

_NUMBERED = "SELECT k, s, v, row_number() OVER (PARTITION BY k ORDER BY {order}) AS at FROM {{%a}}"

IDIOMS = (
    # Versions of a dimension, and the version that was valid.
    "SELECT k, s, day AS starts, lead(day) OVER (PARTITION BY k ORDER BY day, s, v) AS ends FROM {%a}",
    "SELECT x.k, x.v, c.s FROM {%b} x LEFT JOIN (SELECT k, s, day, coalesce(lead(day) OVER (PARTITION BY k ORDER BY day, s), DATE'9999-12-31') "
    "AS ends FROM {%a} WHERE day IS NOT NULL) c ON x.k = c.k AND x.day >= c.day AND x.day < c.ends",
    # The newest row, the best rows, the most frequent value.
    f"SELECT k, s, v FROM ({_NUMBERED.format(order='day DESC NULLS LAST, s, v')}) WHERE at = 1",
    f"SELECT k, s, v FROM ({_NUMBERED.format(order='v, s')}) WHERE at <= 2",
    "SELECT k, s, total FROM (SELECT k, s, sum(v) AS total, row_number() OVER (PARTITION BY k ORDER BY sum(v) DESC, s) AS at FROM {%a} "
    "GROUP BY k, s) WHERE at <= 2",
    "SELECT k, s FROM (SELECT k, s, row_number() OVER (PARTITION BY k ORDER BY count(*) DESC, s) AS at FROM {%a} GROUP BY k, s) WHERE at = 1",
    "SELECT k, max_by(struct(s, v), struct(day, s, v)) AS last FROM {%a} GROUP BY k",
    "SELECT k, v FROM {%a} WHERE day = (SELECT max(day) FROM {%a})",
    "SELECT x.k, count(*) AS n FROM {%a} x JOIN (SELECT k, max(day) AS last FROM {%a} GROUP BY k) m ON x.k = m.k AND x.day = m.last GROUP BY x.k",
    # Gaps, islands and visits.
    "SELECT k, island, min(day) AS first, max(day) AS last, count(*) AS n FROM (SELECT k, day, date_sub(day, CAST(row_number() OVER "
    "(PARTITION BY k ORDER BY day) AS INT)) AS island FROM (SELECT DISTINCT k, day FROM {%a} WHERE day IS NOT NULL)) GROUP BY k, island",
    "SELECT k, visit, count(*) AS n, max(day) AS last FROM (SELECT k, day, sum(new) OVER (PARTITION BY k ORDER BY day) AS visit FROM (SELECT k, "
    "day, if(datediff(day, lag(day) OVER (PARTITION BY k ORDER BY day)) <= 1, 0, 1) AS new FROM {%a} WHERE day IS NOT NULL)) GROUP BY k, visit",
    # Funnels, cohorts and retention.
    "SELECT k, max(CASE WHEN s = 'x' THEN 1 ELSE 0 END) AS saw, max(CASE WHEN s = 'y' THEN day END) AS bought, "
    "count(DISTINCT CASE WHEN f THEN day END) AS days FROM {%a} GROUP BY k",
    "SELECT sum(saw) AS saw, sum(saw * bought) AS both, sum(bought) / count(*) AS rate FROM (SELECT k, max(CASE WHEN s = 'x' THEN 1 ELSE 0 END) "
    "AS saw, max(CASE WHEN s = 'y' THEN 1 ELSE 0 END) AS bought FROM {%a} GROUP BY k)",
    "WITH firsts AS (SELECT k, min(trunc(day, 'MM')) AS cohort FROM {%a} GROUP BY k) SELECT firsts.cohort, CAST(months_between(trunc(x.day, 'MM'), "
    "firsts.cohort) AS INT) AS month, count(DISTINCT x.k) AS ks, count(*) AS n FROM {%a} x JOIN firsts ON x.k = firsts.k GROUP BY 1, 2",
    "SELECT x.day, count(DISTINCT x.k) AS ks, count(DISTINCT y.k) AS back FROM {%a} x LEFT JOIN {%b} y ON x.k = y.k AND y.day = date_add(x.day, 30) "
    "GROUP BY x.day",
    "SELECT c.day, count(x.k) AS n FROM (SELECT explode(sequence(DATE'2025-12-30', DATE'2026-01-03')) AS day) c LEFT JOIN {%a} x ON x.day = c.day "
    "GROUP BY c.day",
    # Running totals, shares, values that are filled in.
    "SELECT day, sum(n) OVER (ORDER BY day) AS so_far FROM (SELECT day, count(*) AS n FROM {%a} GROUP BY day)",
    "SELECT k, day, sum(sum(v)) OVER (PARTITION BY k ORDER BY day) AS so_far, rank() OVER (PARTITION BY k ORDER BY count(*) DESC) AS place "
    "FROM {%a} GROUP BY k, day",
    "SELECT k, s, count(*) AS n, count(*) / sum(count(*)) OVER (PARTITION BY k) AS share FROM {%a} GROUP BY k, s",
    "SELECT k, day, v, last_value(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY day, v) AS filled FROM {%a}",
    # Columns and rows that change places.
    "SELECT * FROM (SELECT k, s, v FROM {%a}) PIVOT (sum(v) AS total, count(v) AS n FOR s IN ('x', 'y' AS other))",
    "SELECT * FROM (SELECT s, k, v FROM {%a}) UNPIVOT (x FOR name IN (k, v))",
    "SELECT k, s, f, grouping_id() AS g, count(DISTINCT v) AS vs, count(*) AS n FROM {%a} GROUP BY GROUPING SETS ((k, s, f), (k), ())",
    "SELECT coalesce(CAST(k AS STRING), 'all') AS k, grouping(k) AS is_all, sum(v) / count(*) AS mean FROM {%a} GROUP BY CUBE (k, s) "
    "HAVING count(*) > 1",
    # Joins with what there is, what there is not, and what is near.
    "SELECT y.k, y.v FROM {%b} y LEFT ANTI JOIN {%a} x ON x.k = y.k AND x.v > 1",
    "SELECT y.k, y.s FROM {%b} y LEFT JOIN {%a} x ON x.k = y.k AND x.f WHERE x.k IS NULL",
    "SELECT x.k, y.s FROM {%a} x JOIN {%b} y ON x.day BETWEEN y.day AND date_add(y.day, 30)",
    "SELECT x.day, y.day AS other FROM {%a} x JOIN {%a} y ON x.k = y.k AND x.v < y.v",
    "SELECT coalesce(x.k, y.k) AS k, x.n, y.n AS m FROM (SELECT k, count(*) AS n FROM {%a} GROUP BY k) x FULL JOIN "
    "(SELECT k, count(*) AS n FROM {%b} GROUP BY k) y ON x.k <=> y.k",
    "SELECT b.s, c.n, count(*) AS rows, sum(x.d) AS total, count(x.d) AS ds FROM {%a} x JOIN {%b} b ON x.k = b.k LEFT JOIN "
    "(SELECT s, count(*) AS n FROM {%b} GROUP BY s) c ON c.s = x.s GROUP BY b.s, c.n",
    "SELECT y.k, y.v, (SELECT count(*) FROM {%a} x WHERE x.k = y.k AND x.f) AS n FROM {%b} y",
    "SELECT o.k, o.v FROM {%a} o WHERE o.v > (SELECT avg(i.v) FROM {%a} i WHERE i.k = o.k)",
    "SELECT y.k, t.v, t.day FROM {%b} y, LATERAL (SELECT v, day FROM {%a} x WHERE x.k = y.k ORDER BY v DESC, day LIMIT 1) t",
    "SELECT y.k, t.n, t.most FROM {%b} y LEFT JOIN LATERAL (SELECT count(*) AS n, max(v) AS most FROM {%a} x WHERE x.k = y.k) t",
    # Sources together, and apart.
    "SELECT src, k, count(*) AS n, max(day) AS last FROM (SELECT 'a' AS src, k, day FROM {%a} UNION ALL SELECT 'b', k, day FROM {%b}) GROUP BY src, k",
    "SELECT k, day FROM {%a} EXCEPT ALL SELECT k, day FROM {%b}",
    "SELECT k, s FROM {%a} INTERSECT ALL SELECT k, s FROM {%b}",
    # Keys of text, many aggregates, aggregates of aggregates.
    "SELECT md5(concat_ws('|', coalesce(CAST(k AS STRING), '_'), coalesce(s, '_'))) AS id, k, s, count(*) AS n, sum(v) AS total, count(v) AS vs "
    "FROM {%a} GROUP BY k, s",
    "SELECT k, count(*) FILTER (WHERE v > 0) AS n, max(v) FILTER (WHERE f) AS most, bool_and(f) AS every_f, sort_array(collect_set(s)) AS ss "
    "FROM {%a} GROUP BY k HAVING count(*) > 1",
    "SELECT k, percentile(v, 0.5) AS middle, array_join(sort_array(collect_set(s)), ',') AS ss, avg(d) AS mean FROM {%a} GROUP BY k",
    "SELECT n, count(*) AS ks, sum(total) AS total FROM (SELECT k, count(*) AS n, sum(v) AS total FROM {%a} GROUP BY k HAVING count(*) > 1) GROUP BY n",
)
