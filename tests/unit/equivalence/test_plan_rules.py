"""Laws of windows and aggregates by which two optimized plans of one query differ; whatever looks like them and is none is another query."""

from __future__ import annotations

import pytest

from mvbuild.equivalence.spark_proof import plan_difference

TABLE = "RelationV2[k#1L, g#2, v#3] lake.raw.a"
WINDOW = "Window [row_number() windowspecdefinition(k#1L, v#3 DESC NULLS LAST) AS r#4], [k#1L], [v#3 DESC NULLS LAST]"
LIMIT = "WindowGroupLimit [k#1L], [v#3 DESC NULLS LAST], row_number(), 1"
PROJECT = "Project [k#1L, upper(g#2) AS g#5, v#3]"


def difference(one: tuple[str, ...], other: tuple[str, ...]) -> str:
    """Of two plans, each a chain of nodes from the top."""
    return plan_difference(*map(_printed, (one, other)), physical=False)


def _printed(nodes: tuple[str, ...]) -> str:
    text = "\n".join(f"{'   ' * (at - 1)}+- {node}" if at else node for at, node in enumerate(nodes))
    return f"== Optimized Logical Plan ==\n{text}\n\n== Physical Plan ==\n{text}\n"


BELOW = ("Project [k#1L, v#3]", "Filter (r#4 = 1)", WINDOW, LIMIT, PROJECT, "Filter isnotnull(k#1L)", TABLE)
ABOVE = ("Project [k#1L, v#3]", "Filter (isnotnull(k#1L) AND (r#4 = 1))", WINDOW, LIMIT, PROJECT, TABLE)


def test_a_condition_on_the_partition_is_the_same_on_both_sides_of_a_window() -> None:
    assert difference(BELOW, ABOVE) == ""
    between = (*ABOVE[:1], "Filter (r#4 = 1)", WINDOW, "Filter isnotnull(k#1L)", LIMIT, PROJECT, TABLE)
    assert difference(between, ABOVE) == ""
    split = (*BELOW[:5], "Filter (isnotnull(k#1L) AND (v#3 > 1))", TABLE)
    assert difference(split, (*ABOVE[:5], "Filter (v#3 > 1)", TABLE)) == ""
    numbers = [tuple(node.replace("isnotnull(k#1L)", "(k#1L > 10)") for node in plan) for plan in (BELOW, ABOVE)]
    assert difference(*numbers) == ""


@pytest.mark.parametrize("condition", ["isnotnull(v#3)", "(v#3 > 1)", "isnotnull(g#2)", "(k#1L > v#3)", "((k#1L > 1) OR (v#3 > 1))"])
def test_a_condition_on_another_column_is_not(condition: str) -> None:
    moved = [tuple(node.replace("isnotnull(k#1L)", condition) for node in plan) for plan in (BELOW, ABOVE)]
    assert difference(*moved) == "Spark's plans differ"


@pytest.mark.parametrize(
    ("window", "limit"),
    [
        (WINDOW.replace("[k#1L], [v", "[g#2], [v"), LIMIT),
        (WINDOW, LIMIT.replace("[k#1L]", "[g#2]")),
        (WINDOW.replace("[k#1L], [v", "[upper(g#2), k#1L], [v"), LIMIT),
        (WINDOW.replace("[k#1L], [v", "[v"), LIMIT),
    ],
)
def test_the_window_must_be_partitioned_by_the_column(window: str, limit: str) -> None:
    changed = [tuple({WINDOW: window, LIMIT: limit}.get(node, node) for node in plan) for plan in (BELOW, ABOVE)]
    assert difference(*changed) == "Spark's plans differ"


def test_a_condition_is_not_lost() -> None:
    assert difference(BELOW, (*BELOW[:5], TABLE)) == "Spark's plans differ"
    assert difference(ABOVE, ("Project [k#1L, v#3]", "Filter (r#4 = 1)", *ABOVE[2:])) == "Spark's plans differ"
    limited = ("Project [k#1L, v#3]", "Filter (r#4 = 1)", WINDOW, "GlobalLimit 5", "Filter isnotnull(k#1L)", TABLE)
    assert difference(limited, (*ABOVE[:3], "GlobalLimit 5", TABLE)) == "Spark's plans differ"


