"""A dbt project in the shape of a small shop is taken over and run; its numbers are those that plain Spark computes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812

from mvbuild.dbt.takeover import take_over
from spark.conftest import Lake
from spark.projects import Project, messages

pytestmark = pytest.mark.proof

PEOPLE = [(1, "Ada", "L."), (2, "Bo", "M."), (3, "Cy", "N."), (4, "Di", "O.")]
ORDERS = [
    (10, 1, "2024-01-01", "returned"),
    (11, 1, "2024-01-05", "completed"),
    (12, 2, "2024-01-03", "placed"),
    (13, 3, "2024-02-01", "completed"),
    (14, 2, "2024-02-02", "shipped"),
]
PAYMENTS = [
    (100, 10, "credit_card", 1250),
    (101, 11, "coupon", 300),
    (102, 11, "credit_card", 999),
    (103, 12, "bank_transfer", 2000),
    (104, 13, "gift_card", 1),
    (105, 13, "credit_card", 4999),
    (106, 99, "coupon", 700),
]


def lines(header: str, rows: list[tuple]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def staging(source: str, columns: str) -> str:
    return f"with source as (\n    {{#- seeds stand for the tables of the shop #}}\n    select * from {{{{ ref('{source}') }}}}\n)\nselect {columns}\nfrom source\n"


FILES = {
    "dbt_project.yml": (
        "name: 'shop'\nconfig-version: 2\nversion: '0.1'\nprofile: 'shop'\nmodel-paths: [\"models\"]\nanalysis-paths: [\"analysis\"]\n"
        'clean-targets: ["target"]\nrequire-dbt-version: [">=1.0.0", "<2.0.0"]\n'
        "models:\n  shop:\n    materialized: table\n    staging:\n      materialized: view\n"
    ),
    "seeds/raw_people.csv": lines("id,first_name,last_name", PEOPLE),
    "seeds/raw_orders.csv": lines("id,user_id,order_date,status", ORDERS),
    "seeds/raw_payments.csv": lines("id,order_id,payment_method,amount", PAYMENTS),
    "models/staging/stg_people.sql": staging("raw_people", "id as customer_id, first_name, last_name"),
    "models/staging/stg_orders.sql": staging("raw_orders", "id as order_id, user_id as customer_id, order_date, status"),
    "models/staging/stg_payments.sql": staging("raw_payments", "id as payment_id, order_id, payment_method, amount / 100 as amount"),
    "models/orders.sql": """{% set payment_methods = ['credit_card', 'coupon', 'bank_transfer', 'gift_card'] %}
with order_payments as (
    select
        order_id,
        {% for payment_method in payment_methods -%}
        sum(case when payment_method = '{{ payment_method }}' then amount else 0 end) as {{ payment_method }}_amount,
        {% endfor -%}
        sum(amount) as total_amount
    from {{ ref('stg_payments') }}
    group by order_id
)
select o.order_id, o.customer_id, o.order_date, o.status,
    {% for payment_method in payment_methods -%} p.{{ payment_method }}_amount, {% endfor -%}
    p.total_amount as amount
from {{ ref('stg_orders') }} o
left join order_payments p on o.order_id = p.order_id
""",
    "models/customers.sql": """with customer_orders as (
    select customer_id, min(order_date) as first_order, max(order_date) as most_recent_order, count(order_id) as number_of_orders
    from {{ ref('stg_orders') }} group by customer_id
), customer_payments as (
    select o.customer_id, sum(p.amount) as total_amount
    from {{ ref('stg_payments') }} p left join {{ ref('stg_orders') }} o on p.order_id = o.order_id
    group by o.customer_id
)
select c.customer_id, c.first_name, c.last_name, co.first_order, co.most_recent_order, co.number_of_orders,
    cp.total_amount as customer_lifetime_value
from {{ ref('stg_people') }} c
left join customer_orders co on c.customer_id = co.customer_id
left join customer_payments cp on c.customer_id = cp.customer_id
""",
    "models/late_orders.sql": """{{ config(materialized='incremental', incremental_strategy='merge', unique_key='order_id', file_format='delta') }}
select * from {{ ref('stg_orders') }}
{% if is_incremental() %}
where order_date > (select max(order_date) from {{ this }})
{% endif %}
""",
    "models/docs.md": "{% docs status %}\nWhere an order is.\n{% enddocs %}\n",
    "models/schema.yml": """version: 2
models:
  - name: customers
    columns:
      - name: customer_id
        tests: [unique, not_null]
  - name: orders
    columns:
      - name: order_id
        tests: [unique, not_null]
      - name: customer_id
        tests:
          - relationships:
              to: ref('customers')
              field: customer_id
      - name: status
        description: '{{ doc("status") }}'
        tests:
          - accepted_values:
              values: ['placed', 'shipped', 'completed', 'return_pending', 'returned']
      - name: amount
        tests:
          - not_negative
""",
    "tests/generic/not_negative.sql": (
        "{% test not_negative(model, column_name) %}\nselect * from {{ model }} where {{ column_name }} < 0\n{% endtest %}\n"
    ),
}


@pytest.fixture(scope="module")
def shop(project: Callable[[Mapping[str, str]], Project], tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("dbt")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    found = take_over(root, env={})
    assert not found.card.refuses, [(i.name, i.reasons) for i in found.card.items if i.verdict == "refused"]
    return project({path: text.text for path, text in found.files.items()})


def test_the_imported_shop_runs_and_has_the_numbers_of_plain_spark(shop: Project, lake: Lake, tmp_path: Path) -> None:
    result = shop.run()
    assert result.ok, messages(result)
    spark = lake.session

    def read(name: str):
        file = tmp_path / f"{name}.csv"
        with file.open("w", newline="") as out:
            csv.writer(out).writerows([line.split(",") for line in FILES[f"seeds/{name}.csv"].splitlines()])
        return spark.read.csv(file.as_uri(), header=True, inferSchema=True)

    people, orders = read("raw_people"), read("raw_orders")
    payments = read("raw_payments").withColumn("amount", F.col("amount") / 100)
    by_method = payments.groupBy("order_id").agg(
        *(
            F.sum(F.when(F.col("payment_method") == m, F.col("amount")).otherwise(0))
            for m in ("credit_card", "coupon", "bank_transfer", "gift_card")
        ),
        F.sum("amount"),
    )
    expected = orders.select(F.col("id").alias("order_id"), "user_id", "order_date", "status").join(by_method, "order_id", "left")
    assert rows(shop, "select * from lake.main.orders") == sorted(map(repr, map(tuple, expected.collect())))

    of_orders = orders.groupBy("user_id").agg(F.min("order_date"), F.max("order_date"), F.count("id"))
    paid = (
        payments.join(orders.select(F.col("id").alias("order_id"), "user_id"), "order_id", "left").groupBy("user_id").agg(F.sum("amount"))
    )
    named = people.select(F.col("id").alias("user_id"), "first_name", "last_name")
    expected = named.join(of_orders, "user_id", "left").join(paid, "user_id", "left")
    assert rows(shop, "select * from lake.main.customers") == sorted(map(repr, map(tuple, expected.collect())))
    assert rows(shop, "select order_id, status from lake.main.late_orders") == sorted(repr((o[0], o[3])) for o in ORDERS)
    assert shop.only_reused()


def rows(shop: Project, query: str) -> list[str]:
    return sorted(repr(tuple(row)) for row in shop.sql(query))
