"""Queries with operators that have several forms in Spark: grouping sets, PIVOT and windows of time."""

from __future__ import annotations

from unit.incremental.realistic import Realistic

_COUNTED = "SELECT country, segment, count(*) AS n, sum(credit) AS s FROM {customers}"
_SOLD = "(SELECT product_id, channel, status, amount, quantity, order_date FROM {orders})"
QUERIES = (
    Realistic("cube", f"{_COUNTED} GROUP BY CUBE (country, segment)"),
    Realistic("with_rollup", f"{_COUNTED} GROUP BY country, segment WITH ROLLUP"),
    Realistic("with_cube", f"{_COUNTED} GROUP BY country, segment WITH CUBE"),
    Realistic("grouping_sets", f"{_COUNTED} GROUP BY GROUPING SETS ((segment), (country, segment), ())"),
    Realistic("grouping_sets_behind", f"{_COUNTED} GROUP BY country, segment GROUPING SETS ((segment), (country, segment), ())"),
    Realistic("grouping_set_of_all", "SELECT count(*) AS n FROM {customers} GROUP BY GROUPING SETS (())"),
    Realistic("crossed_sets", f"{_COUNTED} GROUP BY is_active, ROLLUP (country), CUBE (segment)"),
    Realistic("crossed_in_another_order", f"{_COUNTED} GROUP BY GROUPING SETS ((country), (segment)), is_active"),
    Realistic("nested_sets", f"{_COUNTED} GROUP BY GROUPING SETS (ROLLUP (country, segment), (is_active))"),
    Realistic("compound_keys", f"{_COUNTED} GROUP BY CUBE ((country, segment), is_active)"),
    Realistic("grouping_functions", "SELECT country, segment, grouping(country) AS a, grouping(segment) AS b, grouping_id() AS c, grouping_id(country, segment) AS d, count(*) AS n FROM {customers} GROUP BY CUBE (country, segment)"),
    Realistic("sets_of_expressions", "SELECT month, c, sum(amount) AS s FROM (SELECT trunc(order_date, 'MM') AS month, upper(channel) AS c, amount FROM {orders}) GROUP BY ROLLUP (month, c)"),
    Realistic("sets_by_alias_and_position", "SELECT order_date AS day, channel, sum(amount) AS s FROM {orders} GROUP BY ROLLUP (day, 2)"),
    Realistic("aggregate_of_a_key", "SELECT product_id, channel, max(product_id) AS m, count(channel) AS n FROM {orders} GROUP BY ROLLUP (product_id, channel)"),
    Realistic("distinct_in_sets", "SELECT channel, status, count(DISTINCT customer_id) AS n, count(*) FILTER (WHERE amount > 10) AS m FROM {orders} GROUP BY CUBE (channel, status)"),
    Realistic("having_grouping", f"{_COUNTED} GROUP BY ROLLUP (country, segment) HAVING grouping(segment) = 0 AND count(*) > 1"),
    Realistic("label_of_totals", "SELECT CASE WHEN grouping(country) = 1 THEN 'all' ELSE country END AS country, count(*) AS n FROM {customers} GROUP BY ROLLUP (country)"),
    Realistic("sets_over_a_join", "SELECT c.country, p.category, sum(o.amount) AS s, count(*) AS n FROM {orders} AS o JOIN {customers} AS c ON o.customer_id = c.customer_id JOIN {products} AS p ON o.product_id = p.product_id GROUP BY ROLLUP (c.country, p.category)"),
    Realistic("sets_below_a_window", "SELECT country, segment, n, rank() OVER (PARTITION BY country ORDER BY n DESC) AS r FROM (SELECT country, segment, count(*) AS n FROM {customers} GROUP BY ROLLUP (country, segment))"),
    Realistic("window_over_sets", "SELECT country, segment, sum(credit) AS s, rank() OVER (PARTITION BY grouping(country) + grouping(segment), CASE WHEN grouping(segment) = 0 THEN country END ORDER BY sum(credit) DESC) AS r FROM {customers} GROUP BY ROLLUP (country, segment)"),
    Realistic("sets_of_one", f"{_COUNTED} GROUP BY GROUPING SETS ((country, segment))"),
    Realistic("rows_below_having", "SELECT country, n FROM (SELECT country, segment, count(*) AS n FROM {customers} WHERE is_active GROUP BY CUBE (country, segment)) WHERE country = 'DE'"),
    Realistic("pivot_of_counts", f"SELECT * FROM {_SOLD} PIVOT (count(*) AS n, sum(amount) AS s FOR channel IN ('web', 'shop' AS store))"),
    Realistic("pivot_of_dates_and_counts", f"SELECT * FROM {_SOLD} PIVOT (count(amount) AS n, max(order_date) AS m FOR channel IN ('web', 'shop' AS store))"),
    Realistic("pivot_by_number", "SELECT * FROM (SELECT channel, quantity, amount FROM {orders}) PIVOT (avg(amount) FOR quantity IN (1, 2 AS two, 3))"),
    Realistic("pivot_of_text", "SELECT * FROM (SELECT product_id, channel, status FROM {orders}) PIVOT (min(status) FOR channel IN ('web', 'shop'))"),
    Realistic("pivot_of_distinct", "SELECT * FROM (SELECT product_id, channel, status FROM {orders}) PIVOT (count(DISTINCT status) FOR channel IN ('web', 'shop'))"),
    Realistic("pivot_of_expressions", f"SELECT product_id, status, web_a + coalesce(shop_a, 0) AS s FROM {_SOLD} PIVOT (sum(amount * quantity) AS a, max(order_date) AS d FOR channel IN ('web', 'shop'))"),
    Realistic("pivot_of_a_table", "SELECT * FROM {events} PIVOT (sum(seconds) FOR kind IN ('view', 'buy'))"),
    Realistic("pivot_below_a_join", "SELECT c.name, p.web FROM {customers} AS c JOIN (SELECT * FROM (SELECT customer_id, channel, amount FROM {orders}) PIVOT (sum(amount) FOR channel IN ('web', 'shop'))) AS p ON p.customer_id = c.customer_id"),
    Realistic("pivot_below_an_aggregate", "SELECT web > 10 AS much, count(*) AS n FROM (SELECT customer_id, channel, amount FROM {orders}) PIVOT (sum(amount) FOR channel IN ('web', 'shop')) GROUP BY web > 10"),
    Realistic("window_and_key", "SELECT window(happened_at, '1 hour').start AS hour, kind, count(*) AS n, sum(seconds) AS s FROM {events} GROUP BY window(happened_at, '1 hour'), kind"),
    Realistic("window_by_its_name", "SELECT window.start, window.end, kind, count(*) AS n FROM {events} GROUP BY window(happened_at, '1 day'), kind"),
    Realistic("sliding_window", "SELECT window.start AS begun, count(*) AS n FROM {events} WHERE seconds > 1 GROUP BY window(happened_at, '1 hour', '20 minutes')"),
    Realistic("shifted_window", "SELECT window.end AS ended, max(seconds) AS m FROM {events} GROUP BY window(happened_at, '1 hour', '1 hour', '15 minutes')"),
    Realistic("window_of_rows", "SELECT event_id, window(happened_at, '1 day') AS w FROM {events}"),
    Realistic("window_below_an_aggregate", "SELECT w.start AS day, sum(seconds) AS s FROM (SELECT seconds, window(happened_at, '1 day') AS w FROM {events}) GROUP BY w"),
    Realistic("window_over_a_join", "SELECT window(e.happened_at, '6 hours').start AS begun, c.country, count(*) AS n FROM {events} AS e JOIN {customers} AS c ON e.customer_id = c.customer_id GROUP BY window(e.happened_at, '6 hours'), c.country HAVING count(*) > 1"),
)  # fmt: skip
