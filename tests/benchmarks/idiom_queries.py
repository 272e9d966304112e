"""The idioms of real projects as queries over a small shop, its tables, and the statements of each kind of change."""

from __future__ import annotations

from dataclasses import dataclass

NAMESPACE = "lake.raw"

TABLES: dict[str, tuple[str, str]] = {
    # name: (columns, the query of its first rows)
    "orders": (
        "order_id BIGINT NOT NULL, customer_id BIGINT, product_id BIGINT, status STRING, amount DECIMAL(12, 2), order_date DATE, "
        "ordered_at TIMESTAMP, tags ARRAY<STRING>, payload STRING, loaded_at TIMESTAMP",
        "SELECT id, id % 13, id % 7, element_at(array('open', 'paid', 'returned'), CAST(id % 3 AS INT) + 1), CAST(id % 41 AS DECIMAL(12, 2)), "
        "date_add(DATE '{day}', CAST(id % 60 AS INT) - 50), TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, CAST(id * 17 AS INT)), "
        "array('a', concat('t', id % 5)), concat('{{\"campaign\": \"c', id % 4, '\"}}'), "
        "TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, CAST(id AS INT)) FROM range(1, 301)",
    ),
    "customers": (
        "customer_id BIGINT NOT NULL, name STRING, country STRING, segment STRING, updated_at TIMESTAMP",
        "SELECT id % 16, concat('n', id), element_at(array('DE', 'FR', 'IT'), CAST(id % 3 AS INT) + 1), "
        "element_at(array('vip', 'other'), CAST(id % 2 AS INT) + 1), TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, CAST(id AS INT)) "
        "FROM range(0, 40)",
    ),
    "products": (
        "product_id BIGINT NOT NULL, category STRING, price DECIMAL(12, 2), q1 INT, q2 INT, q3 INT, valid_from DATE, valid_to DATE",
        "SELECT id, concat('c', id % 3), CAST(id * 5 AS DECIMAL(12, 2)), CAST(id AS INT), CAST(id * 2 AS INT), CAST(id * 3 AS INT), "
        "DATE '2026-01-01', date_add(DATE '2026-01-01', CAST(id AS INT)) FROM range(0, 9)",
    ),
    "events": (
        "event_id BIGINT NOT NULL, customer_id BIGINT, kind STRING, page STRING, at TIMESTAMP, seconds INT",
        "SELECT id, id % 11, element_at(array('view', 'cart', 'buy'), CAST(id % 3 AS INT) + 1), concat('p', id % 6), "
        "TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, CAST((id * id) % 977 AS INT)), CAST(id % 90 AS INT) FROM range(1, 301)",
    ),
}  # fmt: skip
"""`{day}` is the first day."""

CHANGES: dict[str, tuple[str, ...]] = {
    "inserts": (
        "INSERT INTO orders SELECT 1000 + id, id, id % 7, 'paid', CAST(id + 30 AS DECIMAL(12, 2)), DATE '{day}', "
        "TIMESTAMP '2026-01-05 00:00:00' + make_interval(0, 0, 0, 0, 0, CAST(id AS INT)), array('a', 'new'), '{{\"campaign\": \"c9\"}}', "
        "TIMESTAMP '2026-12-01 00:00:00' FROM range(1, 5)",
        "INSERT INTO customers VALUES (3, 'again', 'DE', 'vip', TIMESTAMP '2026-06-01 00:00:00'), (99, 'first', 'US', 'vip', TIMESTAMP '2026-06-02 00:00:00')",
        "INSERT INTO products VALUES (50, 'c9', 7.00, 1, 2, 3, DATE '2026-01-01', DATE '2026-01-03')",
        "INSERT INTO events VALUES (1000, 3, 'buy', 'p1', TIMESTAMP '2026-01-04 10:00:00', 5), (1001, 77, 'view', 'p9', TIMESTAMP '2026-01-04 11:00:00', 6)",
    ),
    "updates": (
        "UPDATE orders SET amount = amount + 3, status = 'returned' WHERE order_id IN (5, 17, 1002)",
        "UPDATE customers SET country = 'IT', segment = NULL WHERE customer_id = 4",
        "UPDATE products SET price = price + 1, q2 = 77 WHERE product_id = 2",
        "UPDATE events SET kind = 'buy', seconds = 80 WHERE event_id IN (10, 44)",
    ),
    "deletes": (
        "DELETE FROM orders WHERE order_id IN (8, 9, 33, 1001) OR customer_id = 12",
        "DELETE FROM customers WHERE name IN ('n2', 'n39')",
        "DELETE FROM products WHERE product_id = 5",
        "DELETE FROM events WHERE event_id IN (12, 13) OR customer_id = 7",
    ),
}  # fmt: skip
"""Each kind of change affects every table. `{day}` is the first day."""


