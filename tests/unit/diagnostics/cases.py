"""code -> projects that cause it: the table behind tests/golden/diagnostics. The place of the error is marked: `from «orderz»`."""

from __future__ import annotations

from pathlib import Path

from unit.cli.bad_input import Case, Content

GOOD = "select 1 as id\n"
RAW = "sources: [{name: raw, tables: [{name: orders}]}]\n"
LOCK = "version: 1\ntables:\n  raw.orders:\n    columns:\n      id: int\n      day: date\n      amount: decimal(10,2)\n      tags: array<string>\n  raw.items:\n    columns:\n      id: int\n      order_id: int\n"
"""raw.orders(id, day, amount, tags) and raw.items(id, order_id)."""


def _case(code: str, name: str, files: dict[str, Content], command: str = "compile", help: str = "") -> Case:
    return Case(name=name, code=code, says="", files=files, help=help, command=command)


def _model(code: str, name: str, sql: str, **files: Content) -> Case:
    return _case(code, name, {"models/m.sql": sql, **files})


def _yaml(code: str, name: str, text: str, **files: Content) -> Case:
    return _case(code, name, {"models/m.sql": GOOD, "models/m.yml": text, **files})


def _bound(code: str, name: str, sql: str, yml: str = "") -> Case:
    described: dict[str, Content] = {"models/m.yml": yml} if yml else {}
    return _case(code, name, {"schemas.lock": LOCK, "models/m.sql": sql, **described})


def _project(code: str, name: str, text: str) -> Case:
    return _case(code, name, {"mvbuild.yml": text})


_HALF = {"macros/half.sql": "{% macro half(x) %}\n  ({{ x }} / 2))\n{% endmacro %}\n"}
_PIVOT = {
    "macros/pivot.sql": "{% macro pivot(names) %}{% for n in names %}{{ caller(n) }}{% if not loop.last %}, {% endif %}{% endfor %}{% endmacro %}\n"
}

