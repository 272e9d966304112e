"""dbt's batches against the query of the MV, for a few models of each kind; test_all_batches.py has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.dbt.batch_runs import Played, play
from unit.dbt.incremental_cases import (
    GUARDED_UNION,
    HALF_GUARDED_UNION,
    JOINS,
    KEPT,
    MERGE,
    NEWER,
    NEWEST_ROW,
    OVERWRITE,
    TWO_BOUNDS,
    UNGUARDED,
    Files,
    guarded,
    model,
)
from unit.dbt.projects import codes, taken

TRIALS = 4
LATEST_DAY = "day >= (select max(day) from {{ this }})"
SOME: dict[str, Files] = {
    "merge": guarded(MERGE, NEWER, "id, ts, v"),
    "partitions": guarded(OVERWRITE, LATEST_DAY, "day, count(*) n", "group by day"),
    "newest row": model(MERGE, NEWEST_ROW),
    "union": model(MERGE, GUARDED_UNION),
    "a guard in one branch": model(MERGE, HALF_GUARDED_UNION),
    "a guard in one branch of a WITH query": model(MERGE, f"with u as ({HALF_GUARDED_UNION}) select id, ts from u"),
    "no guard": UNGUARDED["merge without a guard"],
}


def played(folder: Path, files: Files, trials: int = TRIALS) -> Played:
    (found,) = taken(folder, files).incremental
    return play(found, trials)


@pytest.mark.proof
@pytest.mark.parametrize("name", SOME)
def test_the_mv_is_the_table_that_dbt_builds(tmp_path: Path, name: str) -> None:
    found = played(tmp_path, SOME[name])
    assert (found.verdict, found.differs, found.reason) == ("agrees", {}, "")
    assert min(found.counts["inserts"], found.counts["late"], found.changed) > 0


@pytest.mark.proof
def test_dbt_keeps_what_it_has_joined_and_the_import_says_so(tmp_path: Path) -> None:
    found = played(tmp_path, JOINS["a left join"], 12)
    assert found.verdict == "agrees, noted"
    assert list(found.said) == ["others"]
    assert found.counts["others"]


@pytest.mark.proof
def test_dbt_keeps_a_row_whose_newest_version_is_filtered_and_the_import_says_so(tmp_path: Path) -> None:
    found = played(tmp_path, KEPT["newest row, unless it is deleted"], 8)
    assert found.verdict == "agrees, noted", found.differs
    assert "inserts" in found.said


@pytest.mark.parametrize("name", JOINS)
def test_a_guard_on_one_of_several_tables_is_noted(tmp_path: Path, name: str) -> None:
    assert "joined-tables" in codes(taken(tmp_path, JOINS[name]), "m")


@pytest.mark.parametrize("name", SOME)
def test_a_guard_on_all_tables_needs_no_note(tmp_path: Path, name: str) -> None:
    assert "joined-tables" not in codes(taken(tmp_path, SOME[name]), "m")


@pytest.mark.parametrize("name", UNGUARDED)
def test_rows_that_leave_the_query_are_noted_where_dbt_keeps_them(tmp_path: Path, name: str) -> None:
    assert ("kept-rows" in codes(taken(tmp_path, UNGUARDED[name]), "m")) == (name != "a whole table")


REFUSED_AND_DIFFERENT: dict[str, Files] = {
    "two bounds of partitions": TWO_BOUNDS["partitions"],
    "two bounds of groups": TWO_BOUNDS["groups"],
    "append": guarded("materialized='incremental'", NEWER.replace(">", ">="), "id, ts, v"),
    "a count of a part": guarded(MERGE, NEWER, "id % 2 as id, max(ts) as ts, count(*) as n", "group by id % 2"),
    "a rank of a part": guarded(MERGE, NEWER, "id, ts, row_number() over (order by ts) as n"),
    "a bound above the maximum": guarded(MERGE, "ts > (select max(ts) + interval 7 days from {{ this }})"),
    "another bound": guarded(MERGE, "ts < (select max(ts) from {{ this }})"),
    "a part of a partition": guarded(OVERWRITE, NEWER, "id, ts, day"),
    "the whole table": guarded("materialized='incremental', incremental_strategy='insert_overwrite'", NEWER, "id, ts"),
    "another query": model(
        MERGE, "select id, ts, {% if is_incremental() %}1{% else %}2{% endif %} as x from {{ source('raw', 'events') }}"
    ),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", REFUSED_AND_DIFFERENT)
def test_the_harness_finds_what_is_refused(tmp_path: Path, name: str) -> None:
    (found,) = taken(tmp_path, REFUSED_AND_DIFFERENT[name]).incremental
    assert found.item.verdict == "refused"
    assert play(found, TRIALS).verdict == "differs"
