"""Every command and option of dbt-core is here, or says what to do instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.dbt_commands import command_of, known, options_of, page, verdict
from mvbuild.api.compilation import compile
from mvbuild.cli.dbt_options import INSTEAD, WITHOUT_MEANING
from mvbuild.cli.main import NOT_HERE, group
from mvbuild.project.counting import Counting
from unit.cli.bad_input import call
from unit.worlds import write_project

ROOT = Path(__file__).parents[3]
NAMES = known()
FILES = {
    "mvbuild.yml": "name: shop\ntarget: dev\ntargets: {dev: {}, prod: {namespace: live}}\n",
    "models/a.sql": "select id from {{ ref('s') }}\n",
    "models/b.sql": "select id from {{ ref('a') }}\n",
    "models/m.yml": (
        "models:\n"
        "  - {name: a, columns: [{name: id, data_tests: [not_null: {severity: warn}]}]}\n"
        "  - {name: b, columns: [{name: id, data_tests: [relationships: {to: ref('s'), field: id}]}]}\n"
    ),
    "seeds/s.csv": "id\n1\n",
}
NOT_NULL, RELATIONSHIPS = "not_null_a_id", "relationships_b_id__id__ref_s_"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_project(tmp_path, FILES)
    return tmp_path


def names(command: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> set[str]:
    outcome = call(f"{command} --output name", root, {}, monkeypatch, capsys)
    assert outcome.exit == 0, outcome.stderr
    return set(outcome.stdout.split())


@pytest.mark.parametrize("command", NAMES["commands"])
def test_every_command_and_option_is_known(command: str) -> None:
    if command_of(command) is None:
        assert command in NOT_HERE
        return
    assert [option for option in NAMES["commands"][command] if verdict(command, option) is None] == []


def test_the_page_is_current() -> None:
    """`.venv/bin/python tests/benchmarks/dbt_commands.py > docs/dbt-commands.md` writes it."""
    assert (ROOT / "docs/dbt-commands.md").read_text(encoding="utf-8") == page()


def test_no_advice_is_left_over() -> None:
    """Advice for an option is about a command of dbt that has it, and not about an option that is everywhere here."""
    of_dbt = {option for options in (*NAMES["commands"].values(), NAMES["options"]) for option in options}
    assert set(INSTEAD) - of_dbt == set()
    assert not set(INSTEAD) & set(options_of(group))
    assert {f"--{name}" for name in WITHOUT_MEANING} <= of_dbt


@pytest.mark.parametrize("option", ["--empty", "--defer", "--log-level debug", "--sample 3"])
@pytest.mark.parametrize("where", ["before", "after"])
def test_an_option_of_dbt_says_what_to_do(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str, where: str
) -> None:
    command = f"run {option}" if where == "after" else f"{option} run"
    outcome = call(command, root, {}, monkeypatch, capsys)
    name = option.split()[0]
    assert (outcome.exit, f"Unknown option '{name}'" in outcome.stderr, INSTEAD[name] in outcome.stderr) == (2, True, True)


def test_options_without_meaning_are_accepted(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(f"--no-{name}" for name in WITHOUT_MEANING)
    assert "a" in names(f"ls {said}", root, monkeypatch, capsys)
    assert "a" in names(f"{said} ls", root, monkeypatch, capsys)


def test_types_of_resources(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def found(options: str) -> set[str]:
        return names(f"ls {options}", root, monkeypatch, capsys)

    assert found("--resource-type model") == {"a", "b"}
    assert found("--resource-types model seed") == {"a", "b", "s"}
    assert found("--exclude-resource-type test") == {"a", "b", "s"}
    assert found("--resource-type test --select a") == {NOT_NULL}
    assert found("--resource-type all") == {"a", "b", "s", NOT_NULL, RELATIONSHIPS}
    plan = json.loads(call("plan --resource-type seed --output json", root, {}, monkeypatch, capsys).stdout)
    assert [step["unique_id"] for step in plan["steps"]] == ["seed.shop.s"]


@pytest.mark.parametrize(
    ("mode", "select", "tests"),
    [
        ("eager", "a", {NOT_NULL}),
        ("eager", "s", {RELATIONSHIPS}),
        ("cautious", "s", set()),
        ("cautious", "a b", {NOT_NULL}),
        ("cautious", "s b", {RELATIONSHIPS}),
        ("buildable", "b", {RELATIONSHIPS}),
        ("buildable", "s", set()),
        ("empty", "a b s", set()),
        ("empty", f"a {RELATIONSHIPS}", {RELATIONSHIPS}),
    ],
)
def test_indirect_selection(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: str, select: str, tests: set[str]
) -> None:
    found = names(f"ls --indirect-selection {mode} --select {select}", root, monkeypatch, capsys)
    assert found - {"a", "b", "s"} == tests


def test_warnings_are_errors(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("ls --select nothing", root, {}, monkeypatch, capsys).exit == 0
    for command in ("ls --select nothing --warn-error", "--warn-error ls --select nothing"):
        outcome = call(command, root, {}, monkeypatch, capsys)
        assert (outcome.exit, "error[unknown-selector]" in outcome.stderr) == (2, True)


def test_tests_are_stricter_and_store_their_failures(root: Path) -> None:
    graph = compile(root, env={})
    found = {test.name: test for test in graph.with_tests(strict=True, store=True).tests}
    assert found[NOT_NULL].counting.store
    assert found[NOT_NULL].counting.verdict(1, found[NOT_NULL].severity) == "fail"
    assert found[NOT_NULL].gates == next(test.gates for test in graph.tests if test.name == NOT_NULL)
    assert Counting(error_if="> 10", strict=True).verdict(5, "error") == "fail"
    assert Counting(error_if="> 10", strict=True).verdict(0, "error") == "pass"
    assert not any(test.counting.store for test in graph.with_tests(strict=False, store=False).tests)


def test_a_query_on_the_command_line(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    inline = "compile --inline \"select count(*) from {{ ref('a') }}\""
    outcome = call(inline, root, {"MVBUILD_TARGET": "prod"}, monkeypatch, capsys)
    assert outcome.stdout == "select count(*) from lake.live.a\n"
    assert not (root / "target/manifest.json").exists()
    outcome = call(inline.replace("'a'", "'nope'"), root, {}, monkeypatch, capsys)
    assert (outcome.exit, "Unknown model or seed 'nope'" in outcome.stderr) == (2, True)
    assert call("show", root, {}, monkeypatch, capsys).exit == 2


@pytest.mark.parametrize(
    ("command", "help"),
    [
        ("maintain --output json", "This command only prints text. If it writes files, they are below target/."),
        ("debug -o x", "This command only prints text. If it writes files, they are below target/."),
        ("status -o json", "Write --output."),
    ],
)
def test_output_of_a_command_that_has_none(
    command: str, help: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = call(command, root, {}, monkeypatch, capsys)
    assert (outcome.exit, outcome.stderr.splitlines()[-1]) == (2, f"  help: {help}")
