"""Where queries are cut, and that refreshes through auxiliary views leave the rows of the query; planted faults must be found."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from mvbuild.incremental import cuts, queries, row_query, samples
from mvbuild.incremental.algebra import Item, Limit, Pivot, Scan, conjunction, walk
from mvbuild.incremental.clock import with_calls
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.cuts import divided, divisions, reduced, with_inner_groups
from mvbuild.incremental.distinct_groups import _Drafted
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.samples import formula, shape
from seeds import more_seeds
from unit.incremental.on_cuts import Through, through_cuts
from unit.incremental.on_duckdb import OnDuckDB, Table, connected
from unit.incremental.queries import NEWEST_TODAY, Generated, generated
from unit.incremental.restricted_groups import restricted_groups

NEWEST = "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY country) AS r FROM {customers}) WHERE r = 1"
PER_CUSTOMER = "SELECT customer_id, sum(amount) AS s FROM {orders} GROUP BY customer_id"
GROUPS = "aggregate[customer_id, SUM(amount), COUNT(*), COUNT(amount)](orders)"


@pytest.mark.proof
@pytest.mark.parametrize(
    ("query", "views"),
    [
        (PER_CUSTOMER, [GROUPS]),
        ("SELECT customer_id, sum(amount) / count(*) AS r FROM {orders} GROUP BY customer_id", [GROUPS]),
        (f"{PER_CUSTOMER} HAVING sum(amount) > 3", [GROUPS]),
        ("SELECT count(*) AS n FROM {orders} GROUP BY customer_id", ["aggregate[customer_id, COUNT(*)](orders)"]),
        ("SELECT sum(id) AS s FROM {orders}", ["aggregate[SUM(id), COUNT(*)](orders)"]),
        (f"{PER_CUSTOMER} ORDER BY s DESC LIMIT 3", [GROUPS]),
        (f"{PER_CUSTOMER} ORDER BY SUM(Amount) DESC, Customer_id LIMIT 3", [GROUPS]),
        (f"SELECT customer_id, sum(s) OVER (ORDER BY customer_id) AS t FROM ({PER_CUSTOMER}) AS q", [GROUPS]),
        (f"SELECT id, country FROM {{orders}} JOIN ({NEWEST}) AS c USING (customer_id)", ["filter[window = 1](window(customers))"]),
        # A scalar subquery and what is compared with it change at different times.
        (
            f"{PER_CUSTOMER} HAVING sum(amount) > (SELECT avg(customer_id) FROM {{customers}}) ORDER BY s LIMIT 3",
            [GROUPS, "aggregate[AVG(customer_id), COUNT(*), SUM(customer_id), COUNT(customer_id)](customers)"],
        ),
        # LIMIT of one row takes it.
        ("SELECT sum(id) AS s FROM {orders} ORDER BY s LIMIT 3", ["aggregate[SUM(id), COUNT(*)](orders)"]),
        (
            "SELECT id, country FROM {orders} JOIN {customers} USING (customer_id) ORDER BY id LIMIT 3",
            ["inner join[customer_id = customer_id](orders, customers)"],
        ),
        ("SELECT count(DISTINCT customer_id) AS n FROM {orders}", ["aggregate[customer_id, COUNT(*)](orders)"]),
        (
            "SELECT count(DISTINCT customer_id) AS n, avg(amount) AS a FROM {orders}",
            ["aggregate[customer_id, SUM(amount), COUNT(amount), COUNT(*)](orders)"],
        ),
        (
            "SELECT count(DISTINCT customer_id) AS n, count(DISTINCT id) AS i, sum(id) AS s FROM {orders}",
            ["aggregate[customer_id, SUM(id), COUNT(*)](orders)", "aggregate[id, COUNT(*)](orders)"],
        ),
        ("SELECT count(DISTINCT customer_id) AS n, count(DISTINCT weight) AS i FROM {orders}", []),
        # Days are few.
        ("SELECT max(order_date) AS d, count(*) AS n FROM {orders}", ["aggregate[order_date, COUNT(*)](orders)"]),
        ("SELECT max(order_date) AS d, max(paid_at) AS p FROM {orders}", ["aggregate[order_date, MAX(paid_at)](orders)"]),
        ("SELECT min(order_date) AS d, max(id) AS m FROM {orders}", ["aggregate[order_date, MAX(id)](orders)"]),
        ("SELECT max(paid_at) AS p, count(*) AS n FROM {orders}", ["aggregate[CAST(paid_at AS DATE), MAX(paid_at), COUNT(*)](orders)"]),
        # Rows that can be found again only by a key that the storage does not have.
        (
            "SELECT id, row_number() OVER (PARTITION BY customer_id ORDER BY amount) = 1 AS f FROM {orders}",
            ["project[id, window = 1, customer_id](window(orders))"],
        ),
        ("SELECT count(DISTINCT weight) AS n FROM {orders}", []),
        ("SELECT count(DISTINCT id) AS n, sum(weight) AS w FROM {orders}", []),
        ("SELECT count(DISTINCT id) AS n, collect_set(status) AS w FROM {orders}", []),
        # With ANSI off, a group that overflows is NULL.
        ("SELECT count(DISTINCT id) AS n, sum(CAST(amount AS DECIMAL(38, 0))) AS s FROM {orders}", []),
        # Already followed from the storage.
        ("SELECT customer_id, count(*) AS n FROM {orders} GROUP BY customer_id", []),
        (NEWEST, []),
        ("SELECT id FROM {orders} WHERE amount > 0", []),
        # A view would be computed in full each time.
        ("SELECT max(amount) AS m FROM {orders}", []),
        ("SELECT id FROM {orders} ORDER BY id LIMIT 3", []),
        ("SELECT id, row_number() OVER (ORDER BY id) AS r FROM {orders}", []),
    ],
)
def test_where_a_query_is_cut(query: str, views: list[str]) -> None:
    found = divided(shape(query), 2)
    assert [formula(cut.shape.root) for cut in found.cuts] == views if found else views == []


NUMBERED = "SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY order_date DESC, id) AS r FROM {orders}"
FIRST_ROWS = "filter[window = 1](window(orders))"


@pytest.mark.parametrize(
    ("query", "views"),
    [
        (f"SELECT id FROM ({NUMBERED}) WHERE r = 1 AND order_date >= current_date - 30", [FIRST_ROWS]),
        (f"SELECT id FROM (SELECT * FROM ({NUMBERED}) WHERE r = 1) WHERE order_date >= current_date - 30", [FIRST_ROWS]),
        (
            f"SELECT customer_id, count(*) AS n FROM ({NUMBERED}) WHERE r = 1 AND order_date >= current_date - 30 GROUP BY customer_id",
            [FIRST_ROWS],
        ),
        (f"SELECT id, order_date >= current_date - 7 AS is_new FROM ({NUMBERED}) WHERE r = 1", [FIRST_ROWS]),
        (f"SELECT id FROM ({NUMBERED}) WHERE order_date >= current_date - 30 AND r = 1", [FIRST_ROWS]),
        # What may fail is computed for no rows that the day keeps out.
        (f"SELECT id FROM ({NUMBERED}) WHERE order_date < current_date AND 1 / amount > 2 AND r = 1", [FIRST_ROWS]),
        # The rows that are numbered depend on the day.
        (f"SELECT id FROM ({NUMBERED} WHERE order_date >= current_date - 30) WHERE r = 1", []),
        ("SELECT sum(id) AS s FROM {orders} WHERE order_date >= current_date - 30", []),
        # Followed from the storage, whatever the day.
        ("SELECT id FROM {orders} WHERE order_date >= current_date - 30", []),
        ("SELECT customer_id, avg(amount) AS mean FROM {orders} GROUP BY customer_id HAVING max(order_date) >= current_date - 5", []),
    ],
)
def test_the_day_is_read_above_the_views(query: str, views: list[str]) -> None:
    whole = shape(with_calls(query.replace("{orders}", "placeholder")).replace("placeholder", "{orders}"))
    found = divided(whole, 2)
    assert [formula(cut.shape.root) for cut in found.cuts] == views if found else views == []


TOTALS = "aggregate[customer_id, SUM(amount), COUNT(*), COUNT(amount)]"


@pytest.mark.parametrize(
    ("query", "views"),
    [
        (f"SELECT s, count(*) AS n FROM ({PER_CUSTOMER}) AS q GROUP BY s", [f"{TOTALS}(orders)"]),
        (f"SELECT country, s FROM {{customers}} JOIN ({PER_CUSTOMER}) AS q USING (customer_id)", [f"{TOTALS}(orders)"]),
        (f"SELECT country, s FROM {{customers}} LEFT JOIN ({PER_CUSTOMER}) AS q USING (customer_id)", [f"{TOTALS}(orders)"]),
        # The groups of the top, and those below them.
        (
            f"SELECT country, avg(s) AS a FROM {{customers}} JOIN ({PER_CUSTOMER}) AS q USING (customer_id) GROUP BY country HAVING avg(s) > 3",
            [
                f"{TOTALS}(orders)",
                "aggregate[country, AVG(sum), COUNT(*), SUM(sum), COUNT(sum)](inner join[customer_id = customer_id](customers, storage))",
            ],
        ),
        (
            f"SELECT max(n) AS m FROM (SELECT s, count(*) AS n FROM ({PER_CUSTOMER}) AS q GROUP BY s) AS r GROUP BY n",
            [f"{TOTALS}(orders)", "aggregate[sum, COUNT(*)](storage)"],
        ),
        # The same groups twice are one view.
        (
            f"SELECT s FROM ({PER_CUSTOMER}) AS q UNION ALL SELECT s + 1 FROM ({PER_CUSTOMER}) AS r",
            [f"{TOTALS}(orders)"],
        ),
        # Only the top has groups, or nothing has.
        (PER_CUSTOMER, []),
        ("SELECT id FROM {orders}", []),
        # They would be computed in full.
        ("SELECT m, count(*) AS n FROM (SELECT max(amount) AS m FROM {orders}) AS q GROUP BY m", []),
    ],
)
def test_where_groups_are_below_others(query: str, views: list[str]) -> None:
    found = with_inner_groups(shape(query), 2)
    assert [formula(cut.shape.root) for cut in found.cuts] == views if found else views == []


def test_a_pivot_is_kept_as_a_pivot() -> None:
    """Spark's plan of it has no other text."""
    pivoted = "SELECT * FROM (SELECT customer_id, status, weight FROM {orders}) PIVOT (sum(weight) FOR status IN ('web', 'shop'))"
    found = divided(shape(f"SELECT country, p.web FROM {{customers}} JOIN ({pivoted}) AS p ON p.customer_id = customers.customer_id"), 2)
    assert found is not None
    (cut,) = found.cuts
    assert any(isinstance(node, Pivot) for node in walk(cut.shape.root))


