"""Lists that several processes share: every item once, whatever happens to the processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mvbuild import workers
from mvbuild.workers import Workers


def squares(power: int, items: Sequence[int]) -> list[int]:
    return [item**power for item in items]


def padded(size: int, items: Sequence[str]) -> list[str]:
    return [item + "x" * size for item in items]


def exits(at: int, items: Sequence[int]) -> list[int]:
    if at in items:
        os._exit(9)
    return list(items)


def raises(at: int, items: Sequence[int]) -> list[int]:
    if at in items:
        raise ZeroDivisionError
    return list(items)


def forgets(at: int, items: Sequence[int]) -> list[int]:
    return [item for item in items if item != at]


def chatters(at: int, items: Sequence[int]) -> list[int]:
    if at in items:
        os.write(1, b"hello! hello! hello!")
    return list(items)


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_processors", lambda: 3)
    # Workers import the functions of this module by the name that pytest gave it.
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[3])


@pytest.fixture
def team() -> Iterator[Workers]:
    with Workers() as found:
        yield found


def test_every_item_once_and_by_several(team: Workers):
    found = list(team.shared(squares, 2, range(1000)))
    assert sorted(at for at, _ in found) == list(range(1000))
    assert all(value in (None, at * at) for at, value in found)
    assert any(value is None for _, value in found)
    assert any(value is not None for _, value in found)


def test_one_list_after_the_other_by_the_same_processes(team: Workers):
    first = team._started()
    for power in (1, 2, 3):
        assert {at: value for at, value in team.shared(squares, power, range(300)) if value is not None}.items() <= {
            at: at**power for at in range(300)
        }.items()
    assert team._started() is first
    assert all(worker.is_alive for worker in first)


def test_more_than_pipes_hold_in_both_directions(team: Workers):
    items = [str(number) * 20_000 for number in range(200)]
    found = dict(team.shared(padded, 300_000, items))
    assert len(found) == 200
    assert all(value == items[at] + "x" * 300_000 for at, value in found.items() if value is not None)


def test_what_is_given_may_be_large(team: Workers):
    found = dict(team.shared(_lengths, "g" * 5_000_000, range(50)))
    assert set(found.values()) <= {None, 5_000_000}


def _lengths(given: str, items: Sequence[int]) -> list[int]:
    return [len(given) for _ in items]


@pytest.mark.parametrize("work", [exits, raises, forgets])
def test_what_a_lost_process_had_is_for_the_caller(team: Workers, work: workers.Work[int, int, int]):
    found = list(team.shared(work, 3, range(500)))
    assert sorted(at for at, _ in found) == list(range(500))
    assert all(value in (None, at) for at, value in found)
    assert (3, None) in found


def test_what_is_printed_is_no_answer(team: Workers):
    found = list(team.shared(chatters, 3, range(500)))
    assert (3, 3) in found
    assert all(worker.is_alive for worker in team._started())


@pytest.mark.parametrize(("given", "item"), [(lambda: 1, 1), (1, lambda: 1)])
def test_what_cannot_be_sent_is_for_the_caller(team: Workers, given: object, item: object):
    assert sorted(at for at, _ in team.shared(_lengths, given, [item] * 100)) == list(range(100))  # type: ignore[arg-type]


def test_all_processes_lost(team: Workers):
    found = list(team.shared(_always_exits, None, range(100)))
    assert sorted(found) == [(at, None) for at in range(100)]


def _always_exits(_: None, items: Sequence[int]) -> list[int]:
    os._exit(1)


def test_an_abandoned_list_leaves_no_answers_for_the_next(team: Workers):
    stream = team.shared(squares, 2, range(1000))
    next(stream)
    stream.close()
    assert sorted(team.shared(squares, 3, range(50))) == [(at, None) for at in range(50)]


def test_an_empty_list_and_one_item_start_nothing(team: Workers, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Workers, "_started", lambda _: pytest.fail("started"))
    assert list(team.shared(squares, 2, [])) == []
    assert list(team.shared(squares, 2, [7])) == [(0, None)]


def test_without_help_all_is_for_the_caller():
    with Workers(1) as alone:
        assert list(alone.shared(squares, 2, range(100))) == [(at, None) for at in range(100)]
        assert alone._started() == []


def test_no_process_outlives_the_team():
    with Workers() as team:
        started = [worker._process for worker in team._started()]
        assert len(started) == 2
        list(team.shared(squares, 2, range(10)))
    assert all(process.poll() is not None for process in started)
