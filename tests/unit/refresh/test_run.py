"""What a run does, and what it leaves in the catalog after a failure. Engine and catalog in memory."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

import pytest

from mvbuild.freshness.rules import judge
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.commits import TableCommit
from mvbuild.ports.engine import QueryError
from mvbuild.ports.states import TableState, ViewState
from mvbuild.refresh.result import Event, Finished, Started
from mvbuild.refresh.run_id import RunId, left_over
from unit.worlds import PROJECT, SCHEMA, Shop, append, base_table, name, shop


@pytest.fixture
def made(tmp_path: Path) -> Shop:
    return shop(tmp_path)


def view(of: Shop, text: str) -> ViewState:
    state = of.catalog.load([name(text)])[name(text)]
    assert isinstance(state, ViewState)
    return state


def mvbuild_branches(of: Shop, text: str) -> list[str]:
    return [b for b in of.table(text).branches if b != "main"]


def test_a_first_run_builds_everything_in_order(made: Shop) -> None:
    assert made.statuses() == {"orders_clean": "success", "daily": "success", "monthly": "success"}
    assert made.statuses() == {"orders_clean": "reused", "daily": "reused", "monthly": "reused"}


def test_the_record_is_the_specifications(made: Shop) -> None:
    made.run()
    storage, orders, clean = made.table("main.daily__storage"), made.table("raw.orders"), view(made, "main.orders_clean")
    record = {k: v for k, v in storage.properties.items() if k.startswith("iceberg.")}
    assert record == {
        "iceberg.view.version": "1",
        f"iceberg.base.snapshot.{orders.uuid}": str(orders.current_snapshot_id),
        f"iceberg.child.view.version.{clean.uuid}": "1",
        f"iceberg.child.view.version.{view(made, 'main.daily').uuid}": "1",
    }
    assert storage.properties["mvbuild.record.indirect"] == view(made, "main.daily").uuid
    properties = view(made, "main.daily").properties
    assert properties["iceberg.materialized.view"] == "true"
    assert properties["iceberg.materialized.view.storage.table"] == "main.daily__storage"
    assert storage.current_snapshot is not None
    state = json.loads(storage.current_snapshot.summary["refresh-state"])
    assert state["view-version-id"] == 1
    assert {(s["type"], s["uuid"]) for s in state["source-states"]} == {("table", orders.uuid), ("view", clean.uuid)}


def test_an_mv_over_an_mv_records_the_others_storage(made: Shop) -> None:
    made.run()
    storage = made.table("main.monthly__storage")
    read, below = {made.table(t).uuid for t in ("main.daily__storage", "raw.customers")}, {made.table("raw.orders").uuid}
    views = {view(made, text).uuid for text in ("main.orders_clean", "main.daily", "main.monthly")}
    assert {k.rpartition(".")[2] for k in storage.properties if k.startswith("iceberg.base")} == read | below
    assert {k.rpartition(".")[2] for k in storage.properties if k.startswith("iceberg.child")} == views
    assert set(storage.properties["mvbuild.record.indirect"].split(",")) == below | views
    record = judge(made.world())["model.shop.monthly"].record
    assert record is not None
    assert {t.uuid for t in record.base_tables} == read
    assert record.child_views == ()


def test_every_table_is_read_at_its_pinned_snapshot(made: Shop) -> None:
    made.run()
    orders = made.table("raw.orders").current_snapshot_id
    assert any(f"lake.raw.orders VERSION AS OF {orders} AS orders" in sql for sql in made.engine.executed)
    daily = made.table("main.daily__storage").current_snapshot_id
    assert any(f"lake.main.daily__storage VERSION AS OF {daily} AS daily" in sql for sql in made.engine.executed)


def test_a_writer_between_planning_and_writing_changes_nothing_that_was_pinned(made: Shop) -> None:
    pinned = made.table("raw.orders").current_snapshot_id
    planned = made.plan()
    append(made.catalog, "raw.orders")
    made.run(planned=planned)
    key = f"iceberg.base.snapshot.{made.table('raw.orders').uuid}"
    assert made.table("main.daily__storage").properties[key] == str(pinned)
    assert made.actions() == {"orders_clean": "reuse", "daily": "refresh", "monthly": "refresh"}


def test_a_compacted_table_moves_the_record_on_without_the_engine(made: Shop) -> None:
    made.run()
    snapshot = made.table("main.daily__storage").current_snapshot_id
    compacted = append(made.catalog, "raw.orders", operation="replace")
    made.engine.executed.clear()
    assert made.actions()["daily"] == "record"
    assert made.statuses()["daily"] == "reused"
    after = made.table("main.daily__storage")
    assert after.current_snapshot_id == snapshot
    assert after.properties[f"iceberg.base.snapshot.{compacted.uuid}"] == str(compacted.current_snapshot_id)
    assert made.engine.executed == []
    assert made.actions()["daily"] == "reuse"


def test_a_failed_mv_keeps_its_data_and_stops_its_descendants_only(made: Shop) -> None:
    made.write({"models/other.sql": "SELECT id FROM raw.customers"})
    made.run()
    before = made.table("main.daily__storage")
    append(made.catalog, "raw.orders")
    append(made.catalog, "raw.customers")
    made.engine.fails = lambda sql: "the cluster is on fire" if "raw.orders" in sql else None
    result = made.run()
    assert {r.node.rpartition(".")[2]: r.status for r in result.results} == {
        "orders_clean": "reused",
        "daily": "error",
        "monthly": "skipped",
        "other": "success",
    }
    assert not result.ok
    after = made.table("main.daily__storage")
    assert after.current_snapshot_id == before.current_snapshot_id
    assert after.properties == before.properties
    assert mvbuild_branches(made, "main.daily__storage") == []
    failed = next(r for r in result.results if r.status == "error")
    assert failed.diagnostics[0].span is not None
    assert str(failed.diagnostics[0].span).startswith("models/daily.sql:1:1")
    skipped = next(r for r in result.results if r.status == "skipped")
    assert skipped.message == "main.daily failed"


def test_what_failed_first_is_told_and_not_that_nothing_could_be_removed_after_it(made: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that is full: neither the rows fit nor the metadata without the audit branch."""
    made.run()
    append(made.catalog, "raw.orders")

    def full(_: object) -> None:
        raise CatalogError("Catalog 'lake' failed: OSError: [Errno 28] No space left on device")

    def fails(_: object) -> None:
        monkeypatch.setattr(made.catalog, "commit", full)
        raise QueryError("the disk of an executor is full")

    made.engine.before_write = fails
    (failed,) = [r for r in made.run().results if r.status == "error"]
    assert [d.code for d in failed.diagnostics] == ["query-failed"]
    assert "the disk of an executor is full" in failed.diagnostics[0].message
    assert len(mvbuild_branches(made, "main.daily__storage")) == 1
    monkeypatch.undo()
    made.engine.before_write, made.alive = (lambda _: None), (lambda _: False)
    assert made.run().ok
    assert mvbuild_branches(made, "main.daily__storage") == []


