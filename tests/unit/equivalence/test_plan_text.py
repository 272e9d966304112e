"""Optimized plans of a query and of its tree that differ only in notation."""

from __future__ import annotations

import pytest

from mvbuild.equivalence.plan_text import without_renames
from mvbuild.equivalence.spark_proof import plan_difference

LEFT, RIGHT = "RelationV2[k#{0}, v#{1}] lake.raw.b", "RelationV2[k#{2}, v#{3}] lake.raw.a"


def plan(join: str, *ids: int) -> str:
    return sections(f"Project [k#{{0}} AS c#{{4}}]\n+- Join Inner, {join}\n   :- {LEFT}\n   +- {RIGHT}".format(*ids))


def sections(text: str) -> str:
    return f"== Optimized Logical Plan ==\n{text}\n\n== Physical Plan ==\n{text}\n"


def test_conditions_in_another_order() -> None:
    one = plan("(((v#{1} > 0) OR (v#{3} > 0)) AND (k#{0} = k#{2}))", 1, 2, 3, 4, 5)
    other = plan("((k#{0} = k#{2}) AND ((v#{1} > 0) OR (v#{3} > 0)))", 11, 12, 13, 14, 15)
    assert plan_difference(one, other, physical=False) == ""
    three = plan("((isnotnull(v#{1}) AND (v#{1} > v#{3})) AND (k#{0} = k#{2}))", 1, 2, 3, 4, 5)
    again = plan("((k#{0} = k#{2}) AND ((v#{1} > v#{3}) AND isnotnull(v#{1})))", 21, 22, 23, 24, 25)
    assert plan_difference(three, again, physical=False) == ""


def test_conditions_on_computed_columns_in_another_order() -> None:
    """Two values of one window have ids, and maybe names, that say nothing: how they are computed decides about their order."""

    def plan_of(condition: str, first: str, second: str) -> str:
        values = "last(k#{0}, true) windowspecdefinition(v#{1} ASC NULLS FIRST) AS {2}, last(v#{1}, true) windowspecdefinition(v#{1} ASC NULLS FIRST) AS {3}"
        listed = values.format(1, 2, first, second)
        return sections(f"Filter ({condition})\n+- Window [{listed}], [v#2 ASC NULLS FIRST]\n   +- {LEFT.format(1, 2)}")

    one = plan_of("isnotnull(x#8) AND isnotnull(x#9)", "x#8", "x#9")
    assert plan_difference(one, plan_of("isnotnull(b#3) AND isnotnull(a#4)", "a#4", "b#3"), physical=False) == ""
    assert plan_difference(one, plan_of("isnotnull(b#3) AND (a#4 > 1)", "a#4", "b#3"), physical=False) == "Spark's plans differ"
    swapped = [plan_of("isnotnull(x#8) AND (y#9 > 1)", *ids) for ids in (("x#8", "y#9"), ("y#9", "x#8"))]
    assert plan_difference(*swapped, physical=False) == "Spark's plans differ"


def test_other_conditions() -> None:
    one = plan("(((v#{1} > 0) OR (v#{3} > 0)) AND (k#{0} = k#{2}))", 1, 2, 3, 4, 5)
    for other in (
        "((k#{0} = k#{2}) AND ((v#{3} > 0) OR (v#{3} > 0)))",
        "((k#{0} = k#{2}) AND ((v#{1} > 0) OR (v#{1} > 0)))",
        "((k#{0} = v#{3}) AND ((v#{1} > 0) OR (v#{3} > 0)))",
        "((k#{0} = k#{2}) OR ((v#{1} > 0) OR (v#{3} > 0)))",
        "((k#{0} = k#{2}) AND ((v#{1} > 0) AND (v#{3} > 0)))",
        "(k#{0} = k#{2})",
    ):
        assert plan_difference(one, plan(other, 11, 12, 13, 14, 15), physical=False) == "Spark's plans differ", other


def test_a_right_join_is_a_left_join_the_other_way() -> None:
    right = "Project [k#1L]\n+- Join RightOuter, (k#1L = k#2L)\n   :- RelationV2[k#1L] a\n   +- RelationV2[k#2L] b"
    left = "Project [k#1L]\n+- Join LeftOuter, (k#1L = k#2L)\n   :- RelationV2[k#2L] b\n   +- RelationV2[k#1L] a"
    assert without_renames(right) == without_renames(left)