@dataclass(frozen=True)
class Idiom:
    name: str
    what: str
    sql: str
    """`current_date` is the only function of the clock."""

    @property
    def reads_the_day(self) -> bool:
        return "current_date" in self.sql


def _idioms(*rows: tuple[str, str, str]) -> tuple[Idiom, ...]:
    return tuple(Idiom(name, what, " ".join(sql.split())) for name, what, sql in rows)


IDIOMS = _idioms(
    ("dedup_where", "newest row of each key, `row_number() = 1`", "SELECT customer_id, order_id, status, amount FROM (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY loaded_at DESC, order_id) AS rn FROM orders) WHERE rn = 1"),
    ("dedup_then_mart", "a mart over a deduplicated table", "WITH c AS (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY updated_at DESC, name) AS rn FROM customers) WHERE rn = 1) SELECT c.country, sum(o.amount) AS revenue, count(*) AS n FROM orders AS o JOIN c ON o.customer_id = c.customer_id GROUP BY c.country"),
    ("latest_by_max_by", "latest value of each key, `max_by`", "SELECT customer_id, max_by(page, at) AS page, max(at) AS at FROM events GROUP BY customer_id"),
    ("star_join", "star join of a fact and dimensions", "SELECT o.order_id, o.amount, p.category, c.name FROM orders AS o JOIN products AS p ON o.product_id = p.product_id LEFT JOIN customers AS c ON o.customer_id = c.customer_id"),
    ("star_totals", "totals over a star join", "SELECT p.category, c.country, sum(o.amount) AS revenue, count(*) AS n FROM orders AS o JOIN products AS p ON o.product_id = p.product_id JOIN customers AS c ON o.customer_id = c.customer_id GROUP BY p.category, c.country"),
    ("scd2", "SCD 2: `valid_to` by `lead()`", "SELECT customer_id, name, country, updated_at AS valid_from, lead(updated_at) OVER (PARTITION BY customer_id ORDER BY updated_at) AS valid_to FROM customers"),
    ("as_of_join", "as-of join with the valid version", "WITH v AS (SELECT customer_id, country, updated_at AS since, lead(updated_at) OVER (PARTITION BY customer_id ORDER BY updated_at) AS until FROM customers) SELECT o.order_id, v.country FROM orders AS o LEFT JOIN v ON o.customer_id = v.customer_id AND o.loaded_at >= v.since AND (o.loaded_at < v.until OR v.until IS NULL)"),
    ("sessions", "sessions by a sum over a window", "WITH gaps AS (SELECT event_id, customer_id, at, CASE WHEN at - lag(at) OVER (PARTITION BY customer_id ORDER BY at, event_id) < INTERVAL 30 MINUTES THEN 0 ELSE 1 END AS starts FROM events) SELECT event_id, customer_id, sum(starts) OVER (PARTITION BY customer_id ORDER BY at, event_id) AS session FROM gaps"),
    ("sessions_totals", "totals of sessions", "WITH gaps AS (SELECT event_id, customer_id, at, seconds, CASE WHEN at - lag(at) OVER (PARTITION BY customer_id ORDER BY at, event_id) < INTERVAL 30 MINUTES THEN 0 ELSE 1 END AS starts FROM events), s AS (SELECT *, sum(starts) OVER (PARTITION BY customer_id ORDER BY at, event_id) AS session FROM gaps) SELECT customer_id, session, min(at) AS begun, count(*) AS events, sum(seconds) AS seconds FROM s GROUP BY customer_id, session"),
    ("session_windows", "sessions by `session_window`", "SELECT customer_id, session_window(at, '30 minutes').start AS begun, count(*) AS events, sum(seconds) AS seconds FROM events GROUP BY customer_id, session_window(at, '30 minutes')"),
    ("last_day", "rows of the last day, `d = (SELECT max(d) ...)`", "SELECT order_id, status, amount FROM orders WHERE order_date = (SELECT max(order_date) FROM orders)"),
    ("totals_of_last_day", "totals of the last day", "SELECT status, sum(amount) AS revenue, count(*) AS n FROM orders WHERE order_date = (SELECT max(order_date) FROM orders) GROUP BY status"),
    ("last_week", "rows of the last seven days of the data", "SELECT order_id, status, amount FROM orders WHERE order_date > (SELECT date_sub(max(order_date), 7) FROM orders)"),
    ("running_total", "running total", "SELECT customer_id, order_id, sum(amount) OVER (PARTITION BY customer_id ORDER BY order_date, order_id) AS so_far FROM orders"),
    ("running_total_of_days", "running total of daily totals", "WITH d AS (SELECT order_date, sum(amount) AS revenue FROM orders GROUP BY order_date) SELECT order_date, revenue, sum(revenue) OVER (ORDER BY order_date) AS so_far FROM d"),
    ("moving_average", "moving average", "SELECT product_id, order_id, avg(amount) OVER (PARTITION BY product_id ORDER BY order_date, order_id ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS mean FROM orders"),
    ("change_to_previous", "difference to the month before, `lag` over totals", "WITH m AS (SELECT product_id, trunc(order_date, 'MM') AS month, sum(amount) AS revenue FROM orders GROUP BY product_id, trunc(order_date, 'MM')) SELECT product_id, month, revenue - lag(revenue) OVER (PARTITION BY product_id ORDER BY month) AS change FROM m"),
    ("cohorts", "cohorts by the first month", "WITH f AS (SELECT customer_id, trunc(min(order_date), 'MM') AS cohort FROM orders GROUP BY customer_id) SELECT f.cohort, trunc(o.order_date, 'MM') AS month, count(DISTINCT o.customer_id) AS customers FROM orders AS o JOIN f ON o.customer_id = f.customer_id GROUP BY f.cohort, trunc(o.order_date, 'MM')"),
    ("funnel", "funnel with conditional aggregates", "WITH s AS (SELECT customer_id, max(CASE WHEN kind = 'view' THEN 1 ELSE 0 END) AS saw, max(CASE WHEN kind = 'cart' THEN 1 ELSE 0 END) AS carted, max(CASE WHEN kind = 'buy' THEN 1 ELSE 0 END) AS bought FROM events GROUP BY customer_id) SELECT sum(saw) AS saw, sum(carted) AS carted, sum(bought) AS bought FROM s"),
    ("pivot_by_case", "pivot by `CASE`", "SELECT product_id, sum(CASE WHEN status = 'paid' THEN amount ELSE 0 END) AS paid, sum(CASE WHEN status = 'returned' THEN amount ELSE 0 END) AS returned FROM orders GROUP BY product_id"),
    ("pivot", "`PIVOT`", "SELECT * FROM (SELECT product_id, status, amount FROM orders) PIVOT (sum(amount) FOR status IN ('paid' AS paid, 'returned' AS returned))"),
    ("unpivot", "`UNPIVOT`", "SELECT product_id, quarter, sold FROM (SELECT product_id, q1, q2, q3 FROM products) UNPIVOT (sold FOR quarter IN (q1, q2, q3))"),
    ("date_spine", "date spine up to today, with `LEFT JOIN`", "WITH days AS (SELECT explode(sequence(DATE '2026-01-01', current_date, INTERVAL 1 DAY)) AS day) SELECT d.day, count(o.order_id) AS n FROM days AS d LEFT JOIN orders AS o ON o.order_date = d.day GROUP BY d.day"),
    ("spine_of_rows", "a row for each day of validity", "SELECT product_id, day FROM products LATERAL VIEW explode(sequence(valid_from, valid_to, INTERVAL 1 DAY)) AS day"),
    ("having", "`HAVING`", "SELECT customer_id, sum(amount) AS spent FROM orders GROUP BY customer_id HAVING sum(amount) > 300"),
    ("ratio", "ratio of aggregates", "SELECT product_id, sum(amount) / nullif(count(*), 0) AS basket, CAST(count_if(status = 'returned') AS DOUBLE) / count(*) AS returned FROM orders GROUP BY product_id"),
    ("count_distinct", "`count(DISTINCT x)`", "SELECT page, count(DISTINCT customer_id) AS visitors FROM events GROUP BY page"),
    ("approximate_count", "`approx_count_distinct`", "SELECT page, approx_count_distinct(customer_id) AS visitors FROM events GROUP BY page"),
    ("percentile", "`percentile`", "SELECT page, percentile(seconds, 0.9) AS slow FROM events GROUP BY page"),
    ("collect_list", "`sort_array(collect_list)`", "SELECT customer_id, sort_array(collect_list(page)) AS pages FROM events GROUP BY customer_id"),
    ("listagg", "`listagg` in an order", "SELECT customer_id, listagg(kind, ',') WITHIN GROUP (ORDER BY kind) AS kinds FROM events GROUP BY customer_id"),
    ("kpis", "one row of key figures", "SELECT count(*) AS orders, sum(amount) AS revenue, count(DISTINCT customer_id) AS customers, avg(amount) AS basket FROM orders"),
    ("share_of_group", "share of a group, `sum(sum(x)) OVER (PARTITION BY k)`", "SELECT c.country, c.segment, sum(o.amount) AS revenue, sum(sum(o.amount)) OVER (PARTITION BY c.country) AS of_country FROM orders AS o JOIN customers AS c ON o.customer_id = c.customer_id GROUP BY c.country, c.segment"),
    ("kpis_of_several", "one row with several `count(DISTINCT x)` and the last day", "SELECT count(*) AS orders, count(DISTINCT customer_id) AS customers, count(DISTINCT product_id) AS products, max(order_date) AS last_day FROM orders"),
    ("last_load", "one row with the time of the last load", "SELECT count(*) AS n, max(loaded_at) AS loaded_at FROM orders"),
    ("by_month", "share of a month, `PARTITION BY` an expression", "SELECT order_id, amount, sum(amount) OVER (PARTITION BY trunc(order_date, 'MM')) AS of_month FROM orders"),
    ("of_two_groups", "windows by different keys", "SELECT order_id, sum(amount) OVER (PARTITION BY customer_id) AS of_customer, rank() OVER (PARTITION BY product_id ORDER BY amount DESC) AS place FROM orders"),
    ("flag", "a flag from `row_number()`", "SELECT order_id, amount, row_number() OVER (PARTITION BY customer_id ORDER BY order_date, order_id) = 1 AS is_first FROM orders"),
    ("percent_of_total", "share of everything, `sum(sum(x)) OVER ()`", "SELECT product_id, sum(amount) AS revenue, sum(amount) / sum(sum(amount)) OVER () AS share FROM orders GROUP BY product_id"),
    ("top_n", "top n of totals, `ORDER BY ... LIMIT`", "SELECT customer_id, sum(amount) AS spent FROM orders GROUP BY customer_id ORDER BY spent DESC, customer_id LIMIT 5"),
    ("top_rows", "top n of rows, `ORDER BY ... LIMIT`", "SELECT order_id, amount FROM orders ORDER BY amount DESC, order_id LIMIT 5"),
    ("top_of_each", "top n of each group, `rank() <= n`", "SELECT product_id, order_id, amount FROM (SELECT product_id, order_id, amount, rank() OVER (PARTITION BY product_id ORDER BY amount DESC) AS r FROM orders) WHERE r <= 2"),
    ("not_exists", "`NOT EXISTS`", "SELECT c.customer_id, c.name FROM customers AS c WHERE NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.customer_id = c.customer_id)"),
    ("not_in", "`NOT IN`", "SELECT product_id, category FROM products WHERE product_id NOT IN (SELECT product_id FROM orders)"),
    ("in_subquery", "`IN` with a subquery", "SELECT order_id, amount FROM orders WHERE customer_id IN (SELECT customer_id FROM customers WHERE segment = 'vip')"),
    ("in_pairs", "`IN` with two columns", "SELECT order_id, amount FROM orders WHERE (customer_id, order_date) IN (SELECT customer_id, max(order_date) FROM orders GROUP BY customer_id)"),
    ("in_case", "`IN` in a `CASE`", "SELECT customer_id, name, CASE WHEN customer_id IN (SELECT customer_id FROM orders WHERE amount > 200) THEN 'large' ELSE 'small' END AS size FROM customers"),
    ("by_a_test", "`GROUP BY` a `CASE` with `IN`", "SELECT CASE WHEN customer_id IN (SELECT customer_id FROM customers WHERE segment = 'vip') THEN 'vip' ELSE 'other' END AS kind, sum(amount) AS revenue FROM orders GROUP BY 1"),
    ("exists_in_or", "`EXISTS` in `OR`", "SELECT c.customer_id, c.name FROM customers AS c WHERE c.segment = 'vip' OR EXISTS (SELECT 1 FROM orders AS o WHERE o.customer_id = c.customer_id AND o.amount > 35)"),
    ("union_of_sources", "`UNION ALL` of sources", "SELECT customer_id, order_date AS day, 'order' AS source FROM orders UNION ALL SELECT customer_id, CAST(at AS DATE), 'event' FROM events"),
    ("union_distinct", "`UNION`", "SELECT customer_id FROM orders UNION SELECT customer_id FROM events"),
    ("except", "`EXCEPT`", "SELECT customer_id FROM customers EXCEPT SELECT customer_id FROM orders"),
    ("intersect", "`INTERSECT`", "SELECT customer_id FROM orders INTERSECT SELECT customer_id FROM events"),
    ("explode", "`LATERAL VIEW explode`", "SELECT tag, count(*) AS n, sum(amount) AS revenue FROM orders LATERAL VIEW explode(tags) AS tag GROUP BY tag"),
    ("json", "fields of JSON", "SELECT order_id, get_json_object(payload, '$.campaign') AS campaign, from_json(payload, 'campaign STRING').campaign AS again FROM orders"),
    ("left_join_of_aggregate", "`LEFT JOIN` of an aggregate", "SELECT c.customer_id, c.name, coalesce(t.spent, 0) AS spent FROM customers AS c LEFT JOIN (SELECT customer_id, sum(amount) AS spent FROM orders GROUP BY customer_id) AS t ON t.customer_id = c.customer_id"),
    ("self_join", "self join", "SELECT a.order_id, b.order_id AS other FROM orders AS a JOIN orders AS b ON a.customer_id = b.customer_id AND b.order_date BETWEEN date_sub(a.order_date, 6) AND a.order_date AND a.order_id <> b.order_id"),
    ("full_outer_join", "`FULL OUTER JOIN` of aggregates", "SELECT coalesce(o.customer_id, e.customer_id) AS customer_id, o.spent, e.visits FROM (SELECT customer_id, sum(amount) AS spent FROM orders GROUP BY customer_id) AS o FULL OUTER JOIN (SELECT customer_id, count(*) AS visits FROM events GROUP BY customer_id) AS e ON o.customer_id = e.customer_id"),
    ("correlated_subquery", "correlated scalar subquery", "SELECT c.customer_id, c.name, (SELECT max(o.order_date) FROM orders AS o WHERE o.customer_id = c.customer_id) AS last_order FROM customers AS c"),
    ("above_average", "scalar subquery over everything", "SELECT order_id, amount FROM orders WHERE amount > (SELECT avg(amount) FROM orders)"),
    ("surrogate_key", "surrogate key, `md5(concat_ws(...))`", "SELECT md5(concat_ws('|', CAST(order_id AS STRING), coalesce(status, ''))) AS key, order_id, amount FROM orders"),
    ("rollup", "`ROLLUP`", "SELECT country, segment, count(*) AS n FROM customers GROUP BY ROLLUP (country, segment)"),
    ("cube", "`CUBE`", "SELECT status, product_id, sum(amount) AS revenue FROM orders GROUP BY CUBE (status, product_id)"),
    ("rollup_of_time", "`ROLLUP` of expressions", "SELECT year(order_date) AS y, month(order_date) AS m, sum(amount) AS revenue, count(*) AS n FROM orders GROUP BY ROLLUP (year(order_date), month(order_date))"),
    ("recursive", "recursive query with a bound", "WITH RECURSIVE days (d) AS (SELECT DATE '2026-01-01' UNION ALL SELECT date_add(d, 1) FROM days WHERE d < DATE '2026-01-31') SELECT d, count(o.order_id) AS n FROM days LEFT JOIN orders AS o ON o.order_date = d GROUP BY d"),
    ("time_window", "`window(at, '1 hour')`", "SELECT window(at, '1 hour').start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"),
    ("rolling_days", "the last 30 days", "SELECT order_id, customer_id, amount, order_date FROM orders WHERE order_date >= current_date - 30"),
    ("rolling_totals", "totals of the last 7 and 30 days", "SELECT customer_id, sum(amount) AS month, count(*) AS n, sum(CASE WHEN order_date >= current_date - 7 THEN amount END) AS week FROM orders WHERE order_date >= current_date - 30 GROUP BY customer_id"),
    ("newest_rolling", "newest rows of each key, of the last 30 days", "SELECT order_id, status, amount FROM (SELECT *, row_number() OVER (PARTITION BY order_id ORDER BY loaded_at DESC, amount) AS r FROM orders) WHERE r = 1 AND order_date >= current_date - 30"),
    ("newest_rolling_totals", "totals of the newest rows of the last 30 days", "SELECT customer_id, count(*) AS n, sum(amount) AS amount FROM (SELECT *, row_number() OVER (PARTITION BY order_id ORDER BY loaded_at DESC, amount) AS r FROM orders) WHERE r = 1 AND order_date >= current_date - 30 GROUP BY customer_id"),
    ("newest_age", "newest rows in bands of days", "SELECT order_id, amount, CASE WHEN order_date >= current_date - 7 THEN 'new' ELSE 'old' END AS band FROM (SELECT *, row_number() OVER (PARTITION BY order_id ORDER BY loaded_at DESC, amount) AS r FROM orders) WHERE r = 1"),
    ("inactive", "customers without an order in 14 days", "SELECT customer_id, name FROM customers AS c WHERE NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.customer_id = c.customer_id AND o.order_date >= current_date - 14)"),
    ("age_bands", "age in bands of days", "SELECT CASE WHEN datediff(current_date, order_date) < 7 THEN 'new' WHEN datediff(current_date, order_date) < 30 THEN 'recent' ELSE 'old' END AS band, count(*) AS n, sum(amount) AS amount FROM orders GROUP BY 1"),
    ("ages", "age in days", "SELECT order_id, datediff(current_date, order_date) AS age FROM orders"),
)  # fmt: skip