TESTED = PROJECT | {
    "models/daily.yml": "models:\n  - name: daily\n    columns:\n      - {name: id, data_tests: [not_null, unique]}\n",
    "tests/no_orphans.sql": "SELECT * FROM {{ ref('daily') }} JOIN raw.customers USING (id) WHERE id < 0",
}


def test_data_tests_run_on_the_unpublished_snapshot(tmp_path: Path) -> None:
    made = shop(tmp_path, TESTED)
    result = made.run()
    daily = next(r for r in result.results if r.node == "model.shop.daily")
    assert sorted((t.name, t.status) for t in daily.tests) == [
        ("no_orphans", "pass"),
        ("not_null_daily_id", "pass"),
        ("unique_daily_id", "pass"),
    ]
    audited = [s for s in made.engine.executed if "IS NULL" in s]
    assert len(audited) == 1
    assert f"VERSION AS OF {made.table('main.daily__storage').current_snapshot_id}" in audited[0]


def test_a_failing_data_test_publishes_nothing(tmp_path: Path) -> None:
    made = shop(tmp_path, TESTED)
    made.run()
    before = made.table("main.daily__storage")
    append(made.catalog, "raw.orders")
    made.write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id > 7\n"})
    made.engine.failures = {"IS NULL": 3}
    result = made.run()
    daily = next(r for r in result.results if r.node == "model.shop.daily")
    assert (daily.status, daily.message) == ("error", "1 data test failed; the old data stays")
    assert [(t.status, t.failures) for t in daily.tests if t.name == "not_null_daily_id"] == [("fail", 3)]
    assert str(daily.diagnostics[0].span).startswith("models/daily.yml:4:")
    after = made.table("main.daily__storage")
    assert after.current_snapshot_id == before.current_snapshot_id
    assert mvbuild_branches(made, "main.daily__storage") == []
    assert view(made, "main.daily").version_id == 1
    made.engine.failures = {}
    assert made.statuses()["daily"] == "success"
    assert view(made, "main.daily").version_id == 2