CASES: tuple[Case, ...] = (
    # Files
    _case("not-a-project", "no mvbuild.yml", {"models/m.sql": GOOD}, "compile --project-dir models"),
    _case("unreadable-file", "bytes that are no UTF-8", {"models/m.sql": b"select 1,\n  '\xff' as a\n"}),
    _case("unreadable-file", "a dangling link", {"models/m.sql": Path("nowhere.sql")}),
    _case("file-too-large", "many words", {"models/m.sql": "«select a" + ",a" * 130_000 + " from t»\n"}),
    _yaml("file-too-large", "many values", "«a: [" + "x," * 800_000 + "]»\n"),
    # YAML
    _yaml("merge-conflict", "in YAML", "models:\n«<<<<<<< HEAD»\n  - name: m\n=======\n  - name: n\n>>>>>>> feature\n"),
    _case("merge-conflict", "in SQL", {"models/m.sql": "select 1 as a\n«<<<<<<< HEAD»\nfrom a\n=======\nfrom b\n>>>>>>> feature\n"}),
    _yaml("yaml-syntax", "a missing bracket", "models:\n  - name: m\n    tags: [a, b\n    description«:» x\n"),
    _yaml("yaml-syntax", "a tab", "models:\n«\t»- name: m\n"),
    _yaml("yaml-syntax", "behind characters outside of the basic plane", "models:\n  - {name: m, description: 🧹🧹, tags: «*»gone}\n"),
    _yaml("yaml-syntax", "an alias in a loop", "models:\n  - «&a {name: m, meta: {x: *a}}»\n"),
    _yaml("unknown-key", "of a model", "models:\n  - name: m\n    «descripton»: x\n"),
    _yaml("unknown-key", "behind a wide character", "models:\n  - {description: 漢字, «nam»: m, name: m}\n"),
    _yaml("unknown-key", "in a very long line", "models:\n  - {name: m, description: " + "a very long text " * 30 + ", «colums»: []}\n"),
    _model(
        "unknown-key",
        "of config() in a call of several lines",
        "{{ config(\n    tags=['a'],\n    «materialised»='view',\n) }}\nselect 1 as id\n",
    ),
    _yaml("wrong-type", "a word for a flag", "models:\n  - name: m\n    config: {enabled: «maybe»}\n"),
    _model("wrong-type", "in config() behind a tab", "\t{{ config(materialized=«'table'») }}\nselect 1 as id\n"),
    _model(
        "wrong-type",
        "in config() with CRLF line ends",
        "{{ config(\r\n  tags=['x'],\r\n  materialized=«'table'»\r\n) }}\r\nselect 1 as id\r\n",
    ),
    _yaml("missing-key", "of a test", "models:\n  - name: m\n    columns:\n      - name: id\n        data_tests: [«accepted_values»]\n"),
    _project("missing-key", "of the project", "«version: 1»\n"),
    _yaml("duplicate-key", "in a mapping", "models:\n  - name: m\n    tags: [a]\n    «tags»: [b]\n"),
    _case("duplicate-name", "of two models", {"models/a/m.sql": GOOD, "models/b/m.sql": "«select 2 as id»\n"}),
    _case(
        "duplicate-name",
        "of two macros",
        {
            "models/m.sql": GOOD,
            "macros/a.sql": "{% macro f() %}{% endmacro %}\n",
            "macros/b.sql": "{# again #}\n{%- macro «f»() %}{% endmacro %}\n",
        },
    ),
    _yaml("unknown-name", "of a model", "models:\n  - name: «mm»\n"),
    _project("unknown-target", "by default", "name: shop\ntarget: «prod»\ntargets:\n  dev: {}\n"),
    _case(
        "bad-seed",
        "a value of another type",
        {"seeds/s.csv": "id,name\n1,a\n«x»,b\n", "seeds/s.yml": "seeds: [{name: s, config: {column_types: {id: bigint}}}]\n"},
    ),
    _case(
        "bad-seed",
        "behind quotes and wide characters",
        {"seeds/s.csv": 'name,id\n"漢, ""字"" 🧹",«"1.5"»\n', "seeds/s.yml": "seeds: [{name: s, config: {column_types: {id: bigint}}}]\n"},
    ),
    _case("bad-seed", "a field too many", {"seeds/s.csv": "id,name\n1,a\n2,b,«c»\n"}),
    _model("bad-config", "of two settings", "{{ config(materialized='view', partition_by=«['id']») }}\nselect 1 as id\n"),
    _case(
        "bad-target-lag",
        "shorter than that of what it reads, through a view and an MV without a target",
        {
            "models/a.sql": "{{ config(target_lag='1h') }}\nselect 1 as id\n",
            "models/b.sql": "{{ config(materialized='view') }}\nselect id from {{ ref('a') }}\n",
            "models/c.sql": "select id from {{ ref('b') }}\n",
            "models/d.sql": "{{ config(target_lag=«'15m'») }}\nselect id from {{ ref('c') }}\n",
        },
    ),
    _model("bad-target-lag", "downstream without a reader", "{{ config(target_lag=«'downstream'») }}\nselect 1 as id\n"),
    # Templates
    _model("template-syntax", "an expression that is not closed", "select 1\nfrom {{ ref('a' «}}»\n"),
    _model("template-syntax", "a loop that is not closed", "select 1 as a\n«{% for x in [1] -%}»\n  , {{ x }}\n"),
    _model("template-syntax", "an end without a beginning", "select 1 as a\n{% if true %}, 2 as b{% «endfor» %}\n"),
    _case(
        "template-syntax",
        "in a macro file",
        {"models/m.sql": "select {{ f() }} as a\n", "macros/f.sql": "{% macro f() %}\n  {{ 1 + «}}»\n{% endmacro %}\n"},
    ),
    _model("undefined-name", "in an expression", "select 1,\n  {{ «nam» }} as n\n"),
    _model(
        "undefined-name", "in a loop", "select\n{%- for c in ['a', 'b'] %}\n  {{ c }} as {{ «cc» }},\n{%- endfor %}\n  1 as one from t\n"
    ),
    _case(
        "undefined-name",
        "in a macro",
        {
            "models/m.sql": "select {{ half('a') }} as a from t\n",
            "macros/half.sql": "{% macro half(x) %}\n  {{ x }} / {{ «y» }}\n{% endmacro %}\n",
        },
    ),
    _case(
        "undefined-name",
        "in a call block",
        {
            **_PIVOT,
            "models/m.sql": "select\n  {% call(n) pivot(['a', 'b']) %}\n    sum({{ n }}) as {{ «name» }}\n  {% endcall %}\nfrom t\n",
        },
    ),
    _model("undefined-name", "in a set block", "{% set columns %}\n  a, {{ «b» }}\n{% endset %}\nselect {{ columns }} from t\n"),
    _model(
        "undefined-name",
        "of a macro that is nearly there",
        "select {{ «doubl»('a') }} as a\n",
        **{"macros/m.sql": "{% macro double(x) %}{{ x }} * 2{% endmacro %}\n"},
    ),
    _model("template-error", "a division by zero", "select 1,\n  «{{ 1 / 0 }}» as a\n"),
    _model(
        "template-error",
        "of the template's own, in an if",
        "{% if var('day', none) is none %}\n  «{{ exceptions.raise_compiler_error('no day') }}»\n{% endif %}\nselect 1 as id\n",
    ),
    _model(
        "template-limit",
        "a loop without end",
        "select 1 as id\n«{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}»\n",
    ),
    _model("template-limit", "a text without end", "select\n  «{{ 'a' * 10 ** 10 }}» as a\n"),
    _case(
        "template-limit",
        "a macro that calls itself",
        {"models/m.sql": "select {{ f() }} as a\n", "macros/f.sql": "{% macro f() %}\n  «{{ f() }}»\n{% endmacro %}\n"},
    ),
    _model("unsafe-template", "a way to Python", "select '{{ ''.«__class__».__mro__ }}' as a\n"),
    _model("unsafe-template", "an include", "select 1 as a\n«{% include 'models/n.sql' %}»\n"),
    _model("unsafe-template", "an import", "«{% from 'macros/m.sql' import half %}»\nselect {{ half('a') }} as a\n"),
    _model("missing-env-var", "in a filter chain", "select '{{ env_var(«'NOWHERE'») | lower | trim }}' as a\n"),
    _case("missing-env-var", "in YAML", {"mvbuild.yml": "name: shop\nvars:\n  where: «\"{{ env_var('NOWHERE') }}\"»\n"}),
    _model("missing-var", "in a tag", "{%- if var(«'day'») -%} select 1 as a {%- else -%} select 2 as a {%- endif -%}\n"),
    _model("unresolved-ref", "behind tabs", "select *\n\tfrom\t{{ ref(«'orderz'») }}\n", **{"models/orders.sql": GOOD}),
    _model("unresolved-ref", "in a loop", "{% for t in ['a'] %}\nselect * from «{{ ref(t ~ 's') }}»\n{% endfor %}\n"),
    _model("unresolved-source", "the table", "select * from {{ source('raw', «'order'») }}\n", **{"models/s.yml": RAW}),
    _model(
        "unresolved-source",
        "in a macro",
        "select * from {{ of() }}\n",
        **{"models/s.yml": RAW, "macros/m.sql": "{% macro of() -%}\n  {{ source(«'row'», 'orders') }}\n{%- endmacro %}\n"},
    ),
    _model("not-needed", "is_incremental()", "select 1 as a\n«{%- if is_incremental() %}» where x{% endif %}\n"),
    # SQL
    _model("sql-syntax", "a word", "select a,\nfrom t\nwhere «group by» a\n"),
    _model("sql-syntax", "behind tabs and wide characters", "select '漢字🧹' as a,\n\t'é'\tas b from t where «group by» a\n"),
    _model("sql-syntax", "with CRLF line ends", "select 1 as a,\r\n  2 as b from t where «group by» a\r\n"),
    _model(
        "sql-syntax",
        "in a loop",
        "select\n{% for c in ['a', 'b'] %}\n  sum({{ c }}) sum«(»1) as {{ c }},\n{% endfor %}\n  1 as one\nfrom t\n",
    ),
    _model("sql-syntax", "in a macro", "select\n  «{{ half('a') }}» as a\nfrom t\n", **_HALF),
    _model(
        "sql-syntax",
        "in what a call block gives",
        "select\n  «{% call(n) pivot(['a', 'b']) %}»sum({{ n }} as {{ n }}{% endcall %}\nfrom t\n",
        **_PIVOT,
    ),
    _model("sql-syntax", "in a set block", "{% set columns %}a, b c d{% endset %}\nselect\n  «{{ columns }}»\nfrom t\n"),
    _model("sql-syntax", "behind whitespace control", "{%- set x = 1 -%}\n\n  select a -\n{{- x -}}\n  from t where «group by» a\n"),
    _model(
        "sql-syntax",
        "in a very long line",
        "select " + ", ".join(f"column_{i} as a_{i}" for i in range(100)) + " from t where «group by» a, " + "b" * 200 + "\n",
    ),
    _model("sql-syntax", "an open string", "select 1 as a,\n  «'»abc as b\nfrom t\n"),
    _model("sql-syntax", "an invisible character", "select 1 as a, «\u200b» 2 as b\n"),
    _model("sql-syntax", "ref() in the place of a column", "select «{{ ref('n') }}» as a\n", **{"models/n.sql": GOOD}),
    _model("many-statements", "behind a comment", "select 1 as a; -- done\n«select» 2 as a;\n"),
    _model("not-a-query", "a statement", "-- tidy up\n«drop» table t\n"),
    _model("empty-sql", "only a comment", "-- later\n"),
    _model("bad-time-travel", "no literal", "select * from raw.orders «version as of current_date»()\n"),
    _case(
        "bad-time-travel",
        "a view",
        {
            "models/v.sql": "{{ config(materialized='view') }}select 1 as a\n",
            "models/m.sql": "select * from «{{ ref('v') }}» version as of 3\n",
        },
    ),
    # The graph
    _case(
        "cycle",
        "of three",
        {
            "models/a.sql": "select * from «{{ ref('c') }}»\n",
            "models/b.sql": "select * from {{ ref('a') }}\n",
            "models/c.sql": "select * from {{ ref('b') }}\n",
        },
    ),
    _case(
        "cycle",
        "through a macro",
        {"models/m.sql": "select * from «{{ me() }}»\n", "macros/m.sql": "{% macro me() %}{{ ref('m') }}{% endmacro %}\n"},
    ),
    _model(
        "unknown-group",
        "of a model",
        "{{ config(group=«'finanse'») }}\nselect 1 as id\n",
        **{"models/g.yml": "groups: [{name: finance, owner: {name: Ada}}]\n"},
    ),
    _case(
        "private-model",
        "of another group",
        {
            "models/m.yml": "groups: [{name: finance, owner: {name: Ada}}]\nmodels: [{name: a, config: {group: finance, access: private}}]\n",
            "models/a.sql": GOOD,
            "models/b.sql": "select * from «{{ ref('a') }}»\n",
        },
    ),
    _case(
        "private-model",
        "without a group",
        {"models/a.sql": "{{ config(access='private') }}select 1 as id\n", "models/b.sql": "select * from «{{ ref('a') }}»\n"},
    ),
    _case(
        "deprecated-model",
        "an old version",
        {
            "models/m.yml": "models: [{name: m, versions: [{v: 1, deprecation_date: 2020-01-01}, {v: 2}]}]\n",
            "models/m_v1.sql": GOOD,
            "models/m_v2.sql": GOOD,
            "models/n.sql": "select * from {{ ref('m', v=1) }}\n",
        },
    ),
    _case("unknown-selector", "a method", {"models/m.sql": GOOD}, "ls -s tagg:x"),
    _case(
        "bad-selectors",
        "a circle",
        {
            "models/m.sql": GOOD,
            "selectors.yml": "selectors:\n  - name: a\n    definition: {method: selector, value: b}\n  - name: b\n    definition: «{method: selector, value: a}»\n",
        },
        "ls --selector a",
    ),
    _case("unusable-selector", "of freshness", {"models/m.sql": GOOD}, "ls -s stale:1"),
    _case("no-state", "state: without --state", {"models/m.sql": GOOD}, "ls -s state:modified"),
    _case("bad-state", "no JSON", {"models/m.sql": GOOD, "old/manifest.json": "{"}, "ls -s state:modified --state old/manifest.json"),
    _case("no-git", "no repository", {"models/m.sql": GOOD}, "ls -s git:main"),
    _model(
        "unsupported-dialect",
        "a logarithm",
        "select\n  a,\n  «ln»(a) as r\nfrom raw.t\n",
        **{"models/m.yml": "models:\n  - name: m\n    config:\n      dialects: [trino]\n"},
    ),
    # Columns
    _bound("missing-table", "not in the lock", "select id from «raw.order»\n"),
    _bound("unknown-column", "near another", "select o.id,\n  o.«amont» as a\nfrom raw.orders o\n"),
    _bound(
        "unknown-column",
        "in a loop",
        "select\n{% for c in ['id'] %}\n  o.«{{ c ~ 's' }}» as {{ c }},\n{% endfor %}\n  1 as one from raw.orders o\n",
    ),
    _bound("unknown-column", "behind a tab and wide characters", "select '漢🧹' as x,\t«dya» from raw.orders\n"),
    _bound("ambiguous-column", "in a join", "select «id» from raw.orders join raw.items on order_id = orders.id\n"),
    _bound("duplicate-column", "two names", "select id as a, day as «A» from raw.orders\n"),
    _bound("column-count", "of a union", "select id, day from raw.orders\nunion all\nselect «id from raw.items»\n"),
    _bound("type-mismatch", "in a comparison", "select id from raw.orders where «day = amount»\n"),
    _bound(
        "broken-contract",
        "of a type",
        "select id, «amount» from raw.orders\n",
        "models:\n  - name: m\n    config: {contract: {enforced: true}}\n    columns:\n      - {name: id, data_type: int}\n      - {name: amount, data_type: int}\n",
    ),
    _case(
        "unchecked-contract",
        "of an unknown table",
        {
            "models/m.sql": "select «x» from raw.unknown\n",
            "models/m.yml": "models:\n  - name: m\n    config: {contract: {enforced: true}}\n    columns:\n      - {name: x, data_type: int}\n",
        },
    ),
    _case("bad-lock", "no columns", {"models/m.sql": GOOD, "schemas.lock": "version: 1\ntables:\n  «raw.orders»: [id]\n"}),
    _case("bad-packages", "an entry without an address", {"models/m.sql": GOOD, "packages.yml": "packages:\n  - «name: helpers»\n"}),
    _case(
        "packages-not-installed",
        "no lock",
        {"models/m.sql": GOOD, "packages.yml": "packages:\n  - «tarball: https://example.com/helpers.zip»\n"},
    ),
    _case("package-unavailable", "no such folder", {"models/m.sql": GOOD, "packages.yml": "packages:\n  - «local: ../helpers»\n"}, "deps"),
    # The machine and the command line
    _case("unwritable-target", "a file in its place", {"models/m.sql": GOOD}, "compile --target-path mvbuild.yml"),
    _case("command-line", "an option", {"models/m.sql": GOOD}, "run --selct x"),
)

ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(
        ("catalog-unreachable", "catalog-error", "name-collision", "other-project", "no-java", "wrong-java"), "unit/cli/test_bad_input.py"
    ),
    **dict.fromkeys(("no-branches", "unknown-branch", "branch-outdated"), "unit/cli/test_branch_commands.py"),
    **dict.fromkeys(("not-atomic", "not-published", "commit-conflict"), "unit/refresh/test_atomic.py"),
    "unreadable-metadata": "unit/cli/test_unreadable.py",
    "unknown-catalog": "unit/freshness/test_view_names.py",
    "no-catalog": "unit/serve/test_without_project.py",
    "flawed-metadata": "unit/refresh/test_formats.py",
    **dict.fromkeys(("unsupported-format", "format-differs"), "unit/refresh/test_formats.py"),
    "unsupported-view": "unit/cli/test_child_views_that_cannot_be_read.py",
    "not-compiled": "unit/cli/test_one_bad_model.py",
    "stale": "unit/serve/test_policy.py",
    "unknown-refresh": "unit/serve/test_frames.py",
    "has-dependents": "unit/plan/test_removed.py",
    "bad-previous-name": "unit/plan/test_renames.py",
    "missing-package": "unit/sources/test_delta.py",
    "jars-unavailable": "unit/spark_adapter/test_jars.py",
    "spark-start": "unit/spark_adapter/test_catalog_conf.py",
    **dict.fromkeys(("query-failed", "bad-column", "test-failed"), "spark/test_runs_that_fail.py"),
    **dict.fromkeys(("unit-test-failed", "bad-unit-test"), "spark/test_unit_tests.py"),
    "session-object": "spark/test_session_inputs.py",
    **dict.fromkeys(("tests-failed", "failure-not-recorded"), "unit/serve/test_failed_tests.py"),
    "not-incremental": "unit/plan/test_strictness.py",
    "unverifiable": "unit/cli/test_verify.py",
    **dict.fromkeys(("lock-out-of-date", "unwritable-file"), "unit/lineage/test_lock.py"),
    "bad-ref": "unit/selection/test_state.py",
    **dict.fromkeys(("file-exists", "nothing-imported"), "unit/dbt/test_writing.py"),
    "internal": "unit/cli/test_terminal.py",
}
"""Codes that need a live catalog, Spark or a git repository, or that no project can earn; and the test that earns each."""
