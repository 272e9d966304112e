"""Catalogs with pointers on a server: many writers, lost answers, many tables."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from behaviour.world import World, layout, name, table_commit, view_commit
from mvbuild.adapters.iceberg.pointers import Swap
from mvbuild.ports.catalog import AlreadyExists, CatalogError
from mvbuild.ports.states import TableState

_WRITERS = 4
_TABLES = 1000
"""More than are asked for in one request."""
_PATIENT = {"commit.retry.num-retries": "1000", "commit.retry.min-wait-ms": "5", "commit.retry.max-wait-ms": "60"}


def _loaded(world: World, text: str) -> TableState:
    found = world.catalog.load([name(text)])[name(text)]
    assert isinstance(found, TableState)
    return found


def _file(state: TableState) -> Path:
    return Path("/" + state.metadata_location.removeprefix("file:").lstrip("/"))


def test_no_swap_of_many_writers_is_lost(served_world: World) -> None:
    table = served_world.catalog.create_table(name("mart.t"), layout(id="long"), _PATIENT)
    commits = 5

    def write(writer: int) -> None:
        for number in range(1, commits + 1):
            served_world.catalog.commit([table_commit(table, set_properties={f"w{writer}": str(number)})])

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(write, range(_WRITERS)))
    found = _loaded(served_world, "mart.t")
    assert [found.properties[f"w{n}"] for n in range(_WRITERS)] == [str(commits)] * _WRITERS
    # Every swap left one file, and those that lost a race none.
    assert len(list(_file(found).parent.glob("*.metadata.json"))) == 1 + _WRITERS * commits


def test_one_of_many_creates(served_world: World) -> None:
    with ThreadPoolExecutor(_WRITERS) as pool:
        made = [pool.submit(served_world.catalog.create_table, name("mart.t"), layout(id="long"), {}) for _ in range(_WRITERS)]
    failed = [future.exception() for future in made if future.exception()]
    assert [type(error) for error in failed] == [AlreadyExists] * (_WRITERS - 1)
    assert served_world.catalog.list_names(("mart",)) == (name("mart.t"),)


class _Answers:
    """Replaces the pointers' `swap`: the connection breaks once, before the server receives the request or before it answers."""

    def __init__(self, world: World, *, heard: bool) -> None:
        self._pointers: Any = world.catalog._publisher.pointers  # type: ignore[attr-defined]
        self._swap = self._pointers.swap
        self._heard = heard
        self._pointers.swap = self

    def __call__(self, swaps: Sequence[Swap]) -> bool:
        self._pointers.swap = self._swap
        if self._heard:
            assert self._swap(swaps)
        raise ConnectionError("the answer never came")


def test_a_commit_whose_answer_is_lost_was_made(served_world: World) -> None:
    table = served_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    _Answers(served_world, heard=True)
    served_world.catalog.commit([table_commit(table, set_properties={"a": "1"})])
    assert _loaded(served_world, "mart.t").properties["a"] == "1"
    _Answers(served_world, heard=True)
    assert served_world.catalog.commit([view_commit("mart.v")])
    _Answers(served_world, heard=True)
    renamed = served_world.catalog.commit([table_commit(table, rename_to=name("mart.u"))])
    assert list(renamed) == [name("mart.u")]
    assert served_world.catalog.list_names(("mart",)) == (name("mart.u"), name("mart.v"))


def test_a_commit_that_was_never_heard_is_an_error_and_keeps_its_file(served_world: World) -> None:
    table = served_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    _Answers(served_world, heard=False)
    with pytest.raises(CatalogError, match="never came") as caught:
        served_world.catalog.commit([table_commit(table, set_properties={"a": "1"})])
    assert caught.value.unreachable
    assert _loaded(served_world, "mart.t") == table
    # It may still be heard: then its file is needed. `mvbuild maintain` removes it in time.
    assert len(list(_file(table).parent.glob("*.metadata.json"))) == 2
    served_world.catalog.commit([table_commit(table, set_properties={"a": "2"})])
    assert _loaded(served_world, "mart.t").properties["a"] == "2"


def test_others_may_have_gone_on_from_a_commit_whose_answer_is_lost(served_world: World) -> None:
    table = served_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    pointers: Any = served_world.catalog._publisher.pointers  # type: ignore[attr-defined]
    swap = pointers.swap

    def overtaken(swaps: Sequence[Swap]) -> bool:
        pointers.swap = swap
        assert swap(swaps)
        served_world.catalog.commit([table_commit(table, set_properties={"by": "another"})])
        raise ConnectionError("the answer never came")

    pointers.swap = overtaken
    served_world.catalog.commit([table_commit(table, set_properties={"a": "1"})])
    found = _loaded(served_world, "mart.t")
    assert (found.properties["a"], found.properties["by"]) == ("1", "another")


def test_a_thousand_tables(served_world: World) -> None:
    state = served_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    pointers: Any = served_world.catalog._publisher.pointers  # type: ignore[attr-defined]
    names = [f"t{number:04d}" for number in range(_TABLES)]
    # Without a lock in Hive: there is no other writer of these names.
    properties = {"engine.hive.lock-enabled": "false"}
    raw = {"format-version": 2, "location": state.location, "schemas": [state.schema], "current-schema-id": 0, "properties": properties}

    def register(one: str) -> None:
        assert pointers.swap([Swap(key=("mart", one), kind="TABLE", old=None, new=state.metadata_location, raw=raw)])

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(register, names))
    assert served_world.catalog.list_names(("mart",)) == tuple(name(f"mart.{one}") for one in ["t", *names])
    found = served_world.catalog.load(name(f"mart.{one}") for one in names)
    assert [one.name for one in found] == names
    assert all(isinstance(one, TableState) for one in found.values())
