"""selectors.yml: every form of a definition, the default, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.selection.select import select
from unit.worlds import compiled

FILES = {
    "mvbuild.yml": "name: shop\nvars: {all: true}\n",
    "seeds/s.csv": "id\n1\n",
    "models/marts/a.sql": "{{ config(tags=['daily'], meta={'pii': true}) }} SELECT * FROM {{ ref('s') }}",
    "models/marts/b.sql": "{{ config(tags=['daily', 'slow']) }} SELECT * FROM {{ ref('a') }}",
    "models/c.sql": "{{ config(materialized='view') }} SELECT * FROM {{ ref('b') }}",
}


def chosen(root: Path, definition: str, *words: str, more: str = "") -> str:
    text = f"selectors:\n  - name: x\n    definition: {definition}\n{more}"
    ids, _ = select(compiled(root, FILES | {"selectors.yml": text}), words or ["selector:x"], [])
    return "".join(sorted(id.rpartition(".")[2] for id in ids))


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("'tag:daily'", "ab"),
        ("'+b'", "abs"),
        ("a.sql", "a"),
        ("{tag: daily}", "ab"),
        ("{config.materialized: view}", "c"),
        ("{config.meta.pii: true}", "a"),
        ("{method: tag, value: slow}", "b"),
        ("{method: fqn, value: '*'}", "abcs"),
        ("{method: fqn, value: b, parents: true}", "abs"),
        ("{method: fqn, value: b, parents: true, parents_depth: 1}", "ab"),
        ("{method: fqn, value: a, children: true, children_depth: 1}", "ab"),
        ("{method: fqn, value: b, childrens_parents: true}", "abcs"),
        ("{method: tag, value: daily, exclude: [b]}", "a"),
        ("{method: tag, value: daily, indirect_selection: eager}", "ab"),
        ("{union: ['tag:slow', c]}", "bc"),
        ("{union: ['tag:daily', {exclude: ['tag:slow']}]}", "a"),
        ("{intersection: ['tag:daily', {method: tag, value: slow}]}", "b"),
        ("{intersection: ['+c', {exclude: [s, {tag: slow}]}]}", "ac"),
        ("{union: [{intersection: ['tag:daily', 'tag:slow']}, {method: path, value: seeds}]}", "bs"),
        ("{method: selector, value: y}", "c"),
        ("{union: ['selector:y', a]}", "ac"),
    ],
)
def test_definitions(tmp_path: Path, definition: str, expected: str) -> None:
    assert chosen(tmp_path, definition, more="  - {name: y, definition: {config.materialized: view}}\n") == expected


def test_a_named_selection_goes_with_other_words(tmp_path: Path) -> None:
    assert chosen(tmp_path, "{tag: daily}", "selector:x,tag:slow", "c") == "bc"


@pytest.mark.parametrize(
    ("default", "expected"),
    [("true", "c"), ("false", "abcs"), ("\"{{ target.name == 'dev' }}\"", "c"), ("\"{{ var('none', false) }}\"", "abcs")],
)
def test_the_default(tmp_path: Path, default: str, expected: str) -> None:
    text = f"selectors:\n  - name: views\n    default: {default}\n    definition: {{config.materialized: view}}\n"
    graph = compiled(tmp_path, FILES | {"selectors.yml": text})
    assert "".join(sorted(id.rpartition(".")[2] for id in select(graph, [], [])[0])) == expected
    assert "".join(sorted(id.rpartition(".")[2] for id in select(graph, [], ["a"])[0])) == "bcs"
    assert "".join(sorted(id.rpartition(".")[2] for id in select(graph, ["a"], [])[0])) == "a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("selectors: {}", [("wrong-type", "selectors.yml:1:12")]),
        ("selector: []", [("unknown-key", "selectors.yml:1:1"), ("wrong-type", "selectors.yml:1:1")]),
        ("selectors: [a]", [("wrong-type", "selectors.yml:1:13")]),
        ("selectors: [{name: x}]", [("missing-key", "selectors.yml:1:13")]),
        ("selectors: [{name: x, definition: 1}]", [("wrong-type", "selectors.yml:1:35")]),
        ("selectors: [{name: x, definition: {tagg: a}}]", [("unknown-selector", "selectors.yml:1:35")]),
        ("selectors: [{name: x, definition: 'tagg:a'}]", [("unknown-selector", "selectors.yml:1:35")]),
        ("selectors: [{name: x, definition: {method: tag}}]", [("missing-key", "selectors.yml:1:35")]),
        ("selectors: [{name: x, definition: {method: tag, value: a, parent: true}}]", [("unknown-key", "selectors.yml:1:59")]),
        ("selectors: [{name: x, definition: {method: tag, value: a, parents: 1}}]", [("wrong-type", "selectors.yml:1:68")]),
        (
            "selectors: [{name: x, definition: {method: tag, value: a, indirect_selection: cautious}}]",
            [("bad-selectors", "selectors.yml:1:79")],
        ),
        ("selectors: [{name: x, definition: {union: a}}]", [("wrong-type", "selectors.yml:1:43")]),
        ("selectors: [{name: x, definition: {union: [a], exclude: [b]}}]", [("wrong-type", "selectors.yml:1:48")]),
        ("selectors: [{name: x, definition: {union: [a, {exclude: [b]}, {exclude: [c]}]}}]", [("wrong-type", "selectors.yml:1:63")]),
        ("selectors: [{name: x, definition: {exclude: [b]}}]", [("wrong-type", "selectors.yml:1:36")]),
        ("selectors: [{name: x, definition: a}, {name: x, definition: b}]", [("duplicate-name", "selectors.yml:1:46")]),
        (
            "selectors: [{name: x, definition: a, default: true}, {name: y, definition: b, default: true}]",
            [("bad-selectors", "selectors.yml:1:61")],
        ),
        ("selectors: [{name: x, definition: 'selector:x'}]", [("bad-selectors", "selectors.yml:1:35")]),
        ("selectors: [{name: x, definition: 'selector:z'}]", [("unknown-selector", "selectors.yml:1:35")]),
        ("selectors: [{name: x, definition: a", [("yaml-syntax", "selectors.yml:1:36")]),
        (
            'selectors: [{name: x, default: "{{ nope }}", definition: a}]',
            [("undefined-name", "selectors.yml:1:32"), ("wrong-type", "selectors.yml:1:32")],
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    graph = compiled(tmp_path, FILES | {"selectors.yml": text + "\n"})
    with pytest.raises(ProjectError) as caught:
        select(graph, ["selector:x"], [])
    assert [(d.code, str(d.span)) for d in caught.value.diagnostics] == expected
    assert all(d.help for d in caught.value.diagnostics)


def test_a_project_without_the_file(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        select(compiled(tmp_path, FILES), ["selector:x"], [])
    assert [d.message for d in caught.value.diagnostics] == ["Unknown selector 'x'"]
