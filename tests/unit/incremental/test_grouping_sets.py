"""ROLLUP, CUBE and GROUPING SETS: every strategy is right on random queries, wrong rules are detected, and sets are those of Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlglot import exp

from mvbuild.incremental import grouping_sets, merged_groups, select_parts
from mvbuild.incremental.algebra import Aggregate, Expand, Explode, walk
from mvbuild.incremental.emit import sql_of
from mvbuild.incremental.grouping_sets import Grouping
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.samples import shape
from unit.incremental.on_duckdb import OnDuckDB, Table, connected
from unit.incremental.oracle import ACCEPTED, seen, shrunk
from unit.incremental.queries import GROUPED, generated

Patch = pytest.MonkeyPatch
SEEDS = range(GROUPED, GROUPED + 60)
SELECT = "SELECT customer_id, status, count(*) AS n FROM {orders} GROUP BY"


def _expand(sql: str) -> Expand:
    return next(node for node in walk(shape(sql).root) if isinstance(node, Expand))


def _numbers(sql: str) -> list[int]:
    rows = _expand(sql).child
    assert isinstance(rows, Explode)
    return [int(one.name) for one in rows.generator.find_all(exp.Literal)]


@pytest.mark.parametrize(
    ("by", "numbers"),
    [
        ("ROLLUP (customer_id, status)", [0, 1, 3]),
        ("customer_id, status WITH ROLLUP", [0, 1, 3]),
        ("CUBE (customer_id, status)", [0, 1, 2, 3]),
        ("CUBE ((customer_id, status))", [0, 3]),
        ("customer_id, ROLLUP (status)", [0, 1]),
        ("GROUPING SETS ((status), (customer_id, status), ())", [1, 0, 3]),
        ("customer_id, status GROUPING SETS ((status), (customer_id, status), ())", [2, 0, 3]),
        ("GROUPING SETS (ROLLUP (customer_id), (status))", [1, 3, 2]),
        ("ROLLUP (1, 2)", [0, 1, 3]),
    ],
)
def test_each_set_has_the_number_that_grouping_id_has_in_spark(by: str, numbers: list[int]) -> None:
    assert _numbers(f"{SELECT} {by}") == numbers


@pytest.mark.parametrize(
    "by",
    [
        "GROUPING SETS ((customer_id, status), (status, customer_id))",
        "ROLLUP (customer_id, status), ROLLUP (customer_id)",
        "customer_id GROUPING SETS ((customer_id, status))",
        "ROLLUP (customer_id, upper(status))",
    ],
)
def test_equal_sets_unknown_keys_and_expressions_are_refused(by: str) -> None:
    with pytest.raises(Refused):
        shape(f"{SELECT} {by}")


def test_spark_gets_grouping_sets_as_written() -> None:
    made = sql_of(shape(f"{SELECT} ROLLUP (customer_id, status)").root, lambda _: "T")
    assert "GROUPING SETS ((`customer_id_1`, `status_4`), (`customer_id_1`), ())" in made


def test_keys_that_are_never_null_show_their_set() -> None:
    query = "SELECT k, s, count(*) AS n, sum(v) AS x, count(v) AS c FROM {a} GROUP BY CUBE (k, s)"
    columns = {"k": "int", "s": "string", "v": "int"}
    old, new = [(1, "x", 1), (1, "y", None), (2, "x", 3)], [(1, "x", 1), (3, "x", 3)]
    case = OnDuckDB(query, [Table("a", columns, old, new, required=frozenset({"k", "s"}))])
    assert case.refreshed("merge") == case.full()
    with pytest.raises(Refused, match="grouping_id"):
        OnDuckDB(query, [Table("a", columns, old, new, required=frozenset({"k"}))]).refreshed("merge")


def test_no_rows_are_no_groups() -> None:
    query = "SELECT k, count(*) AS n FROM {a} GROUP BY ROLLUP (k)"
    for old, new in (([], [(1,)]), ([(1,)], [])):
        case = OnDuckDB(query, [Table("a", {"k": "int"}, old, new, required=frozenset({"k"}))])
        assert [case.refreshed(one) for one in ("merge", "affected-keys", "bag")] == [case.full()] * 3
        assert case.full().total() == 2 * len(new)


@pytest.mark.proof
def test_every_strategy_is_right_and_taken_often() -> None:
    connection, accepted, merged = connected(), 0, 0
    for seed in SEEDS:
        found = seen(generated(seed), connection)
        assert not found.wrong, "\n\n".join(str(shrunk(one, connection)) for one in found.wrong[:3])
        accepted += found.codes.get("affected-keys") == ACCEPTED
        merged += found.codes.get("merge") == ACCEPTED
    assert accepted >= 50
    assert merged >= 15


# --- wrong rules --------------------------------------------------------------------------------------------------------------------


def keys_of_other_sets_stay(patch: Patch) -> None:
    patch.setattr(grouping_sets, "_if_in_set", lambda key, number, bit: exp.Case(ifs=[exp.If(this=exp.true(), true=key.copy())]))


def the_number_of_the_set_is_not_a_key(patch: Patch) -> None:
    true: Any = select_parts.grouping

    def without(*args: Any) -> Grouping:
        made: Grouping = true(*args)
        return replace(made, keys=made.keys[:-1], identifier="") if made.identifier else made

    patch.setattr(select_parts, "grouping", without)


def the_bits_are_the_other_way_round(patch: Patch) -> None:
    patch.setattr(Grouping, "_place", lambda self, key: self.written.index(key))


def aggregates_read_the_keys_of_the_set(patch: Patch) -> None:
    true: Any = Grouping.value

    def change(self: Grouping, node: exp.Expr) -> exp.Expr | None:
        if self.identifier:
            for key, written in zip(self.keys, self.written, strict=False):
                for found in list(node.find_all(exp.Column)):
                    if found is not node and found == written:
                        found.replace(key.expression.copy())
        return true(self, node)  # type: ignore[no-any-return]

    patch.setattr(Grouping, "value", change)


def a_set_needs_no_number_though_keys_may_be_null(patch: Patch) -> None:
    def change(_: Any, aggregate: Aggregate, stored: Any) -> tuple[str, ...]:
        return tuple(item.name for item in aggregate.keys if item.name in stored)

    patch.setattr(merged_groups, "_stored_keys", change)


@pytest.mark.proof
@pytest.mark.parametrize(
    "fault",
    [
        keys_of_other_sets_stay,
        the_number_of_the_set_is_not_a_key,
        the_bits_are_the_other_way_round,
        aggregates_read_the_keys_of_the_set,
        a_set_needs_no_number_though_keys_may_be_null,
    ],
    ids=lambda fault: fault.__name__,
)
def test_it_is_caught(fault: Callable[[Patch], None], monkeypatch: Patch) -> None:
    connection = connected()
    fault(monkeypatch)
    assert any(seen(generated(seed), connection).wrong for seed in SEEDS)
