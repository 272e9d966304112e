from __future__ import annotations

from typing import Any

import pytest

from mvbuild.diagnostics import Diagnostic
from mvbuild.parse.render import Rendered, Renderer
from mvbuild.source import MappedText, SourceFile

from .projects import project

MACROS = {"money": "{% macro cents(c) %}({{ c }} / 100){% endmacro %}\n{% macro twice(c) %}{{ cents(c) }} * 2{% endmacro %}"}


def rendered(text: str, env: dict[str, str] | None = None, **kwargs: Any) -> Rendered:
    models = {"orders": "select 1", "daily": text}
    return Renderer(project(models, **kwargs), env or {}).render(SourceFile("models/daily.sql", text), "daily")


def text_of(text: str, **kwargs: Any) -> MappedText:
    result = rendered(text, **kwargs)
    assert result.diagnostics == ()
    assert result.text is not None
    return result.text


def places(text: MappedText, word: str) -> list[tuple[int, int, str]]:
    """Where each occurrence of a word was written: line, column, and the text there."""
    found, at = [], text.text.find(word)
    while at >= 0:
        span = text.span(at, at + len(word))
        found.append((*span.position, span.text))
        at = text.text.find(word, at + 1)
    return found


def shown(diagnostics: tuple[Diagnostic, ...]) -> list[tuple[str, str, str]]:
    return [(d.code, str(d.span), d.span.text if d.span else "") for d in diagnostics]


def only(text: str, **kwargs: Any) -> Diagnostic:
    (diagnostic,) = rendered(text, **kwargs).diagnostics
    assert diagnostic.help
    return diagnostic


def test_a_file_without_jinja_is_itself():
    text = text_of("select '}}' -- {x}\n")
    assert text.text == "select '}}' -- {x}\n"
    assert places(text, "-- {x}") == [(1, 13, "-- {x}")]


