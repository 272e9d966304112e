"""Relations that read a change under conditions -> the condition that its rows must satisfy to be read."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from mvbuild.incremental.algebra import Filter, Item, Join, Project, Relation, Scan, column
from mvbuild.incremental.change_filters import change_filters


def plus(leaf: int = 0, *, prefix: str = "t") -> Scan:
    return Scan(leaf, tuple((f"{prefix}_{name}", name) for name in ("a", "b")), "plus")


def where(relation: Relation, sql: str) -> Filter:
    return Filter(relation, parse_one(sql, dialect="spark"))


def shown(*relations: Relation) -> dict[int, str]:
    return {leaf: condition.sql("spark").replace("`", "") for leaf, condition in change_filters(relations).items()}


def test_conditions_have_the_names_of_the_tables_columns() -> None:
    assert shown(where(plus(), "t_a > 1")) == {0: "a > 1"}


def test_filters_above_each_other_are_asked_from_below() -> None:
    assert shown(where(where(plus(), "t_a <> 0"), "1 / t_a > t_b")) == {0: "a <> 0 AND 1 / a > b"}


def test_a_row_that_one_reader_wants_is_wanted() -> None:
    both = Join(where(plus(), "t_a > 1"), where(plus(prefix="u"), "u_b = 2 AND u_a < 0"), "inner", None)
    assert shown(both, where(plus(), "t_a > 1")) == {0: "a > 1 OR (b = 2 AND a < 0)"}


@pytest.mark.parametrize("version", ["plus", "minus"])
def test_one_reader_of_all_rows_makes_all_wanted(version: str) -> None:
    unfiltered = Scan(0, (("v_a", "a"),), version)  # type: ignore[arg-type]
    assert shown(where(plus(), "t_a > 1"), unfiltered) == {}


def test_a_condition_over_something_else_is_none_on_the_table() -> None:
    above = Project(plus(), (Item("x", exp.Abs(this=column("t_a"))),))
    assert shown(where(above, "x > 1")) == {}


def test_whole_tables_are_not_asked_about() -> None:
    whole = Scan(1, (("w_a", "a"),), "new")
    assert shown(Join(where(plus(), "t_a > 1"), whole, "inner", None)) == {0: "a > 1"}
