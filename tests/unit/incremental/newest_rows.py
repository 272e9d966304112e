"""The idiom of staging views, the newest row of each key by `row_number()`, below what marts do with it: joins, aggregates, HAVING, EXISTS."""

from __future__ import annotations

from unit.incremental.realistic import Realistic

_CUSTOMERS = (
    "(SELECT customer_id, country, segment, email, is_active, signup_date FROM (SELECT *, row_number() OVER "
    "(PARTITION BY customer_id ORDER BY signup_date DESC, email) AS r FROM {customers}) WHERE r = 1)"
)
_PRODUCTS = (
    "(SELECT product_id, category, price FROM (SELECT *, row_number() OVER (PARTITION BY product_id ORDER BY valid_from DESC) AS r "
    "FROM {products}) WHERE r = 1)"
)
QUERIES = (
    Realistic("by_country", f"SELECT c.country, sum(o.amount) AS s FROM {{orders}} AS o JOIN {_CUSTOMERS} AS c ON o.customer_id = c.customer_id GROUP BY c.country"),
    Realistic("using", f"SELECT country, sum(amount) AS s FROM {{orders}} JOIN {_CUSTOMERS} AS c USING (customer_id) GROUP BY country"),
    Realistic("left", f"SELECT o.order_id, c.country FROM {{orders}} AS o LEFT JOIN {_CUSTOMERS} AS c ON o.customer_id = c.customer_id"),
    Realistic("first", f"SELECT c.customer_id, count(*) AS n FROM {_CUSTOMERS} AS c JOIN {{orders}} AS o ON o.customer_id = c.customer_id GROUP BY c.customer_id"),
    Realistic("filter_key", f"SELECT c.country, count(*) AS n FROM {_CUSTOMERS} AS c WHERE c.customer_id > 10 GROUP BY c.country"),
    Realistic("two", f"SELECT c.country, p.category, sum(o.amount) AS s FROM {{orders}} AS o JOIN {_CUSTOMERS} AS c ON o.customer_id = c.customer_id JOIN {_PRODUCTS} AS p ON o.product_id = p.product_id GROUP BY c.country, p.category"),
    Realistic("semi", f"SELECT order_id FROM {{orders}} WHERE customer_id IN (SELECT customer_id FROM {_CUSTOMERS} AS c WHERE is_active)"),
    Realistic("anti", f"SELECT order_id FROM {{orders}} AS o WHERE NOT EXISTS (SELECT 1 FROM {_CUSTOMERS} AS c WHERE c.customer_id = o.customer_id AND c.country = 'DE')"),
    Realistic("rank", "SELECT c.country, sum(o.amount) AS s FROM {orders} AS o JOIN (SELECT * FROM (SELECT *, rank() OVER (PARTITION BY customer_id ORDER BY signup_date DESC) AS r FROM {customers}) WHERE r <= 2) AS c ON o.customer_id = c.customer_id GROUP BY c.country"),
    Realistic("two_keys", "SELECT o.channel, count(*) AS n FROM {orders} AS o JOIN (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY customer_id, country ORDER BY signup_date DESC) AS r FROM {customers}) WHERE r = 1) AS c ON o.customer_id = c.customer_id GROUP BY o.channel"),
    Realistic("expression_key", "SELECT c.country, count(*) AS n FROM {customers} AS x JOIN (SELECT * FROM (SELECT country, lower(email) AS mail, row_number() OVER (PARTITION BY lower(email) ORDER BY signup_date DESC) AS r FROM {customers}) WHERE r = 1) AS c ON lower(x.email) = c.mail GROUP BY c.country"),
    Realistic("latest_active", f"SELECT c.country, sum(o.amount) AS s FROM {{orders}} AS o JOIN {_CUSTOMERS} AS c ON o.customer_id = c.customer_id WHERE c.is_active AND c.segment = 'vip' GROUP BY c.country"),
    Realistic("cte", "WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY signup_date DESC) AS r FROM {customers}), newest AS (SELECT * FROM numbered WHERE r = 1), spent AS (SELECT customer_id, sum(amount) AS s, count(*) AS n FROM {orders} GROUP BY customer_id) SELECT n.country, sum(s.s) AS s, sum(s.n) AS n FROM newest AS n JOIN spent AS s ON n.customer_id = s.customer_id GROUP BY n.country"),
    Realistic("clv", f"WITH spent AS (SELECT customer_id, sum(amount) AS s, sum(discount) AS d, sum(amount) - sum(discount) AS net FROM {{orders}} GROUP BY customer_id) SELECT c.customer_id, c.country, coalesce(s.s, 0) AS s, s.net, CASE WHEN s.net > 100 THEN 'gold' ELSE 'none' END AS tier FROM {_CUSTOMERS} AS c LEFT JOIN spent AS s ON c.customer_id = s.customer_id"),
    Realistic("first_value", "SELECT c.country, count(*) AS n FROM {orders} AS o JOIN (SELECT DISTINCT customer_id, first_value(country) OVER (PARTITION BY customer_id ORDER BY signup_date) AS country FROM {customers}) AS c ON o.customer_id = c.customer_id GROUP BY c.country"),
    Realistic("between", f"SELECT o.order_id, c.country, p.price FROM {{orders}} AS o JOIN {_CUSTOMERS} AS c ON o.customer_id = c.customer_id LEFT JOIN {{products}} AS p ON o.product_id = p.product_id AND o.order_date >= p.valid_from"),
    Realistic("full", f"SELECT coalesce(o.customer_id, c.customer_id) AS id, c.country, o.amount FROM {{orders}} AS o FULL JOIN {_CUSTOMERS} AS c ON o.customer_id = c.customer_id"),
    Realistic("dedup_events_then_sessions", "SELECT e.customer_id, count(*) AS n FROM (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY event_id ORDER BY happened_at DESC) AS r FROM {events}) WHERE r = 1) AS e JOIN {customers} AS c ON e.customer_id = c.customer_id WHERE e.event_id > 5 AND e.kind = 'buy' GROUP BY e.customer_id"),
    Realistic("join_on_event_id", "SELECT e.kind, count(*) AS n FROM (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY event_id, kind ORDER BY happened_at DESC) AS r FROM {events}) WHERE r = 1) AS e JOIN {orders} AS o ON e.customer_id = o.customer_id AND e.event_id = o.order_id GROUP BY e.kind"),
    Realistic("having_ratio", f"SELECT c.country, sum(o.amount) / count(*) AS mean FROM {{orders}} AS o JOIN {_CUSTOMERS} AS c ON o.customer_id = c.customer_id GROUP BY c.country HAVING sum(o.amount) > 10"),
    Realistic("union", f"SELECT country, count(*) AS n FROM (SELECT country, customer_id FROM {_CUSTOMERS} AS a UNION ALL SELECT channel, customer_id FROM {{orders}}) GROUP BY country"),
)  # fmt: skip
