"""The expected texts are facts: dbt-core 1.11 with dbt-spark 1.11 (and dbt_utils 1.4) renders these calls like this, except for spaces and
comments."""

from __future__ import annotations

import re

import pytest

from mvbuild.diagnostics import Diagnostic
from mvbuild.parse.render import Renderer

from .projects import project
from .test_render import rendered, text_of

KEY = "coalesce(cast({0} as string), '_dbt_utils_surrogate_key_null_')"
MACROS = {
    "type_string()": "string",
    "type_timestamp()": "timestamp",
    "type_float()": "float",
    "type_numeric()": "decimal(28,6)",
    "type_bigint()": "bigint",
    "type_int()": "integer",
    "type_boolean()": "boolean",
    "cast('a', 'date')": "cast(a as date)",
    "safe_cast('a', 'date')": "cast(a as date)",
    "safe_cast(\"'[1]'\", 'array<int>')": "cast([1] as array<int>)",
    "cast_bool_to_text('a')": "cast(a as string)",
    "concat(['a', \"'-'\", 'b'])": "concat(a, '-', b)",
    "hash('a')": "md5(cast(a as string))",
    "length('a')": "length(a)",
    "position(\"'x'\", 'a')": "position('x' in a)",
    "replace('a', \"'x'\", \"'y'\")": "replace(a, 'x', 'y')",
    "right('a', 2)": "right(a, 2)",
    "string_literal('x')": "'x'",
    'escape_single_quotes("it\'s")': "it\\'s",
    "any_value('a')": "first(a)",
    "bool_or('a')": "max(a)",
    "listagg('a')": "array_join(collect_list(a), ',')",
    "listagg('a', \"';'\", 'order by a', 3)": "array_join(slice(collect_list(a), 1, 3), ';')",
    "array_construct(['a', 'b'])": "array(a, b)",
    "array_construct()": "array()",
    "array_concat('a', 'b')": "concat(a, b)",
    "array_append('a', 'b')": "concat(a, array(b))",
    "except()": "except",
    "intersect()": "intersect",
    "equals('a', 'b')": "(a = b)",
    "current_timestamp()": "current_timestamp()",
    "date(2024, 1, 31)": "to_date('2024-01-31', 'yyyy-MM-dd')",
    "date_trunc('month', 'a')": "date_trunc('month', a)",
    "datediff('a', 'b', 'hour')": None,
}
UTILS = {
    "generate_surrogate_key(['a', 'b'])": f"md5(cast(concat({KEY.format('a')}, '-', {KEY.format('b')}) as string))",
    "generate_surrogate_key(['a'])": f"md5(cast(concat({KEY.format('a')}) as string))",
    "safe_divide('a', 'b')": "(a) / nullif((b), 0)",
    "safe_add(['a', 'b'])": "coalesce(a, 0) + coalesce(b, 0)",
    "safe_subtract(['a', 'b'])": "coalesce(a, 0) - coalesce(b, 0)",
    "group_by(3)": "group by 1, 2, 3",
    "pivot('size', ['S', 'M'])": ("sum(case when size = 'S' then 1 else 0 end) as `S`, sum(case when size = 'M' then 1 else 0 end) as `M`"),
    "pivot('size', ['it is'], true, 'max', '>', 'p_', '_s', 'x', 'y', false, true)": (
        "max(distinct case when size > 'it is' then x else y end) as p_it_is_s"
    ),
    "slugify('1 Big-Thing!')": "_1_big_thing",
}


def only(text: str) -> Diagnostic:
    (diagnostic,) = rendered(text).diagnostics
    return diagnostic


def bare(sql: str) -> str:
    return re.sub(r"\s*([(),])\s*", r"\1", " ".join(sql.split()))


