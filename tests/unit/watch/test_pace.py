"""what looking at the catalog costs -> how often a watcher looks, and what it says of its health meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.watch.watched import MINUTE, Watched, mv, watched

MODELS = {"models/a.sql": mv(), "models/b.sql": mv(reads="raw.customers")}


def test_after_everything_was_read_the_next_look_does_not_wait_for_what_that_took(tmp_path: Path) -> None:
    of = Watched(watched(tmp_path, MODELS).shop, whole_cost=6.0)
    assert of.watcher.turn() == of.watcher.interval


def test_reading_everything_takes_half_a_percent_of_a_core(tmp_path: Path) -> None:
    of = watched(tmp_path, MODELS)
    of.whole_cost = 6.0
    of.turn(after_ms=5 * MINUTE)
    observed = of.observed
    for _ in range(19):
        of.turn(after_ms=MINUTE)
    assert of.observed == observed
    of.turn(after_ms=MINUTE)
    assert of.observed == observed + 1


@pytest.mark.parametrize(("cost", "wait"), [(0.001, 1.0), (0.05, 5.0), (0.5, 50.0)])
def test_looks_that_find_nothing_take_one_percent_of_a_core(tmp_path: Path, cost: float, wait: float) -> None:
    of = watched(tmp_path, MODELS)
    of.cost = cost
    assert of.watcher.turn() == pytest.approx(wait)


def test_a_look_at_the_files_counts(tmp_path: Path) -> None:
    of = watched(tmp_path, MODELS, reload=True)
    of.cost = 0.05
    of.clock.at_ms += 5000
    assert of.watcher.turn() == pytest.approx(10.0)


@pytest.mark.parametrize(("cost", "wait"), [(0.05, 1.0), (0.5, 5.0), (60.0, 30.0)])
def test_a_look_that_finds_a_change_is_soon_followed_by_the_next(tmp_path: Path, cost: float, wait: float) -> None:
    of = watched(tmp_path, {"models/a.sql": mv("2h")})
    of.cost = cost
    of.commit("raw.orders")
    assert of.watcher.turn() == pytest.approx(wait)


def test_a_watcher_that_looks_seldom_is_healthy_until_its_next_look_is_overdue(tmp_path: Path) -> None:
    of = watched(tmp_path, MODELS)
    of.cost = 3.0
    of.turn()
    of.clock.at_ms += 6 * MINUTE
    assert of.metrics.health()[0]
    of.clock.at_ms += 2 * MINUTE
    assert not of.metrics.health()[0]