@pytest.mark.parametrize(
    ("template", "sql"),
    [
        ("select * from {{ ref('orders') }}", "select * from `__mvbuild_ref__:orders`"),
        ("from {{ ref('shop', 'ORDERS') }}", "from `__mvbuild_ref__:orders`"),
        ("from {{ source('RAW', 'Orders') }}", "from `__mvbuild_source__:raw.orders`"),
        ("{{ config(materialized='view') }}x", "x"),
        ("{% do config({'tags': ['a']}) %}x", "x"),
        ("{{ var('n') }} {{ var('m', 3) }}", "7 3"),
        ("{{ env_var('HOME_DIR') }} {{ env_var('NO', 'd') }}", "/h d"),
        ("{{ target.name }} {{ target.schema }} {{ target['catalog'] }} {{ target.threads }}", "dev mart lake 2"),
        ("{{ project_name }}{{ log('hi', info=True) }} {% if execute %}e{% endif %}", "shop e"),
        ("{{ this }} {{ this.name }} {{ this.schema }}", "`__mvbuild_ref__:daily` daily mart"),
        ("{{ cents('a') }}; {{ twice('b') }}", "(a / 100); (b / 100) * 2"),
        ("{% for i in [1, 2] %}{{ i }}{{ ', ' if not loop.last }}{% endfor %}", "1, 2"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% set x %}a{{ 1 }}{% endset %}{{ x == 'a1' }} {{ x|length }}", "True 2"),
        ("{% filter upper %}a{{ 'b' }}{% endfilter %}c", "ABc"),
        ("{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{{ 1 }}{% endcall %}", "[x1]"),
        ("{% macro f() %}ignored{% do return([1, 2]) %}{% endmacro %}{{ f()[1] }}", "2"),
        ("{% for x in t recursive %}{{ x.n }}{% if x.c %}<{{ loop(x.c)|trim }}>{% endif %}{% endfor %}|", "1< 2 >|".replace(" ", "")),
        ("{{ 'a' ~ 1 ~ 'b' }}{{ [1] + [2] }}{{ '%s' % 3 }}{{ '{:>3}'.format(4) }}", "a1b[1, 2]3  4"),
        ("{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "3"),
        ("{% raw %}{{ x }}{% endraw %} {# c #}y", "{{ x }} y"),
        ("a\n  {%- if true -%}  \n b {%- endif %}\n", "ab\n"),
        ("{{ tojson({'a': 1}) }}{{ fromjson('[2]')[0] }}", '{"a": 1}2'),
    ],
)
def test_rendered_text(template: str, sql: str):
    if "recursive" in template:
        template = "{% set t = [{'n': 1, 'c': [{'n': 2}]}] %}" + template.replace("x.c %}", "x.c is defined %}")
    assert text_of(template, macros=MACROS, variables={"n": 7}, env={"HOME_DIR": "/h"}).text == sql


def test_places_through_loops_macros_sets_and_whitespace_control():
    text = text_of(
        "{{ config(materialized='view') }}\n"
        "{%- set cols %}x, {{ 'y' }}{% endset %}\n"
        "select {{ cols }},\n"
        "  {%- for c in ['a', 'b'] %}\n"
        "    sum({{ c }}) as s_{{ c }},\n"
        "  {%- endfor %}\n"
        "  {{ cents('z') }} as zed\n"
        "from orders",
        macros=MACROS,
    )
    assert text.text == "\nselect x, y,\n    sum(a) as s_a,\n    sum(b) as s_b,\n  (z / 100) as zed\nfrom orders"
    assert places(text, "sum") == [(5, 5, "sum")] * 2
    assert places(text, "x, y") == [(3, 8, "{{ cols }}")]
    assert places(text, "b)") == [(5, 9, "{{ c }}")]
    assert places(text, "/ 100") == [(7, 3, "{{ cents('z') }}")]
    assert places(text, "zed") == [(7, 23, "zed")]
    assert places(text, "orders") == [(8, 6, "orders")]


CALLED = {"m": "{% macro cents(c) %}{{ c }}{{ caller() }}y{% endmacro %}"}


def test_blocks_that_write_map_to_their_own_tag():
    text = text_of(
        "a{% filter upper %}b{% endfilter %}c\n{% call cents('x') %}{% endcall %}d",
        macros=CALLED,
    )
    assert text.text == "aBc\nxyd"
    assert places(text, "B") == [(1, 2, "{% filter upper %}")]
    assert places(text, "c\n") == [(1, 36, "c\n")]
    assert places(text, "xy") == [(2, 1, "{% call cents('x') %}")]
    assert places(text, "d") == [(2, 35, "d")]


def test_windows_newlines():
    text = text_of("select 1,\r\n{{ 2 }},\r\n  x")
    assert text.text == "select 1,\n2,\n  x"
    assert places(text, "x") == [(3, 3, "x")]


def test_config_layers_carry_the_places_of_their_settings():
    result = rendered("-- x\n{{ config(\n  tags=['a'], n=var('n', 1)\n) }} {{ config({'enabled': false}) }}")
    assert result.diagnostics == ()
    first, second = result.layers
    assert {key: setting.value for key, setting in first.items()} == {"tags": ["a"], "n": 1}
    assert first["tags"].span.position == (3, 8)
    assert [(setting.key.text, setting.span.text) for setting in first.values()] == [("tags", "['a']"), ("n", "var('n', 1)")]
    assert second["enabled"].value is False
    assert second["enabled"].span.text == "{{ config({'enabled': false}) }}"


@pytest.mark.parametrize(
    ("template", "code", "place", "word"),
    [
        ("select {{ a }\nfrom b", "template-syntax", "1:13", "}"),
        ("a\n  {% fro x %}", "template-syntax", "2:6", "fro"),
        ("{% if x %}a", "template-syntax", "1:1", "{% if x %}"),
        ("a\n{{ 1 2 }}", "template-syntax", "2:1", "{{ 1 2 }}"),
        ("a\n{{ x|nosuch }}", "undefined-name", "2:6", "nosuch"),
        ("a {{ 1 }} {{ colour }}", "undefined-name", "1:14", "colour"),
        ("{% set x = 1 %}\n{% for i in\n   missing %}{% endfor %}", "undefined-name", "3:4", "missing"),
        ("{{ 1\n + missing }}", "undefined-name", "2:4", "missing"),
        ("{{ adapter.dispatch('x') }}", "undefined-name", "1:1", "{{ adapter.dispatch('x') }}"),
        ("\n{{ target.nosuch }}", "undefined-name", "2:11", "nosuch"),
        ("a\n b {{ 1 / 0 }}", "template-error", "2:4", "{{ 1 / 0 }}"),
        ("{{ 'a' + 1 }}", "template-error", "1:1", "{{ 'a' + 1 }}"),
        ("{{ 3() }}", "template-error", "1:1", "{{ 3() }}"),
        ("{{ range(1000000) }}", "template-limit", "1:4", "range"),
        ("{% macro f() %}\n{{ f() }}{% endmacro %}{{ f() }}", "template-limit", "2:1", "{{ f() }}{% endmacro %}{{ f() }}"),
        ("a {{ ref('ordes') }}", "unresolved-ref", "1:10", "'ordes'"),
        ("a {{ ref('nope', 'orders') }}", "unresolved-ref", "1:10", "'nope'"),
        ("a {{ ref(3) }}", "unresolved-ref", "1:3", "{{ ref(3) }}"),
        ("{{ source('raw',\n  'ordrs') }}", "unresolved-source", "2:3", "'ordrs'"),
        ("{{ source('rw', 'orders') }}", "unresolved-source", "1:11", "'rw'"),
        ("{{ var('x') }}", "missing-var", "1:8", "'x'"),
        ("{{ env_var('X') }}", "missing-env-var", "1:12", "'X'"),
        ("a\n{% if is_incremental() %}b{% endif %}", "not-needed", "2:1", "{% if is_incremental() %}"),
        ("{% set r = run_query('select 1') %}{{ r.columns[0].values() }}", "not-needed", "1:1", "{% set r = run_query('select 1') %}"),
        ("{% call statement('x') %}select 1{% endcall %}", "not-needed", "1:1", "{% call statement('x') %}"),
        ("{{ exceptions.raise_compiler_error('no!') }}", "template-error", "1:1", "{{ exceptions.raise_compiler_error('no!') }}"),
        ("{% include '/etc/passwd' %}", "unsafe-template", "1:1", "{% include '/etc/passwd' %}"),
        ("{% import 'x' as y %}", "unsafe-template", "1:1", "{% import 'x' as y %}"),
        ("{% extends 'x' %}", "unsafe-template", "1:1", "{% extends 'x' %}"),
        ("{% block x %}{% endblock %}", "template-syntax", "1:1", "{% block x %}{% endblock %}"),
        ("{{ config('view') }}", "wrong-type", "1:1", "{{ config('view') }}"),
        ("{{ config(x=ref) }}", "wrong-type", "1:13", "ref"),
    ],
)
def test_diagnostics_stand_at_the_word(template: str, code: str, place: str, word: str):
    diagnostic = only(template)
    assert diagnostic.span is not None
    assert (diagnostic.code, str(diagnostic.span), diagnostic.span.text) == (code, f"models/daily.sql:{place}", word)


def test_spelling_help():
    assert only("{{ ref('ordes') }}").help == "Did you mean 'orders'?"
    assert only("{{ sorce('a', 'b') }}").help == "Did you mean 'source'?"
    assert only("{{ 1|uper }}").help == "Did you mean 'upper'?"
    assert "Did you mean 'nmbr'?" in only("{{ var('nmber') }}", variables={"nmbr": 1}).help


def test_several_unresolved_names_are_reported_at_once():
    found = rendered("{{ ref('a') }} {{ ref('b') }}\n{{ source('c', 'd') }} {{ var('e') }} {{ ref('a') }}").diagnostics
    assert [(d.code, str(d.span)) for d in found] == [
        ("unresolved-ref", "models/daily.sql:1:8"),
        ("unresolved-ref", "models/daily.sql:1:23"),
        ("unresolved-source", "models/daily.sql:2:11"),
        ("missing-var", "models/daily.sql:2:31"),
        ("unresolved-ref", "models/daily.sql:2:46"),
    ]


def test_errors_inside_a_macro_stand_in_the_macro_file():
    macros = {"m": "{% macro bad(x) %}\n  {{ x + nothing }}\n{% endmacro %}\n{% macro far() %}{{ ref('gone') }}{% endmacro %}"}
    assert shown(rendered("a\n{{ bad(1) }}", macros=macros).diagnostics) == [("undefined-name", "macros/m.sql:2:10", "nothing")]
    assert shown(rendered("a\n{{ far() }}", macros=macros).diagnostics) == [("unresolved-ref", "macros/m.sql:4:25", "'gone'")]


def test_macros_see_each_other_whatever_the_order_of_files():
    macros = {"a": "{% macro first() %}{{ second() }}{% endmacro %}", "b": "{% macro second() %}{{ this.name }}{% endmacro %}"}
    assert text_of("{{ first() }}", macros=macros).text == "daily"


def test_a_broken_macro_file_is_reported_once_and_its_macros_are_not_missed():
    renderer = Renderer(project({"m": ""}, macros={"bad": "{% macro lost() %}{{ }}{% endmacro %}"}), {})
    assert shown(renderer.diagnostics)[0][:2] == ("template-syntax", "macros/bad.sql:1:22")
    result = renderer.render(SourceFile("models/m.sql", "{{ lost() }}"), "m")
    assert (result.text, result.diagnostics) == (None, ())


def test_two_macros_of_one_name():
    macros = {"a": "{% macro m() %}{% endmacro %}", "b": "\n{% macro m() %}{% endmacro %}{% macro ref() %}{% endmacro %}"}
    found = Renderer(project(macros=macros), {}).diagnostics
    assert [(d.code, str(d.span)) for d in found] == [("duplicate-name", "macros/b.sql:2:10"), ("duplicate-name", "macros/b.sql:2:39")]


def test_warnings_do_not_stop_a_template():
    result = rendered("a{{ exceptions.warn('careful') }}b")
    assert result.text is not None
    assert result.text.text == "ab"
    assert [(d.severity, d.message) for d in result.diagnostics] == [("warning", "careful")]


PAYLOADS = [
    "''.__class__",
    "''.__class__.__mro__[1].__subclasses__()",
    "''['__class__']",
    "''|attr('__class__')",
    "''|attr('\\x5f\\x5fclass\\x5f\\x5f')",
    "['']|map(attribute='__class__')|first",
    "ref.__globals__",
    "ref.__func__.__globals__['__builtins__']",
    "ref.__self__._env",
    "config.__init__.__globals__",
    "self._TemplateReference__context",
    "self.__init__.__globals__",
    "'{0.__class__}'.format('')",
    "'{0.__class__.__mro__}'.format(ref)",
    "'{x.__class__}'.format_map({'x': ''})",
    "('%s'|format)(1).__class__",
    "lipsum.__globals__['os'].popen('id').read()",
    "cycler.__init__.__globals__.os",
    "joiner.__init__.__globals__.os",
    "namespace.__init__.__globals__",
    "namespace().__class__",
    "dict.__base__.__subclasses__()",
    "range.__globals__",
    "this._names",
    "this._names._env",
    "exceptions._names._project",
    "target.__class__",
    "target.__slots__",
    "exceptions.warn.__func__",
    "(1).__class__.__base__",
    "request.application.__globals__",
    "get_flashed_messages.__globals__",
    "url_for.__globals__",
    "config.from_pyfile('/etc/passwd')",
    "fromjson.__globals__",
    "zip.__globals__",
    "(x for x in ()).gi_frame",
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_leads_out_of_the_sandbox(payload: str):
    result = rendered("{{ " + payload + " }}", env={"SECRET": "s3cret"})
    assert result.text is None
    assert {d.code for d in result.diagnostics} <= {"unsafe-template", "undefined-name", "template-error", "template-syntax"}
    assert result.diagnostics


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}" + "x" * 1000 + "{% endfor %}",
        "{% set x %}{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}{% endset %}",
        "{{ 'x' * 10000000000 }}",
        "{{ [0] * 10000000000 }}",
        "{{ 10 ** (10 ** 10) }}",
        "{{ 'x'|center(1000000000) }}",
        "{{ 'x'.ljust(1000000000) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:{}}'.format(1, 1000000000) }}",
        "{% set ns = namespace(x='xxxxxxxxxx') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x='xxxxxxxxxx') %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "".join("{% for a in [1] %}" for _ in range(200)) + "".join("{% endfor %}" for _ in range(200)),
    ],
)
def test_a_template_cannot_run_or_write_without_end(template: str):
    result = rendered(template)
    assert result.text is None
    assert {d.code for d in result.diagnostics} <= {"template-limit", "template-syntax"}
    assert result.diagnostics


