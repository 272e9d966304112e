"""Commands and flags that a dbt user types."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from mvbuild.api.compilation import compile
from mvbuild.artifacts.exposures import exposures
from mvbuild.artifacts.manifest import entries
from mvbuild.artifacts.unit_tests import unit_tests
from mvbuild.cli import run as run_module
from mvbuild.cli.ls import KNOWN
from mvbuild.cli.main import ALIASES, COMMANDS, NOT_HERE, _options_last
from unit.cli.bad_input import call
from unit.worlds import write_project

FILES = {
    "mvbuild.yml": "name: shop\ntarget: dev\ntargets: {dev: {}, prod: {namespace: live}}\n",
    "models/m.sql": "select id, '{{ target.name }}' as t from {{ ref('s') }}\n",
    "seeds/s.csv": "id\n1\n",
}
DBT = (
    "build clean clone compile debug deps docs freshness init list ls parse retry run run-operation seed show snapshot source test"
).split()
"""The commands of dbt-core 1.11, with `freshness`, which people type for `source freshness`."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_project(tmp_path, FILES)
    return tmp_path


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What would be run."""
    calls: list[dict[str, Any]] = []

    def execute(options: Any, **arguments: Any) -> int:
        more = {"branch": options.branch, "vars": options.vars, **arguments}
        calls.append({"target": options.target, **{k: v for k, v in more.items() if v}})
        return 0

    monkeypatch.setattr(run_module, "execute", execute)
    return calls


def test_every_command_of_dbt_is_here_or_says_what_to_do() -> None:
    assert [name for name in DBT if name not in {*COMMANDS, *ALIASES, *NOT_HERE}] == []
    assert set(ALIASES.values()) <= COMMANDS.keys()
    assert not COMMANDS.keys() & {*ALIASES, *NOT_HERE}


def test_other_names_of_commands(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("list --output name", root, {}, monkeypatch, capsys).stdout.split() == ["s", "m"]
    assert "Compiled 1 model" in call("parse", root, {}, monkeypatch, capsys).stderr
    shown = call("--help", root, {}, monkeypatch, capsys).stdout
    assert "list   The same as ls." in shown


def test_unit_tests_are_listed_as_in_dbt(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    units = "unit_tests:\n  - {name: u, model: m, given: [{input: ref('s'), rows: [{id: 1}]}]}\n"
    write_project(root, {**FILES, "models/u.yml": units})

    def listed(command: str) -> list[str]:
        return call(f"ls {command}", root, {}, monkeypatch, capsys).stdout.split()

    assert listed("") == ["shop.s", "shop.m", "unit_test:shop.u"]
    assert listed("--resource-type model") == ["shop.m"]
    assert listed("--resource-type unit_test --output path") == ["models/u.yml"]
    assert listed("--select unit_test:shop.u --output name") == ["u"]
    assert listed("--select resource_type:unit_test") == listed("--resource-type unit_test")
    assert listed("--exclude test_type:unit") == ["shop.s", "shop.m"]


@pytest.mark.parametrize(("name", "help"), [("clone", "mvbuild run --branch NAME"), ("snapshot", "sources"), ("lst", "list")])
def test_commands_that_are_not_here(
    root: Path, name: str, help: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = call(name, root, {}, monkeypatch, capsys)
    assert outcome.exit == 2
    assert f"Unknown command '{name}'" in outcome.stderr
    assert help in outcome.stderr


@pytest.mark.parametrize(
    ("words", "moved"),
    [
        ("--target prod run --select a", "run --target prod --select a"),
        ("-q --vars={a:1} --project-dir x build m", "-q build --vars={a:1} --project-dir x m"),
        ("--no-use-colors -t prod -x run", "--no-use-colors run -t prod -x"),
        ("run --target prod", "run --target prod"),
        ("--target", "--target"),
        ("--help", "--help"),
        ("", ""),
    ],
)
def test_options_before_the_command(words: str, moved: str) -> None:
    assert _options_last(words.split()) == moved.split()


def test_a_target_before_the_command_is_used(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "'prod' as t" in call("--target prod compile --select m", root, {}, monkeypatch, capsys).stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("seed", {"select": ("resource_type:seed",)}),
        ("seed --select s tag:x -f", {"select": ("s,resource_type:seed", "tag:x,resource_type:seed"), "full_refresh": True}),
        ("--target prod seed --exclude s", {"target": "prod", "select": ("resource_type:seed",), "exclude": ("s",)}),
        ("run --select m", {"select": ("m",)}),
        ("build --select m -x", {"select": ("m",), "fail_fast": True, "all_tests": True}),
        ("--log-format json run --profiles-dir nowhere --profile shop --target prod", {"target": "prod"}),
    ],
)
def test_what_is_run(
    root: Path,
    executed: list[dict[str, Any]],
    words: str,
    expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(words, root, {}, monkeypatch, capsys).exit == 0
    assert executed == [{"target": None, **expected}]


@pytest.mark.parametrize(
    ("statuses", "select"),
    [
        (["success", "pass"], None),
        (["success", "error", "skipped"], ["result:error", "result:skipped"]),
        (["success", "fail"], ["1+result:fail"]),
    ],
)
def test_a_retry_runs_what_failed(
    root: Path,
    executed: list[dict[str, Any]],
    statuses: list[str],
    select: list[str] | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (root / "target").mkdir(exist_ok=True)
    results = {"results": [{"status": status} for status in statuses], "args": {"full_refresh": True}}
    (root / "target/run_results.json").write_text(json.dumps(results))
    outcome = call("retry", root, {}, monkeypatch, capsys)
    assert outcome.exit == 0
    assert executed == ([{"target": None, "select": select, "full_refresh": True}] if select else [])
    assert ("Nothing failed in the last " in outcome.stderr) == (select is None)


def test_a_retry_after_tests_runs_those_that_failed(
    root: Path, executed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tested: list[dict[str, Any]] = []
    monkeypatch.setattr("mvbuild.cli.test.execute", lambda _, **given: tested.append(given) or 1)
    (root / "target").mkdir(exist_ok=True)
    results = [{"status": "fail", "unique_id": "test.shop.a"}, {"status": "pass"}, {"status": "skipped", "unique_id": "test.shop.b"}]
    (root / "target/run_results.json").write_text(json.dumps({"results": results, "args": {"which": "test"}}))
    assert call("retry", root, {}, monkeypatch, capsys).exit == 1
    assert [one["select"] for one in tested] == [["result:fail"]]
    assert not executed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("retry", {"target": "prod", "branch": "b1", "vars": {"x": 5, "days": {date(2026, 12, 25): "a"}}}),
        (
            "retry --target dev --branch b2 --vars '{x: 6}'",
            {"target": "dev", "branch": "b2", "vars": {"x": 6, "days": {date(2026, 12, 25): "a"}}},
        ),
    ],
)
def test_a_retry_has_the_target_the_branch_and_the_variables_of_the_last_run(
    root: Path,
    executed: list[dict[str, Any]],
    words: str,
    expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (root / "target").mkdir(exist_ok=True)
    arguments = {"target": "prod", "branch": "b1", "vars": "{x: 5, days: {2026-12-25: a}}", "which": "build", "fail_fast": True}
    (root / "target/run_results.json").write_text(json.dumps({"results": [{"status": "error"}], "args": arguments}))
    assert call(words, root, {}, monkeypatch, capsys).exit == 0
    assert executed == [{**expected, "select": ["result:error"], "all_tests": True, "fail_fast": True}]


def test_what_a_run_records_for_a_retry(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given = "{days: {2026-12-25: a}, token: open-sesame}"
    env = {"API_TOKEN": "open-sesame"}
    assert (
        call(f"build --select resource_type:seed --store-failures --target prod --vars '{given}'", root, env, monkeypatch, capsys).exit == 0
    )
    text = (root / "target/run_results.json").read_text()
    recorded = json.loads(text)["args"]
    assert (recorded["fail_fast"], recorded["store_failures"]) == (False, True)
    assert (recorded["target"], recorded["branch"], recorded["vars"]) == ("prod", None, "{days: {2026-12-25: a}, token: '***'}")
    (root / "target/run_results.json").write_text(text.replace('"success"', '"error"'))
    again = call("retry", root, env, monkeypatch, capsys)
    assert again.exit == 2
    assert "The value of 'token' has a secret" in again.stderr
    assert call("retry --vars '{token: open-sesame}'", root, env, monkeypatch, capsys).exit == 0


def test_a_data_test_that_waits_for_another_mv_is_not_run_again(
    root: Path, executed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "target").mkdir(exist_ok=True)
    results = {"results": [{"unique_id": "model.shop.a", "status": "success"}, {"unique_id": "test.shop.agree", "status": "skipped"}]}
    (root / "target/run_results.json").write_text(json.dumps(results))
    assert "Nothing failed in the last " in call("retry", root, {}, monkeypatch, capsys).stderr
    assert executed == []


def test_a_retry_without_a_run(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call("retry", root, {}, monkeypatch, capsys)
    assert outcome.exit == 2
    assert "error[no-state]: No earlier run found" in outcome.stderr


def test_what_is_not_read_is_named_once(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "note:" not in call("compile", root, {}, monkeypatch, capsys).stderr
    files = {
        "packages.yml": "packages: [{package: dbt-labs/dbt_utils}, {package: dbt-labs/codegen}]\n",
        "profiles.yml": "a: 1\n",
        ".env": "A=1\n",
        "snapshots/a.sql": "x",
        "snapshots/b.sql": "x",
        "analyses/a.sql": "x",
        "models/p.py": "x",
        "macros/n.sql": "{% macro generate_schema_name(a, b) %}{% endmacro %}",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    notes = [line for line in call("compile", root, {}, monkeypatch, capsys).stderr.splitlines() if line.startswith("note: ")]
    begins = [
        "profiles.yml is not read",
        ".env is not read",
        "the package dbt-labs/dbt_utils is not installed",
        "the package dbt-labs/codegen is not installed",
        "snapshots/a.sql and 1 more is not read",
        "analyses/a.sql is not read",
        "models/p.py is not read",
        "generate_schema_name in macros/n.sql is not applied",
    ]
    assert [note.removeprefix("note: ").partition(": ")[0] for note in notes] == begins
    assert not any(line.startswith("note:") for line in call("compile -q", root, {}, monkeypatch, capsys).stderr.splitlines())


def test_ls_knows_every_key_that_a_node_can_have(tmp_path: Path) -> None:
    text = (
        "models: [{name: m, columns: [{name: id, data_tests: [unique]}]}]\n"
        "sources: [{name: raw, tables: [{name: t}]}]\n"
        "exposures: [{name: e, type: ml, owner: {name: Ada}, depends_on: [\"ref('m')\"]}]\n"
        "unit_tests: [{name: u, model: m, given: [{input: \"source('raw', 't')\", rows: [{id: 1}]}], expect: {rows: [{id: 1}]}}]\n"
    )
    sql = "SELECT id FROM {{ source('raw', 't') }}\n"
    write_project(
        tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.yml": text, "models/m.sql": sql, "seeds/s.csv": "id\n1\n", "tests/q.sql": sql}
    )
    graph = compile(tmp_path)
    nodes = [*(entry for _, entry in entries(graph)), *exposures(graph).values(), *unit_tests(graph).values()]
    assert {node["resource_type"] for node in nodes} == {"model", "seed", "source", "test", "exposure", "unit_test"}
    assert {key for node in nodes for key in node} <= KNOWN


def test_ls_prints_a_key_of_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.sql": "{{ config(tags=['daily']) }}\nSELECT 1 AS one\n"})
    done = call("ls --output json --output-keys name,config.tags,config.tags.x", tmp_path, {}, monkeypatch, capsys)
    assert json.loads(done.stdout) == {"name": "m", "config.tags": ["daily"], "config.tags.x": None}
