"""-> a project of 22 MVs over four tables with a few thousand rows, and a small change of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

ORDERS, CUSTOMERS, PRODUCTS, ITEMS = 4000, 500, 120, 8000
_JOINED = "raw.orders o JOIN raw.customers c ON o.customer_id = c.customer_id"
_ITEMS = "raw.items i JOIN raw.orders o ON i.order_id = o.order_id JOIN raw.products p ON i.product_id = p.product_id"
QUERIES: Mapping[str, str] = {
    "large_orders": "SELECT order_id, customer_id, amount FROM raw.orders WHERE amount > 500",
    "cleaned_orders": "SELECT order_id, upper(status) AS status, amount * 2 AS twice, day FROM raw.orders",
    "per_day": "SELECT day, count(*) AS n, sum(amount) AS total, count(amount) AS amounts FROM raw.orders GROUP BY day",
    "per_customer": "SELECT customer_id, count(*) AS n, sum(amount) AS total, count(amount) AS a FROM raw.orders GROUP BY customer_id",
    "extremes": "SELECT customer_id, min(amount) AS low, max(amount) AS high FROM raw.orders GROUP BY customer_id",
    "averages": "SELECT status, avg(amount) AS mean FROM raw.orders GROUP BY status",
    "customers_of_day": "SELECT day, count(DISTINCT customer_id) AS n FROM raw.orders GROUP BY day",
    "states": "SELECT DISTINCT status, day FROM raw.orders",
    "named": f"SELECT o.order_id, c.name, c.country, o.amount FROM {_JOINED}",
    "per_country": f"SELECT c.country, count(*) AS n, sum(o.amount) AS total, count(o.amount) AS a FROM {_JOINED} GROUP BY c.country",
    "country_days": f"SELECT c.country, o.day, sum(o.amount) AS total, count(*) AS n FROM {_JOINED} GROUP BY c.country, o.day",
    "left_named": "SELECT o.order_id, c.name FROM raw.orders o LEFT JOIN raw.customers c ON o.customer_id = c.customer_id",
    "idle_customers": "SELECT name FROM raw.customers c WHERE NOT EXISTS (SELECT 1 FROM raw.orders o WHERE o.customer_id = c.customer_id)",
    "buyers": "SELECT name FROM raw.customers WHERE customer_id IN (SELECT customer_id FROM raw.orders WHERE amount > 900)",
    "ranks": "SELECT order_id, rank() OVER (PARTITION BY customer_id ORDER BY amount) AS place FROM raw.orders",
    "latest": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY order_id DESC) AS r FROM raw.orders) WHERE r = 1",
    "both": "SELECT order_id AS id, amount FROM raw.orders UNION ALL SELECT item_id, price FROM raw.items",
    "categories": f"SELECT p.category, sum(i.price) AS total, count(i.price) AS a, count(*) AS n FROM {_ITEMS} GROUP BY p.category",
    "category_days": f"SELECT p.category, o.day, max(i.price) AS high FROM {_ITEMS} GROUP BY p.category, o.day",
    "lines": f"SELECT i.item_id, o.day, p.category, i.price FROM {_ITEMS} WHERE i.price > 10",
    "whole": "SELECT count(*) AS n, sum(amount) AS total, count(amount) AS a FROM raw.orders",
    "shares": "SELECT order_id, amount / sum(amount) OVER (PARTITION BY day) AS share FROM raw.orders",
}
FILES: Mapping[str, str] = {f"models/{name}.sql": f"{sql}\n" for name, sql in QUERIES.items()}


def tables() -> dict[str, pa.Table]:
    return {
        "raw.orders": pa.Table.from_pylist([order(at) for at in range(ORDERS)]),
        "raw.customers": pa.Table.from_pylist([customer(at) for at in range(CUSTOMERS)]),
        "raw.products": pa.Table.from_pylist([{"product_id": at, "category": f"category {at % 9}"} for at in range(PRODUCTS)]),
        "raw.items": pa.Table.from_pylist([item(at) for at in range(ITEMS)]),
    }


def order(at: int) -> dict[str, Any]:
    states = ("open", "paid", "sent")
    return {"order_id": at, "customer_id": at * 7 % 450, "day": at * 11 % 90, "status": states[at % 3], "amount": at * 13 % 1000}


def customer(at: int) -> dict[str, Any]:
    return {"customer_id": at, "name": f"customer {at}", "country": ("DE", "FR", "IT", "ES")[at % 4]}


def item(at: int) -> dict[str, Any]:
    return {"item_id": at, "order_id": at // 2, "product_id": at * 3 % PRODUCTS, "price": at * 17 % 100}


def more(round_: int, rows: int = 10) -> dict[str, list[dict[str, Any]]]:
    """New orders with their items."""
    first = ORDERS + round_ * rows
    orders = [order(at) for at in range(first, first + rows)]
    return {"raw.orders": orders, "raw.items": [item(at) for at in range(2 * first, 2 * (first + rows))]}
