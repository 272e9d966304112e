"""When a large table is read within the bounds of what it is joined with, and when it must not be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from mvbuild.incremental.algebra import Filter, Join, Relation, Scan, Union, at, walk
from mvbuild.incremental.bounds import Bounds, bounded, bounds_from, bounds_of, scan_name
from mvbuild.incremental.building import LeafColumns
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.shape import shape_of

COLUMNS = {"k": "int", "v": "int", "s": "string"}


def filters(on: str, column: str, low: str, high: str, type_: str) -> list[str]:
    """The filters on the second table, of whose partner the rows that came are known to lie between two values."""
    leaf = LeafColumns.of_iceberg(COLUMNS, frozenset())
    root = shape_of(f"SELECT a.v, b.v AS w FROM `{MARKER}0` a JOIN `{MARKER}1` b ON {on}", [leaf, leaf], ["v", "w"]).root
    (join,) = (node for node in walk(root) if isinstance(node, Join))
    changed = replace(join, left=at(join.left, "plus", frozenset({0})))
    (scan,) = (node for node in walk(changed.left) if isinstance(node, Scan))
    literals = (exp.cast(exp.Literal.string(value), type_, dialect="spark") for value in (low, high))
    known = {(scan_name(scan), column): Bounds(low=next(literals), high=next(literals), has_null=False)}
    found = bounded(changed, known)
    assert isinstance(found, Join)
    return [node.predicate.sql("spark") for node in walk(found.right) if isinstance(node, Filter)]


@pytest.mark.parametrize(("on", "column", "type_"), [("a.k = b.v", "k", "int"), ("a.s = b.s", "s", "string"), ("a.k <=> b.v", "k", "int")])
def test_a_partner_is_read_within_bounds(on: str, column: str, type_: str) -> None:
    (condition,) = filters(on, column, "10", "90", type_)
    assert "BETWEEN" in condition


@pytest.mark.parametrize(("on", "column", "type_"), [("a.s = b.v", "s", "string"), ("a.k = b.s", "k", "int")])
def test_not_where_the_two_are_compared_after_a_cast(on: str, column: str, type_: str) -> None:
    """As strings, '10' is less than '9', so there is no number between them."""
    assert filters(on, column, "10", "9", type_) == []


def test_bounds_of_a_union_of_unions() -> None:
    """Lines that were updated: those of before and of after, each with its own bounds, in several terms."""
    scans = [Scan(leaf, ((f"k_{leaf}", "k"),), "plus") for leaf in range(4)]
    literals = [exp.cast(exp.Literal.string(str(value)), "int", dialect="spark") for value in range(8)]
    known = {(scan_name(one), "k"): Bounds(low=literals[at], high=literals[at + 4], has_null=at == 1) for at, one in enumerate(scans)}
    nested: Relation = scans[0]
    for one in scans[1:]:
        nested = Union((nested, one), ("k",))
    found = bounds_of(nested, "k", known)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low.sql("spark") == "LEAST(LEAST(LEAST(CAST('0' AS INT), CAST('1' AS INT)), CAST('2' AS INT)), CAST('3' AS INT))"
    assert found.high.sql("spark") == "GREATEST(GREATEST(GREATEST(CAST('4' AS INT), CAST('5' AS INT)), CAST('6' AS INT)), CAST('7' AS INT))"
    assert found.has_null


@pytest.mark.parametrize(("low", "is_known"), [("1582-10-14", False), ("0001-01-01", False), ("1582-10-16", True), ("2026-01-01", True)])
def test_dates_before_the_calendar_of_today_bound_nothing(low: str, is_known: bool) -> None:
    """In ORC files, Iceberg's reader does not find them by a condition."""
    of = [("date", 2, low.encode().hex(), b"2026-01-02".hex()), ("string", 2, low.encode().hex(), b"x".hex())]
    assert set(bounds_from(2, of, ["d", "s"], [])) == ({"d", "s"} if is_known else {"s"})