def test_the_views_put_back_are_the_query() -> None:
    query = (
        f"SELECT country, sum(amount) AS s FROM {{orders}} JOIN ({NEWEST}) AS c USING (customer_id) GROUP BY country HAVING sum(amount) > 1"
    )
    whole = shape(query)
    found = divided(whole, 2)
    assert found is not None
    assert [cut.leaf for cut in found.cuts] == [2, 3]
    assert {n.leaf for n in walk(found.shape.root) if isinstance(n, Scan)} == {3}
    assert found.cuts[1].reads == {0, 2}
    assert {n.leaf for n in walk(found.whole.root) if isinstance(n, Scan)} == {0, 1}


@pytest.mark.proof
def test_the_views_put_back_are_written_as_the_query() -> None:
    """With the joins and subqueries that the user wrote, which Spark plans in different ways."""
    differ, seen = [], 0
    connection = connected()
    for seed in range(80):
        case = restricted_groups(seed) if seed % 2 else generated(seed)
        try:
            whole = OnDuckDB(case.query, case.tables, connection).shape()
        except (duckdb.BinderException, Refused):
            continue
        for division in divisions(whole, len(case.tables)):
            seen += 1
            one, other = (sql_of(pruned(root), lambda scan: f"t{scan.leaf}") for root in (whole.root, division.whole.root))
            differ += [(one, other)] if words(one) != words(other) else []
    assert seen > 40
    assert differ == []


