"""Definitions that change columns, partitions or order of a storage table, while others read it all the time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyiceberg.catalog import load_catalog

from spark.projects import Project, orders, properties
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

MODEL = "models/m.sql"
YML = "models/m.yml"
ROWS = orders(*((i, i % 3, "2026-01-05", f"{i}.00") for i in range(1, 21)))


@pytest.fixture(scope="module")
def built(project: MakeProject) -> Project:
    made = project({"mvbuild.yml": "name: s\n", MODEL: "SELECT order_id, customer_id, amount, 1 AS generation FROM raw.orders\n"})
    made.make("raw.orders", ROWS)
    made.run()
    return made


@contextmanager
def readers(project: Project, name: str) -> Iterator[set[tuple[tuple[str, ...], frozenset[int], int]]]:
    """Another reader that reads the table as fast as it can: what it saw, as columns, generations and number of rows."""
    seen: set[tuple[tuple[str, ...], frozenset[int], int]] = set()
    failures: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        catalog = load_catalog("lake", **properties(project.root))
        try:
            while not stop.is_set():
                table = catalog.load_table(name).scan().to_arrow()
                seen.add((tuple(f"{f.name} {f.type}" for f in table.schema), frozenset(table["generation"].to_pylist()), table.num_rows))
        except BaseException as exc:  # noqa: BLE001  reported in the test's own thread
            failures.append(exc)
        finally:
            catalog.close()  # type: ignore[attr-defined]

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
    assert failures == []


CHANGES = {
    "added": "SELECT order_id, customer_id, amount, 2 AS generation, upper('x') AS extra FROM raw.orders",
    "dropped": "SELECT order_id, amount, 3 AS generation FROM raw.orders",
    "retyped": "SELECT CAST(order_id AS STRING) AS order_id, amount, 4 AS generation FROM raw.orders",
    "retyped back": "SELECT order_id, CAST(amount AS DOUBLE) AS amount, 5 AS generation FROM raw.orders",
    "reordered": "SELECT 6 AS generation, CAST(amount AS DOUBLE) AS amount, order_id FROM raw.orders",
    "renamed": "SELECT 7 AS generation, order_id AS id, named_struct('a', amount) AS nested FROM raw.orders WHERE order_id > 5",
    "nested": "SELECT 8 AS generation, order_id AS id, named_struct('a', amount, 'b', 1) AS nested FROM raw.orders",
    "case": "SELECT 9 AS generation, order_id AS ID FROM raw.orders",
}


@pytest.mark.parametrize("change", CHANGES)
def test_readers_see_the_old_table_or_the_new_one(built: Project, change: str) -> None:
    built.write({MODEL: CHANGES[change] + "\n"})
    before = built.arrow("main.m__storage")
    with readers(built, "main.m__storage") as seen:
        assert built.refreshed() == {"m"}
    after = built.arrow("main.m__storage")
    allowed = {(tuple(f"{f.name} {f.type}" for f in t.schema), frozenset(t["generation"].to_pylist()), t.num_rows) for t in (before, after)}
    assert seen <= allowed
    assert seen
    expected = built.bag(CHANGES[change].replace("raw.orders", "lake.raw.orders"))
    assert built.bag("SELECT * FROM lake.main.m__storage") == built.bag("SELECT * FROM lake.main.m") == expected
    assert built.spark.table("lake.main.m").columns == after.schema.names
    built.assert_tidy()
    assert built.only_reused()


@pytest.mark.parametrize(
    ("config", "spec", "order"),
    [
        ("partition_by: [generation]", ["identity"], []),
        ("partition_by: ['bucket(4, order_id)', generation]", ["bucket[4]", "identity"], []),
        ("sort_by: [order_id desc]", [], ["desc"]),
        ("partition_by: ['truncate(2, order_id)'], sort_by: [generation, order_id]", ["truncate[2]"], ["asc", "asc"]),
        ("tags: [none]", [], []),
    ],
)
def test_partitions_and_order_follow_the_configuration(built: Project, config: str, spec: list[str], order: list[str]) -> None:
    number = len(config)
    built.write(
        {
            MODEL: f"SELECT order_id, CAST({number} AS INT) AS generation FROM raw.orders\n",
            YML: f"models: [{{name: m, config: {{{config}}}}}]\n",
        }
    )
    before = built.arrow("main.m__storage").num_rows
    with readers(built, "main.m__storage") as seen:
        assert built.refreshed() == {"m"}
    assert {rows for _, _, rows in seen} == {before}
    assert all(len(generations) == 1 for _, generations, _ in seen)
    table = built.table("main.m__storage")
    assert [str(f.transform) for f in table.spec().fields] == spec
    assert [str(f.direction).lower() for f in table.sort_order().fields] == order
    assert built.bag("SELECT order_id FROM lake.main.m__storage") == built.bag("SELECT order_id FROM lake.raw.orders")
    built.assert_tidy()
    assert built.only_reused()
