"""commits, time, edits and failures -> what a watcher refreshes, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.adapters.iceberg.tables import now_ms
from mvbuild.ports.catalog import CatalogError
from unit.watch.watched import MINUTE, Watched, mv, watched
from unit.worlds import shop

DAY = 24 * 60 * MINUTE


def test_the_first_turn_builds_what_is_missing_and_the_next_has_nothing_to_do(tmp_path: Path) -> None:
    of = Watched(shop(tmp_path, {"mvbuild.yml": "name: shop\n", "models/a.sql": mv(), "models/b.sql": mv(reads="a")}))
    assert of.turn() == ["refreshed a", "refreshed b"]
    assert of.turn() == []
    assert of.starts == 1


def test_nothing_is_read_but_stamps_and_no_engine_is_used_while_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = watched(tmp_path, {"models/a.sql": mv(), "models/b.sql": mv("15m", "a")})
    executed, observed = list(of.engine.executed), of.observed

    def refuse(*_: object) -> None:
        raise AssertionError("the catalog was read")

    monkeypatch.setattr(of.shop.catalog, "load", refuse)
    for _ in range(5):
        assert of.turn(after_ms=1000) == []
    assert (of.engine.executed, of.observed) == (executed, observed)


def test_a_commit_refreshes_an_mv_without_a_target_at_once_and_its_readers_with_it(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv(), "models/b.sql": mv(reads="a"), "models/c.sql": mv(reads="raw.customers")})
    of.commit("raw.orders")
    assert of.turn() == ["refreshed a", "refreshed b"]
    assert of.turn() == []


def test_an_mv_that_reads_the_day_is_refreshed_after_midnight(tmp_path: Path) -> None:
    day = {"models/a.sql": "SELECT id FROM raw.orders WHERE id > day(current_date)\n"}
    late = {"models/b.sql": "{{ config(target_lag='2h') }}\nSELECT id FROM raw.orders WHERE id > day(current_date)\n"}
    of = watched(tmp_path, {**day, **late, "models/c.sql": mv(reads="a"), "models/d.sql": mv()})
    midnight = (of.clock.at_ms // DAY + 1) * DAY
    assert of.turn(after_ms=midnight - of.clock.at_ms - 1) == []
    assert of.turn(after_ms=1) == ["refreshed a", "refreshed c"]
    assert of.turn() == []
    # The target counts from midnight.
    assert of.turn(after_ms=60 * MINUTE) == []
    assert of.turn(after_ms=59 * MINUTE + 59_000) == ["refreshed b"]


def test_one_changed_table_is_read_alone(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv(), "models/b.sql": mv(reads="raw.customers")})
    observed = of.observed
    of.commit("raw.orders")
    assert of.turn() == ["refreshed a"]
    of.turn()
    assert of.observed == observed


def test_an_mv_with_a_target_waits_as_long_as_its_lag_allows(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv("15m")})
    of.commit("raw.orders")
    assert of.turn(after_ms=MINUTE) == []
    assert of.turn(after_ms=12 * MINUTE) == []
    assert of.turn(after_ms=2 * MINUTE - 500) == ["refreshed a"]


def test_an_mv_that_several_read_is_refreshed_once_for_all_of_them(tmp_path: Path) -> None:
    files = {"models/a.sql": mv("downstream"), "models/b.sql": mv("15m", "a"), "models/c.sql": mv("1h", "a")}
    of = watched(tmp_path, files)
    of.commit("raw.orders")
    assert of.turn(after_ms=10 * MINUTE) == []
    assert of.turn(after_ms=5 * MINUTE) == ["refreshed a", "refreshed b"]
    # c has to read a, and a is as new as it was for b.
    assert of.turn(after_ms=45 * MINUTE) == ["refreshed c"]
    assert of.turn(after_ms=60 * MINUTE) == []


def test_an_mv_within_its_staleness_window_is_refreshed_if_its_target_lag_asks_for_it(tmp_path: Path) -> None:
    window = "freshness={'max_staleness': '2h'}"
    of = watched(tmp_path, {"models/a.sql": mv("15m", more=window), "models/b.sql": mv(reads="raw.orders", more=window)})
    of.commit("raw.orders")
    # The snapshot has the time of the machine, which may be some seconds later on a busy one.
    of.clock.at_ms = max(of.clock.at_ms, now_ms())
    assert of.turn(after_ms=15 * MINUTE - 1000) == ["refreshed a"]


def test_a_failing_mv_waits_longer_each_time_and_holds_up_no_other(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv(reads="raw.orders JOIN raw.customers"), "models/b.sql": mv(), "models/c.sql": mv(reads="a")})
    of.engine.fails = lambda sql: "no" if "customers" in sql else None
    of.commit("raw.orders")
    assert of.turn() == ["refreshed b"]
    assert of.turn() == ["failed a", "skipped c"]
    waits = []
    for _ in range(4):
        waits.append(of.watcher.retries.retry_ms["model.shop.a"] - of.clock.at_ms)
        # Nothing happens before the wait is over, and new data of others is refreshed.
        of.commit("raw.orders")
        assert of.turn(after_ms=waits[-1] - 1) == ["refreshed b"]
        assert of.turn() == []
        assert "failed a" not in of.turn(after_ms=1)
        assert "failed a" in of.turn()
    assert waits == [15_000, 30_000, 60_000, 120_000]


def test_what_failed_is_reported_when_it_works_again(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv()})
    of.engine.fails = lambda sql: "no"
    of.commit("raw.orders")
    of.turn()
    assert of.turn() == ["failed a"]
    assert 'mvbuild_failing{mv="model.shop.a"} 1' in of.metrics.text()
    of.engine.fails = lambda sql: None
    assert of.turn(after_ms=MINUTE) == ["refreshed a"]
    assert of.turn() == ["recovered a"]
    assert "mvbuild_failing{" not in of.metrics.text()


def test_a_failure_is_known_while_the_catalog_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = watched(tmp_path, {"models/a.sql": mv()})
    of.engine.fails = lambda sql: "no"
    of.commit("raw.orders")
    of.turn()

    def refuse() -> None:
        raise CatalogError("the catalog cannot be reached")

    assert of.watcher.opened is not None
    monkeypatch.setattr(of.watcher.opened.poller, "poll", refuse)
    assert of.turn() == ["failed a"]
    assert 'mvbuild_failing{mv="model.shop.a"} 1' in of.metrics.text()


def test_what_failed_and_was_refreshed_by_another_command(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv()})
    of.engine.fails = lambda sql: "no"
    of.commit("raw.orders")
    of.turn()
    assert of.turn() == ["failed a"]
    of.engine.fails = lambda sql: None
    assert of.shop.run().ok
    assert of.turn() == ["recovered a"]
    assert "mvbuild_failing{" not in of.metrics.text()
    assert of.turn(after_ms=MINUTE) == []


@pytest.mark.parametrize("removes", [False, True])
def test_a_broken_edit_that_is_undone(tmp_path: Path, removes: bool) -> None:
    of = watched(tmp_path, {"models/a.sql": mv(), "models/b.sql": mv()}, reload=True)
    of.engine.fails = lambda sql: "no" if "999" in sql else None
    of.shop.write({"models/a.sql": "SELECT id FROM raw.orders WHERE id > 999\n"})
    of.is_edited = True
    of.turn(after_ms=MINUTE)
    assert of.turn() == ["failed a"]
    of.shop.write({"models/a.sql": mv()})
    if removes:
        (tmp_path / "models/a.sql").unlink()
    of.is_edited = True
    assert of.turn(after_ms=MINUTE) == ["reloaded", *(["recovered a"] if not removes else [])]
    assert "mvbuild_failing{" not in of.metrics.text()


def test_an_mv_that_cannot_be_planned_does_not_stop_those_beside_it(tmp_path: Path) -> None:
    files = {"models/a.sql": mv(), "models/b.sql": mv(reads="a", more="refresh_policy='incremental_strict', partition_by=['nothing']")}
    of = watched(tmp_path, files)
    of.commit("raw.orders")
    assert "refreshed a" in of.turn()


def test_a_target_that_is_missed_is_reported_once_and_so_is_its_end(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv("15m")})
    of.engine.fails = lambda sql: "no"
    of.commit("raw.orders")
    said = [line for _ in range(30) for line in of.turn(after_ms=MINUTE)]
    assert said.count("late a") == 1
    of.engine.fails = lambda sql: None
    said = [line for _ in range(40) for line in of.turn(after_ms=MINUTE)]
    assert said.count("in-time a") == 1
    assert "refreshed a" in said


def test_a_target_that_was_missed_between_two_looks_is_reported(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv("15m")})
    of.holds = True
    of.commit("raw.orders")
    # The refresh begins in time and ends too late, before the watcher looks again.
    assert of.turn(after_ms=14 * MINUTE) == []
    assert [line for _ in range(59) for line in of.turn(after_ms=1000)] == []
    assert len(of.held) == 1
    of.clock.at_ms += 2 * MINUTE
    of.release()
    assert of.turn()[-2:] == ["late a", "in-time a"]
    assert of.turn(after_ms=MINUTE) == []


def test_a_slow_batch_holds_up_only_what_depends_on_it(tmp_path: Path) -> None:
    files = {"models/a.sql": mv(), "models/b.sql": mv(reads="a"), "models/c.sql": mv(reads="raw.customers")}
    of = watched(tmp_path, files, holds=False)
    of.holds = True
    of.commit("raw.orders")
    of.turn()
    assert len(of.held) == 1
    of.commit("raw.customers")
    of.commit("raw.orders")
    of.turn()
    assert len(of.held) == 2
    of.release()
    of.holds = False
    # The second commit to raw.orders came while the first was read.
    assert of.turn() == ["refreshed a", "refreshed b"]


def test_edits_are_taken_up_and_a_broken_one_leaves_the_last_version(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv()}, reload=True)
    of.shop.write({"models/b.sql": "SELECT id FROM raw.customers\n"})
    of.is_edited = True
    assert of.turn(after_ms=3000) == ["reloaded", "refreshed b"]
    of.shop.write({"models/b.yml": "models: [{nothing: b}]\n"})
    of.is_edited = True
    of.commit("raw.orders")
    assert of.turn(after_ms=3000) == ["reload-failed", "refreshed a"]


def test_what_was_begun_ends_though_another_refreshed_it_meanwhile(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv()})
    other = Watched(of.shop)
    of.holds = True
    of.commit("raw.orders")
    of.turn()
    assert other.turn() == ["refreshed a"]
    of.release()
    assert [(e.kind, e.message) for e in of.events] == [("refreshing", ""), ("refreshed", "another run refreshed it")]


def test_spark_is_given_back_when_it_was_idle_and_started_again_when_it_is_needed(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv()})
    of.turn(after_ms=9 * MINUTE)
    assert (of.engine.closed, of.warm.is_running) == (0, True)
    of.turn(after_ms=2 * MINUTE)
    assert (of.engine.closed, of.warm.is_running) == (1, False)
    of.commit("raw.orders")
    assert of.turn() == ["refreshed a"]
    assert of.starts == 2


def test_a_catalog_that_cannot_be_reached_is_reported_once_and_asked_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = watched(tmp_path, {"models/a.sql": mv()})

    def fail(*_: object) -> None:
        raise CatalogError("gone", unreachable=True)

    with monkeypatch.context() as patch:
        patch.setattr(of.shop.catalog, "stamps", fail)
        pauses = [of.watcher.turn() for _ in range(8)]
        assert pauses == sorted(pauses)
        assert pauses[-1] == 30.0
        assert len([e for e in of.events if e.kind == "poll-failed"]) == 1
        of.clock.at_ms += 5 * MINUTE
        assert not of.metrics.health()[0]
    of.turn()
    assert of.said("poll-recovered")
    assert of.metrics.health()[0]


def test_after_a_stop_a_running_batch_begins_no_other_node_and_failures_of_the_stop_are_not_those_of_the_mv(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": mv(), "models/b.sql": mv(reads="a")})
    of.commit("raw.orders")
    of.engine.before_write = lambda table: of.watcher.stop() if table.name.startswith("a") else None
    del of.events[:]
    of.watcher.turn()
    of.watcher.end()
    # a was being written when the stop came: its commit was completed.
    assert of.said("refreshed", "failed", "stopped") == ["refreshed a", "stopped"]


def test_a_second_watcher_finds_the_work_of_the_first_done(tmp_path: Path) -> None:
    one = watched(tmp_path, {"models/a.sql": mv()})
    two = Watched(one.shop)
    assert two.turn() == []
    one.commit("raw.orders")
    assert one.turn() == ["refreshed a"]
    assert two.turn() == []
    assert two.starts == 0


def test_an_mv_whose_query_reads_the_clock_is_not_refreshed_all_the_time(tmp_path: Path) -> None:
    of = watched(tmp_path, {"models/a.sql": "SELECT id FROM raw.orders WHERE id < hour(current_timestamp())\n"})
    said = [line for _ in range(30) for line in of.turn(after_ms=1000)]
    assert len(said) <= 1


def test_an_mv_that_had_nothing_to_do_is_refreshed_for_the_next_change(tmp_path: Path) -> None:
    """As after rows that its filter leaves out: the refresh is only recorded, and new rows do not wait."""
    of = watched(tmp_path, {"models/a.sql": mv()})
    two = Watched(of.shop)
    two.turn()
    of.holds = True
    of.commit("raw.orders")
    of.turn()
    two.commit("raw.orders")
    assert two.turn() == ["refreshed a"]  # so that the first one has nothing to do
    of.release()
    of.holds = False
    assert of.turn(after_ms=1000) == []
    of.commit("raw.orders")
    assert of.turn(after_ms=1000) == ["refreshed a"]