def words(sql: str) -> Counter[str]:
    return Counter(re.findall(r"EXISTS|\bIN \(SELECT|(?:\w+ )?JOIN|OVER|UNION|EXCEPT|INTERSECT|WHERE", sql))


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("SELECT id FROM {orders} ORDER BY order_date DESC, id LIMIT 3", ["order_date", "id"]),
        ("SELECT status FROM {orders} GROUP BY status ORDER BY count(*) DESC, 1 LIMIT 3", ["count", "status"]),
        ("SELECT id AS customer_id, customer_id AS id FROM {orders} ORDER BY id, weight LIMIT 3", ["customer_id", "weight"]),
        ("SELECT id FROM {orders} ORDER BY weight + 1, weight LIMIT 3", ["mvbuild_order_0", "weight"]),
        # A name of the result and one that is not in it.
        ("SELECT id AS amount FROM {orders} ORDER BY amount + weight LIMIT 3", None),
        ("SELECT id AS customer_id, customer_id AS id FROM {orders} ORDER BY id + weight LIMIT 3", None),
        # Not SQL.
        ("SELECT DISTINCT id FROM {orders} ORDER BY amount LIMIT 3", None),
    ],
)
def test_what_limit_sorts_by(query: str, order: list[str] | None) -> None:
    if order is None:
        with pytest.raises(Refused, match="LIMIT depends on every row"):
            shape(query)
        return
    (limit,) = (node for node in walk(shape(query).root) if isinstance(node, Limit))
    assert [part.this.name.rpartition("_")[0] for part in limit.order] == order


