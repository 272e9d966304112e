"""`run --atomic`: everything that a run made is published in one commit at its end, or nothing. Engine and catalog in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.commits import Change, TableCommit
from mvbuild.ports.states import State
from mvbuild.refresh.atomic import require_atomic
from mvbuild.refresh.result import RunResult
from unit.worlds import PROJECT, Shop, append, compiled, name, shop

SEEDED = PROJECT | {
    "seeds/regions.csv": "id\n1\n2\n",
    "models/regional.sql": "SELECT id FROM {{ ref('daily') }} JOIN {{ ref('regions') }} USING (id)\n",
}
EMBEDDED = PROJECT | {
    "models/all.yml": "models:\n"
    "  - {name: daily, config: {storage: {format: metadata-file}}}\n"
    "  - {name: monthly, config: {storage: {format: metadata-file}}}\n"
}


@pytest.fixture(params=[PROJECT, SEEDED, EMBEDDED], ids=["plain", "with a seed", "in metadata files"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return shop(tmp_path, request.param)


@pytest.fixture
def commits(made: Shop, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Change]]:
    """Every commit that moves `main`, or a view."""
    seen: list[Sequence[Change]] = []
    real = made.catalog.commit

    def commit(changes: Sequence[Change]) -> Mapping[TableIdentifier, State]:
        if any(not isinstance(c, TableCommit) or c.set_snapshot_id is not None for c in changes):
            seen.append(list(changes))
        return real(changes)

    monkeypatch.setattr(made.catalog, "commit", commit)
    return seen


def everything(of: Shop) -> dict[TableIdentifier, State]:
    """The states of all names of the project, but for what only says where they are."""
    names = [*of.catalog.list_names(("main",)), *of.catalog.list_names(("raw",))]
    return {i: replace(s, metadata_location="") for i, s in of.catalog.load(names).items()}


def visible(of: Shop) -> dict[TableIdentifier, object]:
    """What a reader can see."""
    return {i: (getattr(s, "current_snapshot_id", None), getattr(s, "version_id", None), s.properties) for i, s in everything(of).items()}


def assert_tidy(of: Shop) -> None:
    assert of.catalog.list_names(("mvbuild_scratch",)) == ()
    assert not [b for s in everything(of).values() for b in getattr(s, "branches", ()) if b != "main"]


def codes(result: RunResult) -> list[str]:
    return [d.code for d in result.diagnostics]


def test_one_commit_publishes_everything(made: Shop, commits: list[Sequence[Change]]) -> None:
    result = made.run(atomic=True)
    assert result.ok, [r.message for r in result.results]
    assert {r.status for r in result.results} == {"success"}
    assert len(commits) == 1
    assert_tidy(made)
    assert set(made.statuses().values()) == {"reused"}


def test_what_it_records_is_what_runs_without_it_record(made: Shop, tmp_path_factory: pytest.TempPathFactory) -> None:
    made.run(atomic=True)
    append(made.catalog, "raw.orders")
    assert made.run(atomic=True).ok
    assert set(made.statuses().values()) == {"reused"}
    append(made.catalog, "raw.customers")
    assert made.actions() == made.actions() | {"daily": "reuse", "monthly": "refresh"}
    assert made.statuses()["monthly"] == "success"


def test_downstream_mvs_read_what_is_not_published_yet(made: Shop) -> None:
    assert made.run(atomic=True).ok
    before = visible(made)
    append(made.catalog, "raw.orders")
    seen: list[bool] = []
    made.engine.before_write = lambda table: seen.append(
        {k: v for k, v in visible(made).items() if k in before and k != name("raw.orders")}
        == {k: v for k, v in before.items() if k != name("raw.orders")}
    )
    assert made.run(atomic=True).ok
    assert len(seen) >= 2
    assert all(seen)


def test_a_failure_publishes_nothing(made: Shop) -> None:
    assert made.run(atomic=True).ok
    before = visible(made)
    append(made.catalog, "raw.orders")
    after_append = visible(made)
    made.engine.fails = lambda sql: "the cluster is on fire" if "raw.customers" in sql else None
    result = made.run(atomic=True)
    assert not result.ok
    assert "not-published" in codes(result)
    statuses = {r.node.rpartition(".")[2]: (r.status, r.message) for r in result.results}
    assert statuses["monthly"][0] == "error"
    assert statuses["daily"] == ("skipped", "built and tested, but not published: model.shop.monthly failed")
    assert visible(made) == after_append
    assert before.keys() == after_append.keys()
    assert_tidy(made)
    made.engine.fails = lambda sql: None
    assert made.statuses(atomic=True)["daily"] == "success"


def test_a_failure_of_a_first_run_leaves_nothing_to_see(made: Shop) -> None:
    before = {i: s for i, s in visible(made).items() if i.namespace == ("raw",)}
    made.engine.fails = lambda sql: "the cluster is on fire" if "raw.customers" in sql else None
    assert not made.run(atomic=True).ok
    left = {i: s for i, s in visible(made).items() if i not in before}
    # Tables may have been created; none has a snapshot, and no view refers to them.
    assert all(isinstance(s, tuple) and s[0] is None and s[1] is None for s in left.values()), left
    assert_tidy(made)


def test_a_storage_that_somebody_else_touches_stops_all_of_it(tmp_path: Path) -> None:
    made = shop(tmp_path)
    assert made.run(atomic=True).ok
    append(made.catalog, "raw.orders")
    before = made.table("main.monthly__storage")
    foreign: list[int | None] = []

    def touch(table: TableIdentifier) -> None:
        if table.name == "monthly__storage" and not foreign:
            foreign.append(append(made.catalog, "main.daily__storage").current_snapshot_id)

    made.engine.before_write = touch
    result = made.run(atomic=True)
    assert not result.ok
    assert codes(result) == ["commit-conflict"]
    assert {r.status for r in result.results if r.node.endswith(("daily", "monthly"))} == {"skipped"}
    assert_tidy(made)
    assert made.table("main.daily__storage").current_snapshot_id == foreign[0]
    assert made.table("main.monthly__storage").current_snapshot_id == before.current_snapshot_id
    assert made.table("main.monthly__storage").properties == before.properties


def test_nothing_to_do_commits_nothing(made: Shop, commits: list[Sequence[Change]]) -> None:
    made.run(atomic=True)
    commits.clear()
    assert set(made.statuses(atomic=True).values()) == {"reused"}
    assert commits == []


def test_what_cannot_be_cleaned_up_says_nothing_about_the_commit(made: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise CatalogError("the connection was lost")

    monkeypatch.setattr(made.catalog, "drop_scratch", fail)
    result = made.run(atomic=True)
    assert result.ok, [(r.node, r.message) for r in result.results]
    assert set(made.statuses().values()) == {"reused"}


def test_a_lost_answer_is_not_told_as_nothing(made: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    real = made.catalog.commit

    def commit(changes: Sequence[Change]) -> Mapping[TableIdentifier, State]:
        done = real(changes)
        if len(changes) > 2:
            raise CatalogError("the answer was lost", unreachable=True)
        return done

    monkeypatch.setattr(made.catalog, "commit", commit)
    result = made.run(atomic=True)
    assert codes(result) == ["catalog-unreachable"]
    assert "everything or nothing" in result.diagnostics[0].help.lower()
    assert all("its outcome is unknown" in r.message for r in result.results if r.status == "skipped")
    assert set(made.statuses().values()) == {"reused"}


def test_a_catalog_that_cannot_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    graph = compiled(tmp_path, PROJECT)
    with pytest.raises(ProjectError) as raised:
        require_atomic(graph, is_atomic=False)
    assert [d.code for d in raised.value.diagnostics] == ["not-atomic"]


def test_the_project_can_ask_for_it(tmp_path: Path) -> None:
    assert compiled(tmp_path, PROJECT | {"mvbuild.yml": "name: shop\npublish: atomic\n"}).project.publish == "atomic"
    with pytest.raises(ProjectError) as raised:
        compiled(tmp_path, {"mvbuild.yml": "name: shop\npublish: sometimes\n"})
    assert [(d.code, str(d.span)) for d in raised.value.diagnostics] == [("wrong-type", "mvbuild.yml:2:10")]