@pytest.mark.parametrize("prefix", ["dbt.", ""])
@pytest.mark.parametrize("call", MACROS)
def test_macros_of_dbt_with_and_without_their_prefix(call: str, prefix: str) -> None:
    text = text_of(f"select {{{{ {prefix}{call} }}}}").text
    if expected := MACROS[call]:
        assert bare(text) == bare(f"select {expected}")


@pytest.mark.parametrize("call", UTILS)
def test_macros_of_dbt_utils(call: str) -> None:
    assert bare(text_of(f"{{{{ dbt_utils.{call} }}}}").text) == bare(UTILS[call])


def test_keys_as_they_were_before_dbt_utils_1_0() -> None:
    old = "md5(cast(concat(coalesce(cast(a as string), '')) as string))"
    assert text_of("{{ dbt_utils.surrogate_key(['a']) }}").text == old
    variables = {"surrogate_key_treat_nulls_as_empty_strings": True}
    assert text_of("{{ dbt_utils.generate_surrogate_key(['a']) }}", variables=variables).text == old


def test_a_macro_of_the_project_wins() -> None:
    macros = {
        "a": "{% macro length(c) %}mine({{ c }}){% endmacro %}",
        "b": "{% macro spark__hash(c) %}xxhash64({{ c }}){% endmacro %}{% macro default__any_value(c) %}other({{ c }}){% endmacro %}",
    }
    text = "{{ length('a') }} {{ dbt.length('a') }} {{ hash('a') }} {{ dbt.hash('a') }} {{ dbt.any_value('a') }}"
    assert text_of(text, macros=macros).text == "mine(a) length(a) xxhash64(a) xxhash64(a) first(a)"
    (other,) = Renderer(project({}, macros={**macros, "c": macros["a"]}), {}).diagnostics
    assert other.message == "The macro 'length' is also defined in another file"


def test_two_macros_of_one_name_in_a_file() -> None:
    text = "{% macro f() %}1{% endmacro %}\n{# {% macro g() %} #}{% macro g() %}2{% endmacro %}\n{%- macro f() -%}2{% endmacro %}\n"
    (found,) = Renderer(project(macros={"x": text}), {}).diagnostics
    assert (found.code, str(found.span)) == ("duplicate-name", "macros/x.sql:3:11")
    assert [str(note.span) for note in found.notes] == ["macros/x.sql:1:10"]


def test_variables_and_parameters_hide_them() -> None:
    text = "{% set length = 3 %}{{ length }} {% macro f(date) %}{{ date }}{% endmacro %}{{ f('x') }}"
    assert text_of(text).text == "3 x"


@pytest.mark.parametrize(
    ("call", "message", "help"),
    [
        ("dbt_utils.star(ref('a'))", "dbt_utils.star() is not supported", "It reads the columns of a table"),
        ("dbt_utils.get_column_values('a', 'b')", "dbt_utils.get_column_values() is not supported", "Write the values in a {% set %}."),
        ("dbt.get_merge_sql()", "mvbuild has no macro 'dbt.get_merge_sql'", "spark__get_merge_sql"),
    ],
)
def test_what_cannot_be_known_says_what_to_write(call: str, message: str, help: str) -> None:
    found = only(f"select 1,\n  {{{{ {call} }}}}")
    assert (found.code, found.message) == ("undefined-name", message)
    assert help in found.help
    assert found.span is not None
    assert (str(found.span), found.span.text) == ("models/daily.sql:2:3", f"{{{{ {call} }}}}")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("dbt.dateadd('fortnight', 1, 'a')", "Dateadd() cannot count in 'fortnight'"),
        ("dbt.datediff('a', 'b', 'millisecond')", "Datediff() cannot count in 'millisecond'"),
        ("dbt_utils.group_by(10000000000)", "Group_by() supports at most 10,000 columns"),
        ("dbt.length()", "missing 1 required positional argument"),
    ],
)
def test_wrong_arguments_are_diagnostics(call: str, message: str) -> None:
    found = only(f"select {{{{ {call} }}}}")
    assert found.code == "template-error"
    assert message in found.message
