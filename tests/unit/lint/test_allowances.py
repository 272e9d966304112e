"""`-- mvbuild: allow(rule) reason`: what it covers, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.lint.comments import comments
from mvbuild.source import SourceFile
from unit.lint.linted import QUIET, found, report, shop

C = "{{ ref('customers') }}"
ALLOWED = [
    f"select id from {C} limit 1 -- mvbuild: allow(limit-without-order) any will do",
    f"-- mvbuild: allow(limit-without-order) any will do\nselect id from {C} limit 1",
    f"-- mvbuild: allow(limit-without-order) any will do\n-- more\nselect id from {C} limit 1",
    f"/* mvbuild: allow(limit-without-order) any will do */\nselect id from {C} limit 1",
    f"/* mvbuild: allow(limit-without-order)\n   any will do */\nselect id from {C} limit 1",
    f"{{# mvbuild: allow(limit-without-order) any will do #}}\nselect id from {C} limit 1",
    f"select id from {C} limit 1 {{#- MVBUILD:allow( limit-without-order )any will do -#}}",
    f"select id from {C} limit 1 --mvbuild: allow(Limit-Without-Order) any will do",
    f"select id, rand() as r from {C} limit 1 -- mvbuild: allow(limit-without-order, nondeterministic-function) fine",
    f"select '--' as a, \"it's\" as b, `it's` as c, 'a\\'--' as d from {C} limit 1 -- mvbuild: allow(limit-without-order) fine",
    f"select '{{{{ var('x', \"its\") }}}}' as a from {C} limit 1 -- mvbuild: allow(limit-without-order) fine",
    f"select 'a\n-- mvbuild: allow(select-star) in a string' as a from {C} order by 1",
]


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_is_allowed_is_not_said(sql: str, tmp_path: Path) -> None:
    assert found(tmp_path, {**QUIET, "models/m.sql": sql + "\n"}) == []


WRONG = [
    ("select id from {C} order by id -- mvbuild: allow(limit-without-order) once", ["unused-allowance"]),
    ("select id from {C} limit 1 -- mvbuild: allow(limit-without-order)", ["allowance-without-reason"]),
    ("select id from {C} limit 1 -- mvbuild: allow(limit-without-order) --", ["allowance-without-reason"]),
    ("select id from {C} limit 1 -- mvbuild: allow(limit-without-ordr) any", ["limit-without-order", "unknown-allowance"]),
    ("select id from {C} limit 1 -- mvbuild: allow() any", ["limit-without-order", "unknown-allowance"]),
    ("select id from {C} limit 1 -- mvbuild: allow limit-without-order", ["limit-without-order", "unknown-allowance"]),
    ("select id from {C} limit 1 -- mvbuild: allow(limit-without-order, select-star) any", ["unused-allowance"]),
    ("-- mvbuild: allow(limit-without-order) far above\n\nselect id from {C}\nlimit 1", ["unused-allowance", "limit-without-order"]),
    ("select id from {C} -- mvbuild: allow(limit-without-order) not alone\nlimit 1", ["unused-allowance", "limit-without-order"]),
    ("select id from {C} order by id -- mvbuild: allow(unlike-types) none\n", ["unused-allowance"]),
    ("select id from raw.t -- mvbuild: allow(unlike-types, undeclared-source) its types are not known\n", []),
    ("select id from {C} order by id -- mvbuild: allow(dead-model) it is off\n", []),
    ("select id from {C} order by id -- mvbuild: allow(unpartitioned-storage) nobody asked the catalog\n", []),
    ("select id from {C} order by id -- mvbuild: allows nothing\n", []),
    ("{% if false %}-- mvbuild: allow(cross-join) some day\n{% endif %}select id from {C}", ["unused-allowance"]),
]


@pytest.mark.parametrize(("sql", "codes"), WRONG)
def test_what_is_wrong_with_an_allowance(sql: str, codes: list[str], tmp_path: Path) -> None:
    assert [code for code, _, _ in found(tmp_path, {**QUIET, "models/m.sql": sql.replace("{C}", C) + "\n"})] == codes


def test_a_model_as_a_whole_is_allowed_anywhere_in_its_file(tmp_path: Path) -> None:
    files = {
        "mvbuild.yml": "name: shop\nlint: {missing-description: off}\n",
        "models/a.sql": f"select id, name\nfrom {C}\n-- mvbuild: allow(missing-tests) tried out\n",
        "models/b.sql": f"select id, name from {C} -- mvbuild: allow(missing-tests, duplicate-definition) tried out\n",
    }
    assert found(tmp_path, files) == []


def test_what_yaml_says_of_a_model_is_allowed_in_its_file_or_there(tmp_path: Path) -> None:
    files = {
        **QUIET,
        "models/p.sql": "{{ config(freshness={'max_staleness': '1h'}) }} select id from {{ ref('customers') }}\n",
        "models/a.sql": "select id from {{ ref('p') }} where id > 1\n-- mvbuild: allow(window-shorter-than-parent) for a test\n",
        "models/b.sql": "select id from {{ ref('p') }}\n",
        "models/y.yml": """
models:
  - {name: a, config: {freshness: {max_staleness: 5m}}}
  - name: b
    # mvbuild: allow(window-shorter-than-parent) for a test
    config: {freshness: {max_staleness: 5m}}
""",
    }
    assert found(tmp_path, files) == []


def test_yaml_has_allowances_too(tmp_path: Path) -> None:
    files = {
        **QUIET,
        "models/m.sql": f"select id from {C}\n",
        "models/m.yml": """
models:
  - name: m
    description: "a # mvbuild: allow(select-star) no comment"
    config:
      meta:
        # mvbuild: allow(secret-in-file) of the test system
        password: hunter2hunter2
        api_token: abcdefgh # mvbuild: allow(secret-in-file) of the test system
        other: 1 # mvbuild: allow(secret-in-file) nothing here
""",
    }
    assert found(tmp_path, files) == [("unused-allowance", 10, "secret-in-file")]


def test_only_the_rules_that_run_are_judged(tmp_path: Path) -> None:
    graph = shop(tmp_path, {**QUIET, "models/m.sql": f"select id from {C} -- mvbuild: allow(select-star) none\n"})
    assert report(graph, rules=["unused-allowance"]).findings == ()
    assert len(report(graph, rules=["unused-allowance", "select-star"]).findings) == 1


@pytest.mark.parametrize(
    ("text", "bodies"),
    [
        ("select 1 -- a\n-- b", [" a", " b"]),
        ("select 1 /* a /* b */ c */ -- d", [" a /* b */ c ", " d"]),
        ("select '-- no' -- yes", [" yes"]),
        ("select r'\\' -- yes", [" yes"]),
        ("{{ config(a='-- no') }} {# yes #} {% set x = '#}' %} -- too", [" yes ", " too"]),
        ("/* open", [" open"]),
        ("'open -- no", []),
        ("{{ open -- no", []),
        ("{# open", [" open"[:5]]),
    ],
)
def test_comments_are_told_from_strings(text: str, bodies: list[str]) -> None:
    found = [c.body.text for c in comments(SourceFile("m.sql", text), is_yaml=False)]
    assert len(found) == len(bodies)
    assert all(a == b or text.endswith("open") for a, b in zip(found, bodies, strict=True))
