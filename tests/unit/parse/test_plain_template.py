"""Random templates: rendering without Jinja gives the same text as Jinja, with every place."""

from __future__ import annotations

import random

import pytest

from mvbuild.parse.model import Rendered
from mvbuild.parse.plain_template import render_plain
from mvbuild.parse.render import Renderer
from mvbuild.parse.table_names import TableNames
from mvbuild.source import SourceFile
from seeds import seeds

from .projects import project

PIECES = (
    "select 1\n",
    "FROM ",
    " a, b",
    "\n",
    "\n\n  ",
    "-- it's\n",
    "é ✓ ",
    "{ x }",
    "}} ",
    "{{ ref('orders') }}",
    "{{ref('daily')}}",
    '{{ ref("ORDERS") }}',
    "{{ ref('shop', 'orders') }}",
    "{{ ref(\n  'orders'\n) }}",
    "{{ source('raw', 'orders') }}",
    "{{ source( 'RAW' , \"Customers\" ) }}",
    "{{ config(materialized='view') }}",
    "{{ config(tags=['a', \"b\"], enabled=true) }}",
    "{{ config(\n    alias = 'é',\n    tags=[ ],\n    refresh_history=3\n) }}",
    "{{ config() }}",
    "{{ config(meta=none, tags=['x', ['y', 1]]) }}",
)
ODD = (
    "{{ ref('nowhere') }}",
    "{{ ref('orders', ) }}",
    "{{ ref('a' 'b') }}",
    "{{ ref('or\\x64ers') }}",
    "{{- ref('orders') -}}",
    "{{ ref('orders') | upper }}",
    "{{ ref(name) }}",
    "{% if true %}",
    "{% endif %}",
    "{# note #}",
    "{{ config(materialized='view', materialized='view') }}",
    "{{ config({'materialized': 'view'}) }}",
    "{{ config(a=1.5) }}",
    "{{ config(in='x') }}",
    "{{ config(a=00) }}",
    "{{ config(a==1) }}",
    "{{ var('x', 1) }}",
    "{{ this }}",
    "{{",
    "}}",
    "\ufdd00\ufdd1",
)


def shape(rendered: Rendered) -> object:
    assert rendered.text is not None
    segments = [(s.offset, s.origin.start, s.origin.end, s.verbatim) for s in rendered.text.map.segments]
    layers = [
        {k: (s.value, type(s.value), s.span.start, s.span.end, s.key and (s.key.start, s.key.end)) for k, s in layer.items()}
        for layer in rendered.layers
    ]
    return rendered.text.text, segments, layers, rendered.asked


@pytest.mark.parametrize("seed", seeds(4))
def test_it_is_what_jinja_gives(seed: int):
    rng = random.Random(seed)
    of = project({"orders": "select 1", "daily": "select 2"})
    tables, renderer = TableNames(of), Renderer(of, {})
    plain = 0
    for _ in range(60):
        pieces = rng.choices(PIECES, k=rng.randint(1, 9))
        if rng.random() < 0.3:
            pieces.insert(rng.randrange(len(pieces) + 1), rng.choice(ODD))
        file = SourceFile("models/daily.sql", "".join(pieces))
        fast = render_plain(file, tables.resolve)
        if fast is None:
            continue
        plain += 1
        full = renderer.render(file, "daily")
        assert full.diagnostics == (), file.text
        assert shape(fast) == shape(full), file.text
    assert plain > 12


@pytest.mark.parametrize("piece", [p for p in ODD if p != "}}"])
def test_all_else_is_left_to_jinja(piece: str):
    tables = TableNames(project({"orders": "select 1"}))
    assert render_plain(SourceFile("m.sql", f"select 1 {piece}"), tables.resolve) is None
