"""Versions of models and deprecation dates, as in dbt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mvbuild.api.compilation import compile
from mvbuild.artifacts.manifest import manifest
from mvbuild.artifacts.unit_tests import unit_tests
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.definition import definition
from mvbuild.graph.exposures import exposures_of
from mvbuild.graph.model import Graph
from mvbuild.lineage.bind import bind
from mvbuild.lineage.trace import around, find
from mvbuild.project.model_versions import order
from mvbuild.selection.select import select_all
from unit.worlds import Shop, base_table, write_project

YAML = """models:
  - name: people
    latest_version: 2
    description: Everybody
    config: {tags: [core]}
    columns:
      - {name: id, description: The number, data_tests: [unique]}
      - {name: country, data_tests: [not_null]}
    versions:
      - v: 1
        defined_in: people_old
        deprecation_date: 2020-05-01
        config: {materialized: view}
      - v: 2
        columns: [{include: all, exclude: [country]}, {name: id, description: The new number}, {name: city}]
      - v: 3
        description: To come
        columns: [{include: [id]}]
        data_tests: []
"""
FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/people.yml": YAML,
    "models/people_old.sql": "SELECT id, country FROM raw.t\n",
    "models/people.sql": "SELECT id, city FROM raw.t\n",
    "models/people_v3.sql": "SELECT id FROM {{ ref('people') }}\n",
    "models/any.sql": "SELECT id FROM {{ ref('people') }}\n",
    "models/new.sql": "SELECT id FROM {{ ref('people', v=3) }} JOIN {{ ref('shop', 'people', version='2') }} USING (id)\n",
}
OLD = {"models/old.sql": "SELECT id FROM {{ ref('people', v=1) }}\n"}


def project(root: Path, files: dict[str, str] | None = None) -> Graph:
    return compile(write_project(root, {**FILES, **(files or {})}))


def refused(root: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    try:
        found = project(root, files).problems
    except ProjectError as exc:
        found = exc.diagnostics
    return [(d.code, d.message) for d in found if d.severity == "error"]


def test_each_version_is_a_model(tmp_path: Path) -> None:
    graph = project(tmp_path)
    found = {node.id: node for node in graph.models}
    assert {id_: (node.identifier.name, node.model.file.path) for id_, node in found.items() if "people" in id_} == {
        "model.shop.people.v1": ("people_v1", "models/people_old.sql"),
        "model.shop.people.v2": ("people_v2", "models/people.sql"),
        "model.shop.people.v3": ("people_v3", "models/people_v3.sql"),
    }
    assert found["model.shop.any"].reads == ("model.shop.people.v2",)
    assert found["model.shop.new"].reads == ("model.shop.people.v3", "model.shop.people.v2")
    assert found["model.shop.people.v3"].reads == ("model.shop.people.v2",)
    assert [found[f"model.shop.people.v{v}"].materialized for v in (1, 2)] == ["view", "materialized_view"]
    assert "lake.main.people_v2" in definition(graph, found["model.shop.any"]).text.replace("`", "")


def test_a_version_has_the_properties_of_the_model_and_its_own(tmp_path: Path) -> None:
    graph = project(tmp_path)
    of = {v: graph.model(f"model.shop.people.v{v}").model for v in (1, 2, 3)}
    assert {v: m.properties.description for v, m in of.items()} == {1: "Everybody", 2: "Everybody", 3: "To come"}
    assert {v: [(c.name, c.description) for c in m.properties.columns] for v, m in of.items()} == {
        1: [("id", "The number"), ("country", "")],
        2: [("id", "The new number"), ("city", "")],
        3: [("id", "The number")],
    }
    assert {m.config.tags for m in of.values()} == {("core",)}
    assert sorted(test.name for test in graph.tests) == ["not_null_people_v1_country", "unique_people_v1_id", "unique_people_v3_id"]


def test_without_latest_version_the_highest_is(tmp_path: Path) -> None:
    yml = "models: [{name: m, versions: [{v: 2}, {v: 10}]}]\n"
    files = {"models/m.yml": yml, "models/m_v2.sql": "SELECT 1 AS id\n", "models/m_v10.sql": "SELECT 2 AS id\n"}
    graph = project(tmp_path, {**files, "models/r.sql": "SELECT id FROM {{ ref('m') }}, m\n"})
    assert graph.nodes["model.shop.r"].reads == ("model.shop.m.v10", "model.shop.m.v10")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"models/x.sql": "SELECT id FROM {{ ref('people', v=4) }}\n"}, "'people' has no version 4"),
        ({"models/x.sql": "SELECT id FROM {{ ref('any', v=4) }}\n"}, "'any' has no versions"),
        ({"models/x.sql": "SELECT id FROM {{ ref('people_v3') }}\n"}, "Unknown model or seed 'people_v3'"),
        ({"models/x.sql": "SELECT id FROM {{ ref('people', x=4) }}\n"}, "ref() takes the name of a model or seed as a string"),
        ({"models/people.yml": YAML.replace("v: 3", "v: 4")}, "The version 4 of 'people' has no file people_v4.sql"),
        (
            {"models/people.yml": YAML.replace("latest_version: 2", "latest_version: 9")},
            "'latest_version' of 'people' is 9, which is not one of its versions",
        ),
        ({"models/people.yml": YAML.replace("v: 3", "v: 2")}, "Duplicate version 2 of 'people'"),
        ({"models/people.yml": YAML.replace("exclude: [country]", "exclude: [contry]")}, "'people' has no column 'contry' to exclude"),
        ({"models/people.yml": YAML.replace("include: [id]", "include: [ID, nr]")}, "'people' has no column 'nr' to include"),
        ({"models/people_v2.sql": "SELECT 1 AS id\n"}, "Duplicate model name 'people"),
        ({"models/people.yml": YAML.replace("2020-05-01", "soon")}, "'deprecation_date' must be a date"),
        ({"seeds/people.csv": "id\n1\n"}, "'people' is the name of a seed and of a model"),
    ],
)
def test_what_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    found = refused(tmp_path, files)
    assert any(message in said for _, said in found), found


@pytest.mark.parametrize("value", ["[2]", "{a: 1}", "true", "2026-11-29", "null", "[[1], 2]"])
@pytest.mark.parametrize("others", ["", "{v: 1}, ", "{v: 1}, {v: 1.5}, {v: b}, {v: .nan}, "])
def test_a_version_that_is_no_number_and_no_word(value: str, others: str, tmp_path: Path) -> None:
    files = ("_v1", "_v1.5", "_vb", "_vnan") if others.count("{") > 1 else ("_v1",) if others else ("",)
    write_project(tmp_path, {f"models/m{suffix}.sql": "SELECT 1 AS id\n" for suffix in files})
    text = f"models: [{{name: m, versions: [{others}{{v: "
    with pytest.raises(ProjectError) as caught:
        compile(write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.yml": f"{text}{value}}}]}}]\n"}))
    (found,) = caught.value.diagnostics
    place = f"models/m.yml:1:{len(text) + 1}"
    assert (found.code, found.message, str(found.span)) == ("wrong-type", "'v' must be a string or a number", place)


@pytest.mark.parametrize(
    ("versions", "ordered"),
    [
        ([10, "9", 1.5], [1.5, "9", 10]),
        ([10**400 + 1, 10**400, 2], [2, 10**400, 10**400 + 1]),
        ([2**53 + 1, 2**53], [2**53, 2**53 + 1]),
        (["b", 10, 9], [10, 9, "b"]),
        ([2, float("nan"), 10], [10, 2, "nan"]),
        ([float("inf"), 2, 10], [10, 2, "inf"]),
    ],
)
def test_the_order_of_versions(versions: list[object], ordered: list[object]) -> None:
    for listed in (versions, versions[::-1]):
        assert [*map(str, order(listed))] == [*map(str, ordered)]


@pytest.mark.parametrize(
    ("value", "message"), [("country", None), ("contry", "'people' has no column 'contry' to exclude"), ("5", "'exclude'")]
)
def test_a_single_column_to_exclude(value: str, message: str | None, tmp_path: Path) -> None:
    files = {"models/people.yml": YAML.replace("exclude: [country]", f"exclude: {value}")}
    if message is None:
        columns = next(n for n in project(tmp_path, files).models if n.id.endswith("people.v2")).model.properties.columns
        assert [column.name for column in columns] == ["id", "city"]
    else:
        found = refused(tmp_path, files)
        assert [said for _, said in found if message in said], found


def test_the_place_of_an_unknown_column_of_a_version(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        project(tmp_path, {"models/people.yml": YAML.replace("exclude: [country]", "exclude: [contry]")})
    (found,) = caught.value.diagnostics
    assert (found.code, str(found.span), found.help) == ("unknown-column", "models/people.yml:15:44", "Did you mean 'country'?")


@pytest.mark.parametrize("name", ["people_v1", "PEOPLE_V1", "people_old"])
def test_the_name_of_a_versions_file_is_not_a_model(name: str, tmp_path: Path) -> None:
    (found,) = project(tmp_path, {"models/x.sql": f"SELECT id FROM {{{{ ref('{name}') }}}}\n"}).problems
    assert (found.message, found.help) == (f"Unknown model or seed '{name}'", "Write ref('people', v=1).")


@pytest.mark.parametrize(
    "files",
    [
        {"models/x.sql": "SELECT id FROM {{ ref('peple') }}\n"},
        {"models/x.sql": "SELECT id FROM {{ ref('people.v4') }}\n"},
        {
            "models/m.yml": """models: [{name: any, columns: [{name: id, data_tests: [relationships: {to: "ref('peple')", field: id}]}]}]\n"""
        },
        {"models/m.yml": """exposures: [{name: e, type: ml, owner: {name: A}, depends_on: ["ref('peple')"]}]\n"""},
    ],
)
def test_the_help_of_an_unknown_name_is_the_name_of_a_model_with_versions(files: dict[str, str], tmp_path: Path) -> None:
    try:
        graph = project(tmp_path, files)
        found = [*graph.problems, *(exposures_of(graph) and ())]
    except ProjectError as exc:
        found = list(exc.diagnostics)
    assert [(d.code, d.help) for d in found if d.severity == "error"] == [("unresolved-ref", "Did you mean 'people'?")]


def test_a_name_like_no_other_lists_a_model_with_versions_once(tmp_path: Path) -> None:
    (found,) = project(tmp_path, {"models/x.sql": "SELECT id FROM {{ ref('zzz') }}\n"}).problems
    assert found.help == "Known names: any, new, people, x."


def test_lineage_of_a_model_with_versions_is_that_of_the_latest(tmp_path: Path) -> None:
    graph = project(tmp_path)
    assert around(graph, "People") == around(graph, "people.v2")
    node, column = find(bind(graph), "people.city")
    assert (node.id, column) == ("model.shop.people.v2", "city")
    with pytest.raises(ProjectError) as caught:
        around(graph, "peple")
    assert caught.value.diagnostics[0].help == "Did you mean 'people'?"


def test_reads_of_a_deprecated_version_are_warnings(tmp_path: Path) -> None:
    graph = project(tmp_path, OLD)
    assert [(d.code, d.message, d.severity) for d in graph.warnings] == [
        ("deprecated-model", "'people.v1' has passed its deprecation date, 2020-05-01", "warning"),
        ("deprecated-model", "'old' reads 'people.v1', which is deprecated since 2020-05-01", "warning"),
    ]
    assert graph.warnings[1].help == "Read version 2: ref('people', v=2)."
    later = project(tmp_path, {**OLD, "models/people.yml": YAML.replace("2020-05-01", "2999-05-01T00:00:00Z")})
    assert [d.message for d in later.warnings] == ["'old' reads 'people.v1', which will be deprecated on 2999-05-01"]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("people", {"people.v1", "people.v2", "people.v3"}),
        ("people.v2", {"people.v2"}),
        ("people_v2", {"people.v2"}),
        ("version:latest", {"people.v2"}),
        ("version:old", {"people.v1"}),
        ("version:prerelease", {"people.v3"}),
        ("version:none", {"any", "new"}),
        ("people.v2+", {"people.v2", "people.v3", "any", "new"}),
    ],
)
def test_selection(tmp_path: Path, selector: str, found: set[str]) -> None:
    graph = project(tmp_path)
    chosen, warnings = select_all(graph, (selector,), ())
    assert {id_.split(".", 2)[2] for id_ in chosen if id_.startswith("model.")} == found
    assert not warnings


def test_the_manifest_has_versions_as_dbt_writes_them(tmp_path: Path) -> None:
    found = manifest(project(tmp_path), version="1", generated_at="", invocation_id="")["nodes"]
    two, any_ = found["model.shop.people.v2"], found["model.shop.any"]
    assert {key: two[key] for key in ("name", "version", "latest_version", "fqn", "alias", "deprecation_date")} == {
        "name": "people",
        "version": 2,
        "latest_version": 2,
        "fqn": ["shop", "people", "v2"],
        "alias": "people_v2",
        "deprecation_date": None,
    }
    assert found["model.shop.people.v1"]["deprecation_date"] == "2020-05-01"
    assert (any_["version"], any_["refs"]) == (None, [{"name": "people", "package": None, "version": None}])


def test_other_places_that_name_a_version(tmp_path: Path) -> None:
    yml = """models: [{name: any, columns: [{name: id, data_tests: [relationships: {to: "ref('people', v=3)", field: id}]}]}]
