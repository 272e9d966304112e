"""Every selector method that only needs the graph, wildcards and graph operators, and invalid selectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import Graph
from mvbuild.selection.select import select, select_all
from unit.worlds import compiled

FILES = {
    "mvbuild.yml": "name: shop\nmodels: {marts: {+namespace: mart}}\n",
    "seeds/s.csv": "id\n1\n",
    "models/src.yml": "sources:\n  - name: raw\n    config: {tags: [landing]}\n    tables: [{name: orders}, {name: people}]\n",
    "models/staging/stg_a.sql": "{{ config(tags=['daily', 'x:y'], materialized='view') }} SELECT * FROM {{ source('raw', 'orders') }}",
    "models/staging/stg_b.sql": "{{ config(meta={'pii': true, 'team': {'name': 'ops'}}) }} SELECT * FROM {{ ref('s') }}",
    "models/marts/core/m.sql": "{{ config(partition_by=['month(d)', 'k'], freshness={'max_staleness': '30m'}) }} SELECT * FROM {{ ref('stg_a') }}, {{ ref('stg_b') }}",
    "models/marts/n.sql": "{{ config(refresh_policy='full', alias='total') }} SELECT * FROM {{ ref('m') }}",
    "models/marts/n.yml": "models:\n  - name: n\n    columns: [{name: id, data_tests: [not_null, {unique: {severity: warn, tags: [keys, daily], meta: {owner: ann}}}]}]\n",
    "tests/positive.sql": "{{ config(tags='signs', meta={'owner': 'bob'}) }} SELECT * FROM {{ ref('m') }} WHERE id < 0",
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return compiled(tmp_path, FILES)


def names(ids: frozenset[str], graph: Graph) -> str:
    tests = {test.id: test.name for test in graph.tests}
    return " ".join(sorted(tests.get(id) or id.split(".", 2)[2] for id in ids))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("staging", "stg_a stg_b"),
        ("core", ""),
        ("marts.core", "m"),
        ("*.core.*", "m"),
        ("shop", "m n s stg_a stg_b"),
        ("shop.marts", "m n"),
        ("shop.marts.core.m", "m"),
        ("stg_*", "stg_a stg_b"),
        ("stg_[ab]", "stg_a stg_b"),
        ("stg_?", "stg_a stg_b"),
        ("fqn:m", "m"),
        ("mart.total", "n"),
        ("mart.*", "m n"),
        ("+mart.*", "m n s stg_a stg_b"),
        ("mart.tot*", "n"),
        ("lake.mart.*", "m n"),
        ("lake.ma?t.total", "n"),
        ("lake.*", "m n s stg_a stg_b"),
        ("mart.x*", ""),
        ("mar?", ""),
        ("marts.*", "m n"),
        ("M", ""),
        ("path:models/marts", "m n"),
        ("path:models/marts/", "m n"),
        ("./models/marts/n.sql", "n"),
        ("path:models/marts/*.sql", "n"),
        ("path:models/**/m.sql", "m"),
        ("path:models/ma*", "m n"),
        ("path:models/mart", ""),
        ("models/marts/n.yml", "n"),
        ("file:m.sql", "m"),
        ("m.sql", "m"),
        ("file:stg_*.sql", "stg_a stg_b"),
        ("s.csv", "s"),
        ("package:shop", "m n s stg_a stg_b"),
        ("package:sh*", "m n s stg_a stg_b"),
        ("package:other", ""),
        ("tag:daily", "stg_a"),
        ("tag:x:y", "stg_a"),
        ("tag:d*", "stg_a"),
        ("source:raw+", "m n stg_a"),
        ("source:raw.orders+1", "stg_a"),
        ("source:shop.raw.orders+1", "stg_a"),
        ("source:raw.people+", ""),
        ("tag:landing+", "m n stg_a"),
        ("resource_type:seed", "s"),
        ("config.materialized:view", "stg_a"),
        ("config.materialized:materialized_view", "m n stg_b"),
        ("config.materialized:seed", "s"),
        ("config.schema:mart", "m n"),
        ("config.namespace:mart", "m n"),
        ("config.alias:total", "n"),
        ("config.tags:daily", "stg_a"),
        ("config.meta.pii:true", "stg_b"),
        ("config.meta.pii:True", "stg_b"),
        ("config.meta.pii:false", ""),
        ("config.meta.team.name:ops", "stg_b"),
        ("config.meta.team:ops", ""),
        ("config.partition_by:k", "m"),
        ("config.partition_by:month(d)", "m"),
        ("config.refresh_policy:full", "n"),
        ("config.refresh_policy:auto", "m stg_a stg_b"),
        ("config.freshness.max_staleness:30m", "m"),
        ("config.enabled:true", "m n s stg_a stg_b"),
        ("+m", "m s stg_a stg_b"),
        ("1+m", "m stg_a stg_b"),
        ("0+m", "m"),
        ("m+", "m n"),
        ("+m+", "m n s stg_a stg_b"),
        ("1+stg_b+1", "m s stg_b"),
        ("@stg_a", "m n s stg_a stg_b"),
        ("@n", "m n s stg_a stg_b"),
        ("+n,tag:daily", "stg_a"),
        ("+n,tag:daily m", "m stg_a"),
        ("stg_a,stg_b", ""),
        ("", ""),
        (" ", ""),
        ("path:", ""),
        ("path:/", ""),
        ("/", ""),
        ("path:.", "m n s stg_a stg_b"),
        ("./", "m n s stg_a stg_b"),
        ("1+test_name:not_null", "n"),
        ("2+test_type:singular,resource_type:model", "m stg_a stg_b"),
    ],
)
def test_models_and_seeds(graph: Graph, words: str, expected: str) -> None:
    assert names(select(graph, [words], [])[0], graph) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("resource_type:test", "not_null_n_id positive unique_n_id"),
        ("test_type:generic", "not_null_n_id unique_n_id"),
        ("test_type:singular", "positive"),
        ("test_type:data", "not_null_n_id positive unique_n_id"),
        ("test_type:unit", ""),
        ("test_name:unique", "unique_n_id"),
        ("positive", "positive"),
        ("config.severity:warn", "unique_n_id"),
        ("n", "n not_null_n_id unique_n_id"),
        ("n,test_name:not_null", "not_null_n_id"),
        ("source:raw", "raw.orders raw.people"),
        ("resource_type:source", "raw.orders raw.people"),
        ("path:tests", "positive"),
        ("tag:signs", "positive"),
        ("tag:keys", "unique_n_id"),
        ("tag:daily,resource_type:test", "unique_n_id"),
        ("config.tags:signs", "positive"),
        ("config.meta.owner:*", "positive unique_n_id"),
    ],
)
def test_tests_and_sources(graph: Graph, words: str, expected: str) -> None:
    assert names(select_all(graph, [words], [])[0], graph) == expected


def test_a_folder_comes_before_a_namespace_of_its_name(tmp_path: Path) -> None:
    """`both` is a folder, and the namespace of a model elsewhere."""
    files = {"models/both/a.sql": "SELECT 1 AS x", "models/b.sql": "{{ config(namespace='both') }} SELECT 1 AS x"}
    graph = compiled(tmp_path, {"mvbuild.yml": "name: shop\n", **files})
    assert names(select(graph, ["both.*"], [])[0], graph) == "a"
    assert names(select(graph, ["both.b"], [])[0], graph) == "b"
    assert names(select(graph, ["lake.both.*"], [])[0], graph) == "b"


def test_a_single_text_is_a_selection(graph: Graph) -> None:
    every = select(graph, (), ())[0]
    (one, *_) = sorted(id.rpartition(".")[2] for id in every)
    assert select(graph, one, ()) == select(graph, [one], ())
    assert select(graph, (), one) == select(graph, (), [one])


def test_what_is_excluded_takes_its_tests_along(graph: Graph) -> None:
    assert names(select_all(graph, ["m+"], ["n"])[0], graph) == "m positive"
    assert names(select_all(graph, ["m+"], ["test_type:generic"])[0], graph) == "m n positive"


@pytest.mark.parametrize(
    ("words", "message", "help"),
    [
        ("tagg:a", "Unknown selector method 'tagg'", "Did you mean 'tag'?"),
        ("metric:x", "Unknown selector method 'metric'", "mvbuild has no metrics, semantic models, saved queries or functions."),
        ("metric:a", "Unknown selector method 'metric'", "mvbuild has no metrics, semantic models, saved queries or functions."),
        ("version:late", "Unknown kind of version 'late'", "Did you mean 'latest'?"),
        (
            "source_status:fresher",
            "Unknown selector method 'source_status'",
            "mvbuild compares MVs with their tables itself: use `stale:` or `fresh:`.",
        ),
        ("config:view", "'config' needs the name of a setting", "Write it after a dot: `config.materialized:view`."),
        ("config.materialised:view", "Unknown setting 'materialised'", "Did you mean 'materialized'?"),
        ("resource_type:modle", "Unknown resource type 'modle'", "Did you mean 'model'?"),
        ("access:publik", "Unknown access 'publik'", "Did you mean 'public'?"),
        ("access:", "Unknown access ''", "Known names: private, protected, public."),
        ("test_type:generics", "Unknown test type 'generics'", "Did you mean 'generic'?"),
        ("source:a.b.c.d", "'source:a.b.c.d' has too many parts", "Write source:NAME, source:NAME.TABLE or source:PROJECT.NAME.TABLE."),
        (
            "@a+",
            "The selector '@a+' combines '@' with a '+' at its end",
            "'@' already includes all children and their parents: remove the '+'.",
        ),
        ("++a", "The selector '++a' cannot be parsed", None),
        (",", "The selector ',' cannot be parsed", None),
        ("+", "The selector '+' cannot be parsed", None),
    ],
)
def test_selectors_that_are_wrong(graph: Graph, words: str, message: str, help: str | None) -> None:
    with pytest.raises(ProjectError) as caught:
        select(graph, [words], [])
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("unknown-selector", message)
    assert diagnostic.help == help if help else diagnostic.help.startswith("Examples: ")


def test_all_that_is_wrong_is_told_at_once(graph: Graph) -> None:
    with pytest.raises(ProjectError) as caught:
        select(graph, ["++a", "b", "@c+"], [])
    assert len(caught.value.diagnostics) == 2


@pytest.mark.parametrize("include", ["", [""], [" ", ""]])
def test_an_empty_selection_warns(graph: Graph, include: str | list[str]) -> None:
    chosen, (warning,) = select_all(graph, include, [])
    assert not chosen
    assert (warning.code, warning.message) == ("unknown-selector", "The selection is empty: it selects nothing")
    assert "Leave out --select to select everything" in warning.help


def test_an_empty_word_beside_others_is_ignored(graph: Graph) -> None:
    assert names(select(graph, ["", "m"], [""])[0], graph) == "m"
    assert select(graph, [], [""]) == select(graph, [], [])


def test_an_empty_path_warns(graph: Graph) -> None:
    _, (warning,) = select(graph, ["path:"], [])
    assert warning.message == "'path:' selects nothing"


def test_what_selects_nothing_is_told_with_the_nearest_name(graph: Graph) -> None:
    _, warnings = select(graph, ["stg_aa", "tag:none"], ["nothing"])
    assert [(w.message, w.help) for w in warnings[:1]] == [("'stg_aa' selects nothing", "Did you mean 'stg_a'?")]
    assert [w.message for w in warnings] == ["'stg_aa' selects nothing", "'tag:none' selects nothing", "'nothing' selects nothing"]
