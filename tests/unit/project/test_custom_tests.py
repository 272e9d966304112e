"""`{% test %}` blocks and their use in YAML: what they become, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mvbuild.api import compile
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import Graph, TestNode
from mvbuild.project.counting import Counting
from mvbuild.selection.select import select_all
from unit.project.project_on_disk import write

TEST = "{% test above(model, column_name, least=0, other=none) %}\nselect * from {{ model }} where {{ column_name }} <= {{ least }}\n{% endtest %}\n"
YAML = """
models:
  - name: orders
    columns:
      - name: amount
        data_tests: [{above: {least: 3, where: "id > 1", severity: warn, error_if: '> 5'}}]
"""
PROJECT = {"mvbuild.yml": "name: shop\n", "models/orders.sql": "SELECT 1 AS id, 2 AS amount\n", "tests/generic/above.sql": TEST}


def _graph(root: Path, files: Mapping[str, str] = {}) -> Graph:
    write(root, {**PROJECT, "models/m.yml": YAML, **files})
    return compile(root)


def _only(graph: Graph) -> TestNode:
    (test,) = graph.tests
    return test


def test_a_use_becomes_a_query_of_the_tested_rows(tmp_path: Path) -> None:
    test = _only(_graph(tmp_path))
    assert test.query is not None
    assert " ".join(test.query.sql.text.split()) == (
        "select * from (select * from `__mvbuild_ref__:orders` where id > 1) dbt_subquery where amount <= 3"
    )
    assert test.reads == test.query_reads == test.gates == ("model.shop.orders",)
    assert (test.name, test.severity, test.counting) == ("above_orders_amount__3", "warn", Counting(error_if="> 5"))


def test_it_is_the_same_from_the_cache(tmp_path: Path) -> None:
    first = _only(_graph(tmp_path))
    (tmp_path / "target").mkdir(exist_ok=True)
    compile(tmp_path)
    again = _only(compile(tmp_path))
    assert type(again) is not type(first)
    assert again.query is not None
    assert first.query is not None
    assert again.query.sql.text == first.query.sql.text
    assert (again.id, again.query_reads, again.counting) == (first.id, first.query_reads, first.counting)


def test_it_reads_other_tables_and_macros(tmp_path: Path) -> None:
    files = {
        "macros/known.sql": "{% macro known(t) %}select id from {{ t }}{% endmacro %}\n"
        "{% test in_other(model, other) %}select * from {{ other }} o, {{ model }} m where m.id not in ({{ known(other) }}){% endtest %}",
        "models/customers.sql": "SELECT 1 AS id\n",
        "models/m.yml": "models: [{name: orders, data_tests: [{in_other: {other: ref('customers')}}]}]\n",
    }
    test = _only(_graph(tmp_path, files))
    assert test.reads == ("model.shop.orders", "model.shop.customers")
    assert test.query_reads == ("model.shop.customers", "model.shop.orders", "model.shop.customers")


def test_tests_of_dbt_utils(tmp_path: Path) -> None:
    yaml = "models: [{name: orders, data_tests: [{dbt_utils.expression_is_true: {expression: id < amount}}]}]\n"
    test = _only(_graph(tmp_path, {"models/m.yml": yaml}))
    assert test.query is not None
    assert "not(id < amount)" in test.query.sql.text


def test_they_are_selected_like_dbts(tmp_path: Path) -> None:
    graph = _graph(tmp_path)
    for selector in ("test_type:generic", "test_name:above", "orders"):
        assert _only(graph).id in select_all(graph, [selector], ())[0], selector


CASES = {
    "an unknown test": ({"models/m.yml": YAML.replace("above", "abov")}, "unknown-key", "models/m.yml:6", "Did you mean 'above'"),
    "an unknown argument": ({"models/m.yml": YAML.replace("least", "last")}, "unknown-key", "models/m.yml:6", "Did you mean 'least'"),
    "a missing argument": ({"tests/generic/above.sql": TEST.replace("least=0", "least, most")}, "missing-key", "models/m.yml:6", ""),
    "a column without an argument": (
        {"tests/generic/above.sql": TEST.replace("column_name, ", "")},
        "unknown-key",
        "models/m.yml:6",
        "Move it to `data_tests:` of the table",
    ),
    "a condition": ({"models/m.yml": YAML.replace("> 5", "many")}, "wrong-type", "models/m.yml:6", ""),
    "a built-in name": ({"macros/t.sql": "{% test unique(model) %}x{% endtest %}"}, "duplicate-name", "macros/t.sql:1", "another name"),
    "two definitions": ({"macros/t.sql": TEST}, "duplicate-name", "tests/generic/above.sql:1", ""),
    "an error in its SQL": ({"tests/generic/above.sql": TEST.replace("select *", "select * * (")}, "sql-syntax", "models/m.yml:6", ""),
    "an error in its template": (
        {"tests/generic/above.sql": TEST.replace("{{ least", "{{ lest")},
        "undefined-name",
        "tests/generic/above.sql:2",
        "",
    ),
    "an unknown test of a package": (
        {"models/m.yml": "models: [{name: orders, data_tests: [dbt_utils.recent]}]"},
        "unknown-key",
        "models/m.yml:1",
        "dbt_utils.recency",
    ),
    "a setting of a SQL test": ({"tests/t.sql": "{{ config(warn_if='x') }}SELECT 1 AS x WHERE false"}, "wrong-type", "tests/t.sql:1", ""),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_errors_have_a_place(case: str, tmp_path: Path) -> None:
    files, code, place, help = CASES[case]
    with pytest.raises(ProjectError) as caught:
        _graph(tmp_path, files)
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert (found.code, f"{found.span.file.path}:{found.span.position[0]}") == (code, place), found
    assert help in found.help


def test_settings_may_be_templates_and_arguments_wait_for_their_use(tmp_path: Path) -> None:
    yaml = """
models:
  - name: orders
    columns:
      - name: amount
        data_tests:
          - above: {severity: "{{ 'warn' if target.type == 'spark' else 'error' }}", least: "{{ one_more(1) }}"}
          - above: {least: 9, config: {enabled: "{{ target.type != 'spark' }}"}}
"""
    files = {"models/m.yml": yaml, "macros/one_more.sql": "{% macro one_more(n) %}{{ n + 1 }}{% endmacro %}"}
    test = _only(_graph(tmp_path, files))
    assert test.severity == "warn"
    assert test.query is not None
    assert test.query.sql.text.rstrip().endswith("<= 2")


def test_tests_whose_names_differ_only_by_punctuation_are_two(tmp_path: Path) -> None:
    yaml = "models: [{name: orders, columns: [{name: amount, data_tests: [{above: {least: -1}}, {above: {least: '+1'}}, {above: {least: 1}}]}]}]"
    first, second, third = _graph(tmp_path, {"models/m.yml": yaml}).tests
    assert (first.name, third.name) == ("above_orders_amount___1", "above_orders_amount__1")
    assert second.name.startswith("above_orders_amount___1_")
    assert {t.query.sql.text.rstrip().split()[-1] for t in (first, second, third) if t.query} == {"-1", "+1", "1"}


@pytest.mark.parametrize("more", ["", ", severity: warn"])
def test_the_same_test_twice_is_an_error(tmp_path: Path, more: str) -> None:
    yaml = f"models: [{{name: orders, columns: [{{name: amount, data_tests: [{{above: {{least: 1}}}}, {{above: {{least: 1{more}}}}}]}}]}}]"
    with pytest.raises(ProjectError) as raised:
        _graph(tmp_path, {"models/m.yml": yaml})
    assert [d.code for d in raised.value.diagnostics] == ["duplicate-name"]