@pytest.mark.parametrize("name", ["as_bool", "as_native", "as_number", "as_text"])
def test_filters_that_convert_values_in_yaml_give_them_as_they_are_in_sql(name: str) -> None:
    """As dbt does outside of YAML."""
    assert text_of(f"select {{{{ '1' | {name} }}}} as a, {{{{ [1, 2] | {name} | length }}}} as n").text == "select 1 as a, 2 as n"


def test_dispatch_finds_the_macro_for_spark_else_the_default() -> None:
    macros = {
        "a": "{% macro day(c) %}{{ return(adapter.dispatch('day', 'shop')(c)) }}{% endmacro %}",
        "b": "{% macro default__day(c) %}default {{ c }}{% endmacro %}{% macro spark__day(c) %}spark {{ c }}{% endmacro %}",
        "c": "{% macro night(c) %}{{ adapter.dispatch('night')(c) }}{% endmacro %}{% macro default__night(c) %}night {{ c }}{% endmacro %}",
    }
    assert text_of("select {{ day('x') }}, {{ night('y') }}", macros=macros).text == "select spark x, night y"
    assert text_of("select {{ adapter.dispatch('day', 'dbt_utils')('x') }}", macros=macros).text == "select spark x"
    # A namespace that is not a package, as in dbt.
    assert text_of("select {{ adapter.dispatch('day', 'other')('x') }}", macros=macros).text == "select spark x"
    assert only("{{ adapter.dispatch('week', 'other')('x') }}", macros=macros).code == "undefined-name"


