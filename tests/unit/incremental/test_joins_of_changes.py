"""How the terms of a change are joined with tables: shared tables once, large ones by their keys, changed ones first; the rows are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from mvbuild.incremental import join_order, narrowed_joins, same_rows, shared_joins
from mvbuild.incremental.algebra import Filter, Join, Relation, Scan, Union, leaves, walk
from mvbuild.incremental.cuts import with_inner_groups
from mvbuild.incremental.join_order import changed_first
from mvbuild.incremental.narrowed_joins import with_narrowed_joins
from mvbuild.incremental.rewrite import Rewrite
from mvbuild.incremental.same_rows import rows_text
from mvbuild.incremental.samples import case, formula, shape
from mvbuild.incremental.shared_joins import with_shared_joins
from mvbuild.incremental.statements import difference
from mvbuild.incremental.stored_rows import Stored
from mvbuild.incremental.strategies import STRATEGIES
from unit.incremental.join_queries import random_case, read_twice
from unit.incremental.on_cuts import through_cuts
from unit.incremental.on_duckdb import OnDuckDB, connected
from unit.incremental.oracle import ACCEPTED, seen

LINES = "(SELECT id AS line_id, amount AS price FROM {orders}) AS lines"
"""Orders once more, in place of a third table."""
JOINED = f"{{customers}} JOIN {{orders}} ON customers.customer_id = orders.customer_id JOIN {LINES} ON line_id = id"
COUNTED = f"SELECT country, count(*) AS n, sum(price) AS s, count(price) AS c FROM {JOINED} GROUP BY country"


def written(sql: str, strategy: str = "merge", **options: bool) -> Rewrite:
    return STRATEGIES[strategy](case(sql, **options))


def rows(rewrite: Rewrite) -> list[Relation]:
    return difference(rewrite, Stored(types={name: "long" for _, name in rewrite.outputs})).relations


def reads_of(rewrite: Rewrite, leaf: int) -> int:
    return sum(isinstance(node, Scan) and node.leaf == leaf for relation in rows(rewrite) for node in walk(relation))


# --- shared joins ------------------------------------------------------------------------------------------------------------------


def test_a_table_that_did_not_change_is_read_once() -> None:
    made = written(COUNTED, removed=True)
    assert reads_of(made, 1) == 4  # orders and lines, added and removed
    shared = with_shared_joins(made)
    assert shared is not None
    assert reads_of(shared, 1) == 1


def test_a_single_term_has_nothing_to_share() -> None:
    assert with_shared_joins(written("SELECT id, country FROM {orders} JOIN {customers} USING (customer_id)", "append")) is None


def test_terms_with_other_conditions_are_not_added_up() -> None:
    one = "SELECT id, country FROM {orders} JOIN {customers} ON orders.customer_id = customers.customer_id AND amount > 1"
    other = one.replace("amount > 1", "country > status")
    assert with_shared_joins(written(f"{one} UNION ALL {other}", "append")) is None


# --- the order of the tables ---------------------------------------------------------------------------------------------------------


def changed(name: str) -> Callable[[Relation], bool]:
    return lambda table: name in formula(table)


def root(sql: str) -> Join:
    found = next(node for node in walk(shape(sql).root) if isinstance(node, Join))
    assert found.kind == "inner"
    return found


def test_tables_that_changed_are_joined_first() -> None:
    made = changed_first(root(f"SELECT id, country, price FROM {JOINED}"), changed("orders"))
    assert formula(made) == "inner join[customer_id = customer_id](inner join[id = id](orders, orders), customers)"


@pytest.mark.parametrize(
    "tables",
    [
        f"{{orders}} JOIN {LINES} ON line_id = id JOIN {{customers}} USING (customer_id)",  # they are first
        "{customers} JOIN {orders} USING (customer_id)",  # a single one
        # The second one has a condition with a table that would come later.
        f"{{customers}} JOIN {{orders}} USING (customer_id) JOIN {LINES} ON line_id = id AND price > length(country)",
        f"{{customers}} JOIN {{orders}} USING (customer_id) CROSS JOIN {LINES}",
    ],
)
def test_what_must_stay_stays(tables: str) -> None:
    join = root(f"SELECT id, country FROM {tables}")
    assert changed_first(join, changed("orders")) is join


def test_of_several_tables_before_the_first_changed_one_none_moves() -> None:
    others = "(SELECT customer_id AS other_id FROM {customers}) AS others"
    tables = f"{{customers}} JOIN {others} ON customer_id = other_id JOIN {{orders}} ON orders.customer_id = other_id"
    join = root(f"SELECT id FROM {tables} JOIN {LINES} ON line_id = id")
    assert changed_first(join, changed("orders")) is join


# --- large tables ----------------------------------------------------------------------------------------------------------------------

FAR = "(SELECT customer_id AS far_id, country AS far FROM {customers}) AS others"
TWO_TABLES = f"SELECT id, country, far FROM {{orders}} JOIN {{customers}} USING (customer_id) JOIN {FAR} ON orders.customer_id = far_id"


def test_a_large_table_is_restricted_to_the_keys_of_the_change() -> None:
    found = with_narrowed_joins(written(TWO_TABLES, "append"), lambda _: True)
    assert found is not None
    (cte,) = found.ctes
    assert cte.at_once
    assert formula(cte.relation) == "orders.plus"
    (made,) = rows(found)[1:]
    # Spark knows the size of what is computed, and so needs no help with the first table.
    inner = "inner join[customer_id = customer_id](changed_0, customers)"
    assert formula(made) == f"inner join[customer_id = customer_id]({inner}, semi join[customer_id <=> customer_id](customers, changed_0))"


def test_small_tables_are_joined_as_they_are() -> None:
    assert with_narrowed_joins(written(TWO_TABLES, "append"), lambda _: False) is None


@pytest.mark.proof
def test_names_of_statements_differ() -> None:
    for given in map(random_case, range(60)):
        ready = OnDuckDB(given.query, given.tables, connected())
        found = with_narrowed_joins(STRATEGIES["bag"](ready.case()), lambda _: True)
        names = [cte.name for cte in found.ctes] if found is not None else []
        assert len(names) == len(set(names))


# --- inner results that a query reads twice ----------------------------------------------------------------------------------------------

BEST = """WITH totals AS (SELECT customer_id, sum(amount) AS s FROM {{orders}} WHERE amount > {0} GROUP BY customer_id),
  others AS (SELECT customer_id, sum(amount) AS s FROM {{orders}} WHERE amount > {1} GROUP BY customer_id)
