"""98 queries as projects of MVs have them, over a small shop: each with what its refresh is, and why where it is full.

`refresh` is INCREMENTAL, or the code of the reason why the refresh is full, after rows were added to every table and removed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mvbuild.incremental.building import LeafColumns
from mvbuild.incremental.clock import with_calls
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.shape import Shape, shape_of

INCREMENTAL = "incremental"


def _list(element: Any) -> dict[str, Any]:
    return {"type": "list", "element-id": 1, "element-required": False, "element": element}


def _struct(**fields: str) -> dict[str, Any]:
    made = [{"id": at + 100, "name": name, "type": type_, "required": False} for at, (name, type_) in enumerate(fields.items())]
    return {"type": "struct", "fields": made}


TABLES: Mapping[str, Mapping[str, Any]] = {
    "customers": {
        "customer_id": "long",
        "name": "string",
        "email": "string",
        "country": "string",
        "segment": "string",
        "signup_date": "date",
        "credit": "decimal(12,2)",
        "profile": "string",
        "is_active": "boolean",
    },
    "orders": {
        "order_id": "long",
        "customer_id": "long",
        "product_id": "long",
        "status": "string",
        "channel": "string",
        "amount": "decimal(12,2)",
        "discount": "decimal(12,2)",
        "quantity": "int",
        "order_date": "date",
        "shipped_date": "date",
        "ordered_at": "timestamptz",
        "lines": _list(_struct(product_id="long", quantity="int")),
        "tags": _list("string"),
    },
    "events": {
        "event_id": "long",
        "customer_id": "long",
        "kind": "string",
        "page": "string",
        "payload": "string",
        "happened_at": "timestamptz",
        "seconds": "int",
    },
    "products": {
        "product_id": "long",
        "name": "string",
        "category": "string",
        "price": "decimal(12,2)",
        "cost": "decimal(12,2)",
        "q1": "int",
        "q2": "int",
        "q3": "int",
        "valid_from": "date",
        "valid_to": "date",
    },
}
REQUIRED = {"customers": "customer_id", "orders": "order_id", "events": "event_id", "products": "product_id"}


@dataclass(frozen=True)
class Realistic:
    """`sql` has the names of tables in braces."""

    name: str
    sql: str
    refresh: str = INCREMENTAL

    @property
    def shape(self) -> Shape:
        """Refused for what cannot be said."""
        names = {name: f"`{MARKER}{at}` AS {name}" for at, name in enumerate(self.tables)}
        # `{orders} o` has an alias of its own.
        text = self.sql
        for name, marked in names.items():
            text = text.replace(f"{{{name}}} AS ", f"{marked.partition(' AS ')[0]} AS ").replace(f"{{{name}}}", marked)
        leaves = [LeafColumns.of_iceberg(TABLES[name], frozenset({REQUIRED[name]})) for name in self.tables]
        return shape_of(with_calls(text), leaves, None)

    @property
    def tables(self) -> tuple[str, ...]:
        """A table that is read twice is one leaf here."""
        return tuple(name for name in TABLES if f"{{{name}}}" in self.sql)


QUERIES: tuple[Realistic, ...] = (
    # --- plain columns, filters and joins ------------------------------------------------------------------------------------------
    Realistic("stage_orders", "SELECT order_id, lower(trim(status)) AS status, amount - coalesce(discount, 0) AS net FROM {orders}"),
    Realistic("recent_orders", "SELECT order_id, amount FROM {orders} WHERE order_date >= DATE '2026-01-01' AND status <> 'cancelled'"),
    Realistic("order_facts", "SELECT o.order_id, c.country, p.category, o.amount FROM {orders} AS o JOIN {customers} AS c ON o.customer_id = c.customer_id JOIN {products} AS p ON o.product_id = p.product_id"),
    Realistic("orders_with_customers", "SELECT o.order_id, o.amount, c.name FROM {orders} AS o LEFT JOIN {customers} AS c ON o.customer_id = c.customer_id"),
    Realistic("both_sides", "SELECT coalesce(o.customer_id, e.customer_id) AS customer_id, o.order_id, e.event_id FROM {orders} AS o FULL JOIN {events} AS e ON o.customer_id = e.customer_id"),
    Realistic("customers_who_bought", "SELECT customer_id, name FROM {customers} WHERE customer_id IN (SELECT customer_id FROM {orders})"),
    Realistic("customers_without_orders", "SELECT c.customer_id FROM {customers} AS c WHERE NOT EXISTS (SELECT 1 FROM {orders} AS o WHERE o.customer_id = c.customer_id)"),
    Realistic("contacts", "SELECT customer_id AS id, 'order' AS source FROM {orders} UNION ALL SELECT customer_id, 'event' FROM {events}"),
    Realistic("active_days", "SELECT DISTINCT customer_id, CAST(happened_at AS DATE) AS day FROM {events}"),
    Realistic("price_at_order", "SELECT o.order_id, p.price FROM {orders} AS o JOIN {products} AS p ON o.product_id = p.product_id AND o.order_date >= p.valid_from AND o.order_date < p.valid_to"),
    Realistic("countries_of_two_sources", "SELECT customer_id FROM {orders} INTERSECT SELECT customer_id FROM {events}"),
    Realistic("order_bands", "SELECT order_id, CASE WHEN amount < 10 THEN 'small' WHEN amount < 100 THEN 'medium' ELSE 'large' END AS band FROM {orders}"),
    Realistic("order_lines", "SELECT order_id, line.product_id, line.quantity FROM {orders} LATERAL VIEW explode(lines) AS line"),
    Realistic("prices_known", "SELECT product_id, name, price, cost, round((price - cost) / price, 4) AS margin FROM {products} WHERE price > 0"),
    # --- aggregates ----------------------------------------------------------------------------------------------------------------
    Realistic("revenue_by_day", "SELECT order_date, sum(amount) AS revenue, count(*) AS n, count(amount) AS paid FROM {orders} GROUP BY order_date"),
    Realistic("customer_totals", "SELECT customer_id, count(*) AS orders, sum(amount) AS spent, min(order_date) AS first_order, max(order_date) AS last_order FROM {orders} GROUP BY customer_id"),
    Realistic("average_basket", "SELECT channel, avg(amount) AS basket FROM {orders} GROUP BY channel"),
    Realistic("buyers_by_country", "SELECT c.country, count(DISTINCT o.customer_id) AS buyers FROM {orders} AS o JOIN {customers} AS c ON o.customer_id = c.customer_id GROUP BY c.country"),
    Realistic("status_counts", "SELECT order_date, count_if(status = 'returned') AS returned, count(*) FILTER (WHERE status = 'open') AS open FROM {orders} GROUP BY order_date"),
    Realistic("channels_as_columns", "SELECT order_date, sum(CASE WHEN channel = 'web' THEN amount ELSE 0 END) AS web, sum(CASE WHEN channel = 'shop' THEN amount ELSE 0 END) AS shop FROM {orders} GROUP BY order_date"),
    Realistic("big_spenders", "SELECT customer_id, sum(amount) AS spent FROM {orders} GROUP BY customer_id HAVING sum(amount) > 1000"),
    Realistic("duplicates", "SELECT email, count(*) AS n FROM {customers} GROUP BY email HAVING count(*) > 1"),
    Realistic("kpis", "SELECT count(*) AS orders, sum(amount) AS revenue, count(amount) AS paid FROM {orders}"),
    Realistic("months", "SELECT date_trunc('MONTH', order_date) AS month, sum(amount) AS revenue FROM {orders} GROUP BY date_trunc('MONTH', order_date)"),
    Realistic("by_position", "SELECT country, segment, count(*) AS n FROM {customers} GROUP BY 1, 2"),
    Realistic("country_and_category", "SELECT c.country, p.category, sum(o.amount) AS revenue FROM {orders} AS o JOIN {customers} AS c USING (customer_id) JOIN {products} AS p USING (product_id) GROUP BY c.country, p.category"),
    Realistic("customers_with_counts", "SELECT c.customer_id, c.name, count(o.order_id) AS orders FROM {customers} AS c LEFT JOIN {orders} AS o ON o.customer_id = c.customer_id GROUP BY c.customer_id, c.name"),
    Realistic("totals_beside_customers", "SELECT c.customer_id, t.spent FROM {customers} AS c LEFT JOIN (SELECT customer_id, sum(amount) AS spent FROM {orders} GROUP BY customer_id) AS t ON t.customer_id = c.customer_id"),
    Realistic("orders_per_customer_histogram", "SELECT n, count(*) AS customers FROM (SELECT customer_id, count(*) AS n FROM {orders} GROUP BY customer_id) GROUP BY n"),
    Realistic("funnel", "WITH steps AS (SELECT customer_id, max(CASE WHEN kind = 'view' THEN 1 ELSE 0 END) AS saw, max(CASE WHEN kind = 'buy' THEN 1 ELSE 0 END) AS bought FROM {events} GROUP BY customer_id) SELECT saw, bought, count(*) AS customers FROM steps GROUP BY saw, bought"),
    Realistic("cohorts", "WITH first AS (SELECT customer_id, min(order_date) AS first_date FROM {orders} GROUP BY customer_id) SELECT f.first_date, count(*) AS customers FROM first AS f GROUP BY f.first_date"),
    Realistic("all_or_any", "SELECT customer_id, bool_and(status = 'paid') AS all_paid, bool_or(status = 'returned') AS any_returned FROM {orders} GROUP BY customer_id"),
    Realistic("last_seen_page", "SELECT customer_id, max_by(page, happened_at) AS page FROM {events} GROUP BY customer_id"),
    Realistic("spread", "SELECT category, stddev(price) AS spread, percentile_approx(price, 0.5) AS middle FROM {products} GROUP BY category"),
    Realistic("slow_pages", "SELECT page, percentile(seconds, 0.9) AS slow FROM {events} GROUP BY page"),
    # --- windows -------------------------------------------------------------------------------------------------------------------
    Realistic("latest_order", "SELECT order_id, customer_id FROM (SELECT order_id, customer_id, row_number() OVER (PARTITION BY customer_id ORDER BY ordered_at DESC) AS r FROM {orders}) WHERE r = 1"),
    Realistic("first_event", "WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY happened_at) AS r FROM {events}) SELECT customer_id, kind, happened_at FROM numbered WHERE r = 1"),
    Realistic("running_total", "SELECT customer_id, order_date, sum(amount) OVER (PARTITION BY customer_id ORDER BY order_date) AS so_far FROM {orders}"),
    Realistic("days_between", "SELECT customer_id, order_id, datediff(order_date, lag(order_date) OVER (PARTITION BY customer_id ORDER BY order_date)) AS gap FROM {orders}"),
    Realistic("share_of_category", "SELECT product_id, category, price / sum(price) OVER (PARTITION BY category) AS share FROM {products}"),
    Realistic("best_three", "SELECT category, product_id FROM (SELECT category, product_id, rank() OVER (PARTITION BY category ORDER BY price DESC) AS r FROM {products}) WHERE r <= 3"),
    Realistic("rank_of_all", "SELECT product_id, rank() OVER (ORDER BY price DESC) AS r FROM {products}", "window-without-partition"),
    Realistic("top_ten", "SELECT customer_id, sum(amount) AS spent FROM {orders} GROUP BY customer_id ORDER BY spent DESC LIMIT 10"),
    Realistic("share_of_all", "SELECT customer_id, sum(amount) / (SELECT sum(amount) FROM {orders}) AS share FROM {orders} GROUP BY customer_id", "scalar-subquery-changed"),
    Realistic("above_average", "SELECT order_id FROM {orders} WHERE amount > (SELECT avg(amount) FROM {orders})", "scalar-subquery-changed"),
    Realistic("rollup", "SELECT country, segment, count(*) AS n FROM {customers} GROUP BY ROLLUP (country, segment)"),
    Realistic("last_order_of_each", "SELECT c.customer_id, (SELECT max(o.order_date) FROM {orders} AS o WHERE o.customer_id = c.customer_id) AS last_order FROM {customers} AS c"),
    Realistic("nobody_in", "SELECT product_id FROM {products} WHERE product_id NOT IN (SELECT product_id FROM {orders})"),
    # --- item 5: forms of SELECT and FROM ------------------------------------------------------------------------------------------
    Realistic("group_by_alias", "SELECT date_trunc('MONTH', order_date) AS month, sum(amount) AS revenue FROM {orders} GROUP BY month"),
    Realistic("group_by_alias_of_case", "SELECT CASE WHEN amount < 100 THEN 'small' ELSE 'large' END AS band, channel, count(*) AS n FROM {orders} GROUP BY band, channel"),
    Realistic("star_except", "SELECT * EXCEPT (profile, email) FROM {customers}"),
    Realistic("star_of_a_join_except", "SELECT o.* EXCEPT (lines, tags), c.country FROM {orders} AS o JOIN {customers} AS c ON o.customer_id = c.customer_id"),
    Realistic("star_beside_columns", "SELECT o.*, c.country, c.segment FROM {orders} AS o LEFT JOIN {customers} AS c USING (customer_id)"),
    Realistic("star_of_using", "SELECT * FROM {orders} AS o JOIN {customers} AS c USING (customer_id)"),
    Realistic("broadcast_hint", "SELECT /*+ BROADCAST(c) */ o.order_id, c.country FROM {orders} AS o JOIN {customers} AS c ON o.customer_id = c.customer_id"),
    Realistic("named_window", "SELECT customer_id, order_id, sum(amount) OVER w AS so_far, rank() OVER w AS r FROM {orders} WINDOW w AS (PARTITION BY customer_id ORDER BY order_date)"),
    Realistic("values", "SELECT o.order_id, s.label FROM {orders} AS o JOIN (VALUES ('open', 'Open'), ('paid', 'Paid')) AS s(status, label) ON o.status = s.status"),
    Realistic("natural_join", "SELECT order_id, amount, country FROM {orders} NATURAL JOIN (SELECT customer_id, country FROM {customers})"),
    Realistic("lateral_expression", "SELECT o.order_id, t.net, t.net * 2 AS twice FROM {orders} AS o, LATERAL (SELECT o.amount - o.discount AS net) AS t"),
    Realistic("lateral_explode", "SELECT o.order_id, t.tag FROM {orders} AS o, LATERAL explode(o.tags) AS t(tag)"),
    Realistic("exists_in_or", "SELECT c.customer_id FROM {customers} AS c WHERE c.is_active OR EXISTS (SELECT 1 FROM {orders} AS o WHERE o.customer_id = c.customer_id)"),
    Realistic("in_in_or", "SELECT customer_id, name FROM {customers} WHERE segment = 'vip' OR customer_id IN (SELECT customer_id FROM {orders} WHERE amount > 1000)"),
    Realistic("exists_as_column", "SELECT c.customer_id, EXISTS (SELECT 1 FROM {orders} AS o WHERE o.customer_id = c.customer_id) AS has_ordered FROM {customers} AS c"),
    Realistic("lateral_aliases", "SELECT order_id, amount - discount AS net, net * 0.19 AS tax, net + tax AS gross FROM {orders}"),
    Realistic("lateral_aliases_of_aggregates", "SELECT customer_id, sum(amount) AS spent, count(*) AS n, spent / n AS basket FROM {orders} GROUP BY customer_id"),
    Realistic("date_spine", "SELECT p.product_id, day FROM {products} AS p LATERAL VIEW explode(sequence(p.valid_from, p.valid_to, INTERVAL 1 DAY)) AS day"),
    Realistic("explode_in_select", "SELECT order_id, explode(tags) AS tag FROM {orders}"),
    Realistic("pivot", "SELECT * FROM (SELECT customer_id, channel, amount FROM {orders}) PIVOT (sum(amount) FOR channel IN ('web' AS web, 'shop' AS shop))"),
    Realistic("unpivot", "SELECT product_id, quarter, sold FROM (SELECT product_id, q1, q2, q3 FROM {products}) UNPIVOT (sold FOR quarter IN (q1, q2, q3))"),
    Realistic("stack", "SELECT product_id, stack(3, 'q1', q1, 'q2', q2, 'q3', q3) AS (quarter, sold) FROM {products}"),
    Realistic("recursive", "WITH RECURSIVE days (d) AS (SELECT DATE '2026-01-01' UNION ALL SELECT date_add(d, 1) FROM days WHERE d < DATE '2026-01-31') SELECT d, count(o.order_id) AS n FROM days LEFT JOIN {orders} AS o ON o.order_date = d GROUP BY d"),
    # --- item 5: functions ---------------------------------------------------------------------------------------------------------
    Realistic("unix_timestamps", "SELECT event_id, unix_timestamp(happened_at) AS seconds_of_epoch FROM {events}"),
    Realistic("minutes_between", "SELECT event_id, timestampdiff(MINUTE, TIMESTAMP '2026-01-01 00:00:00', happened_at) AS minutes FROM {events}"),
    Realistic("json_field", "SELECT event_id, get_json_object(payload, '$.campaign') AS campaign FROM {events}"),
    Realistic("json_struct", "SELECT customer_id, from_json(profile, 'age INT, city STRING').city AS city FROM {customers}"),
    Realistic("mail_domain", "SELECT customer_id, split(email, '@')[1] AS domain FROM {customers}"),
    Realistic("decoded", "SELECT order_id, decode(status, 'o', 'open', 'p', 'paid', 'other') AS status FROM {orders}"),
    Realistic("sorted_set", "SELECT customer_id, sort_array(collect_set(channel)) AS channels FROM {orders} GROUP BY customer_id"),
    Realistic("joined_text", "SELECT order_date, string_agg(channel, ', ') AS channels FROM {orders} GROUP BY order_date"),
    Realistic("listed_text", "SELECT customer_id, listagg(status, ',') WITHIN GROUP (ORDER BY status) AS statuses FROM {orders} GROUP BY customer_id"),
    Realistic("approximate_count", "SELECT page, approx_count_distinct(customer_id) AS visitors FROM {events} GROUP BY page"),
    Realistic("most_frequent", "SELECT customer_id, mode(channel) AS usual FROM {orders} GROUP BY customer_id"),
    Realistic("any_of_them", "SELECT customer_id, any_value(channel) AS some_channel FROM {orders} GROUP BY customer_id"),
    Realistic("filled_forward", "SELECT customer_id, event_id, last_value(page, true) OVER (PARTITION BY customer_id ORDER BY happened_at) AS page FROM {events}"),
    Realistic("second_page", "SELECT customer_id, event_id, nth_value(page, 2) IGNORE NULLS OVER (PARTITION BY customer_id ORDER BY happened_at) AS page FROM {events}"),
    Realistic("outer_explode", "SELECT order_id, tag FROM {orders} LATERAL VIEW explode_outer(tags) AS tag"),
    Realistic("upper_tags", "SELECT order_id, transform(tags, t -> upper(t)) AS tags FROM {orders}"),
    Realistic("short_tags", "SELECT order_id, filter(tags, t -> length(t) < 5) AS tags FROM {orders}"),
    Realistic("has_gift", "SELECT order_id FROM {orders} WHERE exists(tags, t -> t = 'gift')"),
    Realistic("pieces", "SELECT order_id, aggregate(lines, 0, (total, line) -> total + line.quantity) AS pieces FROM {orders}"),
    Realistic("sessions", "SELECT customer_id, session_window(happened_at, '30 minutes').start AS begun, count(*) AS n FROM {events} GROUP BY customer_id, session_window(happened_at, '30 minutes')"),
    Realistic("hours", "SELECT window(happened_at, '1 hour').start AS hour, count(*) AS n FROM {events} GROUP BY window(happened_at, '1 hour')"),
    Realistic("safe_ratio", "SELECT customer_id, sum(amount) / nullif(count(*), 0) AS basket FROM {orders} GROUP BY customer_id"),
    Realistic("last_week_of_each_day", "SELECT a.order_id, b.order_id AS other FROM {orders} AS a JOIN {orders} AS b ON a.customer_id = b.customer_id AND b.order_date BETWEEN date_sub(a.order_date, 6) AND a.order_date"),
    Realistic("share_within_country", "SELECT c.country, c.segment, sum(o.amount) AS revenue, sum(sum(o.amount)) OVER (PARTITION BY c.country) AS of_country FROM {orders} AS o JOIN {customers} AS c USING (customer_id) GROUP BY c.country, c.segment"),
    Realistic("return_rate", "SELECT p.category, CAST(count_if(o.status = 'returned') AS DOUBLE) / count(*) AS rate FROM {orders} AS o JOIN {products} AS p USING (product_id) GROUP BY p.category"),
    Realistic("ratio_of_all", "SELECT sum(amount) AS revenue, count(amount) AS paid, count(*) AS n, sum(amount) / nullif(count(*), 0) AS basket FROM {orders}"),
    Realistic("days_ago", "SELECT order_id FROM {orders} WHERE order_date >= current_date() - INTERVAL 30 DAYS"),
)  # fmt: skip