# --- random queries ------------------------------------------------------------------------------------------------------------------

CASES = int(os.environ.get("MVBUILD_CUT_CASES", "25"))


@pytest.mark.proof
def test_random_queries_through_auxiliary_views() -> None:
    connection = connected()
    seen = picked = inner = 0
    for seed in (*range(4_000_000, 4_000_000 + CASES), *more_seeds(CASES)):
        found = through_cuts(generated(seed), connection, seed)
        assert not found.wrong, found.wrong[0]
        seen += found.cuts
        picked += found.picked
        inner += found.inner
    assert seen > CASES // 2
    assert picked >= CASES // 25
    assert inner >= CASES // 25


@pytest.mark.proof
def test_random_queries_that_read_the_day_above_auxiliary_views() -> None:
    connection = connected()
    seen = picked = 0
    for seed in (*range(NEWEST_TODAY, NEWEST_TODAY + CASES), *(NEWEST_TODAY + seed % 4000 for seed in more_seeds(CASES))):
        found = through_cuts(generated(seed), connection, seed)
        assert not found.wrong, found.wrong[0]
        seen += found.cuts
        picked += found.picked
    assert seen > CASES
    assert picked >= CASES // 8


@pytest.mark.proof
def test_random_rows_with_the_groups_that_they_need() -> None:
    connection = connected()
    seen = 0
    for seed in (*range(5_000_000, 5_000_000 + 2 * CASES), *more_seeds(CASES)):
        found = through_cuts(restricted_groups(seed), connection, seed)
        assert not found.wrong, found.wrong[0]
        seen += found.reduced
    assert seen > CASES


# --- rows with the groups that they need ----------------------------------------------------------------------------------------------

NORWEGIAN = "{orders} JOIN {customers} ON customers.customer_id = orders.customer_id WHERE country = 'no'"
MEAN = "(SELECT avg(i.amount) FROM (SELECT customer_id, amount, weight FROM {orders}) AS i WHERE i.customer_id = customers.customer_id)"
PARTS = "AVG(amount), COUNT(*), SUM(amount), COUNT(amount)"


@pytest.mark.parametrize(
    ("query", "views"),
    [
        (
            f"SELECT id FROM {NORWEGIAN} AND amount > {MEAN}",
            [
                "filter[country = 'no'](customers)",
                "inner join[customer_id = customer_id](orders, view_1)",
                f"aggregate[customer_id, {PARTS}](semi join[customer_id = customer_id_KEY](orders, view_1))",
            ],
        ),
        # What the join compares with a column restricts it too.
        (
            f"SELECT id FROM {NORWEGIAN} AND amount > {MEAN.replace('customers.', 'orders.')}",
            [
                "filter[country = 'no'](customers)",
                "inner join[customer_id = customer_id](orders, view_1)",
                f"aggregate[customer_id, {PARTS}](semi join[customer_id = customer_id_KEY](orders, view_1))",
            ],
        ),
        (
            f"SELECT country, s FROM {{customers}} JOIN ({PER_CUSTOMER}) AS o ON o.customer_id = customers.customer_id WHERE country = 'no'",
            [
                "filter[country = 'no'](customers)",
                "aggregate[customer_id, SUM(amount), COUNT(*), COUNT(amount)](semi join[customer_id = customer_id_KEY](orders, view_1))",
            ],
        ),
        # Nothing restricts the groups; sums of floats depend on the order of rows; the keys are compared after a cast.
        (f"SELECT id FROM {NORWEGIAN.partition(' WHERE')[0]} WHERE amount > {MEAN}", []),
        (f"SELECT id FROM {NORWEGIAN} AND amount > {MEAN.replace('i.amount', 'i.weight')}", []),
        (
            f"SELECT country, s FROM {{customers}} JOIN ({PER_CUSTOMER}) AS o ON CAST(o.customer_id AS STRING) = country "
            "WHERE customers.customer_id = 1",
            [],
        ),
    ],
)
def test_rows_are_kept_with_the_groups_that_they_need(query: str, views: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "TABLES", ("orders", "customers"))
    whole = shape(query)
    monkeypatch.setattr(samples, "TABLES", ("orders", "customers", "view_1", "view_2", "view_3"))
    found = reduced(whole, 2)
    assert [re.sub(r"\d+_key", "KEY", formula(cut.shape.root)) for cut in found.cuts] == views if found else views == []


