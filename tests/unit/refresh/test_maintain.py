"""Policies of MVs -> fewer files and snapshots, and the same freshness."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from mvbuild.freshness.rules import judge
from mvbuild.incremental.table_changes import Changes
from mvbuild.lifecycle.maintain import Maintained, maintain
from mvbuild.names import TableIdentifier
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.engine import QueryError, Rows
from mvbuild.ports.states import TableState
from mvbuild.refresh.run_id import RunId
from mvbuild.refresh.session import RunSession
from unit.worlds import PROJECT, Shop, append, shop

DAY = 24 * 3600 * 1000
FILE = {"mvbuild.yml": "name: shop\nmodels:\n  +storage: {format: metadata-file}\n"}


@pytest.fixture(params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    made = shop(tmp_path, {**PROJECT, **(FILE if request.param == "metadata-file" else {})})
    made.run()
    return made


def storage(shop: Shop, model: str) -> TableState:
    world = shop.world()
    found = world.observed.table(world.graph.model(f"model.shop.{model}").storage)
    assert found is not None
    return found


def policy(shop: Shop, model: str, text: str) -> None:
    shop.write({f"models/{model}.yml": f"models:\n  - name: {model}\n    config: {{{text}}}\n"})


def session(shop: Shop, days: float) -> RunSession:
    shop.clock.at_ms = time.time_ns() // 1_000_000 + int(days * DAY)
    run = RunId(host="here", pid=1, started_ms=shop.clock.at_ms, nonce="abc")
    return RunSession(
        catalog=shop.catalog, clock=shop.clock, run=run, world=shop.world(), start_engine=lambda: shop.engine, is_alive=shop.alive
    )


def keep_up(shop: Shop, days: float = 0, *, dry_run: bool = False) -> dict[str, Maintained]:
    of = session(shop, days)
    try:
        done = maintain(of, list(of.world.graph.views), dry_run=dry_run, on_done=lambda _: None)
    finally:
        of.close()
    return {one.node.rpartition(".")[2]: one for one in done}


def states(shop: Shop) -> dict[str, str]:
    return {f.node.rpartition(".")[2]: f.state for f in judge(shop.world()).values()}


def refresh(shop: Shop, times: int) -> None:
    for _ in range(times):
        append(shop.catalog, "raw.orders")
        assert shop.run().ok


def test_nothing_to_do_is_said(built: Shop) -> None:
    assert all(not o.diagnostics and not o.snapshots and not o.orphans and o.compaction is None for o in keep_up(built).values())


def test_old_snapshots_go_and_freshness_stays(built: Shop) -> None:
    refresh(built, 3)
    before = states(built)
    assert len(storage(built, "daily").snapshots) >= 4
    assert keep_up(built, 2)["daily"].snapshots == 0
    done = keep_up(built, 6)
    assert done["daily"].snapshots >= 3
    assert done["daily"].diagnostics == []
    assert len(storage(built, "daily").snapshots) == 1
    assert states(built) == before == {"daily": "fresh", "monthly": "fresh"}
    assert {r.status for r in built.run().results} == {"reused"}


def test_a_dry_run_changes_nothing(built: Shop) -> None:
    refresh(built, 2)
    before = storage(built, "daily")
    assert keep_up(built, 6, dry_run=True)["daily"].snapshots >= 2
    assert storage(built, "daily").metadata_location == before.metadata_location


def test_the_history_that_is_asked_for_stays(built: Shop) -> None:
    policy(built, "daily", "refresh_history: 3")
    policy(built, "monthly", "refresh_history: all")
    refresh(built, 4)
    published = {id for _, id in storage(built, "monthly").snapshot_log}
    keep_up(built, 6)
    assert len(storage(built, "daily").snapshots) == 3
    assert published <= set(storage(built, "monthly").snapshots)


def test_what_a_stale_downstream_has_read_stays_with_all_after_it(built: Shop) -> None:
    append(built.catalog, "raw.orders")
    built.run("daily")
    append(built.catalog, "raw.orders")
    built.run("daily")
    policy(built, "monthly", "freshness: {max_staleness: 1h}")
    before = [(r.code, r.effect) for r in judge(built.world())["model.shop.monthly"].reasons]
    keep_up(built, 6)
    assert [(r.code, r.effect) for r in judge(built.world())["model.shop.monthly"].reasons] == before


def test_tags_and_branches_hold_their_snapshots(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run()
    held = made.catalog.create_branch(made.table("main.daily__storage"), "audit_2024").refs["audit_2024"]
    refresh(made, 2)
    keep_up(made, 6)
    assert held in made.table("main.daily__storage").snapshots


class Compacts:
    """In place of Spark's procedures: a `replace` snapshot."""

    def __init__(self, shop: Shop, fails: str = "", refreshes: bool = False) -> None:
        self.shop, self.fails, self.refreshes, self.calls = shop, fails, refreshes, list[str]()

    def __call__(self, statement: str) -> Rows:
        self.calls.append(statement)
        if self.fails:
            raise QueryError(self.fails)
        parts = statement.split("table => '")[1].split("'")[0].split(".")
        table = TableIdentifier("lake", tuple(parts[:-1]), parts[-1])
        summary = {"total-data-files": "1", "total-files-size": "10", "total-delete-files": "0"}
        self.shop.catalog.append_snapshot(table, operation="replace", summary=summary)
        if self.refreshes:
            self.shop.catalog.append_snapshot(table, {"id": [1, 2]}, operation="overwrite")
        return Rows(columns=(), rows=())


