from __future__ import annotations

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.parse.project import parse_project
from mvbuild.project.setting import Setting
from mvbuild.source import Span
from mvbuild.workers import Workers

from .projects import FILE, project

OFF = ({"enabled": Setting(False, Span(FILE, 0, 4))},)


def test_models_and_tests():
    parsed = parse_project(
        project(
            {"a": "select 1 as x", "b": "{{ config(materialized='view') }} select * from {{ ref('A') }}"},
            tests={"none_negative": "{{ config(severity='warn') }} select * from {{ ref('b') }} where x < 0"},
        ),
        env={},
        workers=Workers(1),
    )
    a, b = parsed.models
    assert (a.name, a.config.materialized, a.query.columns) == ("a", "materialized_view", ("x",))
    assert (b.config.materialized, b.query.reads[0].kind, b.query.reads[0].parts) == ("view", "ref", ("a",))
    (test,) = parsed.tests
    assert (test.name, test.severity, test.query.reads[0].parts) == ("none_negative", "warn", ("b",))


@pytest.mark.parametrize("tags", ["'daily'", "['daily', 'daily']"])
def test_a_test_has_tags_and_meta(tags: str) -> None:
    sql = f"{{{{ config(tags={tags}, meta={{'owner': 'ann'}}) }}}} select * from {{{{ ref('a') }}}}"
    (test,) = parse_project(project({"a": "select 1 as x"}, tests={"t": sql}), env={}, workers=Workers(1)).tests
    assert (test.tags, test.meta) == (("daily",), {"owner": "ann"})


@pytest.mark.parametrize(
    ("setting", "message", "help"),
    [
        ("tags=1", "'tags' must be a string or a list of strings", "Change the value"),
        ("meta='ann'", "'meta' must be a mapping", "Change the value"),
        ("where='x > 0'", "Unknown setting 'where' in a SQL test", "A SQL test has a query of its own: put the condition into it."),
    ],
)
def test_wrong_settings_of_a_test(setting: str, message: str, help: str) -> None:
    tests = {"t": f"{{{{ config({setting}) }}}} select * from {{{{ ref('a') }}}}"}
    with pytest.raises(ProjectError) as raised:
        parse_project(project({"a": "select 1 as x"}, tests=tests), env={}, workers=Workers(1))
    (found,) = raised.value.diagnostics
    assert found.message == message
    assert found.help.startswith(help)


def test_all_files_are_reported_at_once():
    with pytest.raises(ProjectError) as raised:
        parse_project(
            project(
                {"a": "select {{ nope }}", "b": "select * from {{ ref('gone') }} where", "c": "drop table x", "d": "select 1"},
                tests={"t": "{{ config(severty='warn') }} select 1; select 2"},
                macros={"m": "{% macro x %}"},
            ),
            env={},
            workers=Workers(1),
        )
    assert [(d.code, str(d.span)) for d in raised.value.diagnostics] == [
        ("template-syntax", "macros/m.sql:1:12"),
        ("undefined-name", "models/a.sql:1:11"),
        ("unresolved-ref", "models/b.sql:1:22"),
        ("sql-syntax", "models/b.sql:1:33"),
        ("not-a-query", "models/c.sql:1:1"),
        ("unknown-key", "tests/t.sql:1:11"),
        ("many-statements", "tests/t.sql:1:40"),
    ]


def test_disabled_models_are_dropped_with_their_errors():
    models = {"a": "{{ nope }}", "b": "{{ config(enabled=false) }} not sql", "c": "select 1"}
    parsed = parse_project(project(models, layers={"a": OFF}), env={}, workers=Workers(1))
    assert [model.name for model in parsed.models] == ["c"]


def test_reading_a_disabled_model():
    models = {"a": "select 1", "b": "select * from {{ ref('a') }}"}
    (model,) = parse_project(project(models, layers={"a": OFF}), env={}, workers=Workers(1)).models
    (diagnostic,) = model.problems
    assert (diagnostic.code, str(diagnostic.span)) == ("unresolved-ref", "models/b.sql:1:15")
    assert "disabled" in diagnostic.message


def test_warnings_are_kept():
    parsed = parse_project(project({"a": "select 1{{ exceptions.warn('old') }}"}), env={}, workers=Workers(1))
    assert [d.message for d in parsed.warnings] == ["old"]
    assert len(parsed.models) == 1