# --- planted faults ------------------------------------------------------------------------------------------------------------------

COLUMNS = {"k": "int", "g": "int", "v": "int"}
BEFORE = [(1, 1, 5), (2, 1, None), (2, 1, 7), (3, 2, 4), (4, 2, 6), (9, 3, None)]
AFTER = [(1, 1, None), (2, 1, None), (3, 2, 4), (3, 2, 8), (5, 3, 1)]


def played(query: str, required: frozenset[str] = frozenset()) -> Through:
    after = [row for row in AFTER if row[2] is not None or not required]
    before = [row for row in BEFORE if row[2] is not None or not required]
    keys = Table("a", {"k": "int"}, old=[(1,), (2,), (3,), (7,)], new=[(1,), (3,), (5,), (8,)])
    values = Table("b", COLUMNS, old=before, new=after, required=required)
    found = Through()
    for seed in range(6):
        one = through_cuts(Generated(seed, query, (keys, values), frozenset(), "inserts"), connected(), seed)
        found.wrong += one.wrong
        found.cuts += one.cuts
        found.picked += one.picked
        found.reduced += one.reduced
        found.inner += one.inner
    return found


SUMS = "SELECT g, sum(v) AS s FROM {b} GROUP BY g"
LATEST = (
    "SELECT g, sum(v) AS s, count(*) AS n FROM (SELECT y.g, y.v, row_number() OVER (PARTITION BY x.k ORDER BY y.v) AS r "
    "FROM {a} x LEFT JOIN {b} y ON x.k = y.k) AS q WHERE r = 1 GROUP BY g"
)


VALUES = (
    "SELECT count(DISTINCT g) AS n, count(*) AS c, count(v) AS v, sum(v) AS s, min(v) AS lo, max(v) AS hi, avg(v) AS a FROM {b} WHERE v > 2"
)
HIDDEN = "SELECT x.k AS v FROM {a} x JOIN {b} y ON x.k = y.k ORDER BY y.g + y.v DESC, x.k LIMIT 2"
RENAMED = "SELECT y.v AS k, y.k AS v FROM {a} x JOIN {b} y ON x.k = y.k ORDER BY v, y.g, k LIMIT 3"
MOST = "SELECT g FROM {b} GROUP BY g ORDER BY count(v) DESC, sum(v), g LIMIT 1"
FIRST = "SELECT x.k, y.v FROM {a} x JOIN {b} y ON x.k = y.k ORDER BY y.v, x.k LIMIT 2"
ONE = "SELECT g, s FROM (SELECT g, sum(v) AS s FROM {b} GROUP BY g) AS q WHERE s < (SELECT sum(k) FROM {a}) ORDER BY s, g LIMIT 2"
ABOVE = "SELECT g, s / n AS mean FROM (SELECT g, sum(v) AS s, count(*) AS n FROM {b} GROUP BY g) AS q WHERE s > 3 AND n > 1"
RESTRICTED = (
    "SELECT x.k, n.s FROM {a} x LEFT JOIN {b} y ON x.k = y.k JOIN (SELECT v, count(*) AS s FROM {b} GROUP BY v) AS n ON n.v <=> y.v "
    "WHERE x.k < 4"
)


