"""templates that change lists and mappings -> only their own copies change."""

from __future__ import annotations

import pytest

from mvbuild.parse.render import Renderer
from unit.parse.projects import project

VARIABLES = {"days": [1, 2], "by_name": {"inner": [1]}}


def texts(*templates: str, macros: str = "") -> list[str]:
    """What templates of one run give, one after the other."""
    models = {f"m{i}": template for i, template in enumerate(templates)}
    built = project(models, macros={"m": macros} if macros else {}, variables=VARIABLES)
    renderer = Renderer(built, {})
    assert renderer.diagnostics == ()
    results = [renderer.render(model.file, model.name) for model in built.models]
    assert [r.diagnostics for r in results] == [()] * len(results)
    return [r.text.text for r in results if r.text]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% set l = [] %}{% for c in 'ab' %}{% do l.append(c) %}{% endfor %}{{ l | join(',') }}", "a,b"),
        ("{% set l = [3, 1] %}{% do l.sort() %}{% do l.extend([4]) %}{{ l.pop() }}{{ l }}", "4[1, 3]"),
        ("{% set d = {} %}{% do d.update({'a': 1}) %}{% do d.setdefault('b', []).append(2) %}{{ d }}", "{'a': 1, 'b': [2]}"),
        ("{% set s = set([1]) %}{% do s.add(2) %}{{ s | sort }}", "[1, 2]"),
        ("{% set l = var('days') %}{% do l.append(3) %}{{ l }}", "[1, 2, 3]"),
    ],
)
def test_a_template_changes_what_it_has(template: str, text: str) -> None:
    assert texts(template) == [text]


@pytest.mark.parametrize(
    ("change", "look", "text"),
    [
        ("{% do var('days').append(3) %}", "{{ var('days') }}", "[1, 2]"),
        ("{% do var('by_name').inner.append(3) %}", "{{ var('by_name') }}", "{'inner': [1]}"),
        ("{% set days = [] %}", "{{ days is defined }}", "False"),
        ("{% set ref = 1 %}", "{{ ref is callable }}", "True"),
        ("{{ seen(1) }}", "{{ seen(2) }}", "[2]"),
        ("{% do shared().append(1) %}", "{{ shared() }}", "[]"),
        ("{{ counted() }}", "{{ counted() }}", "1"),
    ],
)
def test_no_template_changes_what_another_sees(change: str, look: str, text: str) -> None:
    macros = (
        "{% set list = [] %}{% set ns = namespace(n=0) %}"
        "{% macro seen(x) %}{% do list.append(x) %}{{ list }}{% endmacro %}"
        "{% macro shared() %}{% do return(list) %}{% endmacro %}"
        "{% macro counted() %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endmacro %}"
    )
    assert texts(change, look, macros=macros)[1] == text


def test_a_macro_gets_the_list_that_its_caller_has() -> None:
    macros = "{% macro add(l) %}{% do l.append(1) %}{% endmacro %}"
    assert texts("{% set l = [] %}{{ add(l) }}{{ l }}", macros=macros) == ["[1]"]


def test_a_macro_makes_its_default_anew_in_each_call() -> None:
    macros = "{% macro add(l=[]) %}{% do l.append(1) %}{{ l }}{% endmacro %}"
    assert texts("{{ add() }}{{ add() }}", macros=macros) == ["[1][1]"]
