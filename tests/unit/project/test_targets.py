"""What depends on the target: variables, namespaces, settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.api.compilation import compile
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph
from unit.project.project_on_disk import errors, load, write
from unit.worlds import compiled

PROJECT = """name: shop
target: dev
namespaces: "{{ 'as_written' if target.name == 'prod' else 'prefixed' }}"
vars:
  days: "{{ 7 if target.name == 'dev' else 3650 }}"
  shop: {label: "{{ target.schema }}", plain: 1}
targets:
  dev: {namespace: dev_ada}
  prod: {namespace: live, vars: {plain: 2}}
models:
  shop:
    marts: {+namespace: mart, +enabled: "{{ target.name != 'ci' }}"}
seeds: {+namespace: raw}
"""
FILES = {
    "mvbuild.yml": PROJECT,
    "seeds/s.csv": "id\n1\n",
    "models/plain.sql": "select 1 as a",
    "models/marts/m.sql": "select '{{ this.schema }}' as own, '{{ this }}' as whole, id from {{ ref('s') }}",
}


def graph_of(root: Path, target: str) -> Graph:
    write(root, FILES)
    return compile(root, target=target, env={})


def names(graph: Graph) -> dict[str, str]:
    return {id.rpartition(".")[2]: node.identifier.dotted for id, node in graph.nodes.items()}


def test_namespaces_are_those_of_the_target(tmp_path: Path) -> None:
    assert names(graph_of(tmp_path, "dev")) == {"s": "dev_ada_raw.s", "plain": "dev_ada.plain", "m": "dev_ada_mart.m"}
    # The cache of the other target is not used.
    assert names(graph_of(tmp_path, "prod")) == {"s": "raw.s", "plain": "live.plain", "m": "mart.m"}


def test_templates_see_the_name_in_the_catalog(tmp_path: Path) -> None:
    for target, namespace in (("dev", "dev_ada_mart"), ("prod", "mart")):
        graph = graph_of(tmp_path, target)
        text = definition(graph, graph.model("model.shop.m")).text
        assert f"'{namespace}' as own" in text
        assert f"'lake.{namespace}.m' as whole" in text
    storage = graph.model("model.shop.m").storage
    assert storage is not None
    assert storage.dotted == "mart.m__storage"


@pytest.mark.parametrize(("rule", "name"), [("as_written", "mart.m"), ("prefixed", "main_mart.m"), ("target", "main.m")])
def test_a_rule_of_namespaces(tmp_path: Path, rule: str, name: str) -> None:
    write(tmp_path, {"mvbuild.yml": f"name: shop\nnamespaces: {rule}\n", "models/m.sql": "{{ config(schema='mart') }} select 1 as a"})
    assert names(compile(tmp_path, env={}))["m"] == name


def test_only_the_last_level_of_a_target_is_a_prefix(tmp_path: Path) -> None:
    project = "name: shop\nnamespaces: prefixed\ntargets: {dev: {namespace: [a, b]}}\nmodels: {+namespace: c.d}\n"
    write(tmp_path, {"mvbuild.yml": project, "models/m.sql": "select 1 as a"})
    assert names(compile(tmp_path, env={}))["m"] == "a.b_c.d.m"


def test_sources_keep_their_namespace(tmp_path: Path) -> None:
    sources = "sources: [{name: raw, tables: [{name: t}]}]\n"
    write(tmp_path, {"mvbuild.yml": "name: shop\nnamespaces: target\n", "models/s.yml": sources, "models/m.sql": "select * from raw.t"})
    assert names(compile(tmp_path, env={}))["t"] == "raw.t"


def test_an_unknown_rule(tmp_path: Path) -> None:
    found = errors(tmp_path, {"mvbuild.yml": "name: shop\nnamespaces: prefix\n"})
    assert [d.message for d in found] == ["'namespaces' must be as_written, prefixed or target"]


def test_variables_by_target(tmp_path: Path) -> None:
    assert load(tmp_path, FILES, target="dev").vars == {"days": 7, "label": "dev_ada", "plain": 1}
    assert load(tmp_path, FILES, target="prod").vars == {"days": 3650, "label": "live", "plain": 2}
    assert load(tmp_path, FILES, target="prod", vars={"plain": 3, "days": 1}).vars == {"days": 1, "label": "live", "plain": 3}


def test_a_target_can_use_variables_that_do_not_name_it(tmp_path: Path) -> None:
    project = "name: shop\nvars: {place: x, late: '{{ target.name }}'}\ntargets: {dev: {namespace: \"{{ var('place') }}\"}}\n"
    assert load(tmp_path, {"mvbuild.yml": project}).target.namespace == ("x",)
    found = errors(tmp_path, {"mvbuild.yml": project.replace("var('place')", "var('late')")})
    assert [d.code for d in found] == ["missing-var"]


@pytest.mark.parametrize(
    "files",
    [
        {"mvbuild.yml": "name: shop\ntarget: dev\ntargets: {dev: {namespace: \"{{ env_var('NOWHERE', '') }}\"}}\n"},
        {"mvbuild.yml": "name: shop\nmodels: {+namespace: \"{{ env_var('NOWHERE', '') }}\"}\n", "models/m.sql": "SELECT 1 AS one\n"},
    ],
    ids=["target", "models"],
)
def test_an_empty_namespace_is_called_empty(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(ProjectError, match=r"'namespace' must be .*, and it is empty"):
        compiled(tmp_path, files)