SUMS = "Window [sum(s#6) windowspecdefinition(k#1L, g#2 ASC NULLS FIRST) AS r#4], [k#1L], [g#2 ASC NULLS FIRST]"
GROUPS = "Aggregate [k#1L, g#2], [k#1L, g#2, sum(v#3) AS s#6]"


def test_a_condition_on_the_partition_may_be_below_groups_by_it() -> None:
    below = ("Filter isnotnull(g#2)", SUMS, GROUPS, "Filter isnotnull(k#1L)", TABLE)
    assert difference(below, ("Filter (isnotnull(k#1L) AND isnotnull(g#2))", SUMS, GROUPS, TABLE)) == ""


@pytest.mark.parametrize(
    ("groups", "condition"),
    [
        ("Aggregate [g#2], [g#2, max(k#1L) AS k#9L, sum(v#3) AS s#6]", "isnotnull(k#1L)"),  # filters rows of a group
        (GROUPS, "isnotnull(g#2)"),  # filters groups of a partition
        (GROUPS, "isnotnull(v#3)"),
        ("Aggregate [upper(k#1L), g#2], [upper(k#1L) AS k#9, g#2, sum(v#3) AS s#6]", "isnotnull(k#1L)"),
    ],
)
def test_other_conditions_below_groups_stay(groups: str, condition: str) -> None:
    below = ("Filter isnotnull(g#2)", SUMS, groups, f"Filter {condition}", TABLE)
    above = (f"Filter ({condition} AND isnotnull(g#2))", SUMS, groups, TABLE)
    assert difference(below, above) == "Spark's plans differ"


APART = (
    "Project [k#1L, cast(s#6 as decimal(18,2)) AS s#7, (s#6 - n#8) AS d#9]",
    "Aggregate [k#1L], [k#1L, sum(v#3) AS s#6, count(g#2) AS n#8]",
    TABLE,
)
WHOLE = ("Aggregate [k#1L], [k#1L, cast(sum(v#3) as decimal(18,2)) AS s#7, (sum(v#3) - count(g#2)) AS d#9]", TABLE)


def test_a_projection_of_an_aggregate_is_part_of_it() -> None:
    assert difference(APART, WHOLE) == ""


HAVING_APART = (
    "Project [k#1L, (s#6 / n#8) AS mean#9]",
    "Filter (isnotnull(s#6) AND (s#6 > 10))",
    "Aggregate [k#1L], [k#1L, sum(v#3) AS s#6, count(1) AS n#8]",
    TABLE,
)
HAVING_WHOLE = (
    "Project [k#1L, mean#7]",
    "Filter (isnotnull(s#8) AND (s#8 > 10))",
    "Aggregate [k#1L], [k#1L, (sum(v#3) / count(1)) AS mean#7, sum(v#3) AS s#8]",
    TABLE,
)


def test_also_above_having() -> None:
    assert difference(HAVING_APART, HAVING_WHOLE) == ""
    for old, new in (("(sum(v#3) /", "(max(v#3) /"), (" sum(v#3) AS s#8", " max(v#3) AS s#8"), ("count(1)", "count(v#3)")):
        assert old in HAVING_WHOLE[2]
        other = (*HAVING_WHOLE[:2], HAVING_WHOLE[2].replace(old, new), TABLE)
        assert difference(HAVING_APART, other) == "Spark's plans differ"
    assert (
        difference(HAVING_APART, (HAVING_WHOLE[0], "Filter (isnotnull(s#8) AND (s#8 > 11))", *HAVING_WHOLE[2:])) == "Spark's plans differ"
    )
    assert difference(HAVING_APART, (HAVING_WHOLE[0], "Filter (isnotnull(mean#7) AND (mean#7 > 10))", *HAVING_WHOLE[2:])) != ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum(v#3) as", "sum(g#2) as"),
        ("- count(g#2)", "- count(v#3)"),
        ("(sum(v#3) -", "(max(v#3) -"),
        ("decimal(18,2)", "decimal(18,3)"),
        ("[k#1L], [k", "[g#2], [k"),
        ("(sum(v#3) - count(g#2))", "(count(g#2) - sum(v#3))"),
    ],
)
def test_another_aggregate_is_another_query(old: str, new: str) -> None:
    assert old in WHOLE[0]
    assert difference(APART, (WHOLE[0].replace(old, new), TABLE)) == "Spark's plans differ"


