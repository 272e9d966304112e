"""`lint:` of the project, of folders and of models -> levels and options, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.lint.model import Level
from unit.lint.linted import findings, found, report, shop

STAR = "select * from {{ ref('customers') }}\n"


def levels(root: Path, project: str, files: dict[str, str] | None = None, rules: tuple[str, ...] = ("select-star",)) -> list[Level]:
    given = {"mvbuild.yml": f"name: shop\n{project}\n", "models/marts/m.sql": STAR, **(files or {})}
    return [finding.level for finding in findings(root, given, *rules)]


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ("", ["warning"]),
        ("lint: {select-star: error}", ["error"]),
        ("lint: {select-star: off}", []),
        ("lint: {select-star: 'off'}", []),
        ("lint: {select-star: {level: info}}", ["info"]),
        ("lint: {select-star: {everywhere: true}}", ["warning"]),
        ("lint: {select-star: error}\nmodels: {shop: {marts: {+lint: {select-star: off}}}}", []),
        ("lint: {select-star: off}\nmodels: {shop: {+lint: {select-star: info}}}", ["info"]),
        ("models: {+lint: {select-star: off}, marts: {m: {+lint: {select-star: error}}}}", ["error"]),
        ("lint: {select-star: error}\nmodels: {+lint: {select-star: {everywhere: true}}}", ["error"]),
        ("lint: {cross-join: error}", ["warning"]),
        ("lint:", ["warning"]),
    ],
)
def test_the_nearest_level_wins(project: str, expected: list[Level], tmp_path: Path) -> None:
    assert levels(tmp_path, project) == expected


def test_a_model_has_the_last_word(tmp_path: Path) -> None:
    project = "lint: {select-star: error}"
    assert levels(tmp_path / "a", project, {"models/m.yml": "models: [{name: m, config: {lint: {select-star: info}}}]\n"}) == ["info"]
    assert levels(tmp_path / "b", project, {"models/marts/m.sql": "{{ config(lint={'select-star': 'off'}) }}\n" + STAR}) == []


def test_a_rule_that_is_off_by_default_runs_when_it_is_asked_for(tmp_path: Path) -> None:
    assert levels(tmp_path / "a", "", rules=("dead-model",)) == ["warning"]
    assert levels(tmp_path / "b", "lint: {dead-model: off}", rules=("dead-model",)) == []
    assert levels(tmp_path / "c", "", rules=("unused-cte",)) == []


def test_options_are_merged(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\nlint: {model-name: {level: error, pattern: 'dim_.*'}}\nmodels: {staging: {+lint: {model-name: {pattern: 'stg_.*'}}}}\n",
        "models/dim_a.sql": STAR,
        "models/b.sql": STAR,
        "models/staging/stg_c.sql": STAR,
        "models/staging/dim_d.sql": STAR,
    }
    assert [f.node for f in findings(tmp_path, files, "model-name") if f.level == "error"] == ["model.shop.b", "model.shop.dim_d"]


WRONG = [
    ("lint: {selectstar: error}", "unknown-key", "selectstar"),
    ("lint: {select-star: fatal}", "wrong-type", "fatal"),
    ("lint: {select-star: true}", "wrong-type", "true"),
    ("lint: {select-star: {levl: error}}", "unknown-key", "levl"),
    ("lint: {select-star: {level: fatal}}", "wrong-type", "fatal"),
    ("lint: {select-star: {everywhere: maybe}}", "wrong-type", "maybe"),
    ("lint: {model-name: {pattern: '['}}", "wrong-type", "'['"),
    ("lint: {unpartitioned-storage: {above: much}}", "wrong-type", "much"),
    ("models: {+lint: {selectstar: error}}", "unknown-key", "selectstar"),
    ("models: {marts: {+lint: {select-star: fatal}}}", "wrong-type", "select-star"),
    ("lint: error", "wrong-type", "error"),
    ("models: {+lint: error}", "wrong-type", "error"),
]


@pytest.mark.parametrize(("project", "code", "text"), WRONG)
def test_what_does_not_exist_is_an_error_where_it_stands(project: str, code: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as failed:
        levels(tmp_path, project)
    (diagnostic,) = failed.value.diagnostics
    assert (diagnostic.code, diagnostic.span.text if diagnostic.span else "") == (code, text)


def test_an_unknown_rule_of_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="Unknown lint rule 'select-stars'") as failed:
        report(shop(tmp_path, {}), rules=["select-stars"])
    assert failed.value.diagnostics[0].help == "Did you mean 'select-star'?"


def test_levels_of_files_that_are_no_models_are_those_of_the_project(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\nlint: {secret-in-file: warning}\n",
        "macros/m.sql": "{% macro m() %}{% set password = 'hunter2hunter2' %}{% endmacro %}\n",
    }
    assert [f.level for f in findings(tmp_path, files)] == ["warning"]
    assert found(tmp_path, files) == [("secret-in-file", 1, "**************")]