def test_below_union_a_projection_goes_only_if_it_changes_nothing() -> None:
    bare = "Union false, false\n:- RelationV2[k#1L, v#2] a\n+- RelationV2[k#3L, v#4] b"
    same = "Union false, false\n:- Project [k#1L, v#2]\n:  +- RelationV2[k#1L, v#2] a\n+- RelationV2[k#3L, v#4] b"
    swapped = same.replace("Project [k#1L, v#2]", "Project [v#2, k#1L]")
    assert without_renames(bare) == without_renames(same) != without_renames(swapped)


def test_the_plan_of_a_subquery_belongs_to_its_operator() -> None:
    plan = (
        "Filter (v#1 > scalar-subquery#2 [])\n:  +- Aggregate [avg(v#3) AS m#4]\n:     +- Project [v#3]\n"
        ":        +- RelationV2[v#3, k#5] b\n+- RelationV2[v#1] a"
    )
    assert without_renames(plan) == without_renames(plan.replace(":     +- Project [v#3]\n:        +-", ":     +-"))
    assert "Aggregate" in without_renames(plan)


def test_the_order_of_the_whole_result_is_no_part_of_a_table() -> None:
    table = "RelationV2[k#1L, v#2] a"
    plain = f"Project [k#1L, (v#2 + 1) AS c#3]\n+- {table}"
    for ordered in (
        f"Sort [k#1L ASC NULLS FIRST], true\n+- Project [k#1L, (v#2 + 1) AS c#3]\n   +- {table}",
        f"Project [k#1L, (v#2 + 1) AS c#3]\n+- Sort [v#2 DESC NULLS LAST], true\n   +- {table}",
    ):
        assert without_renames(ordered) == without_renames(plain)
    ordered = "Project [k#1L AS c#5L, n#3L AS d#6L]\n+- Sort [n#3L DESC NULLS LAST], true\n   +- Aggregate [k#1L], [k#1L, sum(v#2) AS n#3L]"
    plain = "Aggregate [k#1L], [k#1L AS c#5L, sum(v#2) AS d#6L]"
    assert (
        plan_difference(*(sections(f"{text}\n{'   ' * text.count(chr(10))}+- {table}") for text in (ordered, plain)), physical=False) == ""
    )
    for kept in (
        f"GlobalLimit 3\n+- LocalLimit 3\n   +- Sort [k#1L ASC NULLS FIRST], true\n      +- Project [k#1L, (v#2 + 1) AS c#3]\n         +- {table}",
        f"Sort [scalar-subquery#9 [] ASC NULLS FIRST], true\n:  +- OneRowRelation\n+- {table}",
        f"Window [row_number() AS n#4], [k#1L ASC NULLS FIRST]\n+- Sort [k#1L ASC NULLS FIRST], false\n   +- {table}",
    ):
        assert "Sort [" in without_renames(kept)


GROUPS, TABLE = "Aggregate [k#1L]", "RelationV2[k#1L, v#2] lake.raw.a"


@pytest.mark.parametrize(
    "value", ["count(1)", "sum(v#2)", "max(abs(v#2))", "count(distinct v#2)", "MakeDecimal(sum(UnscaledValue(v#2)),17,2)"]
)
def test_a_result_may_have_a_value_of_groups_twice(value: str) -> None:
    twice = sections(f"{GROUPS}, [{value} AS a#3L, k#1L, {value} AS b#4L]\n+- {TABLE}")
    listed = sections(f"Project [s#5L, k#1L, s#5L AS t#6L]\n+- {GROUPS}, [{value} AS s#5L, k#1L]\n   +- {TABLE}")
    assert plan_difference(twice, listed, physical=False) == ""
    for old, new in ((f"{value} AS b", "min(v#2) AS b"), (f"{value} AS b#4L", "k#1L AS b#4L"), (", k#1L, ", ", "), ("[k#1L],", "[v#2],")):
        assert old in twice
        assert plan_difference(twice.replace(old, new), listed, physical=False) == "Spark's plans differ"
    other_order = listed.replace("[s#5L, k#1L, s#5L AS t#6L]", "[k#1L, s#5L, s#5L AS t#6L]")
    assert plan_difference(twice, other_order, physical=False) == "Spark's plans differ"


@pytest.mark.parametrize("value", ["max(named_struct(a, 1))", "max(array(v#2, 1))", "collect_list(1)", "first(v#2, false)"])
def test_a_value_whose_text_does_not_say_all_of_it_is_not_the_same_value(value: str) -> None:
    twice = sections(f"{GROUPS}, [{value} AS a#3L, k#1L, {value} AS b#4L]\n+- {TABLE}")
    listed = sections(f"Project [s#5L, k#1L, s#5L AS t#6L]\n+- {GROUPS}, [{value} AS s#5L, k#1L]\n   +- {TABLE}")
    assert plan_difference(twice, listed, physical=False) == "Spark's plans differ"
