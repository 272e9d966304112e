"""number of models -> a synthetic project that mvbuild and dbt both read: layers of joins and aggregates, YAML with columns and tests."""

from __future__ import annotations

from pathlib import Path

SOURCES = 20
LAYERS = 10
FOLDER = 50
"""Models that one folder has, with one YAML file for them."""

_COLUMNS = (
    "order_id: bigint, customer_id: bigint, product_id: bigint, ordered_on: date, quantity: int, price: 'decimal(12,2)', status: string"
)
_STAGING = """{{ config(tags=['staging']) }}
SELECT
  o.order_id,
  o.customer_id,
  o.product_id,
  o.ordered_on AS day,
  upper(o.status) AS status,
  o.quantity,
  o.price * o.quantity AS amount,
  CASE
    WHEN o.status = 'returned' THEN 0
    WHEN o.quantity > 10 THEN o.price * 0.9
    ELSE o.price
  END AS net_price
FROM {{ source('raw', '%s') }} AS o
LEFT JOIN {{ source('raw', '%s') }} AS c
  ON o.customer_id = c.customer_id
  AND c.quantity > 0
WHERE o.ordered_on >= DATE '2020-01-01'
  AND o.price IS NOT NULL
  AND o.quantity BETWEEN 0 AND %d
"""
_LATER = """WITH joined AS (
  SELECT a.*, b.amount AS other_amount
  FROM {{ ref('%s') }} AS a
  JOIN {{ ref('%s') }} AS b
    ON a.order_id = b.order_id
)
SELECT
  order_id,
  customer_id,
  product_id,
  day,
  max(status) AS status,
  sum(quantity) AS quantity,
  sum(amount + other_amount) AS amount,
  min(net_price) AS net_price
FROM joined
WHERE amount > %d
GROUP BY order_id, customer_id,
  product_id, day
HAVING sum(quantity) > 1
"""
_DESCRIBED = """  - name: %s
    description: Orders of layer %d by customer, product and day.
    columns:
      - name: order_id
        description: The order.
        data_tests:
          - not_null
          - unique
      - name: customer_id
        description: Who ordered.
      - name: day
        description: When it was ordered.
      - name: amount
        description: What it came to.
"""
_DBT = """name: wide
version: '1.0'
profile: wide
model-paths: [models]
models:
  wide:
    +materialized: table
"""
_PROFILES = "wide: {target: dev, outputs: {dev: {type: duckdb, path: ':memory:'}}}\n"


def write_project(root: Path, models: int) -> None:
    """`models` is a multiple of LAYERS."""
    (root / "models").mkdir(parents=True)
    (root / "mvbuild.yml").write_text("name: wide\n")
    (root / "dbt_project.yml").write_text(_DBT)
    (root / "profiles.yml").write_text(_PROFILES)
    tables = "".join(f"      - name: s{i}\n" for i in range(SOURCES))
    (root / "models" / "sources.yml").write_text(f"sources:\n  - name: raw\n    tables:\n{tables}")
    width = max(models // LAYERS, 1)
    for layer in range(LAYERS):
        for first in range(0, width, FOLDER):
            folder = root / "models" / f"layer_{layer}" / f"part_{first // FOLDER}"
            folder.mkdir(parents=True)
            inside = range(first, min(first + FOLDER, width))
            for at in inside:
                (folder / f"{name(layer, at)}.sql").write_text(_sql(layer, at, width))
            described = "".join(_DESCRIBED % (name(layer, at), layer) for at in inside)
            (folder / "models.yml").write_text(f"models:\n{described}")


def lock_sources(root: Path) -> None:
    """Write down the columns of the sources, so that columns can be followed to them."""
    locked = "".join(f"  raw.s{i}:\n    columns: {{{_COLUMNS}}}\n" for i in range(SOURCES))
    (root / "schemas.lock").write_text(f"version: 1\ntables:\n{locked}")


def name(layer: int, at: int) -> str:
    return f"l{layer}_m{at}"


def _sql(layer: int, at: int, width: int) -> str:
    if layer == 0:
        return _STAGING % (f"s{at % SOURCES}", f"s{(at + 7) % SOURCES}", at)
    return _LATER % (name(layer - 1, at), name(layer - 1, (at * 7 + 3) % width), at)
