"""Data tests of sources run before a refresh reads them. Engine and catalog in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.refresh import result as events_of
from mvbuild.refresh.result import Event, Finished
from unit.worlds import PROJECT, Shop, append, shop

SOURCES = """
sources:
  - name: raw
    tables:
      - name: orders
        columns:
          - name: id
            data_tests: [not_null{more}]
      - {{name: customers, columns: [{{name: id, data_tests: [unique]}}]}}
"""
RULE = "IS NULL"


def with_tests(root: Path, more: str = "") -> Shop:
    """One test of each base table; that of orders finds three rows."""
    made = shop(root, PROJECT | {"models/sources.yml": SOURCES.format(more=more)})
    made.engine.failures = {RULE: 3}
    return made


def test_they_run_first_on_the_snapshots_that_the_refreshes_read(tmp_path: Path) -> None:
    made = with_tests(tmp_path)
    made.engine.failures = {}
    events: list[Event] = []
    result = made.run(on_event=events.append)
    assert result.ok
    assert sorted(t.name for t in result.tests) == ["source_not_null_raw_orders_id", "source_unique_raw_customers_id"]
    done = [type(e) for e in events if isinstance(e, (events_of.Tested, Finished))]
    assert done == [events_of.Tested, events_of.Tested, Finished, Finished, Finished]
    first = next(s for s in made.engine.executed if RULE in s)
    assert f"VERSION AS OF {made.table('raw.orders').current_snapshot_id}" in first
    assert made.engine.executed.index(first) < 2


def test_a_failure_stops_what_reads_the_source_and_nothing_else(tmp_path: Path) -> None:
    made = with_tests(tmp_path).write({"models/people.sql": "SELECT id FROM raw.customers\n"})
    result = made.run()
    found = {r.node.rpartition(".")[2]: (r.status, r.message) for r in result.results}
    assert found["daily"] == ("skipped", "data test source_not_null_raw_orders_id of its source failed")
    assert found["monthly"] == ("skipped", "main.daily was skipped")
    assert found["people"][0] == "success"
    assert found["orders_clean"][0] == "success"  # a view has no rows
    assert not result.ok
    assert [d.code for d in result.diagnostics] == ["test-failed"]
    assert str(result.diagnostics[0].span).startswith("models/sources.yml:")
    made.engine.failures = {}
    assert made.statuses()["daily"] == "success"


def test_rows_of_the_last_refresh_stay_until_the_source_is_right_again(tmp_path: Path) -> None:
    made = with_tests(tmp_path)
    made.engine.failures = {}
    made.run()
    before = made.table("main.daily__storage").current_snapshot_id
    append(made.catalog, "raw.orders")
    made.engine.failures = {RULE: 1}
    assert made.statuses() == {"orders_clean": "reused", "daily": "skipped", "monthly": "skipped"}
    assert made.table("main.daily__storage").current_snapshot_id == before


def test_nothing_is_tested_if_nothing_reads_the_source(tmp_path: Path) -> None:
    made = with_tests(tmp_path)
    made.engine.failures = {}
    made.run()
    made.engine.executed.clear()
    assert made.run().tests == ()
    append(made.catalog, "raw.customers")
    assert [t.name for t in made.run().tests] == ["source_unique_raw_customers_id"]
    assert not [s for s in made.engine.executed if RULE in s]


def test_a_warning_stops_nothing(tmp_path: Path) -> None:
    made = with_tests(tmp_path, ": {severity: warn}")
    result = made.run()
    assert result.ok
    assert [t.status for t in result.tests if "not_null" in t.name] == ["warn"]


def test_a_sql_test_that_reads_only_sources_is_one_of_them(tmp_path: Path) -> None:
    made = shop(tmp_path, PROJECT | {"tests/few.sql": "SELECT id FROM raw.orders WHERE id > 100"})
    made.engine.failures = {"id > 100": 1}
    assert made.statuses()["daily"] == "skipped"


@pytest.mark.parametrize("atomic", [False, True])
def test_a_build_does_not_run_them_twice(tmp_path: Path, atomic: bool) -> None:
    made = with_tests(tmp_path)
    made.engine.failures = {}
    names = [t.name for t in made.run(all_tests=True, atomic=atomic).all_tests]
    assert sorted(names) == ["source_not_null_raw_orders_id", "source_unique_raw_customers_id"]
