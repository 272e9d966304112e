"""The project of the documentation: raw.orders and raw.customers -> view active_customers -> MV revenue_daily -> MV revenue_monthly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from spark.projects import Project, customers, orders

MakeProject = Callable[[Mapping[str, str]], Project]

FILES = {
    "mvbuild.yml": "name: shop\nmodels: {marts: {+namespace: mart}}\n",
    "models/active_customers.sql": "{{ config(materialized='view') }}\nSELECT customer_id, country FROM raw.customers WHERE active\n",
    "models/marts/revenue_daily.sql": (
        "SELECT o.order_date, c.country, sum(o.amount) AS revenue, count(*) AS orders\n"
        "FROM raw.orders o JOIN {{ ref('active_customers') }} c ON o.customer_id = c.customer_id\n"
        "GROUP BY o.order_date, c.country\n"
    ),
    "models/marts/revenue_daily.yml": (
        "models:\n"
        "  - name: revenue_daily\n"
        "    description: Revenue per day and country.\n"
        "    config:\n"
        "      partition_by: [month(order_date)]\n"
        "    columns:\n"
        "      - {name: order_date, data_tests: [not_null]}\n"
    ),
}
MORE = {
    "models/marts/revenue_total.sql": "SELECT sum(revenue) AS revenue FROM {{ ref('revenue_daily') }}\n",
    "models/marts/countries.sql": "SELECT country, count(*) AS customers FROM raw.customers GROUP BY country\n",
}
DAILY = """SELECT o.order_date, c.country, sum(o.amount) AS revenue, count(*) AS orders
FROM lake.raw.orders o JOIN (SELECT * FROM lake.raw.customers WHERE active) c ON o.customer_id = c.customer_id
GROUP BY o.order_date, c.country"""
D = Decimal


def shop(make: MakeProject, more: Mapping[str, str] | None = None) -> Project:
    """The project, its base tables written by PyIceberg before mvbuild's first run."""
    project = make({**FILES, **(more or {})})
    project.make("raw.orders", orders((1, 1, "2026-01-05", "10.00"), (2, 2, "2026-01-05", "5.50"), (3, 1, "2026-02-01", "1.25")))
    project.make("raw.customers", customers((1, "DE", True), (2, "FR", True), (3, "IT", False)))
    return project