def test_types_have_their_own_names() -> None:
    assert text_of("select cast(1 as {{ api.Column.translate_type('bigint') }})").text == "select cast(1 as bigint)"
    assert only("{{ api.Column.create('a', 'int') }}").code == "undefined-name"


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("select '{{ run_started_at }}' as t", "run_started_at"),
        ("select '{{ run_started_at.strftime('%Y-%m-%d') }}' as t", "run_started_at"),
        ("{% if run_started_at.isoformat() > '2020' %}select 1{% endif %}", "run_started_at"),
        ("select '{{ invocation_id ~ 1 }}' as t", "invocation_id"),
        ("select '{{ invocation_id | upper }}' as t", "invocation_id"),
    ],
)
def test_a_value_of_the_run_is_reported_each_time_so_that_nothing_is_kept(template: str, name: str) -> None:
    for text in (template, "{{ run() }}"):
        result = rendered(text, macros={"run": "{% macro run() %}" + template + "{% endmacro %}"})
        assert [(d.severity, d.code) for d in result.diagnostics] == [("warning", "not-needed")]
        assert f"'{name}' has a different value in each run" in result.diagnostics[0].message
    texts = {result.text.text for result in (rendered(template), rendered(template)) if result.text}
    assert len(texts) == (1 if "%Y" in template or "if" in template else 2)


def test_a_value_of_the_run_is_not_known_where_macros_are_loaded() -> None:
    macros = {"run": "{% set at = run_started_at ~ '' %}{% macro run() %}{{ at }}{% endmacro %}"}
    (found,) = Renderer(project({}, macros=macros), {}).diagnostics
    assert (found.code, found.severity, str(found.span)) == ("not-needed", "error", "macros/run.sql:1:1")


def test_a_macro_may_ask_for_a_parameter_that_it_was_not_given_but_not_use_it():
    macros = {"m": "{% macro asks(a) %}{% if a %}{{ a }}{% else %}none{% endif %}{% endmacro %}{% macro uses(a) %}{{ a }}{% endmacro %}"}
    assert text_of("{{ asks() }} {{ asks(1) }}", macros=macros).text == "none 1"
    assert only("{{ uses() }}", macros=macros).code == "undefined-name"
    assert only("{% if nothing %}1{% endif %}").code == "undefined-name"