TWO_MVS = {
    "mvbuild.yml": "name: shop\n",
    "models/a.sql": "SELECT id FROM raw.orders",
    "models/b.sql": "SELECT id FROM raw.customers",
    "tests/agree.sql": "SELECT * FROM a ANTI JOIN b USING (id)",
}


def test_a_test_of_two_mvs_stands_at_the_last_one_that_is_refreshed(tmp_path: Path) -> None:
    made = shop(tmp_path, TWO_MVS)

    def tested() -> dict[str, list[str]]:
        return {r.node.rpartition(".")[2]: [t.name for t in r.tests] for r in made.run().results}

    assert tested() == {"a": [], "b": ["agree"]}
    append(made.catalog, "raw.orders")
    assert tested() == {"a": ["agree"], "b": []}
    append(made.catalog, "raw.customers")
    assert tested() == {"a": [], "b": ["agree"]}


def test_a_test_of_two_mvs_waits_for_the_one_that_is_not_refreshed(tmp_path: Path) -> None:
    made = shop(tmp_path, TWO_MVS)

    def tested(name: str) -> list[tuple[str, str, str]]:
        result = made.run(name)
        assert result.ok
        assert [r.status for r in result.results] == ["success"]
        return [(t.name, t.status, t.message) for t in result.all_tests]

    def waits_for(name: str) -> list[tuple[str, str, str]]:
        return [("agree", "skipped", f"it also reads main.{name}, which is not fresh; it runs when that MV is refreshed")]

    assert tested("a") == waits_for("b")
    assert tested("b") == [("agree", "pass", "")]
    append(made.catalog, "raw.orders")
    append(made.catalog, "raw.customers")
    assert tested("b") == waits_for("a")
    assert tested("a") == [("agree", "pass", "")]
    # An MV that is fresh stays as it is: the test may compare it with the new rows.
    append(made.catalog, "raw.orders")
    made.engine.failures = {"ANTI JOIN": 1}
    result = made.run("a")
    assert [(r.status, [t.status for t in r.tests]) for r in result.results] == [("error", ["fail"])]


NOT_NULL = {"models/a.yml": "models:\n  - name: a\n    columns:\n      - name: id\n        data_tests: [not_null]\n"}


def test_an_mv_that_shares_a_test_with_one_that_failed_is_refreshed_without_it(tmp_path: Path) -> None:
    made = shop(tmp_path, TWO_MVS | NOT_NULL)
    made.engine.failures = {"IS NULL": 1}
    result = made.run()
    assert [(r.node.rpartition(".")[2], r.status) for r in result.results] == [("a", "error"), ("b", "success")]
    (skipped,) = result.results[1].tests
    assert (skipped.name, skipped.status, skipped.message) == (
        "agree",
        "skipped",
        "it also reads main.a, which is not fresh; it runs when that MV is refreshed",
    )
    made.engine.failures = {}
    (again,) = (r for r in made.run().results if r.status != "reused")
    assert [(t.name, t.status) for t in again.tests] == [("not_null_a_id", "pass"), ("agree", "pass")]


def test_an_mv_is_compared_with_a_fresh_one_whose_forced_refresh_failed(tmp_path: Path) -> None:
    made = shop(tmp_path, TWO_MVS | NOT_NULL)
    assert made.run().ok
    made.engine.failures = {"IS NULL": 1}
    result = made.run(full_refresh=True)
    assert [(r.node.rpartition(".")[2], r.status) for r in result.results] == [("a", "error"), ("b", "success")]
    assert [(t.name, t.status) for t in result.results[1].tests] == [("agree", "pass")]