def many_files(shop: Shop, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Compacts:
    """The next refreshes leave many small files."""
    real = shop.catalog.append_snapshot

    def append_snapshot(table: TableIdentifier, *args: Any, **kwargs: Any) -> TableState:
        if kwargs.get("operation") == "overwrite":
            kwargs["summary"] = {**(kwargs.get("summary") or {}), "total-data-files": "7", "total-files-size": "700"}
        return real(table, *args, **kwargs)

    monkeypatch.setattr(shop.catalog, "append_snapshot", append_snapshot)
    engine = Compacts(shop, **options)
    monkeypatch.setattr(shop.engine, "call", engine, raising=False)
    refresh(shop, 1)
    return engine


def test_small_files_are_compacted_once_and_the_record_survives(built: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = many_files(built, monkeypatch)
    done = keep_up(built)
    assert done["daily"].diagnostics == []
    assert done["daily"].compaction is not None
    assert (done["daily"].compaction.before, done["daily"].compaction.after) == (7, 1)
    assert states(built) == {"daily": "fresh", "monthly": "fresh"}
    calls = len(engine.calls)
    assert calls == 2
    assert keep_up(built)["daily"].compaction is None
    assert len(engine.calls) == calls
    assert {r.status for r in built.run().results} == {"reused"}
    assert states(built) == {"daily": "fresh", "monthly": "fresh"}
    assert built.catalog.list_names(("mvbuild_scratch",)) == ()


def test_what_was_not_worth_compacting_is_said(built: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    many_files(built, monkeypatch)
    before = storage(built, "daily").current_snapshot_id
    # As Spark answers for one small file in each partition.
    monkeypatch.setattr(built.engine, "call", lambda statement: Rows(columns=(), rows=()), raising=False)
    done = keep_up(built)
    assert (done["daily"].compaction, done["daily"].notes) == (None, ["no files were worth compacting"])
    assert storage(built, "daily").current_snapshot_id == before
    assert states(built) == {"daily": "fresh", "monthly": "fresh"}


def test_the_files_from_before_a_compaction_can_expire(built: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    many_files(built, monkeypatch)
    refreshed = storage(built, "daily").current_snapshot_id
    keep_up(built)
    assert refreshed in storage(built, "daily").snapshots
    assert built.run().ok
    done = keep_up(built, 6)
    assert done["daily"].diagnostics == []
    assert refreshed not in storage(built, "daily").snapshots
    assert states(built) == {"daily": "fresh", "monthly": "fresh"}
    assert {r.status for r in built.run().results} == {"reused"}


def test_a_failed_compaction_is_told_and_the_rest_goes_on(built: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    many_files(built, monkeypatch, fails="Missing required files to delete")
    refresh(built, 1)
    before = states(built)
    done = keep_up(built, 6)
    assert [d.code for d in done["daily"].diagnostics] == ["query-failed"]
    assert done["daily"].snapshots
    assert states(built) == before


def test_a_policy_can_leave_compaction_out(built: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    policy(built, "daily", "maintain: {compact: false}")
    policy(built, "monthly", "maintain: {compact: false}")
    assert many_files(built, monkeypatch).calls == []
    assert all(one.compaction is None for one in keep_up(built).values())


def test_a_refresh_that_is_under_way_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = shop(tmp_path)
    made.run()
    engine = many_files(made, monkeypatch)
    live = RunId(host="here", pid=2, started_ms=time.time_ns() // 1_000_000, nonce="ffff").branch
    made.catalog.create_branch(made.table("main.daily__storage"), live)
    done = keep_up(made)
    assert "is being refreshed" in done["daily"].notes[0]
    assert live in made.table("main.daily__storage").branches
    assert len(engine.calls) == 1


def test_orphans_go_when_they_are_old_and_no_run_is_older(built: Shop) -> None:
    location = storage(built, "daily").location
    built.catalog._files.write(f"{location}/data/orphan.parquet", b"x")  # type: ignore[attr-defined]
    live = RunId(host="here", pid=2, started_ms=time.time_ns() // 1_000_000 - 10, nonce="ffff")
    assert keep_up(built, 1)["daily"].orphans == 0
    assert keep_up(built, 4, dry_run=True)["daily"].orphans >= 1
    assert built.catalog.files.below(f"{location}/data")
    built.catalog.stage(
        storage(built, "monthly"), _layout(storage(built, "monthly")), TableIdentifier("lake", ("mvbuild_scratch",), live.scratch(0))
    )
    built.alive = lambda pid: True
    assert keep_up(built, 0.9)["daily"].orphans == 0
    done = keep_up(built, 4)
    assert done["daily"].orphans >= 1
    assert built.catalog.files.below(f"{location}/data") == ()
    assert states(built) == {"daily": "fresh", "monthly": "fresh"}
    refresh(built, 1)


def test_orphans_of_auxiliary_views_go_too(tmp_path: Path) -> None:
    files = {path: text for path, text in PROJECT.items() if "monthly" not in path}
    made = shop(tmp_path, {**files, "models/daily.sql": "SELECT sum(id) AS id FROM {{ ref('orders_clean') }}\n"})
    made.write({"models/daily.yml": "models: [{name: daily, config: {auxiliary_views: always}}]\n"})
    made.engine.plans = {"": "== Optimized Logical Plan ==\nRelationV2[id#1] orders\n\n== Physical Plan ==\nBatchScan orders[id#1]\n"}
    made.changes = Changes(made.catalog.changes)
    assert made.run().ok
    view = made.table("main.daily__auxiliary_1")
    orphan = f"{view.location}/data/orphan.parquet"
    made.catalog._files.write(orphan, b"x")  # type: ignore[attr-defined]
    assert keep_up(made, 1)["daily"].orphans == 0
    assert keep_up(made, 4, dry_run=True)["daily"].orphans >= 1
    assert keep_up(made, 4)["daily"].orphans >= 1
    assert orphan not in {path for path, _ in made.catalog.files.below(view.location)}
    assert made.catalog.load([view.identifier])[view.identifier] == view


@pytest.mark.parametrize("then", ["maintained", "renamed"])
def test_auxiliary_views_of_a_refresh_that_failed_its_tests_are_not_forgotten(tmp_path: Path, then: str) -> None:
    files = {path: text for path, text in PROJECT.items() if "monthly" not in path}
    made = shop(tmp_path, {**files, "models/daily.sql": "SELECT sum(id) AS id FROM {{ ref('orders_clean') }}\n"})
    made.write(
        {"models/daily.yml": "models: [{name: daily, columns: [{name: id, data_tests: [not_null]}], config: {auxiliary_views: always}}]\n"}
    )
    made.engine.plans = {"": "== Optimized Logical Plan ==\nRelationV2[id#1] orders\n\n== Physical Plan ==\nBatchScan orders[id#1]\n"}
    made.changes = Changes(made.catalog.changes)
    made.engine.failures = {"IS NULL": 1}
    assert not made.run().ok
    view = made.table("main.daily__auxiliary_1")
    made.write({"models/daily.yml": "models: [{name: daily, config: {auxiliary_views: never}}]\n"})
    assert made.run().ok
    if then == "maintained":
        assert keep_up(made, 1)["daily"].dropped_views == 0
        assert keep_up(made, 30, dry_run=True)["daily"].dropped_views == 1
        assert keep_up(made, 30)["daily"].dropped_views == 1
        assert view.identifier not in made.catalog.load([view.identifier])
        return
    (tmp_path / "models/daily.sql").rename(tmp_path / "models/total.sql")
    made.write({"models/daily.yml": "models: [{name: total, config: {auxiliary_views: never, previous_name: daily}}]\n"})
    assert made.run().ok
    assert view.identifier not in made.catalog.load([view.identifier])
    assert made.table("main.total__auxiliary_1").uuid == view.uuid


def _layout(table: TableState) -> Any:
    return TableLayout(schema=table.schema, partition_by=table.partition_by, sort_by=table.sort_by)


def test_two_storages_in_one_directory_keep_each_others_files(tmp_path: Path) -> None:
    """After a rename the old name's directory is still the storage's, and other writers may give it to a new table of the old name."""
    made = shop(tmp_path)
    made.catalog._pointers.in_use = lambda location: False  # type: ignore[attr-defined]
    made.run()
    (tmp_path / "models/daily.sql").rename(tmp_path / "models/per_day.sql")
    made.write(
        {
            "models/monthly.sql": "SELECT id FROM {{ ref('per_day') }}\n",
            "models/per_day.yml": "models:\n  - name: per_day\n    config: {previous_name: daily}\n",
        }
    )
    made.run()
    made.write({"models/daily.sql": "SELECT id FROM raw.orders\n"})
    made.run()
    assert made.table("main.daily__storage").location == made.table("main.per_day__storage").location
    made.write({"models/per_day.yml": "models: [{name: per_day}]\n"})
    keep_up(made, 30)
    refresh(made, 1)
    assert states(made) == {"daily": "fresh", "per_day": "fresh", "monthly": "fresh"}
