"""A large table is read once for both of its versions; the rows are the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental import delta, shared_reads
from mvbuild.incremental.algebra import Filter, Join, Ref, Relation, Scan, SetOperation, Union, walk
from mvbuild.incremental.emit import null_safe
from mvbuild.incremental.key_ranges import Ranges
from mvbuild.incremental.limiting import limiting
from mvbuild.incremental.rewrite import Rewrite, relations_of
from mvbuild.incremental.samples import case, formula
from mvbuild.incremental.shared_reads import Changed, with_shared_reads
from mvbuild.incremental.strategies import STRATEGIES
from mvbuild.ports.changes import ValueRange
from unit.incremental.join_queries import with_partners
from unit.incremental.on_duckdb import connected
from unit.incremental.oracle import seen
from unit.incremental.queries import generated

NEWEST = "SELECT customer_id, max(id) AS last FROM {orders} GROUP BY customer_id"


def shared(sql: str, strategy: str = "bag", *, is_large: bool = True) -> Rewrite | None:
    asked = case(sql, removed=True)
    changed = Changed(plus=asked.plus, minus=asked.minus, types=asked.shape.types)
    return with_shared_reads(STRATEGIES[strategy](asked), changed, lambda _: is_large)


def versions(rewrite: Rewrite, leaf: int = 0) -> list[str]:
    found = (node for relation in relations_of(rewrite) for node in walk(relation))
    return sorted(node.version for node in found if isinstance(node, Scan) and node.leaf == leaf and node.version in ("new", "old"))


def test_the_earlier_rows_follow_from_the_change() -> None:
    found = shared(NEWEST)
    assert found is not None
    assert versions(found) == ["new"]
    (read,) = [cte for cte in found.ctes if cte.name == "read_0"]
    assert read.at_once


def test_a_small_table_is_read_at_both_snapshots() -> None:
    assert shared(NEWEST, is_large=False) is None


def test_a_result_that_is_needed_once_shares_nothing() -> None:
    assert shared(NEWEST, "affected-keys") is None


def test_fractions_are_read_at_both_snapshots() -> None:
    # EXCEPT ALL would take -0.0 for 0.0.
    assert shared("SELECT customer_id, max(weight) AS last FROM {orders} GROUP BY customer_id") is None


def test_reads_of_other_columns_share_one_statement() -> None:
    newest = "(SELECT customer_id AS c, max(amount) AS last FROM {orders} GROUP BY customer_id) AS newest"
    found = shared(f"SELECT id, last FROM {{orders}} LEFT JOIN {newest} ON customer_id = c")
    assert found is not None
    assert versions(found) == ["new"]
    (read,) = [cte for cte in found.ctes if cte.name == "read_0"]
    (scan,) = [node for node in walk(read.relation) if isinstance(node, Scan)]
    assert sorted(source for _, source in scan.sources) == ["amount", "customer_id", "id"]
    # Both read the earlier rows, which are computed once.
    everything = [node for relation in relations_of(found) for node in walk(relation)]
    assert [cte.name for cte in found.ctes if cte.name.startswith("read_")] == ["read_0", "read_0_before"]
    assert len([node for node in everything if isinstance(node, SetOperation)]) == 1


@pytest.mark.parametrize(
    ("low", "high", "type_", "in_files", "expected"),
    [
        (1, 1_000_000, "long", 1.0, 900_000),
        # Seven line numbers are in all rows.
        (1, 7, "int", 1.0, 30_000_000),
        # However many there are, few files have them.
        (1, 7, "int", 0.01, 300_000),
        ("a", "z", "string", 1.0, 30_000_000),
        (None, None, "long", 0.0, 0),
    ],
)
def test_how_many_rows_have_the_keys(low: Any, high: Any, type_: str, in_files: float, expected: float) -> None:
    found = ValueRange(type=type_, low=low, high=high, has_null=False)
    sizes: Any = SimpleNamespace(
        of=lambda _: SimpleNamespace(rows=30_000_000), share=lambda *_: in_files, range=lambda *_: None, rows_that_differ=30_000
    )
    keys = Ref("keys_0", ("k",))
    semi = Join(Scan(0, (("own", "own"),)), keys, "semi", null_safe([("own", "k")]))
    assert Ranges(sizes, {"keys_0": {"k": found}}).rows_with_keys(semi) == expected


# --- keys without a partner -------------------------------------------------------------------------------------------------------------

FEW = "(SELECT customer_id AS c, country FROM {customers} WHERE country = 'DE') AS few"


@pytest.mark.parametrize(
    ("join", "limited"),
    [
        (f"{FEW} LEFT JOIN newest ON c = newest.customer_id", True),
        # A row of the left side remains without a partner.
        (f"newest LEFT JOIN {FEW} ON c = newest.customer_id", False),
        ("{customers} JOIN newest ON customers.customer_id = newest.customer_id", False),
    ],
)
def test_keys_are_limited_by_the_other_side(join: str, limited: bool) -> None:
    newest = "SELECT customer_id, max(id) AS last FROM {orders} GROUP BY customer_id"
    asked = replace(case(f"WITH newest AS ({newest}) SELECT country, last FROM {join}"), plus=frozenset({0}), narrow_keys=True)
    found = STRATEGIES["bag"](asked)
    assert ("country = 'DE'" in formula(found.ctes[0].relation)) == limited


# --- planted faults ----------------------------------------------------------------------------------------------------------------------


def wrong(seeds: range) -> bool:
    connection = connected()
    return any(seen(generated(seed), connection).wrong for seed in seeds)


def wrong_partners(seeds: range) -> bool:
    connection = connected()
    return any(seen(with_partners(seed), connection).wrong for seed in seeds)


@pytest.mark.proof
def test_nothing_is_wrong_without_a_fault() -> None:
    assert not wrong(range(30))
    assert not wrong_partners(range(80))


@pytest.mark.proof
def test_removed_rows_that_are_forgotten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_reads, "Union", lambda parts, columns: Union(parts[:1], columns))
    assert wrong(range(60))


@pytest.mark.proof
def test_added_rows_that_stay_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_reads, "SetOperation", lambda left, *_: left)
    assert wrong(range(60))


@pytest.mark.proof
def test_keys_that_are_lost_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_of(relation: Relation, names: tuple[str, ...], changes: Callable[[Relation], bool]) -> Relation | None:
        found = limiting(relation, names, changes)
        return found and Filter(found, exp.false())

    monkeypatch.setattr(delta, "limiting", none_of)
    assert wrong_partners(range(200))
