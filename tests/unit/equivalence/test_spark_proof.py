from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.equivalence.spark_proof import missing_proof, plan_difference, same_plan
from unit.worlds import shop

SCAN = "BatchScan lake.raw.t[a#{a}, id#{b}L] IcebergScan(table=lake.raw.t, snapshotId=1, filters={filters}) RuntimeFilters: []"
PLAN = """== Parsed Logical Plan ==
'Project ['{name}]

== Analyzed Logical Plan ==
{name}: bigint

== Optimized Logical Plan ==
Project [{name}#{c}L]
+- Aggregate [a#{a}], [sum(id#{b}L) AS {name}#{c}L]
   +- RelationV2[a#{a}, id#{b}L] lake.raw.t VERSION AS OF '1'

== Physical Plan ==
AdaptiveSparkPlan isFinalPlan=false
+- *(2) HashAggregate(keys=[a#{a}], functions=[sum(id#{b}L)], output=[{name}#{c}L])
   +- Exchange hashpartitioning(a#{a}, 4), ENSURE_REQUIREMENTS, [plan_id={plan}]
      +- *(1) Filter {condition}
         +- {scan}
"""


def plan(
    *, name: str = "total", a: int = 12, b: int = 13, c: int = 14, plan: int = 7, filters: str = "", condition: str | None = None
) -> str:
    condition = condition or f"isnotnull(a#{a})"
    return PLAN.format(name=name, a=a, b=b, c=c, plan=plan, condition=condition, scan=SCAN.format(a=a, b=b, filters=filters))


def test_ids_and_names_inside_do_not_count() -> None:
    assert same_plan(plan(), plan())
    assert same_plan(plan(), plan(name="amount", a=101, b=7, c=12, plan=999))


@pytest.mark.parametrize(
    "other",
    [
        plan(filters="a = 1"),
        plan(condition="isnotnull(id#13L)"),
        plan().replace("sum(id#13L)", "sum(a#12)"),
        plan().replace("a#12, id#13L]", "b#12, id#13L]"),
        plan().replace("VERSION AS OF '1'", "VERSION AS OF '2'"),
        plan(b=12),
    ],
)
def test_everything_else_does(other: str) -> None:
    assert plan_difference(plan(), other) == "Spark's plans differ"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Spark returns no plan"),
        (
            "== Optimized Logical Plan ==\norg.apache.spark.sql.AnalysisException: no\n== Physical Plan ==\nBatchScan t[]",
            "Spark returns no plan",
        ),
        ("== Optimized Logical Plan ==\nRelationV2[a#1] t", "Spark returns no plan"),
        (plan().replace("id#13L] Ice", "... 5 more fields] Ice"), "Spark's plan is truncated"),
        (plan().replace("BatchScan lake.raw.t", "LocalTableScan "), "Spark's plan does not show all the rows that it works with"),
        (plan().replace("BatchScan lake.raw.t", "FileScan parquet "), "Spark's plan reads something that it does not show"),
        (plan().replace("a#12", "a#1#12"), "the name of a column is ambiguous in a plan"),
        (plan().replace("a#12, id#13L] lake", "a + b#12, id#13L] lake"), "the name of a column is ambiguous in a plan"),
    ],
)
def test_a_plan_that_hides_something_proves_nothing(text: str, why: str) -> None:
    assert plan_difference(text, text) == why
    assert plan_difference(plan(), text)


LOOP = """== Optimized Logical Plan ==
Join Inner, (d#{out} = a#{a})
:- Project [{name}#{loop} AS d#{out}]
:  +- UnionLoop 0
:     :- Project [{first} AS {name}#{anchor}]
:     :  +- OneRowRelation
:     +- Project [date_add({name}#{ref}, 1) AS date_add(d, 1)#{step}]
:        +- Filter ({name}#{ref} < 2026-01-31)
:           +- UnionLoopRef 0, [{name}#{ref}], false
+- RelationV2[a#{a}, b#{b}] lake.raw.t VERSION AS OF '1'
"""


def recursive(*, name: str = "DATE '2026-01-01'", first: str = "2026-01-01", at: int = 1, a: int | None = None) -> str:
    ids = dict(zip(("out", "loop", "anchor", "ref", "step"), range(at, at + 5), strict=True))
    return LOOP.format(name=name, first=first, a=at + 10 if a is None else a, b=at + 11, **ids)


def recursions_differ(one: str, other: str) -> str:
    return plan_difference(one, other, physical=False)


def test_a_recursion_of_one_column_is_shown_whatever_the_column_is_called() -> None:
    assert not recursions_differ(recursive(), recursive(name="CAST(2026-01-01 AS DATE)", at=70))
    assert recursions_differ(recursive(), recursive(first="2026-01-02")) == "Spark's plans differ"
    assert recursions_differ(recursive(), recursive(a=12)) == "Spark's plans differ"


def test_several_columns_or_recursions_may_be_confused() -> None:
    wide = recursive().replace("UnionLoopRef 0, [DATE '2026-01-01'#4]", "UnionLoopRef 0, [DATE '2026-01-01'#4, n#5]")
    assert recursions_differ(wide, wide) == "Spark's plan reads something that it does not show"
    two = recursive().replace("+- RelationV2[a#11, b#12] lake.raw.t VERSION AS OF '1'", recursive(at=20).split("\n", 1)[1])
    assert recursions_differ(two, two) == "Spark's plan does not show the columns of recursions"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("SELECT o.a FROM t o", "SELECT x.a FROM t x", ""),
        ("SELECT a FROM t WHERE s = '1'", "SELECT a FROM t WHERE s = 1", "more than names and formatting was changed"),
        ("SELECT rand() AS a FROM t o", "SELECT rand() AS a FROM t x", "'rand' may give another value each time"),
        ("SELECT a FROM t WHERE d = date'Today'", "SELECT a FROM t WHERE d = date'Today'", "'Today' may give another value each time"),
        ("SELECT user FROM t o", "SELECT user FROM t x", ""),
        ("SELECT user() FROM t o", "SELECT user() FROM t x", "'user' may give another value each time"),
        ("SELECT `a + b` FROM t", "SELECT `a + b` FROM t", "the name `a + b` is ambiguous in a plan"),
        ("SELECT 'x#1' AS a FROM t", "SELECT 'x#1' AS a FROM t", "a string is ambiguous in a plan"),
        ("SELECT 'x", "SELECT 'x", "the SQL cannot be parsed"),
    ],
)
def test_the_texts_are_a_witness_too(tmp_path: Path, old: str, new: str, why: str) -> None:
    engine = shop(tmp_path).engine
    engine.plans = {"": plan()}
    assert missing_proof(engine, old, new) == why


def test_a_version_that_the_user_chose_proves_nothing(tmp_path: Path) -> None:
    engine = shop(tmp_path).engine
    engine.plans = {"": plan()}
    assert "a version of a table" in missing_proof(engine, "SELECT a FROM t", "SELECT a FROM t", has_travel=True)


def test_a_query_that_spark_refuses_proves_nothing(tmp_path: Path) -> None:
    engine = shop(tmp_path).engine
    engine.plans = {"": plan()}
    engine.fails = lambda sql: "no such column"
    assert "no such column" in missing_proof(engine, "SELECT o.a FROM t o", "SELECT x.a FROM t x")
