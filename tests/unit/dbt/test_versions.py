"""Models with `versions:`, which mvbuild has in the format of dbt."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mvbuild.api import compile
from mvbuild.graph.model import ModelNode
from unit.dbt.projects import codes, item, taken, text
from unit.worlds import write_project

DIM = """\
models:
  - name: dim
    latest_version: 2
    config: {contract: {enforced: true}}
    columns: [{name: id, data_type: int, tests: [unique, not_null]}, {name: price, tests: [not_null]}]
    versions:
      - v: 1
        columns: [{include: all, exclude: [price]}]
      - v: 2
"""
FILES = {"models/dim.yml": DIM, "models/dim_v1.sql": "select 1 as id", "models/dim_v2.sql": "select 1 as id, 2 as price"}
HOOK = "{{ config(materialized='table', pre_hook='delete from x') }}"


def test_versions_are_taken_over_as_they_are(tmp_path: Path) -> None:
    reader = "select a.id from {{ ref('dim', v=1) }} a join {{ ref('dim') }} b using (id) join {{ ref('dim', version=2) }} c using (id)"
    found = taken(tmp_path / "dbt", {**FILES, "models/reader.sql": reader})
    assert not found.card.refuses
    assert text(found, "models/dim.yml") == DIM
    assert text(found, "models/reader.sql") == reader
    assert {i.name for i in found.card.items if i.kind == "model"} == {"dim.v1", "dim.v2", "reader"}
    tests = {i.name for i in found.card.items if i.kind == "test"}
    assert tests == {"unique_dim_v1_id", "not_null_dim_v1_id", "unique_dim_v2_id", "not_null_dim_v2_id", "not_null_dim_v2_price"}
    graph = compile(write_project(tmp_path / "new", {path: file.text for path, file in found.files.items()}))
    assert {"dim.v1", "dim.v2"} <= {node.model.name for node in graph.nodes.values() if isinstance(node, ModelNode)}


@pytest.mark.parametrize("files", [{"models/dim.sql": "select 2 as id, 3 as price"}, {"models/other.sql": "select 2 as id, 3 as price"}])
def test_the_file_of_a_version(tmp_path: Path, files: dict[str, str]) -> None:
    declared = DIM if "models/dim.sql" in files else DIM.replace("- v: 2", "- {v: 2, defined_in: other}")
    given = {
        "models/dim.yml": declared,
        "models/dim_v1.sql": "select 1 as id",
        "models/reads.sql": "select id, price from {{ ref('dim') }}",
    }
    found = taken(tmp_path, {**given, **files})
    assert not found.card.refuses
    assert set(files) <= set(found.files)


def test_an_incremental_version(tmp_path: Path) -> None:
    """Its table is found in its guard, its key is tested, and its settings are those of the model and its own."""
    guarded = (
        "{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }}select id, ts from {{ source('raw', 'events') }}"
        " {% if is_incremental() %} where ts > (select max(ts) from {{ this }}) {% endif %}"
    )
    declared = "models: [{name: dim, config: {schema: mart}, versions: [{v: 1, config: {alias: old}}, {v: 2}]}]"
    found = taken(tmp_path, {"models/dim.yml": declared, "models/dim_v1.sql": guarded, "models/dim_v2.sql": guarded}, full_query=("dim",))
    assert "guard-removed" in codes(found, "dim.v1")
    assert "ref('dim', v=2)" in text(found, "tests/dim_v2_unique_key.sql")
    assert "schema: main_mart" in text(found, "models/dim.yml").replace('"', "")
    assert "schema-spelled-out" in codes(found, "dim.v1")


def test_a_refused_version_stays_in_dbt_and_the_others_are_taken(tmp_path: Path) -> None:
    reader = "select id from {{ ref('dim', v=1) }} union all select id from {{ ref('dim') }}"
    found = taken(tmp_path, {**FILES, "models/dim_v1.sql": f"{HOOK}select 1 as id", "models/reader.sql": reader})
    assert (item(found, "dim.v1").verdict, item(found, "dim.v2").verdict) == ("refused", "unchanged")
    assert codes(found, "unique_dim_v1_id", "test") == ["reads-refused"]
    assert item(found, "unique_dim_v2_id", "test").verdict == "unchanged"
    declared = yaml.safe_load(text(found, "models/dim.yml"))["models"][0]
    assert declared["versions"] == [{"v": 2}]
    assert declared["columns"][0]["tests"] == ["unique", "not_null"]
    assert text(found, "models/reader.sql").startswith("select id from {{ source('dbt_main', 'dim_v1') }} union all select id from {{ ref(")


@pytest.mark.parametrize("latest", [f"{HOOK}select 1 as id, 2 as price", ""])
def test_without_the_latest_version_no_version_is_taken(tmp_path: Path, latest: str) -> None:
    """ref('dim') would mean another one."""
    files = {**FILES, "models/reader.sql": "select id from {{ ref('dim') }}", "models/dim_v2.sql": latest}
    if not latest:
        del files["models/dim_v2.sql"]
    found = taken(tmp_path, files)
    assert codes(found, "dim.v1") == ["versions"]
    assert "models/dim.yml" not in found.files
    assert item(found, "unique_dim_v1_id", "test").verdict == "refused"
    if latest:
        assert text(found, "models/reader.sql") == "select id from {{ source('dbt_main', 'dim_v2') }}"
    else:
        assert codes(found, "model dim.v2", "resource") == ["unknown-name"]


def test_exposures_and_unit_tests_of_versions(tmp_path: Path) -> None:
    declared = """\
