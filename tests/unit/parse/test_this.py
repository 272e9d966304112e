"""`this` in a template has the names that the model has in the catalog, wherever they are configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.graph.definition import definition
from unit.worlds import compiled, write_project

SQL = (
    "SELECT '{{ this }}' AS a, '{{ this.database }}/{{ this.catalog }}' AS b, '{{ this.schema }}/{{ this.namespace }}' AS c,"
    " '{{ this.identifier }}/{{ this.name }}/{{ this.table }}' AS d\n"
)
CONFIG = "{{ config(schema='finance.eu', alias='revenue') }}\n"
PROJECT = "name: shop\n"
FOLDER = "name: shop\nmodels: {mart: {+namespace: finance.eu, +alias: revenue}}\n"
YAML = "models: [{name: m, config: {namespace: [finance, eu], alias: revenue}}]\n"
WHERE = {
    "a folder": {"mvbuild.yml": FOLDER, "models/mart/m.sql": SQL},
    "YAML": {"mvbuild.yml": PROJECT, "models/mart/m.sql": SQL, "models/mart/m.yml": YAML},
    "config()": {"mvbuild.yml": PROJECT, "models/mart/m.sql": CONFIG + SQL},
    "config() at the end": {"mvbuild.yml": PROJECT, "models/mart/m.sql": SQL + CONFIG},
    "the nearest wins": {"mvbuild.yml": FOLDER.replace("revenue", "other").replace("eu", "us"), "models/mart/m.sql": CONFIG + SQL},
    "some here and some there": {
        "mvbuild.yml": "name: shop\nmodels: {mart: {+namespace: finance.eu}}\n",
        "models/mart/m.sql": "{{ config(alias='revenue') }}\n" + SQL,
    },
    "a macro": {
        "mvbuild.yml": FOLDER,
        "models/mart/m.sql": SQL.replace("{{ this.identifier }}", "{{ mine() }}"),
        "macros/mine.sql": "{% macro mine() %}{{ this.identifier }}{% endmacro %}",
    },
}
NAMED = "SELECT 'lake.finance.eu.revenue' AS a, 'lake/lake' AS b, 'finance.eu/finance.eu' AS c, 'revenue/revenue/revenue' AS d"
PLAIN = "SELECT 'lake.main.m' AS a, 'lake/lake' AS b, 'main/main' AS c, 'm/m/m' AS d"


def text(root: Path) -> str:
    graph = compiled(root)
    return definition(graph, graph.model("model.shop.m")).text.strip()


@pytest.mark.parametrize("where", WHERE)
def test_namespace_and_alias(where: str, tmp_path: Path) -> None:
    write_project(tmp_path, WHERE[where])
    assert text(tmp_path) == NAMED


def test_without_settings(tmp_path: Path) -> None:
    write_project(tmp_path, {"mvbuild.yml": PROJECT, "models/mart/m.sql": SQL})
    assert text(tmp_path) == PLAIN


def test_what_was_kept_of_another_configuration_is_not_used(tmp_path: Path) -> None:
    """No file of SQL changes: the cache must see that `this` does."""
    from mvbuild import api

    def now() -> str:
        graph = api.compile(tmp_path, env={})
        api.write_artifacts(graph)
        return definition(graph, graph.model("model.shop.m")).text.strip()

    write_project(tmp_path, {"mvbuild.yml": PROJECT, "models/mart/m.sql": SQL})
    assert now() == PLAIN
    write_project(tmp_path, {"mvbuild.yml": FOLDER})
    assert now() == NAMED
    write_project(tmp_path, {"mvbuild.yml": PROJECT, "models/mart/m.yml": YAML})
    assert now() == NAMED
    (tmp_path / "models/mart/m.yml").unlink()
    assert now() == PLAIN


def test_it_still_cannot_read_itself(tmp_path: Path) -> None:
    from mvbuild.diagnostics import ProjectError

    with pytest.raises(ProjectError) as caught:
        compiled(tmp_path, {"mvbuild.yml": FOLDER, "models/mart/m.sql": "SELECT * FROM {{ this }}\n"})
    assert [d.code for d in caught.value.diagnostics] == ["cycle"]