def test_names_that_contain_other_names() -> None:
    first = "pivotfirst(g#2, sum(v)#5, a, 0, 0) AS __pivot_sum(v) AS `sum(v)`#6"
    pivot = (
        "Project [k#1L, __pivot_sum(v) AS `sum(v)`#6[0] AS a#7]",
        f"Aggregate [k#1L], [k#1L, {first}]",
        "Aggregate [k#1L, g#2], [k#1L, g#2, sum(v#3) AS sum(v)#5]",
        TABLE,
    )
    other = tuple(node.replace("sum(v)", "sum(t.c)") for node in pivot)
    assert difference(pivot, other) == ""


def test_a_subquery_stays_where_it_is() -> None:
    apart = (APART[0].replace("(s#6 - n#8)", "(s#6 - scalar-subquery#12 [])"), *APART[1:])
    whole = (WHOLE[0].replace("count(g#2))", "scalar-subquery#12 [])"), TABLE)
    assert difference(apart, whole) != ""


SUM = "Window [sum(s#6) windowspecdefinition(k#1L, v#3 ASC NULLS FIRST) AS r#4], [k#1L], [v#3 ASC NULLS FIRST]"
TOP = "Project [k#1L, r#4]"
LISTED = (TOP, SUM, "Project [v#3, k#1L, (v#3 + 1) AS s#6]", TABLE)


@pytest.mark.parametrize("inner", ["Project [k#1L, (v#3 + 1) AS s#6, v#3]", "Project [k#1L, v#3, (v#3 + 1) AS s#6, k#1L]"])
def test_an_inner_list_may_have_any_order(inner: str) -> None:
    assert difference(LISTED, (*LISTED[:2], inner, TABLE)) == ""


def test_an_inner_aggregate_may_list_its_groups_twice() -> None:
    one, other = ("Aggregate [k#1L, v#3], [k#1L, v#3, sum(g#2) AS s#6]", "Aggregate [k#1L, v#3], [k#1L, sum(g#2) AS s#6, v#3, k#1L]")
    assert difference((TOP, SUM, one, TABLE), (TOP, SUM, other, TABLE)) == ""


def test_a_column_of_a_table_that_nothing_reads_does_not_count() -> None:
    above = ("Project [k#1L]", "Filter (v#3 > 1)")
    few, many = "RelationV2[k#1L, v#3] lake.raw.t", "RelationV2[k#1L, g#2, v#3] lake.raw.t"
    assert difference((*above, few), (*above, many)) == ""
    assert difference((*above, few), (*above, many.replace("lake.raw.t", "lake.raw.u"))) == "Spark's plans differ"
    assert difference((*above, few), (*above, "RelationV2[g#1L, v#3] lake.raw.t")) == "Spark's plans differ"


@pytest.mark.parametrize("above", [(), ("Filter (v#3 > 1)",), ("Union false, false",), ("Project [k#1L]", "Union false, false")])
def test_a_table_whose_columns_all_count(above: tuple[str, ...]) -> None:
    few, many = "RelationV2[k#1L, v#3] lake.raw.t", "RelationV2[k#1L, g#2, v#3] lake.raw.t"
    assert difference((*above, few), (*above, many)) == "Spark's plans differ"


@pytest.mark.parametrize(
    "inner", ["Project [v#3, k#1L, (v#3 + 2) AS s#6]", "Project [v#3, g#1L, (k#1L + 1) AS s#6]", "Project [v#3, (v#3 + 1) AS s#6]"]
)
def test_another_inner_list_is_another_query(inner: str) -> None:
    assert difference(LISTED, (*LISTED[:2], inner, TABLE)) == "Spark's plans differ"


@pytest.mark.parametrize(
    "above", [(), ("GlobalLimit 5",), (WINDOW,), ("Union false, false",), ("Project [k#1L]", "Union false, false", "Filter (v#3 > 1)")]
)
def test_a_list_whose_positions_are_read_keeps_its_order(above: tuple[str, ...]) -> None:
    one, other = ("Project [k#1L, v#3]", TABLE), ("Project [v#3, k#1L]", TABLE)
    assert difference((*above, *one), (*above, *other)) == "Spark's plans differ"


