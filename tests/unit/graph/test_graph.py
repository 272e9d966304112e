"""Names that resolve, names that do not, cycles, selectors and definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph
from mvbuild.selection.select import select
from unit.worlds import compiled

PLAIN = {"mvbuild.yml": "name: shop\n"}
PROJECT = {"mvbuild.yml": "name: shop\nmodels: {marts: {+namespace: mart}}\n"}


def parents(graph: Graph, model: str) -> list[str]:
    return list(graph.nodes[f"model.shop.{model}"].reads)


def failure(root: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    with pytest.raises(ProjectError) as caught:
        compiled(root, (PROJECT if any("marts" in f for f in files) else PLAIN) | files)
    return [(d.code, str(d.span)) for d in caught.value.diagnostics]


SOURCES = "sources:\n  - name: crm\n    namespace: landing\n    tables: [{name: people, identifier: people_v2}]\n"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM {{ ref('daily') }}", "model.shop.daily"),
        ("SELECT * FROM mart.daily", "model.shop.daily"),
        ("SELECT * FROM lake.mart.daily", "model.shop.daily"),
        ("SELECT * FROM `LAKE`.Mart.DAILY", "model.shop.daily"),
        ("SELECT * FROM daily", "model.shop.daily"),
        ("SELECT * FROM mart.daily__storage", "model.shop.daily"),
        ("SELECT * FROM main.daily", "table.lake.main.daily"),
        ("SELECT * FROM {{ source('crm', 'people') }}", "source.shop.crm.people"),
        ("SELECT * FROM crm.people", "source.shop.crm.people"),
        ("SELECT * FROM landing.people_v2", "source.shop.crm.people"),
        ("SELECT * FROM landing.people", "table.lake.landing.people"),
        ("SELECT * FROM orders", "table.lake.main.orders"),
        ("SELECT * FROM a.b.c", "table.lake.a.b.c"),
        ("WITH daily AS (SELECT 1 AS a) SELECT * FROM daily", None),
    ],
)
def test_a_name_resolves_to_what_spark_would_read(tmp_path: Path, sql: str, expected: str | None) -> None:
    graph = compiled(tmp_path, PROJECT | {"models/marts/daily.sql": "SELECT 1 AS a", "models/s.yml": SOURCES, "models/reader.sql": sql})
    assert parents(graph, "reader") == ([expected] if expected else [])


def test_a_model_may_read_the_catalogs_table_of_its_own_name(tmp_path: Path) -> None:
    graph = compiled(tmp_path, PROJECT | {"models/marts/orders.sql": "SELECT * FROM orders"})
    assert parents(graph, "orders") == ["table.lake.main.orders"]


def test_a_source_that_describes_a_seed_is_the_seed(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\nseeds: {+namespace: raw}\n",
        "seeds/orders.csv": "id\n1\n",
        "models/s.yml": "sources: [{name: raw, tables: [{name: orders}]}]\n",
        "models/a.sql": "SELECT * FROM {{ source('raw', 'orders') }}",
        "models/b.sql": "SELECT * FROM raw.orders JOIN {{ ref('orders') }} USING (id)",
    }
    graph = compiled(tmp_path, files)
    assert parents(graph, "a") == ["seed.shop.orders"]
    assert parents(graph, "b") == ["seed.shop.orders", "seed.shop.orders"]


def test_a_cycle_is_drawn(tmp_path: Path) -> None:
    files = {"models/a.sql": "SELECT * FROM c", "models/b.sql": "SELECT * FROM a", "models/c.sql": "SELECT * FROM {{ ref('b') }}"}
    with pytest.raises(ProjectError) as caught:
        compiled(tmp_path, PLAIN | files)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "cycle"
    assert "a -> c -> b -> a" in diagnostic.message
    places = [str(diagnostic.span), *(str(n.span) for n in diagnostic.notes)]
    assert places == ["models/a.sql:1:15", "models/c.sql:1:15", "models/b.sql:1:15"]


def test_two_cycles_are_both_told(tmp_path: Path) -> None:
    files = {f"models/{a}.sql": f"SELECT * FROM {b}" for a, b in ("ab", "ba", "cd", "dc")}
    assert [code for code, _ in failure(tmp_path, files)] == ["cycle", "cycle"]


def test_two_models_with_one_name_in_the_catalog(tmp_path: Path) -> None:
    files = {"models/marts/daily.sql": "SELECT 1 AS a", "models/marts/other.sql": "{{ config(alias='Daily') }} SELECT 1 AS a"}
    assert failure(tmp_path, files) == [("duplicate-name", "models/marts/other.sql:1:17")]


def test_a_storage_table_with_another_models_name(tmp_path: Path) -> None:
    files = {"models/a.sql": "SELECT 1 AS a", "models/b.sql": "{{ config(storage_table='a') }} SELECT 1 AS a"}
    assert failure(tmp_path, files) == [("duplicate-name", "models/b.sql:1:25")]


def test_a_model_with_the_name_of_an_auxiliary_view(tmp_path: Path) -> None:
    files = {"models/daily.sql": "SELECT 1 AS a", "models/other.sql": "{{ config(alias='Daily__auxiliary_2') }} SELECT 1 AS a"}
    assert failure(tmp_path / "taken", files) == [("duplicate-name", "models/other.sql:1:17")]
    files["models/daily.sql"] = "{{ config(auxiliary_views='never') }} SELECT 1 AS a"
    assert len(list(compiled(tmp_path / "free", PLAIN | files).models)) == 2


def test_another_catalog_is_refused(tmp_path: Path) -> None:
    assert failure(tmp_path, {"models/a.sql": "SELECT * FROM spark_catalog.x.y"}) == [("missing-table", "models/a.sql:1:15")]


def test_a_definition_has_full_names_and_keeps_the_text(tmp_path: Path) -> None:
    files = {
        "models/marts/daily.sql": "SELECT 1 AS a",
        "models/slim.sql": "{{ config(materialized='ephemeral') }}\nSELECT a FROM {{ ref('daily') }} -- only a",
        "models/reader.sql": "SELECT  slim.a, daily.a AS b -- both\nFROM slim  JOIN {{ ref('daily') }} ON slim.a = daily.a JOIN raw.t USING (a)",
    }
    graph = compiled(tmp_path, PROJECT | files)
    assert definition(graph, graph.model("model.shop.reader")).text == (
        "SELECT  slim.a, daily.a AS b -- both\n"
        "FROM (SELECT a FROM lake.mart.daily\n) AS slim  JOIN lake.mart.daily AS daily ON slim.a = daily.a JOIN lake.raw.t USING (a)"
    )


CHAIN = PROJECT | {
    "seeds/s.csv": "id\n1\n",
    "models/marts/a.sql": "{{ config(tags=['daily']) }} SELECT * FROM {{ ref('s') }}",
    "models/marts/b.sql": "SELECT * FROM a",
    "models/c.sql": "SELECT * FROM {{ ref('b') }} CROSS JOIN {{ ref('d') }}",
    "models/d.sql": "SELECT 1 AS x",
}


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ([], [], "abcds"),
        (["b"], [], "b"),
        (["+b"], [], "abs"),
        (["1+b"], [], "ab"),
        (["a+"], [], "abc"),
        (["a+1"], [], "ab"),
        (["@a"], [], "abcds"),
        (["tag:daily"], [], "a"),
        (["path:models/marts"], [], "ab"),
        (["models/marts"], [], "ab"),
        (["a.sql"], [], "a"),
        (["file:s.csv"], [], "s"),
        (["package:this"], [], "abcds"),
        (["package:other"], [], ""),
        (["*.marts.a"], [], "a"),
        (["a d"], [], "ad"),
        (["a", "d"], [], "ad"),
        (["+c,tag:daily"], [], "a"),
        (["+c"], ["a"], "bcds"),
        ([], ["s", "d+"], "ab"),
        (["?"], [], "abcds"),
        (["marts"], [], "ab"),
        (["resource_type:seed"], [], "s"),
    ],
)
def test_selectors(tmp_path: Path, include: list[str], exclude: list[str], expected: str) -> None:
    chosen, _ = select(compiled(tmp_path, CHAIN), include, exclude)
    assert "".join(sorted(id.rpartition(".")[2] for id in chosen)) == expected


def test_a_selector_that_matches_nothing_is_told(tmp_path: Path) -> None:
    chosen, warnings = select(compiled(tmp_path, CHAIN), ["aa"], [])
    assert not chosen
    assert [(w.code, w.severity) for w in warnings] == [("unknown-selector", "warning")]


def test_a_definition_is_made_once_for_a_graph(tmp_path: Path) -> None:
    graph = compiled(tmp_path, CHAIN)
    for node in graph.models:
        assert definition(graph, node) is definition(graph, node)
    assert graph.definitions.keys() == {m.id for m in graph.models}
