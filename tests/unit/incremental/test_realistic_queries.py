"""Each of the 98 realistic queries -> whether it is refreshed incrementally, and the reason if not."""

from __future__ import annotations

import pytest

from mvbuild.incremental.algebra import leaves
from mvbuild.incremental.cuts import divided
from mvbuild.incremental.hypothetical import answers
from mvbuild.incremental.reasons import Refused
from mvbuild.parse.clock_reads import without_clock
from mvbuild.parse.determinism import nondeterministic_word
from unit.incremental.realistic import INCREMENTAL, QUERIES, Realistic

_TELLING = ("no-aggregate", "not-linear", "no-children", "rows-removed", "no-partitions")
"""Codes that say only that another strategy is the one to ask."""


def refresh_of(query: Realistic) -> tuple[str, str]:
    """INCREMENTAL, or the code and the message of the reason."""
    if nondeterministic_word(without_clock(query.sql)):
        return "nondeterministic", ""
    try:
        found = tuple(answers(query.shape, "deletes"))
    except Refused as exc:
        return exc.code, exc.message
    if any(one.refused is None for one in found):
        return INCREMENTAL, ""
    refusals = [one.refused for one in found if one.refused is not None and one.refused.code not in _TELLING]
    general = [one for one in refusals if one.code not in ("no-key", "not-mergeable", "deletes-need-count", "having")]
    chosen = (general or refusals)[0]
    return chosen.code, chosen.message


@pytest.mark.parametrize("query", QUERIES, ids=[query.name for query in QUERIES])
def test_is_refreshed_as_it_should_be(query: Realistic) -> None:
    assert refresh_of(query)[0] == query.refresh


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT order_id, sum(size(tags)) OVER (PARTITION BY channel) AS tags FROM {orders}",
        "SELECT order_id, sum(floor(amount * 100)) OVER (PARTITION BY channel) AS cents FROM {orders}",
        "SELECT order_id, line.product_id, sum(line.quantity) OVER (PARTITION BY order_id) AS n FROM {orders} LATERAL VIEW explode(lines) AS line",
        "SELECT o.order_id, t.days FROM {orders} AS o CROSS JOIN (SELECT sum(datediff(valid_to, valid_from)) AS days FROM {products}"
        " GROUP BY category) AS t",
        "SELECT k.order_id, k.name FROM ({orders} AS o JOIN {customers} AS c USING (customer_id)) AS k",
    ],
)
def test_types_and_names_are_those_that_lineage_knows(sql: str) -> None:
    found = answers(Realistic("known", sql).shape, "deletes")
    assert next(one for one in found if one.strategy == "bag").refused is None


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT :order_id AS id FROM {orders}", "`:order_id` is not refreshed incrementally"),
        (
            "SELECT amount + 1 AS x, (SELECT max(price) FROM {products} WHERE price = x) AS p FROM {orders}",
            "a subquery that refers to an alias of the query around it",
        ),
    ],
)
def test_is_refused(sql: str, message: str) -> None:
    with pytest.raises(Refused) as caught:
        _ = Realistic("refused", sql).shape
    assert caught.value.message == message


def is_from_views_alone(query: Realistic) -> bool:
    """Whether its auxiliary views follow deletes, and what is above them reads nothing else: no base table is read in full."""
    division = divided(query.shape, len(query.tables))
    return division is not None and min(leaves(division.shape.root)) >= len(query.tables)


def test_is_refreshed_from_auxiliary_views() -> None:
    (query,) = (query for query in QUERIES if query.name == "share_of_all")
    assert refresh_of(query)[0] != INCREMENTAL
    assert is_from_views_alone(query)


def test_how_many_are_incremental() -> None:
    assert len(QUERIES) == len({query.name for query in QUERIES}) == 98
    assert sum(query.refresh == INCREMENTAL for query in QUERIES) >= 89