exposures:
  - {name: board, type: dashboard, owner: {name: A}, depends_on: ["ref('dim')", "ref('dim', v=1)"]}
  - {name: none, type: dashboard, owner: {name: A}, depends_on: ["ref('dim', v=3)"]}
unit_tests:
  - {name: both, model: dim, given: [], expect: {rows: [{id: 1}]}}
  - {name: newest, model: dim, versions: {include: [2]}, given: [], expect: {rows: [{id: 1}]}}
"""
    found = taken(tmp_path / "all", {**FILES, "models/e.yml": declared})
    verdicts = {i.name: i.verdict for i in found.card.items}
    assert [verdicts[name] for name in ("board", "none", "both", "newest")] == ["unchanged", "refused", "unchanged", "unchanged"]
    found = taken(tmp_path / "one", {**FILES, "models/e.yml": declared, "models/dim_v1.sql": f"{HOOK}select 1 as id"})
    verdicts = {i.name: i.verdict for i in found.card.items}
    assert [verdicts[name] for name in ("board", "both", "newest")] == ["refused", "refused", "unchanged"]


def test_the_names_of_versions_by_macro(tmp_path: Path) -> None:
    macro = (
        "{% macro generate_alias_name(custom_alias_name=none, node=none) %}"
        "{{ node.name ~ '__' ~ node.version if node.version else node.name }}{% endmacro %}"
    )
    found = taken(tmp_path, {**FILES, "macros/names.sql": macro})
    assert "alias='dim__1'" in text(found, "models/dim_v1.sql")
    assert "alias='dim__2'" in text(found, "models/dim_v2.sql")


def test_a_model_with_the_name_of_versions_is_refused_alone(tmp_path: Path) -> None:
    found = taken(tmp_path, {**FILES, "models/dim.sql": "select 9 as id"})
    assert codes(found, "dim") == ["does-not-compile"]
    assert item(found, "dim.v2").verdict == "unchanged"


def test_a_python_version(tmp_path: Path) -> None:
    files = {**FILES, "models/dim_v1.py": "def model(dbt, session): ...", "models/reader.sql": "select * from {{ ref('dim', v=1) }}"}
    del files["models/dim_v1.sql"]
    found = taken(tmp_path, files)
    assert codes(found, "reader") == ["reads-refused"]
    assert yaml.safe_load(text(found, "models/dim.yml"))["models"][0]["versions"] == [{"v": 2}]


@pytest.mark.parametrize("settings", ["+materialized: view", "v1: {+materialized: view}"])
def test_settings_of_versions_in_the_project_file_are_not_lost(tmp_path: Path, settings: str) -> None:
    """dbt takes the model for a folder there, and its versions for files."""
    project = f"name: shop\nprofile: shop\nmodels: {{+materialized: table, shop: {{dim: {{{settings}}}}}}}\n"
    found = taken(tmp_path, {**FILES, "dbt_project.yml": project})
    assert codes(found, "dim.v1") == ["folder-config"]
    assert item(found, "dim.v2").verdict == ("unchanged" if settings.startswith("v1") else "refused")


@pytest.mark.parametrize(("include", "verdict"), [("1", "refused"), ("2", "unchanged"), ("[2]", "unchanged")])
def test_a_unit_test_of_one_version(tmp_path: Path, include: str, verdict: str) -> None:
    unit = f"unit_tests: [{{name: u, model: dim, versions: {{include: {include}}}, given: [], expect: {{rows: [{{id: 1}}]}}}}]\n"
    found = taken(tmp_path, {**FILES, "models/u.yml": unit, "models/dim_v1.sql": f"{HOOK}select 1 as id"})
    assert item(found, "u", "unit test").verdict == verdict
