"""Tables that are named in any order are joined so that each has a condition with those before it, and the rows are the same."""

from __future__ import annotations

from collections import Counter

import pytest

from mvbuild.incremental import join_order
from mvbuild.incremental.algebra import Join, Relation, walk
from mvbuild.incremental.rewrite import StrategyInput
from mvbuild.incremental.samples import case, formula, shape
from mvbuild.incremental.statements import difference
from mvbuild.incremental.stored_rows import Stored
from mvbuild.incremental.strategies import STRATEGIES
from unit.incremental.join_queries import random_case
from unit.incremental.on_duckdb import OnDuckDB, bag, connected
from unit.incremental.oracle import seen

FAR = "(SELECT customer_id AS far_id, country AS far FROM {customers}) AS others"
BETWEEN = f"FROM {{orders}}, {FAR}, {{customers}}"
"""The second table has a condition with the third one only."""
LINKED = "orders.customer_id = customers.customer_id AND customers.country = others.far"


def products(relation: Relation) -> int:
    return sum(isinstance(node, Join) and node.kind == "inner" and node.on is None for node in walk(relation))


def test_a_table_waits_for_the_one_that_it_has_a_condition_with() -> None:
    found = formula(shape(f"SELECT id {BETWEEN} WHERE {LINKED}").root)
    assert found == "inner join[country = country](inner join[customer_id = customer_id](orders, customers), customers)"


def test_also_in_the_search_for_keys_that_does_not_read_all_tables() -> None:
    """The groups are by columns of the first table, the one without a condition, and the third one; nothing needs the last one."""
    last = "{orders}, (SELECT id AS last_id FROM {orders}) AS last"
    query = f"SELECT orders.id, country, count(*) AS n FROM {last}, {FAR}, {{customers}} WHERE {LINKED} AND last_id = far_id GROUP BY ALL"
    given: StrategyInput = case(query)
    made = STRATEGIES["affected-keys"](given)
    relations = [cte.relation for cte in difference(made, Stored(types={name: "long" for _, name in made.outputs})).ctes]
    assert relations
    assert sum(map(products, relations)) == 0


@pytest.mark.parametrize(
    ("tables", "where"),
    [
        ("{orders}, {customers}", "amount > 0"),  # nothing connects them
        ("{orders} JOIN {customers} USING (customer_id)", "amount > 0"),
        (f"{{orders}} JOIN {{customers}} ON true, {FAR}", "orders.customer_id = far_id"),
        (f"{{orders}} LEFT JOIN {FAR} ON far_id > 1, {{customers}}", "orders.customer_id = customers.customer_id"),
    ],
)
def test_what_cannot_be_better_stays_as_it_is_written(tables: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = f"SELECT id FROM {tables} WHERE {where}"
    made = formula(shape(query).root)
    monkeypatch.setattr(join_order, "_products", lambda _: 0)
    assert formula(shape(query).root) == made


def test_an_outer_join_is_one_table_for_the_others() -> None:
    query = f"SELECT id FROM {{orders}} LEFT JOIN {{customers}} ON orders.customer_id = customers.customer_id, {FAR}, ({{orders}}) AS again"
    query = query.replace("({orders}) AS again", "(SELECT id AS a, customer_id AS b FROM {orders}) AS again")
    found = formula(shape(f"{query} WHERE orders.id = again.a AND again.b = far_id").root)
    left = "left join[customer_id = customer_id](orders, customers)"
    assert found == f"inner join[customer_id = customer_id](inner join[id = id]({left}, orders), customers)"


# On DuckDB: tables in any order, with conditions between any of them.


@pytest.mark.proof
def test_every_strategy_is_right() -> None:
    connection = connected()
    found = [seen(random_case(seed), connection, ("affected-keys", "bag")) for seed in range(25)]
    for one in found:
        assert not one.wrong, one.wrong[0]
    taken = Counter(strategy for one in found for strategy, code in one.codes.items() if code == "accepted")
    assert min(taken["bag"], taken["affected-keys"]) > 10, taken


def wrong(seeds: range) -> list[str]:
    """The queries whose tree gives other rows."""
    connection = connected()
    found = []
    for case_ in map(random_case, seeds):
        ready = OnDuckDB(case_.query, case_.tables, connection)
        if bag(connection.execute(ready.sql(ready.shape().root)).fetchall()) != ready.full():
            found.append(case_.query)
    return found


@pytest.mark.proof
def test_the_rows_are_the_same() -> None:
    assert wrong(range(250)) == []


@pytest.mark.proof
def test_products_are_left_only_where_nothing_connects_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def left() -> list[int]:
        connection = connected()
        return [products(OnDuckDB(c.query, c.tables, connection).shape().root) for c in map(random_case, range(80))]

    now = left()
    monkeypatch.setattr(join_order, "_products", lambda _: 0)
    written = left()
    assert all(one <= other for one, other in zip(now, written, strict=True))
    assert sum(one < other for one, other in zip(now, written, strict=True)) >= 10


@pytest.mark.proof
def test_a_lost_condition_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = join_order.conjunction
    monkeypatch.setattr(join_order, "conjunction", lambda parts: true(parts[:1]))
    assert wrong(range(250))


@pytest.mark.proof
def test_an_outer_join_taken_for_an_inner_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = join_order._flat

    def flat(relation: Relation):  # type: ignore[no-untyped-def]
        if isinstance(relation, Join) and relation.kind == "left":
            return true(Join(relation.left, relation.right, "inner", relation.on))
        return true(relation)

    monkeypatch.setattr(join_order, "_flat", flat)
    assert wrong(range(250))
