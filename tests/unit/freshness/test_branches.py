"""Tables that an MV reads at several branches, tags or versions, and tables of one UUID."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mvbuild.freshness.rules import judge
from mvbuild.incremental.table_changes import Changes
from mvbuild.storage.history import history
from unit.freshness.other_hands import evolve, point, register, swapped, two
from unit.worlds import Shop, append, base_table, name

BOTH = "SELECT id FROM raw.orders UNION ALL SELECT id FROM raw.orders VERSION AS OF 'prod'\n"
PROD = "SELECT id FROM raw.orders VERSION AS OF 'prod'\n"
COPIES = "SELECT id FROM raw.orders UNION ALL SELECT id FROM raw.copied\n"


ONE_FORMAT = pytest.mark.parametrize("made", ["table-properties"], indirect=True)
"""A metadata file cannot hold two snapshots of one name."""


@pytest.fixture(params=["table-properties", "metadata-file"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    of = Shop(tmp_path).write({"mvbuild.yml": f"name: shop\nmodels: {{+storage: {{format: {request.param}}}}}\n"})
    of.changes = Changes(of.catalog.changes)
    base_table(of.catalog, "raw.orders")
    evolve(of, two)
    append(of.catalog, "raw.orders")
    point(of, "prod", of.table("raw.orders").current_snapshot_id)
    return of


def built(of: Shop, sql: str) -> Shop:
    of.write({"models/m.sql": sql})
    assert of.run().ok
    assert codes(of) == []
    return of


def codes(of: Shop) -> list[str]:
    return [r.code for r in judge(of.world())["model.shop.m"].reasons]


def commit(of: Shop, branch: str, **options: Any) -> None:
    of.catalog.append_snapshot(name("raw.orders"), {"id": [1, 2], "customer": [3, 4]}, branch=branch, **options)


def choice(of: Shop) -> tuple[str, str]:
    (step,) = of.plan().steps
    assert step.choice is not None
    return step.choice.strategy, step.choice.code


@ONE_FORMAT
def test_without_a_change_of_rows_both_branches_are_recorded(made: Shop) -> None:
    of = built(made, BOTH)
    heads = [of.table("raw.orders").refs[ref] for ref in ("main", "prod")]
    for branch in ("main", "prod"):
        of.catalog.append_snapshot(name("raw.orders"), branch=branch)
    assert [of.table("raw.orders").refs[ref] for ref in ("main", "prod")] != heads
    assert of.statuses() == {"m": "reused"}
    assert codes(of) == []
    assert of.statuses() == {"m": "reused"}


def test_nothing_is_written_where_the_properties_say_it_all(made: Shop) -> None:
    of = built(made, "SELECT id FROM raw.orders\n")
    storage = of.world().observed.table(of.world().graph.model("model.shop.m").storage)
    of.catalog.append_snapshot(name("raw.orders"))
    assert of.statuses() == {"m": "reused"}
    after = of.world().observed.table(of.world().graph.model("model.shop.m").storage)
    assert storage is not None
    assert after is not None
    assert storage.snapshots == after.snapshots


@ONE_FORMAT
def test_a_branch_that_moves_to_what_was_read_of_main(made: Shop) -> None:
    commit(made, "main")
    of = built(made, BOTH)
    point(of, "prod", of.table("raw.orders").current_snapshot_id)
    assert codes(of) == ["base-table-changed"]


def test_a_branch_as_spark_also_writes_it(made: Shop) -> None:
    made.write({"models/m.sql": "SELECT id FROM raw.orders.branch_prod\n"})
    (reason,) = [r for r in judge(made.world())["model.shop.m"].reasons if r.code == "base-table-missing"]
    assert reason.message == (
        "the table lake.raw.orders.branch_prod does not exist; if it is a branch of raw.orders, write VERSION AS OF 'prod' after the table"
    )


def test_a_branch_is_read_under_the_schema_of_today(made: Shop) -> None:
    of = built(made, PROD)
    evolve(of, swapped)
    assert codes(of) == ["base-table-schema-changed"]
    of.engine.executed.clear()
    assert of.statuses() == {"m": "success"}
    assert not [sql for sql in of.engine.executed if "VERSION AS OF" in sql]
    assert [sql for sql in of.engine.executed if "mvbuild_scratch" in sql]
    assert codes(of) == []


def test_a_tag_is_read_under_its_own_schema(made: Shop) -> None:
    point(made, "prod", made.table("raw.orders").current_snapshot_id, tag=True)
    of = built(made, PROD)
    evolve(of, swapped)
    assert codes(of) == []
    of.engine.executed.clear()
    of.run(full_refresh=True)
    assert [sql for sql in of.engine.executed if "VERSION AS OF" in sql]


@pytest.mark.parametrize("was_tag", [True, False], ids=["branch now", "tag now"])
def test_a_tag_and_a_branch_of_one_name_have_different_schemas(made: Shop, was_tag: bool) -> None:
    """The snapshot stays, and Spark reads it under another schema."""
    at = made.table("raw.orders").current_snapshot_id
    point(made, "prod", at, tag=was_tag)
    evolve(made, swapped)
    of = built(made, PROD)
    point(of, "prod", at, tag=not was_tag)
    assert codes(of) == ["base-table-schema-changed"]
    assert of.statuses() == {"m": "success"}
    assert codes(of) == []


@ONE_FORMAT
@pytest.mark.parametrize("was_tag", [True, False], ids=["branch now", "tag now"])
def test_a_tag_and_a_branch_of_one_name_beside_main(made: Shop, was_tag: bool) -> None:
    at = made.table("raw.orders").current_snapshot_id
    point(made, "prod", at, tag=was_tag)
    evolve(made, swapped)
    of = built(made, BOTH)
    point(of, "prod", at, tag=not was_tag)
    assert codes(of) == ["base-table-schema-changed"]
    assert of.statuses() == {"m": "success"}
    assert codes(of) == []


@ONE_FORMAT
def test_columns_of_a_table_that_is_read_twice_are_told_once(made: Shop) -> None:
    of = built(made, BOTH)
    evolve(of, swapped)
    assert codes(of) == ["base-table-schema-changed"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_tag_with_another_schema_than_the_table(made: Shop, when: str) -> None:
    """A change is read under the schema of today, and it is not the one with which Spark reads the tag."""
    point(made, "prod", made.table("raw.orders").current_snapshot_id, tag=True)
    if when == "before":
        evolve(made, swapped)
    of = built(made, PROD)
    commit(of, "main")
    point(of, "prod", of.table("raw.orders").current_snapshot_id, tag=True)
    if when == "after":
        evolve(of, swapped)
    assert choice(of) == ("full", "column-changed")


def test_a_tag_that_moves_under_one_schema(made: Shop) -> None:
    point(made, "prod", made.table("raw.orders").current_snapshot_id, tag=True)
    of = built(made, PROD)
    commit(of, "main")
    point(of, "prod", of.table("raw.orders").current_snapshot_id, tag=True)
    assert choice(of)[1] != "column-changed"


def test_two_tables_of_one_uuid(made: Shop) -> None:
    register(made, "raw.orders", "raw.copied")
    append(made.catalog, "raw.copied", 7)
    of = built(made, COPIES)
    append(of.catalog, "raw.copied", 5)
    assert codes(of) == ["base-table-changed"]
    assert choice(of) == ("full", "record-incomplete")
    assert of.statuses() == {"m": "success"}
    assert codes(of) == []
    append(of.catalog, "raw.orders", 5)
    assert codes(of) == ["base-table-changed"]


def test_a_copy_that_gets_to_where_the_other_one_was(made: Shop) -> None:
    """By UUID alone, one is mistaken for the other."""
    register(made, "raw.orders", "raw.copied")
    append(made.catalog, "raw.orders", 7)
    of = built(made, COPIES)
    register(of, "raw.orders", "raw.copied")
    assert codes(of) == ["base-table-changed"]


def test_both_of_them_are_recorded_though_they_are_at_one_snapshot(made: Shop) -> None:
    register(made, "raw.orders", "raw.copied")
    of = built(made, COPIES)
    storage = of.world().observed.table(of.world().graph.model("model.shop.m").storage)
    assert storage is not None
    (past,) = history(storage)
    assert [t.name for t in past.record.base_tables] == ["orders", "copied"]