SELECT country, s FROM {{customers}} JOIN totals USING (customer_id) WHERE s = (SELECT max(s) FROM others)"""


def test_an_inner_result_is_kept_once() -> None:
    found = with_inner_groups(shape(BEST.format(1, 1)), 2)
    assert found is not None
    assert [formula(cut.shape.root) for cut in found.cuts] == [
        "aggregate[customer_id, SUM(amount), COUNT(*), COUNT(amount)](filter[amount > 1](orders))"
    ]
    assert leaves(found.shape.root) == {1, 2}
    assert sum(isinstance(node, Scan) and node.leaf == 2 for node in walk(found.shape.root)) == 2


def test_another_inner_result_is_kept_too() -> None:
    found = with_inner_groups(shape(BEST.format(1, 2)), 2)
    assert found is not None
    assert len(found.cuts) == 2


@pytest.mark.parametrize(
    "other",
    [
        "SELECT customer_id, sum(amount) AS s FROM {orders} WHERE amount > 2 GROUP BY customer_id",
        "SELECT customer_id, sum(id) AS s FROM {orders} WHERE amount > 1 GROUP BY customer_id",
        "SELECT id, sum(amount) AS s FROM {orders} WHERE amount > 1 GROUP BY id",
        "SELECT customer_id, sum(amount) AS s FROM {orders} WHERE weight > 1 GROUP BY customer_id",
        "SELECT customer_id, max(amount) AS s FROM {orders} WHERE amount > 1 GROUP BY customer_id",
    ],
)
def test_other_rows_have_another_text(other: str) -> None:
    one = "SELECT customer_id, sum(amount) AS s FROM {orders} WHERE amount > 1 GROUP BY customer_id"
    texts = [rows_text(shape(sql).root) for sql in (one, one, other)]
    assert texts[0] is not None
    assert texts[0] == texts[1] != texts[2]


# --- on DuckDB -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_every_strategy_is_right_in_every_way_to_write_it() -> None:
    connection = connected()
    found = [seen(random_case(seed), connection) for seed in range(1000, 1030)]
    assert [one.wrong for one in found if one.wrong] == []
    taken = Counter(strategy for one in found for strategy, code in one.codes.items() if code == ACCEPTED)
    assert min(taken["bag"], taken["affected-keys"], taken["merge"]) > 2, taken


@pytest.mark.proof
def test_inner_results_that_are_read_twice() -> None:
    connection = connected()
    for seed in range(20):
        found = through_cuts(read_twice(seed), connection, seed)
        assert not found.wrong, found.wrong[0]


# --- planted faults ----------------------------------------------------------------------------------------------------------------------


def wrong(seeds: range) -> bool:
    connection = connected()
    return any(seen(random_case(seed), connection).wrong for seed in seeds)


@pytest.mark.proof
def test_weights_of_the_first_term_for_all_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = shared_joins._sum
    monkeypatch.setattr(shared_joins, "_sum", lambda terms, tags: true(terms, (tags[0],) * len(tags)))
    assert wrong(range(200))


@pytest.mark.proof
def test_any_two_tables_taken_for_one_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_joins, "_all", lambda parts: True)
    assert wrong(range(200))


@pytest.mark.proof
def test_a_term_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_joins, "Union", lambda parts, columns: Union(parts[:1], columns))
    assert wrong(range(200))


@pytest.mark.proof
def test_keys_of_another_column_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = narrowed_joins.restricted

    def other(relation: Relation, keys, table):  # type: ignore[no-untyped-def]
        return true(relation, [replace(key, name=table.columns[0]) for key in keys], table)

    monkeypatch.setattr(narrowed_joins, "restricted", other)
    assert wrong(range(50, 250))


@pytest.mark.proof
def test_a_lost_condition_of_changed_tables_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = join_order._joined
    monkeypatch.setattr(join_order, "_joined", lambda tables, conditions: true(tables, conditions[:-1]))
    assert wrong(range(200))


@pytest.mark.proof
def test_filters_that_do_not_count_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(same_rows._DETAILS, Filter, lambda *_: "")
    connection = connected()
    assert any(through_cuts(read_twice(seed), connection, seed).wrong for seed in range(200))
