"""Column lineage of a synthetic project: models of 20 lines in layers, joins and aggregates, refs and sources, bound to schemas.

    nice -n 15 .venv/bin/python tests/benchmarks/lineage.py [--models 1000]

Prints what compiling takes, and what binding and tracing all columns to base columns takes on top of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "compiler")]

from mvbuild import api  # noqa: E402
from mvbuild.lineage.bind import bind  # noqa: E402
from mvbuild.lineage.lock import of_lock, read_lock  # noqa: E402

SOURCES = 20
LAYERS = 10
COLUMNS = (
    "order_id: bigint, customer_id: bigint, product_id: bigint, ordered_on: date, quantity: int, price: 'decimal(12,2)', status: string"
)
STAGING = """SELECT
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
  END AS net_price,
  coalesce(c.status, 'none') AS other_status
FROM {{ source('raw', '%s') }} AS o
LEFT JOIN {{ source('raw', '%s') }} AS c
  ON o.customer_id = c.customer_id
  AND c.quantity > 0
WHERE o.ordered_on >= DATE '2020-01-01'
  AND o.price IS NOT NULL
"""
LATER = """WITH joined AS (
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
  min(net_price) AS net_price,
  max(other_status) AS other_status
FROM joined
WHERE amount > 0
GROUP BY order_id, customer_id,
  product_id, day
HAVING sum(quantity) > 1
"""


def write_project(root: Path, models: int) -> None:
    (root / "models").mkdir(parents=True)
    (root / "mvbuild.yml").write_text("name: wide\nmodels: {+materialized: view}\n")
    tables = ", ".join(f"{{name: s{i}}}" for i in range(SOURCES))
    (root / "models" / "sources.yml").write_text(f"sources: [{{name: raw, tables: [{tables}]}}]\n")
    locked = "".join(f"  raw.s{i}:\n    columns: {{{COLUMNS}}}\n" for i in range(SOURCES))
    (root / "schemas.lock").write_text(f"version: 1\ntables:\n{locked}")
    width = models // LAYERS
    for i in range(models):
        layer, at = divmod(i, width)
        if layer == 0:
            sql = STAGING % (f"s{at % SOURCES}", f"s{(at + 7) % SOURCES}")
        else:
            below = (layer - 1) * width
            sql = LATER % (f"m{below + at}", f"m{below + (at * 7 + 3) % width}")
        (root / "models" / f"m{i}.sql").write_text(sql)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "wide"
        write_project(root, options.models)
        started, used = perf_counter(), process_time()
        graph = api.compile(root)
        print(f"compile: {perf_counter() - started:.1f} s ({process_time() - used:.1f} s of CPU)")
        started, used = perf_counter(), process_time()
        tables = read_lock(graph)
        assert tables is not None
        bound = bind(graph, of_lock(tables, graph))
        middle = process_time()
        assert not bound.diagnostics, bound.diagnostics[0]
        origins = sum(len(bound.origins(id, column.name)) for id in bound.lineage for column in bound.columns[id])
        indirect = sum(len(bound.indirect(id)) for id in bound.lineage)
        wall, cpu = perf_counter() - started, process_time() - used
        print(f"lineage: {wall:.1f} s ({cpu:.1f} s of CPU, {process_time() - middle:.1f} of them for the way to base columns)")
        print(
            f"{options.models} models, {sum(map(len, bound.columns.values()))} columns, {origins} origins, {indirect} that decide on rows"
        )
        print(f"{1000 * cpu / options.models:.2f} ms of CPU a model: {10_000 * cpu / options.models:.0f} s for 10,000")


if __name__ == "__main__":
    main()