def _joined(kind: str, on_left: str, on_right: str, above: str = "") -> str:
    """A window over a join of two tables, each with a condition."""
    lines = [above] if above else []
    lines += ["Window [rank(v#3) windowspecdefinition(k#1L, c#7L, v#3 ASC NULLS FIRST) AS r#4], [k#1L, c#7L], [v#3 ASC NULLS FIRST]"]
    lines += [f"Join {kind}, (g#2 = g#8)"]
    at = len(lines)
    text = "\n".join(f"{'   ' * (n - 1)}+- {line}" if n else line for n, line in enumerate(lines))
    for branch, condition, table in ((":-", on_left, TABLE), ("+-", on_right, "RelationV2[c#7L, g#8] lake.raw.c")):
        indent = "   " * (at - 1)
        below = f"{indent}{':' if branch == ':-' else ' '}  +- "
        text += f"\n{indent}{branch} Filter {condition}\n{below}{table}" if condition else f"\n{indent}{branch} {table}"
    return f"== Optimized Logical Plan ==\n{text}\n\n== Physical Plan ==\n{text}\n"


def test_a_condition_on_the_partition_may_be_below_an_inner_join() -> None:
    both = "Filter (isnotnull(k#1L) AND isnotnull(c#7L))"
    above = _joined("Inner", "", "", both)
    assert plan_difference(_joined("Inner", "isnotnull(k#1L)", "isnotnull(c#7L)"), above, physical=False) == ""
    assert plan_difference(_joined("Inner", "isnotnull(k#1L)", "", "Filter isnotnull(c#7L)"), above, physical=False) == ""


@pytest.mark.parametrize(
    ("kind", "left", "right"), [("LeftOuter", "", "isnotnull(c#7L)"), ("LeftSemi", "isnotnull(k#1L)", ""), ("Inner", "isnotnull(v#3)", "")]
)
def test_below_another_join_it_stays(kind: str, left: str, right: str) -> None:
    above = _joined(kind, "", "", f"Filter {left or right}")
    assert plan_difference(_joined(kind, left, right), above, physical=False) == "Spark's plans differ"


def test_a_join_without_a_condition_may_be_called_cross() -> None:
    plans = [f"Join {kind}\n:- {TABLE}\n+- RelationV2[c#7L] lake.raw.c" for kind in ("Inner", "Cross")]
    one, other = (f"== Optimized Logical Plan ==\n{text}\n\n== Physical Plan ==\n{text}\n" for text in plans)
    assert plan_difference(one, other, physical=False) == ""
    assert plan_difference(one, other.replace("Join Cross", "Join LeftOuter"), physical=False) == "Spark's plans differ"


FIRST, SECOND = (f"cast((shiftright(id#4L, {bit}) & 1) as tinyint)" for bit in (1, 0))
LEVEL = f"({FIRST} + {SECOND})"
SETS = f"Aggregate [k#1L, g#2, id#4L], [k#1L, g#2, id#4L, {LEVEL} AS level#5, sum(v#3) AS s#6]"
EXPAND = "Expand [[k#7L, g#8, v#3, 0], [k#7L, null, v#3, 1], [null, null, v#3, 3]], [k#1L, g#2, v#3, id#4L]"
SET_ROWS = (EXPAND, "RelationV2[k#7L, g#8, v#3] lake.raw.a")
LEVELS_AGAIN = (
    "Project [k#1L, g#2, level#5, s#6]",
    f"Sort [level#5 DESC NULLS LAST, CASE WHEN ({LEVEL} = 0) THEN g#2 END ASC NULLS FIRST], true",
    "Project [k#1L, g#2, level#5, s#6, id#4L]",
    "Filter (s#6 > 10)",
    SETS,
    *SET_ROWS,
)
LEVELS_READ = (
    "Project [k#1L, g#2, level#5, s#6]",
    "Sort [level#5 DESC NULLS LAST, CASE WHEN (level#5 = 0) THEN g#2 END ASC NULLS FIRST], true",
    "Filter (s#6 > 10)",
    SETS.replace("g#2, id#4L, (", "g#2, ("),
    *SET_ROWS,
)
LIMITED = ("GlobalLimit 5", "LocalLimit 5")
"""So that the order counts."""