exposures: [{name: e, type: ml, owner: {name: A}, depends_on: ["ref('people')", "ref('people', v=3)"]}]
unit_tests:
  - {name: u, model: people, versions: {exclude: [3]}, given: [{input: raw.t, rows: []}], expect: {rows: []}}
  - {name: w, model: new, given: [{input: "ref('people', v=3)", rows: []}, {input: ref('people'), rows: []}], expect: {rows: []}}
"""
    graph = project(tmp_path, {"models/more.yml": yml})
    (exposure,) = exposures_of(graph)
    assert exposure.reads == ("model.shop.people.v2", "model.shop.people.v3")
    assert any("relationships" in test.name and test.reads == ("model.shop.any", "model.shop.people.v3") for test in graph.tests)
    units = unit_tests(graph)
    assert {id_: (unit["model"], unit["version"]) for id_, unit in units.items()} == {
        "unit_test.shop.people.u_v1": ("people", 1),
        "unit_test.shop.people.u_v2": ("people", 2),
        "unit_test.shop.new.w": ("new", None),
    }


def test_a_project_that_was_compiled_before(tmp_path: Path) -> None:
    """The outline keeps which file is which version."""
    files = {"models/people.yml": YAML.replace("        deprecation_date: 2020-05-01\n", "")}
    first = project(tmp_path, files)
    again = compile(tmp_path)
    assert again.outlined is not None
    texts = [json.dumps(manifest(g, version="1", generated_at="", invocation_id=""), default=str) for g in (first, again)]
    assert texts[0] == texts[1]
    edited = project(tmp_path, {**files, "models/people_v3.sql": "SELECT id, 1 AS one FROM {{ ref('people') }}\n"})
    assert edited.model("model.shop.people.v3").query.columns == ("id", "one")
    assert edited.nodes["model.shop.new"].reads == ("model.shop.people.v3", "model.shop.people.v2")


def test_another_latest_version_makes_its_readers_stale(tmp_path: Path) -> None:
    yml = YAML.replace("- v: 2\n", "- v: 2\n        defined_in: people\n")
    shop = Shop(tmp_path).write({**FILES, "models/people.yml": yml})
    base_table(shop.catalog, "raw.t")
    assert {result.status for result in shop.run().results} == {"success"}
    assert {step.action for step in shop.plan().steps} <= {"reuse", "keep"}
    shop.write({"models/people.yml": yml.replace("latest_version: 2", "latest_version: 1")})
    actions = {step.node: step.action for step in shop.plan().steps}
    assert (actions["model.shop.any"], actions["model.shop.people.v2"]) == ("refresh", "reuse")
