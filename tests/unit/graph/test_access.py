"""Groups and access: what may read what, as in dbt."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.api.compilation import compile
from mvbuild.artifacts.manifest import manifest
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.exposures import exposures_of
from mvbuild.selection.select import select_all
from unit.cli.bad_input import call
from unit.worlds import write_project

GROUPS = """groups:
  - {name: finance, owner: {name: Ada, slack: '#money'}, description: Money, config: {meta: {floor: 2}}}
  - {name: sales, owner: {email: sales@example.com}}
"""
FILES = {
    "mvbuild.yml": "name: shop\nmodels: {fin: {+group: finance, +access: private}}\n",
    "models/groups.yml": GROUPS,
    "models/fin/ledger.sql": "SELECT id FROM raw.t\n",
    "models/fin/report.sql": "{{ config(access='public') }}\nSELECT id FROM {{ ref('ledger') }}\n",
    "models/fin/fin.yml": "models: [{name: ledger, columns: [{name: id, data_tests: [unique]}]}]\n",
    "models/board.sql": "SELECT id FROM {{ ref('report') }}\n",
}


def refused(root: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    write_project(root, {**FILES, **files})
    try:
        graph = compile(root)
        exposures_of(graph)
        found = graph.problems
    except ProjectError as exc:
        found = exc.diagnostics
    return [(d.code, f"{d.span.file.path}:{d.span.text}" if d.span else "") for d in found]


def test_members_of_a_group_read_its_private_models(tmp_path: Path) -> None:
    graph = compile(write_project(tmp_path, FILES))
    assert {n.model.name: (n.model.config.group, n.model.config.access) for n in graph.models} == {
        "ledger": ("finance", "private"),
        "report": ("finance", "public"),
        "board": (None, "protected"),
    }


REF, NAME = "SELECT id FROM {{ ref('ledger') }}\n", "SELECT id FROM ledger\n"


@pytest.mark.parametrize("sql", [REF, NAME, "{{ config(group='sales') }}\n" + REF])
def test_others_do_not(tmp_path: Path, sql: str) -> None:
    place = "'ledger'" if "ref" in sql else "ledger"
    ((code, at),) = refused(tmp_path, {"models/spy.sql": sql})
    assert (code, at.partition(":")[0]) == ("private-model", "models/spy.sql")
    assert place.strip("'") in at


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"tests/t.sql": REF}, [("private-model", "tests/t.sql")]),
        ({"tests/t.sql": "{{ config(group='sales') }}\n" + REF}, [("private-model", "tests/t.sql")]),
        ({"tests/t.sql": "{{ config(group='none') }}\nSELECT 1 WHERE false\n"}, [("unknown-group", "tests/t.sql")]),
        (
            {
                "models/b.yml": "models: [{name: board, columns: [{name: id, data_tests: [relationships: {to: ref('ledger'), field: id}]}]}]\n"
            },
            [("private-model", "models/b.yml")],
        ),
        (
            {"models/e.yml": "exposures: [{name: e, type: ml, owner: {name: A}, depends_on: [ref('report'), ref('ledger')]}]\n"},
            [("private-model", "models/e.yml")],
        ),
        ({"models/x.sql": "{{ config(group='sale') }}\nSELECT 1 AS id\n"}, [("unknown-group", "models/x.sql")]),
        ({"seeds/s.csv": "id\n1\n", "seeds/s.yml": "seeds: [{name: s, group: sale}]\n"}, [("unknown-group", "seeds/s.yml")]),
        (
            {"models/x.sql": "{{ config(access='public', materialized='ephemeral') }}\nSELECT 1 AS id\n"},
            [("bad-config", "models/x.sql")],
        ),
        (
            {"models/own.sql": "{{ config(access='private') }}\nSELECT 1 AS id\n", "models/y.sql": "SELECT id FROM {{ ref('own') }}\n"},
            [("private-model", "models/y.sql")],
        ),
        ({"models/g.yml": "groups: [{name: sales, owner: {name: B}}]\n"}, [("duplicate-name", "models/groups.yml")]),
        ({"models/g.yml": "groups: [{name: g, owner: {slack: x}}]\n"}, [("missing-key", "models/g.yml")]),
        ({"models/x.sql": "{{ config(access='secret') }}\nSELECT 1 AS id\n"}, [("wrong-type", "models/x.sql")]),
    ],
)
def test_what_is_refused(tmp_path: Path, files: dict[str, str], found: list[tuple[str, str]]) -> None:
    assert [(code, at.partition(":")[0]) for code, at in refused(tmp_path, files)] == found


def test_a_test_may_name_its_group(tmp_path: Path) -> None:
    graph = compile(write_project(tmp_path, {**FILES, "tests/t.sql": "{{ config(group='finance') }}\n" + REF}))
    assert [test.name for test in graph.tests if test.id.startswith("test.shop.t.")] == ["t"]


def test_a_query_of_the_command_line_reads_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = call(f'compile --inline "{REF.strip()}"', write_project(tmp_path, FILES), {}, monkeypatch, capsys)
    assert (outcome.exit, "ledger" in outcome.stdout) == (0, True)


@pytest.mark.parametrize(
    ("selector", "names"),
    [("group:fin*", {"ledger", "report"}), ("access:private", {"ledger"}), ("access:public", {"report"}), ("access:protected", {"board"})],
)
def test_selection(tmp_path: Path, selector: str, names: set[str]) -> None:
    graph = compile(write_project(tmp_path, FILES))
    chosen, _ = select_all(graph, (selector,), ())
    assert {id_.rpartition(".")[2] for id_ in chosen if id_.startswith("model.")} == names


def test_the_manifest_has_them_as_dbt_writes_them(tmp_path: Path) -> None:
    found = manifest(compile(write_project(tmp_path, FILES)), version="1", generated_at="", invocation_id="")
    finance = found["groups"]["group.shop.finance"]
    assert (finance["owner"], finance["resource_type"], finance["original_file_path"]) == (
        {"name": "Ada", "email": None, "slack": "#money"},
        "group",
        "models/groups.yml",
    )
    assert (finance["description"], finance["config"]["meta"]) == ("Money", {"floor": 2})
    ledger = found["nodes"]["model.shop.ledger"]
    assert (ledger["group"], ledger["access"], ledger["config"]["group"]) == ("finance", "private", "finance")
    assert [id_.rpartition(".")[0] if "unique" in id_ else id_ for id_ in found["group_map"]["finance"]] == [
        "model.shop.ledger",
        "model.shop.report",
        "test.shop.unique_ledger_id",
    ]
    assert found["group_map"]["sales"] == []


def test_a_model_that_leaves_its_group_is_noticed_by_the_next_command(tmp_path: Path) -> None:
    """The outline of a compiled project is made again when the group or the access of a model changes."""
    compile(write_project(tmp_path, FILES))
    write_project(tmp_path, {"models/fin/report.sql": "{{ config(access='public', group='sales') }}\nSELECT id FROM {{ ref('ledger') }}\n"})
    assert [d.code for d in compile(tmp_path).problems] == ["private-model"]
    write_project(tmp_path, FILES)
    assert set(compile(tmp_path).project.groups) == {"finance", "sales"}
    assert set(compile(tmp_path).project.groups) == {"finance", "sales"}
