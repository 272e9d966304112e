"""Typing errors -> a message that says what is wrong, with the place, and what was probably meant."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mvbuild import api
from mvbuild.api import runs, sessions
from mvbuild.diagnostics import Diagnostic, ProjectError
from unit.cli.bad_input import call
from unit.worlds import PROJECT, Shop, append, compiled, shop

YML = {"mvbuild.yml": "name: shop\n"}
CONFLICT = "<<<<<<< HEAD\n{0}=======\n{0}>>>>>>> feature\n"


def findings(root: Path, files: dict[str, str]) -> list[Diagnostic]:
    """What stops the project, or one model of it."""
    try:
        return list(compiled(root, {**YML, **files}).problems)
    except ProjectError as exc:
        return list(exc.diagnostics)


@pytest.mark.parametrize(
    ("sql", "between"),
    [
        ("select u.email u.country, 1 as x from raw.users u", ("email", "u")),
        ("select id, u.email\n  u.country from raw.users u", ("email", "u")),
        ("select id, count(*) u.country from raw.users u", (")", "u")),
        ("select id name email from raw.users", ("name", "email")),
        ("select id from raw.users u group by u.a u.b", ("a", "u")),
        ("select id from raw.users u where u.a = 1 u.b = 2", ("1", "u")),
    ],
)
def test_a_missing_comma_is_no_matter_of_json(tmp_path: Path, sql: str, between: tuple[str, str]) -> None:
    (found,) = findings(tmp_path, {"models/m.sql": sql})
    assert found.help == f"Is a comma or an operator missing between '{between[0]}' and '{between[1]}'?"


@pytest.mark.parametrize(
    ("sql", "help"),
    [
        ("select o. from {{ ref('n') }} o", "Is a column missing between 'o.' and 'from'?"),
        ("select 1 as a from {{ ref('n') }} {{ ref('n') }} o", "Is a comma or an operator missing between 'n' and 'o'?"),
        ("select 1 as a from raw.n x {{ source('raw', 'n') }}", "Is a comma or an operator missing between 'x' and 'raw.n'?"),
    ],
)
def test_help_about_syntax_has_the_names_of_the_user(tmp_path: Path, sql: str, help: str) -> None:
    yml = "sources: [{name: raw, tables: [{name: n}]}]\n"
    (found,) = findings(tmp_path, {"models/m.sql": sql, "models/n.sql": "select 1 as id", "models/s.yml": yml})
    assert found.help == help


@pytest.mark.parametrize("path", ["doc:a.b", "doc:a[0].b"])
def test_a_path_into_json_is_explained_as_that(tmp_path: Path, path: str) -> None:
    (found,) = findings(tmp_path, {"models/m.sql": f"select id, {path} from raw.users"})
    assert found.help.startswith("Read JSON fields with get_json_object()")


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("select id, name,\nfrom raw.users", "1:16"),
        ("with x as (select id, from raw.users) select id from x", "1:21"),
        ("select id from raw.users group by id, having count(*) > 1", "1:37"),
        ("select id from raw.users order by id, limit 3", "1:37"),
        ("select id from raw.users group by id,", "1:37"),
        ("select coalesce(id, ) from raw.users", "1:19"),
        ("select id, from {{ ref('n') }}", "1:10"),
    ],
)
def test_a_comma_that_nothing_follows(tmp_path: Path, sql: str, place: str) -> None:
    (found,) = findings(tmp_path, {"models/m.sql": sql, "models/n.sql": "select 1 as id"})
    assert str(found.span) == f"models/m.sql:{place}"
    assert found.message.startswith("There is nothing ")
    assert "this comma" in found.message


@pytest.mark.parametrize("sql", ["select id, from from raw.users", "select id, `from` from raw.users", "select id, limit from raw.users"])
def test_words_of_clauses_may_be_columns(tmp_path: Path, sql: str) -> None:
    assert findings(tmp_path, {"models/m.sql": sql}) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("models/m.sql", "select 1 as a\n"),
        ("models/m.yml", "models: []\n"),
        ("macros/m.sql", "{% macro f() %}1{% endmacro %}\n"),
        ("tests/t.sql", "select 1 as a\n"),
        ("mvbuild.yml", "name: shop\n"),
    ],
)
def test_the_markers_of_a_git_conflict(tmp_path: Path, path: str, text: str) -> None:
    (found,) = findings(tmp_path, {path: "\n" + CONFLICT.format(text)})
    assert (found.code, str(found.span)) == ("merge-conflict", f"{path}:2:1")


def test_a_git_conflict_in_a_seed_is_no_row(tmp_path: Path) -> None:
    made = Shop(tmp_path).write({**YML, "seeds/s.csv": "a\n" + CONFLICT.format("x\n")})
    assert [d.code for one in made.run().results for d in one.diagnostics] == ["merge-conflict"]


def test_a_line_of_equal_signs_is_no_conflict(tmp_path: Path) -> None:
    compiled(tmp_path, {**YML, "models/m.sql": "/*\n=======\n<<<<<<<\n*/\nselect 1 as a\n"})


MACROS = """{% macro per(x) %}{{ 1 / x }}{% endmacro %}
{% macro outer(x) %}
{{ per(x) }}
{% endmacro %}
{% macro chosen(x) %}{{ exceptions.raise_compiler_error("not " ~ x) if x != 'a' }}{% endmacro %}
"""


@pytest.mark.parametrize(
    ("call", "calls"),
    [
        ("per(0)", ["models/m.sql:2:3"]),
        ("outer(0)", ["macros/m.sql:3:1", "models/m.sql:2:3"]),
        ("chosen('b')", ["models/m.sql:2:3"]),
    ],
)
def test_a_mistake_in_the_arguments_of_a_macro_points_at_the_call_too(tmp_path: Path, call: str, calls: list[str]) -> None:
    (found,) = findings(tmp_path, {"macros/m.sql": MACROS, "models/m.sql": f"select\n  {{{{ {call} }}}} as a\n"})
    assert found.span is not None
    assert found.span.file.path == "macros/m.sql"
    assert [(note.message, str(note.span)) for note in found.notes] == [("called here", place) for place in calls]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("warehous", "warehouse"), ("urii", "uri"), ("s3.acess-key-id", "s3.access-key-id"), ("oauth2_server_uri", "oauth2-server-uri")],
)
def test_a_misspelt_property_of_a_catalog(tmp_path: Path, written: str, meant: str) -> None:
    yml = f"name: shop\ntargets:\n  dev:\n    catalog: {{type: rest, {written}: x}}\n"
    (found,) = findings(tmp_path, {"mvbuild.yml": yml})
    assert (found.code, found.help) == ("unknown-key", f"Did you mean '{meant}'?")
    assert str(found.span) == "mvbuild.yml:4:27"


def test_properties_that_only_others_know_are_passed_on(tmp_path: Path) -> None:
    yml = "name: shop\ntargets:\n  dev:\n    catalog: {type: rest, uri: 'http://h', header.X-Uri: b, vendor.flag: 1, jdbc.useSSL: true}\n"
    found = compiled(tmp_path, {"mvbuild.yml": yml, "models/m.sql": "select 1 as a"})
    assert found.project.target.catalog["vendor.flag"] == "1"


@pytest.mark.parametrize(
    ("word", "near"),
    [("monthli", "monthly"), ("+monthli", "monthly"), ("2+monthli+1", "monthly"), ("@monthli", "monthly"), ("main.dayly", "main.daily"),
     ("tag:nihgtly", "tag:nightly")],
)  # fmt: skip
@pytest.mark.parametrize("command", ["run", "test", "plan"])
def test_a_selection_that_matches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, word: str, near: str
) -> None:
    made = shop(tmp_path, {**PROJECT, "models/m.yml": "models:\n  - {name: daily, config: {tags: [nightly]}}\n"})
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    done = call(f"{command} --select {word}", tmp_path, {}, monkeypatch, capsys)
    assert done.exit == 0
    assert f"warning[unknown-selector]: '{word}' selects nothing" in done.stderr
    assert f"Did you mean '{near}'?" in done.stderr
    assert "Completed successfully" not in done.stdout
    assert ("Nothing was done: nothing was selected" in done.stdout) == (command != "plan")


def test_the_total_time_has_the_start_of_spark_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, now = shop(tmp_path), count()
    spent = [0.0]

    def start(*_: Any, **__: Any) -> Any:
        spent[0] += 30
        return made.engine

    class Clock(sessions.SystemClock):
        def monotonic(self) -> float:
            return spent[0] + next(now) / 1000

    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    monkeypatch.setattr(sessions, "start_engine", start)
    monkeypatch.setattr(sessions, "SystemClock", Clock)
    monkeypatch.setattr(runs, "SystemClock", Clock)
    result = api.run(tmp_path)
    assert result.ok
    assert 30 < result.seconds < 40


def test_status_of_an_mv_whose_storage_was_changed_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = shop(tmp_path)
    made.run()
    append(made.catalog, "main.daily__storage")
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    said = call("status --select daily", tmp_path, {}, monkeypatch, capsys).stdout
    assert "refreshed 2023-11-14T22:13:20Z" in said
    assert "never refreshed" not in said
    assert "storage-changed" in said
