from __future__ import annotations

import time

import pytest

from mvbuild.project.yaml_spans import MapNode, plain, read_yaml
from mvbuild.source import SourceFile


def read(text: str):
    return read_yaml(SourceFile("a.yml", text))


def test_values_and_spans() -> None:
    node, wrong = read("# ü\na: 'é😀'\nb:\n  - 1\n  - {c: null, d: 2026-01-31}\n\n# end\n")
    assert not wrong
    assert {**plain(node), "b": plain(node)["b"][:1]} == {"a": "é😀", "b": [1]}
    assert isinstance(node, MapNode)
    a, b = node.entries
    assert (str(a.span), a.span.text, a.node.span.text) == ("a.yml:2:1", "a", "'é😀'")
    assert b.node.span.text == "- 1\n  - {c: null, d: 2026-01-31}"


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a: 1\nb: c: d\n", "yaml-syntax", "2:5"),
        ("a: [1\nb: 2\n", "yaml-syntax", "2:2"),
        ("a:\n\t- b\n", "yaml-syntax", "2:1"),
        ("a: \x07b\n", "yaml-syntax", "1:4"),
        ("é: *x\n", "yaml-syntax", "1:4"),
        ("a: !thing b\n", "yaml-syntax", "1:4"),
        ("a: 2026-13-41\n", "yaml-syntax", "1:4"),
        ("a: 1\n---\nb: 2\n", "yaml-syntax", "2:1"),
        ("a: 1\nb: 2\na: 3\n", "duplicate-key", "3:1"),
        ("a:\n  1: x\n", "wrong-type", "2:3"),
        ("NO: Norway\n", "wrong-type", "1:1"),
        ("? [a]\n: b\n", "wrong-type", "1:3"),
        ("a: &a [*a]\n", "yaml-syntax", "1:4"),
        ("a:\n  <<: 1\n", "wrong-type", "2:7"),
    ],
)
def test_what_is_wrong(text: str, code: str, place: str) -> None:
    _, (wrong,) = read(text)
    assert (wrong.code, str(wrong.span)) == (code, f"a.yml:{place}")
    assert wrong.help


def test_merge_keys_and_aliases() -> None:
    node, wrong = read("base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\none:\n  <<: [*b, *m]\n  x: 9\ntwo: *b\n")
    assert not wrong
    assert plain(node)["one"] == {"x": 9, "y": 2, "z": 4}
    assert plain(node)["two"] == {"x": 1, "y": 2}


def test_a_billion_laughs_are_refused_at_once() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    began = time.monotonic()
    _, (wrong,) = read("\n".join(lines))
    assert wrong.code == "yaml-syntax"
    assert "repeat" in wrong.message
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, "- " * 50_000, "{a: " * 3_000 + "1" + "}" * 3_000])
def test_deep_nesting_is_refused_at_once(text: str) -> None:
    began = time.monotonic()
    _, (wrong,) = read(text)
    assert wrong.code == "yaml-syntax"
    assert "deep" in wrong.message
    assert time.monotonic() - began < 5


def test_empty_documents() -> None:
    assert read("") == (None, ())
    assert read("# nothing\n") == (None, ())
