"""Whether a refresh carries out the strategy of the plan, or chooses again."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.choose import Question
from mvbuild.incremental.chosen_strategy import strategy_for
from mvbuild.incremental.table_changes import Changes
from mvbuild.names import TableIdentifier
from mvbuild.refresh import choosing
from unit.worlds import Shop, append, shop


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The MVs for which a refresh chose a strategy itself."""
    found: list[str] = []

    def record(question: Question) -> StrategyChoice:
        found.append(question.node.model.name)
        return strategy_for(question)

    monkeypatch.setattr(choosing, "strategy_for", record)
    return found


@pytest.fixture
def built(tmp_path: Path) -> Shop:
    """All MVs are fresh, then a base table changes."""
    of = shop(tmp_path)
    of.run()
    of.changes = Changes(of.catalog.changes)
    append(of.catalog, "raw.orders", 5)
    return of


def test_the_planned_strategy_is_carried_out(built: Shop, asked: list[str]) -> None:
    planned = built.plan("daily")
    choice = planned.steps[0].choice
    assert choice is not None
    (result,) = built.run(planned=planned).results
    assert asked == []
    assert (result.status, result.details["expected_bytes"]) == ("success", choice.expected.bytes if choice.expected else None)


def test_what_reads_an_mv_of_the_same_run_is_chosen_when_that_is_written(built: Shop, asked: list[str]) -> None:
    planned = built.plan()
    assert [(s.node.rpartition(".")[2], s.choice is None) for s in planned.steps if s.action == "refresh"] == [
        ("daily", False),
        ("monthly", True),
    ]
    built.run(planned=planned)
    assert asked == ["monthly"]


def test_after_a_lost_race_the_strategy_is_chosen_again(built: Shop, asked: list[str]) -> None:
    """The other run read an older snapshot of the base table than this one has to."""
    other = built.plan("daily")
    append(built.catalog, "raw.orders", 7)
    planned = built.plan("daily")
    winner = Shop(built.root, catalog=built.catalog, changes=Changes(built.catalog.changes))
    raced: list[TableIdentifier] = []

    def win(table: TableIdentifier) -> None:
        if not raced:
            raced.append(table)
            winner.run(planned=other)

    built.engine.before_write = win
    assert built.statuses(planned=planned) == {"daily": "success"}
    assert asked == ["daily"]


def test_a_requested_full_refresh_is_recorded_with_the_reason_of_the_plan(built: Shop) -> None:
    (result,) = built.run("daily", full_refresh=True).results
    assert (result.details["reason"], result.details["reason_message"]) == ("forced", "a full refresh was requested")