def test_an_mv_is_skipped_if_a_seed_that_its_test_reads_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would run the test again when the seed is loaded."""
    files = {"seeds/allowed.csv": "id\n1\n", "tests/agree.sql": "SELECT * FROM a ANTI JOIN allowed USING (id)"}
    made = shop(tmp_path, TWO_MVS | files)

    def refused(*_: object) -> None:
        raise CatalogError("no space left")

    monkeypatch.setattr("mvbuild.refresh.seeds.load", refused)
    result = made.run("a", "allowed")
    assert [(r.node.rpartition(".")[2], r.status) for r in result.results] == [("allowed", "error"), ("a", "skipped")]


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(8))
def test_mvs_that_are_fresh_together_were_tested_together(tmp_path: Path, seed: int) -> None:
    """Random commits, failures and runs of one MV or both: a test that was skipped is never forgotten."""
    random_, made, skipped = random.Random(seed), shop(tmp_path, TWO_MVS | NOT_NULL), 0
    tested: set[tuple[int | None, ...]] = set()

    def snapshots() -> tuple[int | None, ...]:
        return tuple(made.table(f"main.{one}__storage").current_snapshot_id for one in "ab")

    for _ in range(20):
        for table in random_.sample(["raw.orders", "raw.customers"], random_.randint(0, 2)):
            append(made.catalog, table)
        made.engine.failures = {"IS NULL": 1} if random_.random() < 0.25 else {}
        result = made.run(*random_.choice((["a"], ["b"], ["a", "b"])))
        assert result.ok or made.engine.failures
        assert {r.status for r in result.results if r.node.endswith(".b")} <= {"success", "reused"}
        skipped += any(test.status == "skipped" for test in result.all_tests)
        if any((test.name, test.status) == ("agree", "pass") for test in result.all_tests):
            tested.add(snapshots())
        if all(one.is_fresh for one in judge(made.world()).values()):
            assert snapshots() in tested
    assert skipped


def test_a_test_that_reads_an_mv_through_a_new_view_of_it(tmp_path: Path) -> None:
    files = PROJECT | {
        "models/recent.sql": "{{ config(materialized='view') }} SELECT id FROM daily",
        "tests/recent_is_small.sql": "SELECT count(*) AS n FROM recent HAVING count(*) > 100",
    }
    made = shop(tmp_path, files)
    result = made.run()
    assert {r.node.rpartition(".")[2]: r.status for r in result.results}["recent"] == "success"
    assert [t.status for r in result.results if r.node.endswith(".daily") for t in r.tests] == ["pass"]


def test_a_failing_test_of_severity_warn_lets_the_data_through(tmp_path: Path) -> None:
    yaml = "models:\n  - name: daily\n    columns:\n      - name: id\n        data_tests:\n          - not_null: {severity: warn}\n"
    made = shop(tmp_path, PROJECT | {"models/daily.yml": yaml})
    made.engine.failures = {"IS NULL": 3}
    result = made.run()
    assert result.ok
    assert [t.status for t in result.all_tests] == ["warn"]


def test_the_loser_of_a_race_takes_the_winners_refresh(made: Shop) -> None:
    made.run()
    append(made.catalog, "raw.orders")
    planned, other = made.plan(), made.plan()
    raced: list[str] = []

    def race(table: object) -> None:
        made.engine.before_write = lambda table: None
        raced.append(str(table))
        made.run(planned=other)

    made.engine.before_write = race
    statuses = {r.node.rpartition(".")[2]: (r.status, r.message) for r in made.run(planned=planned).results}
    assert raced == ["lake.main.daily__storage"]
    assert statuses["daily"] == ("reused", "another run refreshed it")
    assert mvbuild_branches(made, "main.daily__storage") == []
    assert set(made.actions().values()) == {"reuse"}


@pytest.mark.parametrize("forced", [False, True])
def test_a_winner_that_read_what_this_run_was_to_read_has_done_its_work(made: Shop, forced: bool) -> None:
    """Though a writer goes on all the while, so that the MV is stale again."""
    made.run()
    append(made.catalog, "raw.orders")
    planned = made.plan(full_refresh=forced)
    writes: list[str] = []

    def race(table: object) -> None:
        writes.append(str(table))
        made.engine.before_write = lambda table: None
        made.run()
        append(made.catalog, "raw.orders")
        made.engine.before_write = race if len(writes) < 9 else (lambda table: None)

    made.engine.before_write = race
    (daily,) = [r for r in made.run(planned=planned).results if r.node.endswith(".daily")]
    if forced:
        assert (daily.status, len(writes)) == ("error", 3)
        assert "3 times while it was refreshed" in daily.message
    else:
        assert (daily.status, daily.message, len(writes)) == ("reused", "another run refreshed it", 1)
    assert mvbuild_branches(made, "main.daily__storage") == []
    assert made.actions()["daily"] == "refresh"


def test_a_winner_that_read_less_than_this_run_was_to_read_has_not(made: Shop) -> None:
    made.run()
    append(made.catalog, "raw.orders")
    older = made.plan()
    append(made.catalog, "raw.orders")
    planned = made.plan()

    def race(table: object) -> None:
        made.engine.before_write = lambda table: None
        made.run(planned=older)

    made.engine.before_write = race
    statuses = {r.node.rpartition(".")[2]: r.status for r in made.run(planned=planned).results}
    assert statuses["daily"] == "success"
    assert set(made.actions().values()) == {"reuse"}


def test_two_first_runs_at_once(made: Shop) -> None:
    first, second = made.plan(), made.plan()
    made.run(planned=first)
    result = made.run(planned=second)
    assert result.ok
    assert mvbuild_branches(made, "main.daily__storage") == []
    assert set(made.actions().values()) == {"reuse"}
    assert view(made, "main.daily").version_id == 1


def test_what_killed_runs_left_is_removed_and_what_live_ones_need_is_not(made: Shop) -> None:
    made.run()
    host = RunId(host="here", pid=1, started_ms=0, nonce="0").branch.split("_")[1]
    dead, alive = f"mvbuild_{host}_666_{made.clock.at_ms}_abcdef", f"mvbuild_{host}_777_{made.clock.at_ms}_abcdef"
    for branch in (dead, alive, "nightly"):
        made.catalog.create_branch(made.table("main.daily__storage"), branch)
    made.alive = lambda pid: pid != 666
    assert set(made.statuses().values()) == {"reused"}
    assert sorted(mvbuild_branches(made, "main.daily__storage")) == sorted([alive, "nightly"])


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        ("nightly", False),
        ("mvbuild_audit", False),
        ("mvbuild_00000000_1_0_ab", True),
        ("mvbuild_00000000_1_99999999_ab", False),
        ("mvbuild_00000000_1_0_ab_12", True),
    ],
)
def test_of_other_hosts_only_what_is_a_day_old_is_left_over(branch: str, expected: bool) -> None:
    run = RunId(host="here", pid=1, started_ms=100_000_000, nonce="ff")
    assert (left_over([branch], run, lambda pid: True) == (branch,)) is expected


def test_a_new_column_is_staged_and_published_with_its_data(made: Shop) -> None:
    made.run()
    before = made.table("main.daily__storage")
    made.write({"models/daily.sql": "SELECT id, name FROM {{ ref('orders_clean') }}"})
    fields = [*SCHEMA["fields"], {"id": 2, "name": "name", "type": "string", "required": False}]  # type: ignore[misc]
    made.engine.schema = {**SCHEMA, "fields": fields}
    seen: list[list[str]] = []
    made.engine.before_write = lambda table: seen.append([f["name"] for f in made.table("main.daily__storage").schema["fields"]])
    assert made.statuses("daily")["daily"] == "success"
    after = made.table("main.daily__storage")
    assert seen == [["id"]]
    assert [f["name"] for f in after.schema["fields"]] == ["id", "name"]
    assert after.uuid == before.uuid
    assert made.catalog.list_names(("mvbuild_scratch",)) == ()
    assert made.actions("daily")["daily"] == "reuse"


def test_partitioning_is_changed_with_the_next_refresh(made: Shop) -> None:
    made.run()
    made.write({"models/daily.sql": "{{ config(partition_by=['bucket(4, id)']) }}\n" + PROJECT["models/daily.sql"]})
    append(made.catalog, "raw.orders")
    assert made.actions("daily")["daily"] == "refresh"
    made.run()
    assert [(p.column, p.transform) for p in made.table("main.daily__storage").partition_by] == [("id", "bucket[4]")]


def test_partitioning_by_a_column_that_is_not_there(made: Shop) -> None:
    made.write({"models/daily.sql": "{{ config(partition_by=['month(order_date)']) }}\nSELECT id FROM raw.orders\n"})
    result = made.run("daily")
    diagnostic = result.results[0].diagnostics[0]
    assert diagnostic.code == "bad-config"
    assert str(diagnostic.span).startswith("models/daily.sql:1:")


def test_an_empty_base_table_is_read_as_empty_even_if_it_fills_up(tmp_path: Path) -> None:
    made = Shop(tmp_path).write(PROJECT)
    base_table(made.catalog, "raw.orders", rows=None)
    base_table(made.catalog, "raw.customers")
    made.run()
    assert any("(SELECT * FROM lake.raw.orders WHERE false)" in sql for sql in made.engine.executed)
    key = f"iceberg.base.snapshot.{made.table('raw.orders').uuid}"
    assert made.table("main.daily__storage").properties[key] == "-1"


def test_a_missing_table_blocks_what_reads_it(tmp_path: Path) -> None:
    made = Shop(tmp_path).write(PROJECT | {"models/other.sql": "SELECT id FROM raw.customers"})
    base_table(made.catalog, "raw.customers")
    result = made.run()
    by_name = {r.node.rpartition(".")[2]: r for r in result.results}
    assert {n: r.status for n, r in by_name.items()} == {"orders_clean": "error", "daily": "error", "monthly": "error", "other": "success"}
    assert by_name["orders_clean"].diagnostics[0].code == "missing-table"
    assert str(by_name["orders_clean"].diagnostics[0].span) == "models/orders_clean.sql:2:16"


def test_a_seed_in_place_of_a_view_says_how_to_remove_the_view(tmp_path: Path) -> None:
    of = shop(tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.sql": "{{ config(materialized='view') }} SELECT id FROM raw.orders\n"})
    assert of.run().ok
    (of.root / "models/m.sql").unlink()
    of.write({"seeds/m.csv": "id\n1\n"})
    (step,) = of.plan().steps
    assert step.diagnostic is not None
    assert step.diagnostic.message == "The seed 'm' would be loaded into lake.main.m, the view of model.shop.m"
    assert "`mvbuild drop main.m`" in step.diagnostic.help


@pytest.mark.parametrize(
    ("read", "help"),
    [
        ("raw.orders.branch_dev", "To read a branch, write `raw.orders VERSION AS OF 'dev'`."),
        ("raw.orders.tag_v1", "To read a tag, write `raw.orders VERSION AS OF 'v1'`."),
        ("raw.orders.snapshots", "A model cannot read metadata tables, which have no snapshots."),
        ("raw.branch_dev", ""),
        ("raw.snapshots", ""),
    ],
)
def test_sparks_names_for_parts_of_a_table(tmp_path: Path, read: str, help: str) -> None:
    of = shop(tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.sql": f"SELECT 1 AS id FROM {read}\n"})
    (step,) = of.plan().steps
    assert step.diagnostic is not None
    assert step.diagnostic.code == "missing-table"
    assert help in step.diagnostic.help
    assert bool(help) is ("write `" in step.diagnostic.help or "metadata tables" in step.diagnostic.help)


def test_selecting_one_mv_leaves_its_stale_upstream_alone(made: Shop) -> None:
    made.run()
    append(made.catalog, "raw.orders")
    assert made.statuses("monthly") == {"monthly": "reused"}
    assert made.statuses("+monthly") == {"orders_clean": "reused", "daily": "success", "monthly": "success"}


def test_selecting_an_mv_whose_upstream_was_never_built(made: Shop) -> None:
    result = made.run("monthly")
    assert [r.status for r in result.results] == ["error"]
    assert "never built" in result.results[0].message


def test_full_refresh_rebuilds_what_is_selected(made: Shop) -> None:
    made.run()
    assert made.statuses(full_refresh=True) == {"orders_clean": "reused", "daily": "success", "monthly": "success"}


def test_fail_fast_starts_nothing_more(made: Shop) -> None:
    made.write({"models/zz_other.sql": "SELECT id FROM raw.customers"})
    made.engine.fails = lambda sql: "no" if "raw.orders" in sql else None
    statuses = made.statuses(fail_fast=True)
    assert statuses["orders_clean"] == "error"
    assert "success" not in [statuses["daily"], statuses["monthly"]]


def test_fail_fast_lets_what_runs_end(tmp_path: Path) -> None:
    made = shop(
        tmp_path,
        {"mvbuild.yml": "name: shop\n", "models/a.sql": "SELECT id FROM raw.orders", "models/b.sql": "SELECT id FROM raw.customers"},
    )
    started = threading.Event()
    failed = threading.Event()

    def fails(sql: str) -> str | None:
        if "raw.orders" in sql:
            assert started.wait(10)
            return "no"
        return None

    def slow(table: object) -> None:
        started.set()
        assert failed.wait(10)

    made.engine.fails, made.engine.before_write = fails, slow
    result = made.run(threads=2, fail_fast=True, on_event=lambda event: failed.set() if isinstance(event, Finished) else None)
    assert {r.node.rpartition(".")[2]: r.status for r in result.results} == {"a": "error", "b": "success"}


def test_an_unforeseen_failure_of_one_node_is_only_that_nodes(made: Shop) -> None:
    def broken(table: object) -> None:
        if "daily" in str(table):
            raise ZeroDivisionError

    made.write({"models/other.sql": "SELECT id FROM raw.customers"})
    made.engine.before_write = broken
    result = made.run()
    by_name = {r.node.rpartition(".")[2]: r for r in result.results}
    assert {n: r.status for n, r in by_name.items()} == {
        "orders_clean": "success",
        "daily": "error",
        "monthly": "skipped",
        "other": "success",
    }
    assert by_name["daily"].diagnostics[0].code == "internal"
    assert "ZeroDivisionError" in by_name["daily"].details["traceback"]
    assert mvbuild_branches(made, "main.daily__storage") == []


def test_many_threads_refresh_everything_once(tmp_path: Path) -> None:
    models = {f"models/m{i}.sql": f"SELECT id FROM {'raw.orders' if i < 4 else f'm{i - 4}'}" for i in range(24)}
    made = Shop(tmp_path).write({"mvbuild.yml": "name: shop\n"} | models)
    base_table(made.catalog, "raw.orders")
    assert {r.status for r in made.run(threads=4).results} == {"success"}
    assert len(made.engine.executed) == 24
    assert set(made.actions().values()) == {"reuse"}


def test_a_seed_is_loaded_when_its_file_changed(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\nseeds: {+namespace: raw}\n",
        "seeds/orders.csv": "id,amount\n1,2.50\n2,\n",
        "seeds/orders.yml": """
            seeds:
              - name: orders
                columns:
                  - {name: id, data_type: bigint}
                  - {name: amount, data_type: "decimal(10,2)"}
        """,
        "models/daily.sql": "SELECT id FROM raw.orders",
    }
    made = Shop(tmp_path).write(files)
    assert made.statuses() == {"orders": "success", "daily": "success"}
    assert made.statuses() == {"orders": "reused", "daily": "reused"}
    made.write({"seeds/orders.csv": "id,amount\n1,2.50\n3,1.00\n"})
    assert made.actions() == {"orders": "load", "daily": "refresh"}
    assert made.statuses() == {"orders": "success", "daily": "success"}
    assert made.actions() == {"orders": "reuse", "daily": "reuse"}


def test_a_property_of_the_user_reaches_the_storage(made: Shop) -> None:
    made.write(
        {"models/daily.sql": "{{ config(table_properties={'write.parquet.compression-codec': 'zstd'}) }}\n" + PROJECT["models/daily.sql"]}
    )
    made.run()
    assert made.table("main.daily__storage").properties["write.parquet.compression-codec"] == "zstd"


def test_a_foreign_write_is_replaced(made: Shop) -> None:
    made.run()
    append(made.catalog, "main.daily__storage")
    assert made.statuses() == {"orders_clean": "reused", "daily": "success", "monthly": "success"}


def test_the_storage_is_never_written_when_its_pointer_moved(made: Shop) -> None:
    """The commit's expectation is what makes a race harmless: without it a refresh would overwrite the winner's newer data."""
    made.run()
    state: TableState = made.table("main.daily__storage")
    append(made.catalog, "main.daily__storage")
    with pytest.raises(Exception, match=r"main|snapshot|moved|changed"):
        made.catalog.commit(
            [
                TableCommit(
                    identifier=state.identifier,
                    expect_uuid=state.uuid,
                    expect_snapshot_id=state.current_snapshot_id,
                    set_properties={"a": "b"},
                )
            ]
        )


def test_a_wide_and_deep_plan_begins_in_its_order_and_keeps_a_failure_to_its_descendants(tmp_path: Path) -> None:
    chain = {f"models/c{n:02}.sql": f"SELECT id FROM {f'c{n - 1:02}' if n else 'raw.orders'}\n" for n in range(40)}
    wide = {f"models/w{n:02}.sql": "SELECT id FROM raw.customers\n" for n in range(40)}
    made = shop(tmp_path, {"mvbuild.yml": "name: shop\n", **chain, **wide})
    planned = made.plan()
    events: list[Event] = []
    made.engine.fails = lambda sql: "no" if "orders" in sql else None
    statuses = {r.node.rpartition(".")[2]: r.status for r in made.run(planned=planned, on_event=events.append).results}
    assert statuses == {"c00": "error", **{f"c{n:02}": "skipped" for n in range(1, 40)}, **{f"w{n:02}": "success" for n in range(40)}}
    order = [s.node for s in planned.steps]
    started = [e.node for e in events if isinstance(e, Started)]
    assert started == [id for id in order if id in started]
    assert len(started) == 41
    assert sorted(e.result.node for e in events if isinstance(e, Finished)) == sorted(order)
    assert [e.left for e in events if isinstance(e, Finished)] == list(range(79, -1, -1))


def test_tables_in_any_case_mean_the_catalogs(tmp_path: Path) -> None:
    files = {
        "models/a.sql": "SELECT id FROM RAW.Orders",
        "models/b.sql": "SELECT id FROM raw.orders",
        "models/c.sql": "SELECT id FROM Raw.`ORDERS`",
    }
    made = shop(tmp_path, {"mvbuild.yml": "name: shop\n"} | files)
    assert set(made.statuses().values()) == {"success"}
    assert set(made.statuses().values()) == {"reused"}
    key = f"iceberg.base.snapshot.{made.table('raw.orders').uuid}"
    assert all(key in made.table(f"main.{model}__storage").properties for model in "abc")


def test_namespaces_of_view_and_storage_are_both_made(tmp_path: Path) -> None:
    made = shop(
        tmp_path,
        {
            "mvbuild.yml": "name: shop\n",
            "models/a.sql": "{{ config(namespace='x.y', storage_namespace='stor') }} SELECT id FROM raw.orders",
        },
    )
    assert made.statuses() == {"a": "success"}
    assert view(made, "x.y.a").properties["iceberg.materialized.view.storage.table"] == "stor.a__storage"


def test_an_mv_that_becomes_a_plain_view_is_no_mv_any_more(made: Shop) -> None:
    made.run()
    made.write({"models/daily.sql": "{{ config(materialized='view') }}\n" + PROJECT["models/daily.sql"]})
    assert made.actions() == {"orders_clean": "reuse", "daily": "replace", "monthly": "refresh"}
    made.run()
    assert view(made, "main.daily").properties["iceberg.materialized.view"] == "false"
    assert set(made.actions().values()) == {"reuse"}
    made.write({"models/daily.sql": PROJECT["models/daily.sql"]})
    made.run()
    assert view(made, "main.daily").properties["iceberg.materialized.view"] == "true"
    assert set(made.actions().values()) == {"reuse"}