def test_a_sum_of_groupings_is_read_or_computed_again() -> None:
    assert difference((*LIMITED, *LEVELS_AGAIN), (*LIMITED, *LEVELS_READ)) == ""
    filtered = [tuple(node.replace("(s#6 > 10)", f"({level} < 2)") for node in (*LIMITED, *LEVELS_READ)) for level in (LEVEL, "level#5")]
    filtered[0] = tuple(node.replace("g#2, (", "g#2, id#4L, (") for node in filtered[0])
    assert difference(*filtered) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"CASE WHEN ({LEVEL} = 0)", f"CASE WHEN ({LEVEL} = 1)"),
        (f"CASE WHEN ({LEVEL} = 0)", f"CASE WHEN ({FIRST} = 0)"),
        (f"CASE WHEN ({LEVEL} = 0)", f"CASE WHEN (({FIRST} + {FIRST}) = 0)"),
        (f"g#2, id#4L, {LEVEL} AS", f"g#2, {LEVEL} AS"),  # the id above is of something else
        (f"CASE WHEN ({LEVEL} = 0)", "CASE WHEN (s#6 = 0)"),
        (f"id#4L, {LEVEL} AS", f"id#4L, ({SECOND} + {FIRST}) AS"),
        (f"id#4L, {LEVEL} AS", f"id#4L, {FIRST} AS"),
        ("[k#1L, g#2, id#4L], [", "[k#1L, id#4L], ["),
        ("[null, null, v#3, 3]", "[null, null, v#3, 2]"),
    ],
)
def test_another_grouping_is_another_query(old: str, new: str) -> None:
    assert any(old in node for node in LEVELS_AGAIN)
    again = tuple(node.replace(old, new) for node in LEVELS_AGAIN)
    assert difference((*LIMITED, *again), (*LIMITED, *LEVELS_READ)) == "Spark's plans differ"


def test_a_word_that_ends_like_a_grouping_is_none() -> None:
    again, read = ([node.replace(LEVEL, FIRST) for node in (*LIMITED, *plan)] for plan in (LEVELS_AGAIN, LEVELS_READ))
    assert difference(tuple(again), tuple(read)) == ""
    again[3] = again[3].replace(f"({FIRST} = 0)", f"(try_{FIRST} = 0)")
    assert difference(tuple(again), tuple(read)) == "Spark's plans differ"


def test_other_values_are_computed_again() -> None:
    """Their text does not say all of them: a plan prints '1' like 1."""
    again, read = (tuple(node.replace(LEVEL, "named_struct(a, 1)") for node in plan) for plan in (LEVELS_AGAIN, LEVELS_READ))
    assert difference((*LIMITED, *again), (*LIMITED, *read)) == "Spark's plans differ"


def test_a_grouping_id_that_was_changed_in_between_is_another_one() -> None:
    between = "Project [k#1L, g#2, level#5, s#6, (id#9L + 1) AS id#4L]"
    sets = SETS.replace("id#4L", "id#9L")
    again = (*LIMITED, *LEVELS_AGAIN[:2], between, sets, EXPAND.replace("id#4L", "id#9L"), SET_ROWS[1])
    read = (*LIMITED, *LEVELS_READ[:2], sets.replace("g#2, id#9L, (", "g#2, ("), EXPAND.replace("id#4L", "id#9L"), SET_ROWS[1])
    assert difference(again, read) == "Spark's plans differ"


@pytest.mark.parametrize("list_", ["Project [k#1L, v#3]", "Aggregate [k#1L, v#3], [k#1L, v#3]"])
def test_an_inner_column_that_nothing_reads_does_not_count(list_: str) -> None:
    wide, narrow = list_, list_.removesuffix("[k#1L, v#3]") + "[k#1L]"
    above = ("Project [(k#1L + 1) AS n#9]", "Filter (k#1L > 1)")
    assert difference((*above, wide, TABLE), (*above, narrow, TABLE)) == ""
    for whole in ((), ("GlobalLimit 5",), ("Filter (k#1L > 1)",), ("Union false, false",)):
        assert difference((*whole, wide, TABLE), (*whole, narrow, TABLE)) == "Spark's plans differ"


def test_an_inner_value_that_nothing_reads_counts() -> None:
    """It may fail."""
    plans = [("Project [(k#1L + 1) AS n#9]", "Filter (k#1L > 1)", f"Project [k#1L{more}]", TABLE) for more in ("", ", (v#3 + 1) AS s#6")]
    assert difference(*plans) == "Spark's plans differ"


@pytest.mark.parametrize("name", ["list", "exists"])
def test_a_column_with_the_name_of_a_kind_of_subquery(name: str) -> None:
    apart, whole = (tuple(node.replace("k#1L", f"{name}#1L") for node in plan) for plan in (APART, WHOLE))
    assert difference(apart, whole) == ""
