"""Selectors that compare: with another version, the last run, the current freshness, git."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mvbuild import api
from mvbuild.artifacts.manifest import manifest
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import Graph
from mvbuild.selection.select import select, select_all
from mvbuild.versions.model import version_of
from unit.review.repositories import commit, git, repository
from unit.worlds import compiled, write_project

FILES = {
    "mvbuild.yml": "name: shop\nvars: {least: 1}\n",
    "seeds/orders.csv": "id\n1\n",
    "macros/m.sql": "{% macro cents(c) %}{{ c }} * 100{% endmacro %}{% macro twice(c) %}2 * {{ cents(c) }}{% endmacro %}",
    "models/a.sql": "SELECT id, id AS b FROM {{ ref('orders') }} WHERE id > {{ var('least') }}",
    "models/b.sql": "SELECT {{ twice('id') }} AS id FROM {{ ref('a') }}",
    "models/c.sql": "SELECT id FROM {{ ref('b') }}",
    "models/s.yml": "models:\n  - name: c\n    description: The c.\n    columns: [{name: id, data_tests: [not_null, unique]}]\n",
    "tests/t.sql": "SELECT * FROM {{ ref('a') }} WHERE id < 0",
}


def graph(root: Path, state: str | None = None, **options: object) -> Graph:
    return api.compile(root, env={}, state=state, **options)  # type: ignore[arg-type]


def chosen(found: Graph, *words: str, judge: Mapping[str, str] | None = None) -> set[str]:
    ids, _ = select(found, words, (), (lambda: judge) if judge is not None else None)
    return {id.rpartition(".")[2] for id in ids}


def failure(found: Graph, *words: str) -> tuple[str, str]:
    with pytest.raises(ProjectError) as caught:
        select(found, words, ())
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.help
    return diagnostic.code, diagnostic.message


def kept(root: Path, to: Path) -> str:
    """The artifacts of a project as it is now."""
    to.mkdir(exist_ok=True)
    content = manifest(graph(root), version="1", generated_at="", invocation_id="")
    (to / "manifest.json").write_text(json.dumps(content, default=str))
    return str(to)


CHANGES = [
    ({"models/a.sql": "-- new\nselect id, id AS b\nFROM {{ ref('orders') }} WHERE id > {{ var('least') }}"}, {}),
    ({"models/a.sql": "SELECT id FROM {{ ref('orders') }}"}, {"modified": "a", "modified.body": "a", "modified.configs": ""}),
    ({"models/a.sql": "{{ config(tags=['x']) }}" + FILES["models/a.sql"]}, {"modified": "a", "modified.configs": "a", "modified.body": ""}),
    (
        {"models/a.sql": "{{ config(alias='x') }}" + FILES["models/a.sql"]},
        {"modified": "a", "modified.relation": "a", "modified.configs": ""},
    ),
    ({"models/s.yml": FILES["models/s.yml"].replace("The c.", "It.")}, {"modified": "c", "modified.persisted_descriptions": "c"}),
    ({"macros/m.sql": FILES["macros/m.sql"].replace("100", "1000")}, {"modified": "b", "modified.macros": "b", "modified.body": "b"}),
    ({"macros/m.sql": "{# cents #}" + FILES["macros/m.sql"].replace("100", "100 ")}, {"modified": "", "modified.macros": ""}),
    ({"mvbuild.yml": FILES["mvbuild.yml"].replace("1", "2")}, {"modified": "a", "modified.body": "a", "modified.macros": ""}),
    ({"seeds/orders.csv": "id\n2\n"}, {"modified": "orders", "modified.body": "orders"}),
    ({"models/d.sql": "SELECT 1 AS x"}, {"modified": "d", "new": "d", "old": "abc orders", "unmodified": "abc orders"}),
]


@pytest.mark.parametrize("against", ["manifest", "ref"])
@pytest.mark.parametrize(("changed", "expected"), CHANGES)
def test_state(tmp_path: Path, changed: dict[str, str], expected: dict[str, str], against: str) -> None:
    root = repository(tmp_path / "shop", FILES)
    state = kept(root, tmp_path / "kept") if against == "manifest" else "main"
    write_project(root, changed)
    found = graph(root, state)
    assert chosen(found, "state:modified") == {*expected.get("modified", "").split()}
    for value, names in expected.items():
        plain = names.split()
        wanted = {*plain[0], *plain[1:]} if names.startswith("abc") else set(plain)
        assert chosen(found, f"state:{value}") == wanted, value


def test_state_of_tests_and_children(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop", FILES)
    write_project(root, {"models/s.yml": FILES["models/s.yml"].replace(", unique", "")})
    write_project(root, {"tests/t.sql": FILES["tests/t.sql"].replace("0", "1")})
    ids, _ = select_all(graph(root, "main"), ["state:modified"], [])
    assert {id.split(".")[2] for id in ids} == {"t"}
    assert chosen(graph(root, "main"), "1+state:modified,resource_type:model") == {"a"}


UNIT = """unit_tests:
  - name: one
    model: a
    given: [{input: ref('orders'), rows: [{id: 2}]}]
    expect: {rows: [{id: 2, b: 2}]}
  - name: two
    model: a
    given: [{input: ref('orders'), rows: [{id: 0}]}]
    expect: {rows: []}
