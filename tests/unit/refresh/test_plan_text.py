"""Optimized plans of a query and of its tree, which differ only in how they are written."""

from __future__ import annotations

from mvbuild.refresh.equivalence import plan_difference

LEFT, RIGHT = "RelationV2[k#{0}, v#{1}] lake.raw.b", "RelationV2[k#{2}, v#{3}] lake.raw.a"


def plan(join: str, *ids: int) -> str:
    text = f"Project [k#{{0}} AS c#{{4}}]\n+- Join Inner, {join}\n   :- {LEFT}\n   +- {RIGHT}".format(*ids)
    return f"== Optimized Logical Plan ==\n{text}\n\n== Physical Plan ==\n{text}\n"


def test_conditions_in_another_order() -> None:
    one = plan("(((v#{1} > 0) OR (v#{3} > 0)) AND (k#{0} = k#{2}))", 1, 2, 3, 4, 5)
    other = plan("((k#{0} = k#{2}) AND ((v#{1} > 0) OR (v#{3} > 0)))", 11, 12, 13, 14, 15)
    assert plan_difference(one, other, physical=False) == ""
    three = plan("((isnotnull(v#{1}) AND (v#{1} > v#{3})) AND (k#{0} = k#{2}))", 1, 2, 3, 4, 5)
    again = plan("((k#{0} = k#{2}) AND ((v#{1} > v#{3}) AND isnotnull(v#{1})))", 21, 22, 23, 24, 25)
    assert plan_difference(three, again, physical=False) == ""


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
