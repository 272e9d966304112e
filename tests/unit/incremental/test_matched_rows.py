"""Groups over a LEFT JOIN follow its pairs alone where no value is of the rows without a partner; planted faults must be found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from mvbuild.incremental import matched_rows as module
from mvbuild.incremental import merged_groups
from mvbuild.incremental.algebra import Aggregate, Filter, Scan, walk
from mvbuild.incremental.matched_rows import matched_rows
from mvbuild.incremental.samples import case, formula, shape
from mvbuild.incremental.strategies import merge
from seeds import more_seeds
from unit.incremental.groups_of_left_joins import groups_of_left_joins
from unit.incremental.on_cuts import through_cuts
from unit.incremental.on_duckdb import Table, connected
from unit.incremental.oracle import ACCEPTED, Wrong, seen
from unit.incremental.queries import Generated

CASES = int(os.environ.get("MVBUILD_MATCHED_CASES", "250"))
JOINED = "FROM {customers} LEFT JOIN {orders} USING (customer_id)"
PAIRS = "inner join[customer_id = customer_id](customers, orders)"


@pytest.mark.parametrize(
    ("query", "pairs"),
    [
        (f"SELECT country, sum(amount) AS s {JOINED} GROUP BY country", PAIRS),
        (f"SELECT country, count_if(amount > 3) AS s {JOINED} GROUP BY country", PAIRS),
        (
            f"SELECT country, sum(amount) AS s {JOINED} WHERE country <> 'no' GROUP BY country",
            PAIRS.replace("(customers", "(filter[country <> 'no'](customers)"),
        ),
        (f"SELECT country, count_if(amount > 3 AND country = 'no') AS s {JOINED} GROUP BY country", PAIRS),
        # sqlglot knows no such function: its name is in the place of an argument.
        (f"SELECT country, max_by(amount, struct(id, amount)) AS s {JOINED} GROUP BY country", None),
        # NULL AND false is false, which is counted.
        (f"SELECT country, count(amount > 3 AND country = 'no') AS s {JOINED} GROUP BY country", None),
        (f"SELECT country, count(CASE WHEN (amount > 3 AND country = 'no') = false THEN 1 END) AS s {JOINED} GROUP BY country", None),
        # A value or key of the rows without a partner.
        (f"SELECT country, count(*) AS n {JOINED} GROUP BY country", None),
        (f"SELECT country, sum(coalesce(amount, 1)) AS n {JOINED} GROUP BY country", None),
        (f"SELECT country, max(country) AS n, sum(amount) AS s {JOINED} GROUP BY country", None),
        (f"SELECT status, sum(amount) AS n {JOINED} GROUP BY status", None),
        (f"SELECT country, sum(amount) AS n {JOINED} WHERE amount IS NULL OR amount > 3 GROUP BY country", None),
        # The rest of the query reads a table of the right side too.
        (
            f"SELECT country, sum(orders.amount) AS s {JOINED} JOIN (SELECT status AS st FROM {{orders}}) AS p ON p.st = country GROUP BY country",
            None,
        ),
        # One group of everything, no value, another join.
        (f"SELECT sum(amount) AS n {JOINED}", None),
        (f"SELECT country {JOINED} GROUP BY country", None),
        ("SELECT country, sum(amount) AS s FROM {customers} JOIN {orders} USING (customer_id) GROUP BY country", None),
        (f"SELECT country, count(DISTINCT amount) AS s {JOINED} GROUP BY country", None),
    ],
)
def test_where_rows_without_a_partner_are_skipped(query: str, pairs: str | None) -> None:
    root: Any = shape(query).root
    while not isinstance(root, Aggregate):
        root = root.child
    found = matched_rows(root)
    assert (found and formula(found.pairs)) == pairs


def test_the_right_side_is_not_read_for_what_remains_of_it() -> None:
    query = f"SELECT customers.customer_id, country, sum(amount) AS s, count(amount) AS n {JOINED} GROUP BY customers.customer_id, country"
    made = merge.rewrite(case(query, removed=True))
    assert not made.ctes
    write: Any = made.write
    assert write.delete_when is None
    assert {node.version for node in walk(write.delta) if isinstance(node, Scan) and node.leaf == 0} == {"plus", "minus"}


# --- random queries ------------------------------------------------------------------------------------------------------------------


def played(seeds: Iterable[int], *, cuts: bool = False) -> tuple[int, list[Wrong]]:
    """How many were merged with the pairs alone, and what is wrong."""
    connection = connected()
    wrong: list[Wrong] = []
    merged = 0
    for seed in seeds:
        generated = groups_of_left_joins(seed)
        found = seen(generated, connection, ["merge"])
        wrong += found.wrong
        merged += found.codes.get("merge") == ACCEPTED and found.moves
        if cuts:
            wrong += through_cuts(generated, connection, seed).wrong
    return merged, wrong


@pytest.mark.proof
def test_random_groups_over_left_joins() -> None:
    merged, wrong = played((*range(6_000_000, 6_000_000 + CASES), *more_seeds(CASES // 2)))
    assert not wrong, wrong[0]
    assert merged > CASES // 10


@pytest.mark.proof
def test_random_groups_over_left_joins_through_auxiliary_views() -> None:
    _, wrong = played((*range(6_500_000, 6_500_000 + CASES // 8), *more_seeds(CASES // 8)), cuts=True)
    assert not wrong, wrong[0]


# --- planted faults ------------------------------------------------------------------------------------------------------------------


def _alone_is_forgotten(found: Any) -> Any:
    return found and replace(found, alone=Filter(found.pairs, module.exp.false()))


@pytest.mark.proof
@pytest.mark.parametrize(
    ("fault", "first"),
    [
        ("values of the left side", 6_000_280),
        ("what reads the right side", 6_000_000),
        ("new groups", 6_000_205),
        ("a table of both sides", 6_000_040),
    ],
)
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: str, first: int) -> None:
    """`first`: not far from a case that finds it."""
    if fault == "values of the left side":
        monkeypatch.setattr(module, "_is_null", lambda *_: True)
    elif fault == "a table of both sides":
        monkeypatch.setattr(module, "_reads_twice", lambda *_: False)
    elif fault == "new groups":
        monkeypatch.setattr(merged_groups, "matched_rows", lambda aggregate: _alone_is_forgotten(matched_rows(aggregate)))
    else:
        join = module._join

        def planted(relation: Any, values: Any, others: Any) -> Any:
            return join(relation, values, [] if isinstance(relation, module.Join) else others)

        monkeypatch.setattr(module, "_join", planted)
    assert any(played([seed])[1] for seed in range(first, first + 2_000))


@pytest.mark.parametrize("is_fault", [False, True])
def test_false_that_is_taken_for_null_is_found(monkeypatch: pytest.MonkeyPatch, is_fault: bool) -> None:
    """A row without a partner has `NULL AND false`, which is counted. Its first partner has `true AND false`."""
    if is_fault:
        is_null = module._is_null
        monkeypatch.setattr(module, "_is_null", lambda one, columns: isinstance(one, module.exp.And) or is_null(one, columns))
    query = "SELECT a.k, count(b.v > 0 AND a.g >= 1) AS n FROM {a} AS a LEFT JOIN {b} AS b ON b.k = a.k GROUP BY a.k"
    columns = dict.fromkeys("kgv", "int")
    tables = (Table("a", columns, old=[(1, 0, 1)], new=[(1, 0, 1)]), Table("b", columns, old=[], new=[(1, 1, 1)]))
    found = seen(Generated(0, query, tables, frozenset(), "inserts"), connected(), ["merge"])
    assert bool(found.wrong) == is_fault
