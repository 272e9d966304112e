"""The requests to a REST catalog, and how mvbuild finds out whether they were executed: without a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from behaviour.world import layout, name, schema, view_commit
from mvbuild.adapters.iceberg import remote_answers, tables, views
from mvbuild.adapters.iceberg.layout import with_layout
from mvbuild.adapters.iceberg.remote_answers import LostAnswer, Outdated, settled
from mvbuild.adapters.iceberg.remote_applied import was_applied
from mvbuild.adapters.iceberg.rest_view_updates import marked, marked_version, permitting, view_updates
from mvbuild.adapters.iceberg.retries import Retries
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import Partition, Sort

Raw = dict[str, Any]
OTHER = TableLayout(
    schema=schema(id="long", n="int"),
    partition_by=(Partition(column="id", transform="identity"),),
    sort_by=(Sort(column="id", descending=False, nulls_first=True),),
)


def table() -> Raw:
    raw = tables.new_table("file:/t", layout(id="long"), {"a": "1"})
    raw = tables.with_snapshots(raw, [_snapshot(n) for n in (1, 2, 3)], None)
    return tables.with_main({**raw, "refs": {"audit": {"snapshot-id": 2, "type": "branch"}}}, 1, name("mart.t"))


def _snapshot(number: int) -> Raw:
    return {"snapshot-id": number, "timestamp-ms": number, "sequence-number": number, "summary": {}, "manifest-list": "x"}


def _moved(raw: Raw, to: int = 2) -> Raw:
    return tables.with_main(raw, to, name("mart.t"))


CHANGES: dict[str, Callable[[Raw], Raw]] = {
    "main": _moved,
    "a property": lambda raw: {**raw, "properties": {**raw["properties"], "b": "2"}},
    "no property": lambda raw: {**raw, "properties": {}},
    "a branch": lambda raw: {**raw, "refs": {**raw["refs"], "new": {"snapshot-id": 1, "type": "branch"}}},
    "no branch": lambda raw: {**raw, "refs": {"main": raw["refs"]["main"]}},
    "a layout": lambda raw: with_layout(raw, OTHER),
    "expired": lambda raw: {**raw, "snapshots": [s for s in raw["snapshots"] if s["snapshot-id"] != 3]},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whether_a_commit_was_made(change: Callable[[Raw], Raw]) -> None:
    old = table()
    new = change(old)
    assert was_applied(old, new, new)
    assert not was_applied(old, new, old)
    elsewhere = {**old, "properties": {**old["properties"], "theirs": "1"}}
    assert not was_applied(old, new, elsewhere)
    assert was_applied(old, new, change(elsewhere))
    assert not was_applied(old, new, {**new, "table-uuid": "another"})


def test_main_may_have_moved_on_since() -> None:
    old = table()
    new = _moved(old)
    assert was_applied(old, new, _moved(new, 3))
    assert not was_applied(old, new, _moved(old, 3))
    back = _moved(new, 1)
    assert not was_applied(new, back, _moved(new, 3))
    assert was_applied(new, back, _moved(back, 3))
    assert was_applied(new, back, {**back, "snapshot-log": back["snapshot-log"][-1:]})


def test_updates_of_a_view() -> None:
    old = views.new_view(view_commit("mart.v", "SELECT 1 AS a", properties={"k": "1", "gone": "2"}), "file:/v")
    same = views.changed(old, view_commit("mart.v", "SELECT 2 AS a", expect="x", version=2, remove_properties=("gone",)))
    found = view_updates(old, marked(same, "m1"))
    assert [u["action"] for u in found] == ["remove-properties", "add-view-version", "set-current-view-version"]
    assert (found[1]["view-version"]["schema-id"], found[1]["view-version"]["summary"]["mvbuild.commit"]) == (0, "m1")
    assert found[2]["view-version-id"] == 2
    other = views.changed(old, view_commit("mart.v", "SELECT 2 AS b", expect="x", version=2, schema=schema(b="int")))
    found = view_updates(old, other)
    assert [u["action"] for u in found] == ["add-schema", "add-view-version", "set-current-view-version"]
    assert found[1]["view-version"]["schema-id"] == -1
    alone = views.changed(old, replace(view_commit("mart.v", expect="x", properties={"k": "3"}), version_id=None))
    assert view_updates(old, alone) == [{"action": "set-properties", "updates": {"k": "3"}}]


def test_the_version_that_was_sent() -> None:
    old = views.new_view(view_commit("mart.v", "SELECT 1 AS a"), "file:/v")
    new = marked(views.changed(old, view_commit("mart.v", "SELECT 2 AS a", expect="x", version=2)), "m1")
    sent = new["versions"][-1]
    renumbered = {**new, "versions": [*old["versions"], {**sent, "version-id": 3}]}
    assert marked_version(new, sent, "m1") == sent
    assert (marked_version(renumbered, sent, "m1") or {})["version-id"] == 3
    assert marked_version(old, sent, "m1") is None
    forgetful = {**new, "versions": [*old["versions"], {**sent, "summary": {}}]}
    assert marked_version(forgetful, sent, "m1") == {**sent, "summary": {}}


def test_dialects_that_go() -> None:
    both = {"spark": "SELECT 1", "trino": "SELECT 1"}
    old = views.new_view(view_commit("mart.v", representations=both, properties={"replace.append-dialect.allowed": "true"}), "file:/v")
    less = views.changed(old, view_commit("mart.v", "SELECT 2", expect="x", version=2))
    assert permitting(old, less)["properties"] == {"replace.drop-dialect.allowed": "true"}
    assert (
        permitting(old, views.changed(old, view_commit("mart.v", expect="x", version=2, representations=both)))["properties"]
        == old["properties"]
    )


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_answers, "_TRIES", Retries(number=2, min_wait_ms=1, max_wait_ms=1))


def _asking(*outcomes: object) -> Callable[[], Any]:
    left = list(outcomes)

    def ask() -> Any:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return ask


LOST, LATE, CONFLICT = LostAnswer("reset"), Outdated("409"), CommitConflict("somebody else")


@pytest.mark.parametrize(
    ("asked", "looked", "expected"),
    [
        ([1], [], 1),
        ([LATE, 1], [], 1),
        ([LOST], [2], 2),
        ([LOST, 1], [None], 1),
        ([LOST, LATE], [None, 2], 2),
        ([LOST, CONFLICT], [None, 2], 2),
        ([LOST, TimeoutError(), 1], [None], 1),
        ([LOST, LOST], [TimeoutError(), 2], 2),
    ],
)
def test_what_becomes_of_a_request(few: None, asked: list[object], looked: list[object], expected: int) -> None:
    assert settled("it", _asking(*asked), _asking(*looked)) == expected


@pytest.mark.parametrize(
    ("asked", "looked", "expected", "message"),
    [
        ([CONFLICT], [], CommitConflict, "somebody else"),
        ([LOST, CONFLICT], [None, None], CommitConflict, "somebody else"),
        ([LATE, LATE, LATE], [], CommitConflict, "lost to other processes 3 times"),
        ([LOST, LOST, LOST], [None, None, None], CatalogError, "outcome of it is unknown"),
        ([ValueError("x")], [], ValueError, "x"),
        ([TimeoutError("x")], [], TimeoutError, "x"),
        ([LOST], [ValueError("x")], ValueError, "x"),
    ],
)
def test_what_is_told_of_a_request(few: None, asked: list[object], looked: list[object], expected: type[Exception], message: str) -> None:
    with pytest.raises(expected, match=message):
        settled("it", _asking(*asked), _asking(*looked))