"""
THIRD = UNIT.partition("\n")[2].partition("  - name: two")[0].replace("one", "three")


@pytest.mark.parametrize("against", ["manifest", "ref"])
@pytest.mark.parametrize(
    ("units", "modified", "new"),
    [
        (UNIT, "", ""),
        (UNIT.replace("- name: one\n", "- name: one\n    description: The one.\n"), "", ""),
        (UNIT.replace("{id: 0}", "{id: -1}"), "two", ""),
        (UNIT.replace("b: 2", "b: 3"), "one", ""),
        (UNIT.replace("- name: two\n", "- name: two\n    overrides: {vars: {least: 5}}\n"), "two", ""),
        (UNIT + THIRD, "three", "three"),
    ],
)
def test_state_of_unit_tests(tmp_path: Path, units: str, modified: str, new: str, against: str) -> None:
    root = repository(tmp_path / "shop", FILES | {"models/u.yml": UNIT})
    state = kept(root, tmp_path / "kept") if against == "manifest" else "main"
    write_project(root, {"models/u.yml": units})
    found = graph(root, state)
    for word, expected in (("modified", modified), ("modified.body", modified.replace(new, "") if new else modified), ("new", new)):
        ids, _ = select_all(found, [f"state:{word}"], [], units=True)
        assert {id.rpartition(".")[2] for id in ids} == {*expected.split()}, word
    assert select_all(found, ["state:modified"], [])[0] == frozenset()


def test_another_target_is_no_modification(tmp_path: Path) -> None:
    targets = "targets:\n  dev: {namespace: dev}\n  prod: {namespace: prod}\ntarget: dev\n"
    root = write_project(tmp_path / "shop", FILES | {"mvbuild.yml": FILES["mvbuild.yml"] + targets})
    content = manifest(graph(root, target="prod"), version="1", generated_at="", invocation_id="")
    (tmp_path / "manifest.json").write_text(json.dumps(content, default=str))
    assert chosen(graph(root, str(tmp_path)), "state:modified") == set()
    write_project(root, {"models/more.yml": "models: [{name: b, config: {alias: b_new}}]\n"})
    assert chosen(graph(root, str(tmp_path)), "state:modified") == {"b"}
    write_project(root, {"models/more.yml": "models: [{name: b, config: {namespace: mart}}]\n"})
    assert chosen(graph(root, str(tmp_path)), "state:modified.relation") == {"a", "b", "c", "orders"}


@pytest.mark.parametrize(
    ("state", "word", "expected"),
    [
        (None, "state:modified", ("no-state", "A `state:` selector compares with another version of the project, and none was given")),
        ("main", "state:modfied", ("unknown-selector", "Unknown state 'modfied'")),
        ("main", "state:modified.sql", ("unknown-selector", "Unknown state 'modified.sql'")),
        ("nothing.json", "state:new", ("bad-state", "The file nothing.json does not exist")),
        ("models", "state:new", ("bad-state", "'models' is a directory without a manifest.json, and not a git ref")),
        ("mvbuild.yml", "state:new", ("bad-state", "{root}/mvbuild.yml is not valid JSON")),
    ],
)
def test_state_that_cannot_be_read(tmp_path: Path, state: str | None, word: str, expected: tuple[str, str]) -> None:
    root = repository(tmp_path / "shop", FILES)
    code, message = failure(graph(root, state), word)
    assert (code, message) == (expected[0], expected[1].format(root=root))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "is not a manifest of mvbuild"),
        ('{"metadata": {"dbt_version": "1.9"}}', "is not a manifest of mvbuild"),
        ('{"metadata": {"mvbuild_version": "0.0"}, "nodes": {"a": 1}}', "was written by mvbuild 0.0 in another format"),
    ],
)
def test_manifests_of_others(tmp_path: Path, content: str, said: str) -> None:
    root = repository(tmp_path / "shop", FILES)
    (tmp_path / "manifest.json").write_text(content)
    code, message = failure(graph(root, str(tmp_path)), "state:new")
    assert code == "bad-state"
    assert message.endswith(said)


def results(root: Path, **statuses: str) -> None:
    (root / "target").mkdir(exist_ok=True)
    content = {"results": [{"unique_id": id.replace("__", "."), "status": status} for id, status in statuses.items()]}
    (root / "target" / "run_results.json").write_text(json.dumps(content))


def test_results_of_the_last_run(tmp_path: Path) -> None:
    root = write_project(tmp_path, FILES)
    found = graph(root)
    own = next(test.id for test in found.tests if test.name == "t")
    results(root, **{own: "fail"}, model__shop__a="error", model__shop__b="skipped", model__shop__c="success")
    assert chosen(found, "result:error") == {"a"}
    assert chosen(found, "result:error+") == {"a", "b", "c"}
    assert chosen(found, "result:skipped result:success") == {"b", "c"}
    assert chosen(found, "1+result:fail") == {"a"}
    assert failure(found, "result:failed")[0] == "unknown-selector"


def test_results_of_another_directory(tmp_path: Path) -> None:
    root = write_project(tmp_path / "shop", FILES)
    results(tmp_path, model__shop__b="error")
    assert chosen(graph(root, str(tmp_path / "target")), "result:error") == {"b"}
    assert failure(graph(root), "result:error")[0] == "no-state"
    (root / "target").mkdir()
    (root / "target" / "run_results.json").write_text("{}")
    assert failure(graph(root), "result:error")[0] == "bad-state"


def test_freshness_as_it_is_judged_now(tmp_path: Path) -> None:
    found = graph(write_project(tmp_path, FILES))
    judged = {"model.shop.a": "fresh", "model.shop.b": "stale", "model.shop.c": "unknown"}
    assert chosen(found, "fresh:", judge=judged) == {"a"}
    assert chosen(found, "stale:", judge=judged) == {"b", "c"}
    assert chosen(found, "stale:*", judge=judged) == {"b", "c"}
    assert chosen(found, "stale:c", judge=judged) == {"c"}
    assert chosen(found, "+fresh:", judge=judged) == {"a", "orders"}
    assert failure(found, "stale:")[0] == "unusable-selector"


def test_git(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo" / "shop", FILES)
    git(root, "checkout", "-q", "-b", "feature")
    write_project(root, {"models/a.sql": "SELECT 1 AS id, 2 AS b"})
    commit(root)
    write_project(root, {"models/b.sql": "SELECT 1 AS id", "models/new model.sql": "SELECT 1 AS id", "models/ü.sql": "SELECT 1 AS id"})
    found = graph(root)
    assert chosen(found, "git:main") == {"a", "b", "new model", "ü"}
    assert chosen(found, "git:HEAD") == {"b", "new model", "ü"}
    assert chosen(found, "git:main,a+") == {"a"}
    git(root, "add", "-A")
    assert chosen(found, "git:HEAD") == {"b", "new model", "ü"}
    write_project(root, {"models/s.yml": FILES["models/s.yml"].replace("The", "A")})
    assert "c" in chosen(graph(root), "git:HEAD")


def test_git_of_a_project_in_a_folder(tmp_path: Path) -> None:
    top = repository(tmp_path, {f"data/shop/{path}": text for path, text in FILES.items()} | {"other/models/a.sql": "x"})
    write_project(top, {"other/models/a.sql": "y", "data/shop/models/c.sql": "SELECT 2 AS id"})
    assert chosen(graph(top / "data" / "shop"), "git:main") == {"c"}
    assert chosen(graph(top / "data" / "shop", "main"), "state:modified") == {"c"}


def test_git_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_project(tmp_path, FILES)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert failure(graph(root), "git:main") == ("no-git", f"{root} is not in a git repository")
    repository(root, {})
    assert failure(graph(root), "git:mian") == ("bad-ref", f"There is no 'mian' in the git repository {root}")
    assert failure(graph(root), "git:--all")[0] == "bad-ref"
    monkeypatch.setenv("PATH", "")
    assert failure(graph(root), "git:main") == ("no-git", "The program git was not found")


def test_what_is_known_is_read_once_and_only_when_it_is_asked(tmp_path: Path) -> None:
    found = replace(graph(write_project(tmp_path, FILES)), tests=())
    asked: list[int] = []

    def judge() -> Mapping[str, str]:
        asked.append(1)
        return {"model.shop.a": "stale"}

    select(found, ["a"], [], judge)
    assert not asked
    select(found, ["stale:", "stale:+"], ["fresh:"], judge)
    assert asked == [1]


def test_a_macro_file_without_macros(tmp_path: Path) -> None:
    graph = compiled(
        tmp_path, {"mvbuild.yml": "name: shop\n", "macros/later.sql": "{# nothing yet #}\n", "models/m.sql": "select 1 as a\n"}
    )
    assert version_of(graph, "now").macros == {}
