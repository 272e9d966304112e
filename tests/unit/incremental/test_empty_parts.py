"""Terms that cannot have rows are left out of a refresh, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mvbuild.incremental.algebra import Scan
from mvbuild.incremental.empty_parts import EmptyParts, without_empty_parts
from mvbuild.incremental.samples import case, formula
from mvbuild.incremental.statements import Difference, difference
from mvbuild.incremental.stored_rows import Stored
from mvbuild.incremental.strategies import STRATEGIES

JOINED = "SELECT id, country FROM {orders} JOIN {customers} USING (customer_id)"
OUTER = "SELECT id, country FROM {orders} LEFT JOIN {customers} USING (customer_id)"
BOTH = "SELECT id FROM {orders} UNION ALL SELECT customer_id FROM {customers}"
TOTAL = "SELECT count(*) AS n FROM {orders}"


def made(strategy: str, sql: str) -> Difference:
    """Rows were added to both tables, and removed from both."""
    both = frozenset({0, 1})
    found = STRATEGIES[strategy](replace(case(sql), plus=both, minus=both))
    return difference(found, Stored(types={name: "long" for _, name in found.outputs}))


def formulas(change: Difference) -> dict[str, str]:
    return {cte.name: formula(cte.relation) for cte in change.ctes}


@pytest.mark.parametrize(
    ("sql", "empty", "expected"),
    [
        (BOTH, {(0, "plus")}, "customers.plus"),
        (BOTH, {(1, "plus")}, "orders.plus"),
        (JOINED, {(0, "plus")}, "inner join[customer_id = customer_id](orders.old, customers.plus)"),
        (JOINED, {(1, "plus")}, "inner join[customer_id = customer_id](orders.plus, customers)"),
    ],
)
def test_a_term_without_rows_is_left_out(sql: str, empty: set[tuple[int, str]], expected: str) -> None:
    found = formulas(without_empty_parts(made("bag", sql), EmptyParts(lambda scan: (scan.leaf, scan.version) in empty)))
    assert found["plus"] == expected
    assert "union" in found["minus"]


@pytest.mark.parametrize(("strategy", "sql"), [("bag", JOINED), ("bag", OUTER), ("merge", TOTAL), ("affected-keys", OUTER)])
def test_nothing_is_left_out_of_what_may_have_rows(strategy: str, sql: str) -> None:
    change = made(strategy, sql)
    assert formulas(without_empty_parts(change, EmptyParts(lambda _: False))) == formulas(change)


def test_an_aggregate_of_nothing_has_a_row_and_the_left_side_of_a_join_remains() -> None:
    def is_right(scan: Scan) -> bool:
        return scan.leaf == 1

    change = made("affected-keys", OUTER)
    found = formulas(without_empty_parts(change, EmptyParts(is_right)))
    assert found["rows"] == formulas(change)["rows"]
    total = made("merge", TOTAL)
    assert formulas(without_empty_parts(total, EmptyParts(lambda scan: scan.version in ("plus", "minus")))) == formulas(total)