@pytest.mark.proof
@pytest.mark.parametrize("query", [SUMS, LATEST, VALUES, f"{VALUES} AND v > 100", FIRST, ONE, HIDDEN, RENAMED, MOST, ABOVE, RESTRICTED])
def test_what_faults_are_planted_in_is_right(query: str) -> None:
    for required in (frozenset(), frozenset({"v"})):
        found = played(query, required)
        assert found.cuts
        assert not found.wrong, found.wrong[0]
        assert found.picked or query != ABOVE
        assert found.reduced or query != RESTRICTED


@pytest.mark.proof
def test_a_column_that_stays_required_after_an_outer_join_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts._Cutter, "_required", lambda self: self.shape.required)
    assert played(LATEST, frozenset({"v"})).wrong


@pytest.mark.proof
def test_a_view_without_its_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(self: Any, relation: Any) -> Any:
        made = KEPT(self, relation)
        if isinstance(made, Scan):
            self.cuts[-1] = replace(self.cuts[-1], shape=replace(self.cuts[-1].shape, root=cuts.Filter(relation, cuts.exp.false())))
        return made

    monkeypatch.setattr(cuts._Cutter, "_kept", kept)
    assert played(SUMS).wrong


KEPT = cuts._Cutter._kept


@pytest.mark.proof
@pytest.mark.parametrize("fault", ["other column", "no NULL", "other groups"])
def test_groups_that_lack_rows_are_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    true = cuts.reduction

    def planted(relation: Any, types: Any) -> Any:
        made = true(relation, types)
        if made is None:
            return None
        if fault == "no NULL":
            return replace(made, compared=tuple((value, name, False) for value, name, _ in made.compared))
        if fault == "other column":
            return replace(made, compared=tuple((value, made.source.columns[0], is_null) for value, _, is_null in made.compared))
        return replace(made, groups=replace(made.groups, child=cuts.Filter(made.groups.child, exp.condition("false"))))

    monkeypatch.setattr(cuts, "reduction", planted)
    assert played(RESTRICTED).wrong


@pytest.mark.proof
def test_conditions_of_a_row_that_do_not_count_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_query, "conjunction", lambda parts: conjunction(parts[:1]))
    assert any(one.strategy == "each row by itself" for one in played(ABOVE).wrong)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("query", "function", "change"),
    [
        ("SELECT count(DISTINCT v) AS n FROM {b}", "made", lambda found: replace(found, totals=_of_all_groups(found.totals))),
        (f"{VALUES} AND v > 100", "_count", lambda made: made.this),
        (VALUES, "_total", lambda made: exp.func("coalesce", exp.null(), made.copy() + exp.Literal.number(1))),
    ],
)
def test_wrong_totals_of_distinct_values_are_found(monkeypatch: pytest.MonkeyPatch, query: str, function: str, change: Any) -> None:
    true = getattr(_Drafted, function)
    monkeypatch.setattr(_Drafted, function, lambda self, *args: change(true(self, *args)))
    assert played(query).wrong


def _of_all_groups(totals: tuple[Item, ...]) -> tuple[Item, ...]:
    """The group of NULL is counted."""
    return tuple(Item(item.name, exp.Count(this=exp.Star())) for item in totals)


@pytest.mark.proof
def test_a_limit_dropped_where_there_are_more_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "has_one_row", lambda relation: True)
    assert played(FIRST).wrong


def test_the_values_of_a_correlated_subquery_are_kept() -> None:
    query = "SELECT country, (SELECT sum(weight) FROM {{orders}} WHERE orders.{0} = customers.customer_id) AS s FROM {{customers}}"
    found = divided(shape(query.format("customer_id")), 2)
    assert found is not None
    assert [formula(cut.shape.root) for cut in found.cuts] == ["aggregate[customer_id, SUM(weight)](orders)"]


@pytest.mark.parametrize("value", ["sum(weight)", "count(*) + coalesce(min(id), 7)"])
def test_a_correlated_subquery_that_compares_after_a_cast_is_refused(value: str) -> None:
    """'01' and '1' are two groups of the subquery, and one value for the row with 1."""
    query = f"SELECT country, (SELECT {value} FROM {{{{orders}}}} WHERE orders.{{0}} = customers.customer_id) AS s FROM {{{{customers}}}}"
    assert shape(query.format("customer_id"))
    with pytest.raises(Refused, match="different types"):
        shape(query.format("status"))
