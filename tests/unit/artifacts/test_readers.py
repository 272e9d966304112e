"""The artifacts of a run, read by dbt-artifacts-parser, which forbids unknown keys, and in the way of other readers."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mvbuild.artifacts.catalog import catalog
from mvbuild.artifacts.manifest import manifest
from mvbuild.artifacts.run_results import run_results
from mvbuild.refresh.result import NodeResult, RunResult
from mvbuild.selection.known import Known
from mvbuild.versions.manifest import read_manifest
from mvbuild.versions.model import version_of
from unit.worlds import PROJECT, compiled, shop

FILES = {
    "mvbuild.yml": "name: shop\nvars: {least: 1}\n",
    "seeds/countries.csv": "code\nDE\n",
    "models/sources.yml": "sources:\n  - name: raw\n    tables: [{name: orders, columns: [{name: id, data_tests: [unique]}]}]\n",
    "models/a.sql": "SELECT o.id, o.code, c.name FROM {{ source('raw', 'orders') }} o JOIN crm.customers c ON c.id = o.customer",
    "models/b.sql": "SELECT id, code FROM {{ ref('a') }} WHERE id > {{ var('least') }}",
    "models/b.yml": (
        "models:\n  - name: b\n    columns:\n      - name: code\n"
        "        data_tests: [not_null, {relationships: {to: \"ref('countries')\", field: code}}]\n"
        "      - name: id\n        data_tests: [{relationships: {to: \"source('raw', 'orders')\", field: id}}]\n"
    ),
    "tests/no_negative.sql": "SELECT * FROM {{ ref('b') }} WHERE id < 0",
}


@pytest.fixture(scope="module")
def parser() -> Any:
    """Imported here, since that takes seconds, and each process collects all tests."""
    return import_module("dbt_artifacts_parser.parser")


@pytest.fixture
def content(tmp_path: Path) -> dict[str, Any]:
    return manifest(compiled(tmp_path, FILES), version="1.0", generated_at="2026-11-23T00:00:00.000000Z", invocation_id="x")


def test_a_strict_reader_accepts_the_manifest(parser: Any, content: dict[str, Any]) -> None:
    assert len(parser.parse_manifest_v12(content).nodes) == len(content["nodes"])
    assert content["metadata"]["env"]["mvbuild_version"] == "1.0"


def test_everything_that_a_node_depends_on_has_an_entry(content: dict[str, Any]) -> None:
    known = {*content["nodes"], *content["sources"]}
    read = {id for node in content["nodes"].values() for id in node["depends_on"].get("nodes", ())}
    assert read <= known
    plain = content["sources"]["source.shop.lake.crm.customers"]
    assert (plain["source_name"], plain["name"], plain["identifier"]) == ("crm", "customers", "customers")
    assert content["nodes"]["model.shop.a"]["sources"] == [["raw", "orders"], ["crm", "customers"]]
    assert content["parent_map"]["model.shop.a"] == ["source.shop.raw.orders", "source.shop.lake.crm.customers"]
    assert content["child_map"]["source.shop.lake.crm.customers"] == ["model.shop.a"]


def test_unit_tests_are_below_their_model_and_have_the_format_that_was_written(parser: Any, tmp_path: Path) -> None:
    units = (
        "unit_tests:\n  - {name: u, model: b, given: [{input: ref('a'), format: csv, rows: \"id,code\\n1,\\n\"}], "
        "expect: {format: csv, fixture: nothing}}\n"
    )
    files = {**FILES, "models/u.yml": units, "tests/fixtures/nothing.csv": "id\n"}
    found = manifest(compiled(tmp_path, files), version="1.0", generated_at="2026-11-23T00:00:00.000000Z", invocation_id="x")
    id = "unit_test.shop.b.u"
    assert parser.parse_manifest_v12(found).unit_tests[id].model == "b"
    assert found["parent_map"][id] == ["model.shop.b"]
    assert id in found["child_map"]["model.shop.b"]
    assert found["child_map"][id] == []
    assert found["unit_tests"][id]["given"] == [
        {"input": "ref('a')", "rows": [{"id": "1", "code": None}], "format": "csv", "fixture": None}
    ]
    assert found["unit_tests"][id]["expect"] == {"rows": [], "format": "csv", "fixture": "nothing"}


def test_only_generic_tests_have_test_metadata(content: dict[str, Any]) -> None:
    tests = {node["name"]: node for node in content["nodes"].values() if node["resource_type"] == "test"}
    assert {name for name, test in tests.items() if "test_metadata" not in test} == {"no_negative"}
    assert all("attached_node" in test for test in tests.values() if "test_metadata" in test)


def test_relationships_list_their_target_first_and_the_tested_node_last(content: dict[str, Any]) -> None:
    found = {n["column_name"]: n for n in content["nodes"].values() if n.get("test_metadata", {}).get("name") == "relationships"}
    assert found["code"]["depends_on"]["nodes"] == ["seed.shop.countries", "model.shop.b"]
    assert [r["name"] for r in found["code"]["refs"]] == ["countries", "b"]
    assert found["code"]["attached_node"] == "model.shop.b"
    assert found["id"]["depends_on"]["nodes"] == ["source.shop.raw.orders", "model.shop.b"]
    assert (found["id"]["sources"], [r["name"] for r in found["id"]["refs"]]) == ([["raw", "orders"]], ["b"])


def test_what_was_reused_is_a_success_for_readers_and_reused_for_selectors(parser: Any, tmp_path: Path) -> None:
    graph = compiled(tmp_path, FILES)
    results = tuple(
        NodeResult(node=f"model.shop.{name}", status=status, message="", reasons=(), started_ms=0)
        for name, status in (("a", "success"), ("b", "reused"))
    )
    content = run_results(
        graph, RunResult(results=results, started_ms=0, seconds=1.0), arguments={"which": "run"}, version="1.0", invocation_id="x"
    )
    assert [r.status.value for r in parser.parse_run_results_v6(content).results] == ["success", "success"]
    from mvbuild.artifacts.files import write_json

    write_json(graph.project.target_path / "run_results.json", content)
    assert Known().result(graph, "reused") == {"model.shop.b"}
    assert Known().result(graph, "success") == {"model.shop.a"}


def test_a_version_is_the_same_from_its_manifest(tmp_path: Path, content: dict[str, Any]) -> None:
    graph = compiled(tmp_path, FILES)
    (tmp_path / "manifest.json").write_text(json.dumps(content, default=str))
    assert read_manifest(tmp_path / "manifest.json", "x").nodes == version_of(graph, "x").nodes
    assert read_manifest(tmp_path / "manifest.json", "x").vars == version_of(graph, "x").vars


def test_a_strict_reader_accepts_the_catalog(parser: Any, tmp_path: Path) -> None:
    made = shop(tmp_path, {**PROJECT, "seeds/countries.csv": "code\nDE\n"})
    made.run()
    content = catalog(made.world(), version="1.0", generated_at="2026-11-23T00:00:00.000000Z", invocation_id="x")
    read = parser.parse_catalog_v1(content)
    kinds = {id: node.metadata.type for id, node in read.nodes.items()}
    assert kinds == {
        "seed.shop.countries": "TABLE",
        "model.shop.orders_clean": "VIEW",
        "model.shop.daily": "MATERIALIZED VIEW",
        "model.shop.monthly": "MATERIALIZED VIEW",
    }
    assert set(read.sources) == {"source.shop.lake.raw.orders", "source.shop.lake.raw.customers"}
    daily = content["nodes"]["model.shop.daily"]
    assert daily["columns"] == {"id": {"name": "id", "type": "bigint", "index": 1, "comment": None}}
    assert (daily["metadata"]["schema"], daily["metadata"]["name"]) == (
        ".".join(made.world().graph.model("model.shop.daily").identifier.namespace),
        "daily",
    )
    assert daily["stats"]["num_rows"]["value"] == 1
    assert content["sources"]["source.shop.lake.raw.orders"]["stats"]["num_rows"]["value"] == 3


def test_what_the_catalog_does_not_have_has_no_entry(parser: Any, tmp_path: Path) -> None:
    content = catalog(shop(tmp_path).world(), version="1.0", generated_at="", invocation_id="x")
    assert content["nodes"] == {}
    assert len(parser.parse_catalog_v1(content).sources) == 2


def test_tags_and_meta_of_tests_are_in_the_manifest(tmp_path: Path, parser: Any) -> None:
    files = FILES | {"tests/no_negative.sql": "{{ config(tags='signs', meta={'owner': 'ann'}) }} SELECT * FROM {{ ref('b') }} WHERE id < 0"}
    found = manifest(compiled(tmp_path, files), version="1.0", generated_at="2026-11-23T00:00:00.000000Z", invocation_id="x")
    ((id, test),) = ((id, node) for id, node in found["nodes"].items() if node["name"] == "no_negative")
    assert (test["tags"], test["meta"], test["config"]["tags"], test["config"]["meta"]["owner"]) == (
        ["signs"],
        {"owner": "ann"},
        ["signs"],
        "ann",
    )
    assert parser.parse_manifest_v12(found).nodes[id].tags == ["signs"]
