from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from mvbuild.api import compile
from mvbuild.dbt.reasons import REASONS
from mvbuild.dbt.scorecard import to_text
from unit.dbt.projects import codes, item, taken, text
from unit.worlds import write_project

STAYS = ("hook", "sql-header", "unknown-config", "partition-by", "computed-setting")
"""Reasons that refuse a model whose query can be rendered, so that its table is known."""
EVENTS = "select * from {{ source('raw', 'events') }}"


@pytest.mark.parametrize(
    ("template", "code", "place"),
    [
        ("select {{ run_query('select 1') }}", "run-query", "1:11"),
        ("{% call statement('x') %}select 1{% endcall %}select 1", "run-query", "1:9"),
        ("select 1\n  {{ adapter.get_relation('a', 'b', 'c') }}", "adapter-call", "2:6"),
        ("{% for n in graph.nodes %}{% endfor %}select 1", "graph-used", "1:13"),
        ("{{ config(alias='a') }}select '{{ config.get('alias') }}'", "config-get", "1:35"),
        ("select '{{ run_started_at.astimezone(x) }}'", "jinja-name", "1:12"),
        ("select '{{ modules.datetime.datetime.now() }}'", "jinja-name", "1:12"),
        ("select {{ dbt_utils.star(ref('x')) }}", "package-macro", "1:11"),
        ("select {{ dbt.get_columns_in_query('select 1') }}", "dbt-macro", "1:11"),
        ("{{ config(materialized='my_own') }}select 1", "materialization", "1:24"),
        ("{{ config(pre_hook='set x = 1') }}select 1", "hook", "1:11"),
        ("{{ config(sql_header='set x = 1;') }}select 1", "sql-header", "1:11"),
        ("{{ config(ttl='1 day') }}select 1", "unknown-config", "1:11"),
        ("{{ config(partition_by={'field': 'day'}) }}select 1 as day", "partition-by", "1:24"),
        ("{{ config(materialized='tab' ~ 'le') }}select 1", "computed-setting", "1:24"),
        ("select * from {{ this }}", "reads-itself", "1:15"),
        ("select * from {{ ref('nowhere') }}", "does-not-compile", "1:22"),
        ("select a from", "does-not-compile", "1:10"),
        ("{% if %}", "does-not-compile", "1:7"),
        ("select {{ var('nothing') }}", "does-not-compile", "1:15"),
        ("{% snapshot s %}select 1{% endsnapshot %}", "does-not-compile", "1:42"),
    ],
)
def test_what_refuses_a_model(tmp_path: Path, template: str, code: str, place: str) -> None:
    found = taken(
        tmp_path, {"models/m.sql": template, "models/child.sql": "select * from {{ ref('m') }}", "models/ok.sql": "select 1 as a"}
    )
    assert code in codes(found, "m")
    assert f"models/m.sql:{place}" in [str(r.span) for r in item(found, "m").reasons if r.code == code]
    assert item(found, "ok").verdict == "unchanged"
    if any(reason.code in STAYS for reason in item(found, "m").reasons) or template == "select a from":
        assert codes(found, "child") == ["reads-table-of-dbt"]
        assert text(found, "models/child.sql") == "select * from {{ source('dbt_main', 'm') }}"
        assert set(found.files) == {"mvbuild.yml", "models/ok.sql", "models/child.sql", "models/sources.yml", "models/tables_of_dbt.yml"}
    else:
        assert codes(found, "child") == ["reads-refused"]
        assert set(found.files) == {"mvbuild.yml", "models/ok.sql", "models/sources.yml"}


def test_what_stays_in_dbt_is_read_as_a_source(tmp_path: Path) -> None:
    snapshot = "{% snapshot s %}{{ config(target_schema='history', unique_key='id', strategy='check', check_cols='all') }}select 1 as id{% endsnapshot %}"
    hooked = "{{ config(schema='mart', alias='t', pre_hook='delete from x') }}select 1 as a"
    files = {
        "snapshots/s.sql": snapshot,
        "models/t1.sql": hooked,
        "models/v.sql": "{{ config(materialized='view', pre_hook='delete from x') }}select 1 as a",
        "models/reads.sql": "select * from {{ ref('s') }} join {{ ref( \"t1\" ) }} using (id)",
        "models/reads_view.sql": "select * from {{ ref('v') }}",
        "models/hidden.sql": "{% set name = 't' ~ '1' %}select * from {{ ref(name) }}",
        "models/reader.sql": "select * from {{ ref('reads') }}",
    }
    found = taken(tmp_path, files)
    assert (
        text(found, "models/reads.sql")
        == "select * from {{ source('dbt_history', 's') }} join {{ source('dbt_main_mart', 't1') }} using (id)"
    )
    assert (item(found, "reads").verdict, item(found, "reader").verdict) == ("changed", "unchanged")
    assert codes(found, "reads_view") == codes(found, "hidden") == ["reads-refused"]
    assert yaml.safe_load(text(found, "models/tables_of_dbt.yml")) == {
        "sources": [
            {"name": "dbt_history", "namespace": "history", "tables": [{"name": "s"}]},
            {"name": "dbt_main_mart", "namespace": "main_mart", "tables": [{"name": "t1", "identifier": "t"}]},
        ]
    }


@pytest.mark.parametrize(
    ("hook", "code"),
    [
        ("optimize {{ this }}", "hook-removed"),
        ("OPTIMIZE {{ this }} ZORDER BY (a, b); analyze table {{ this }} compute statistics", "hook-removed"),
        ("{{ tidy(this) }}", "hook-removed"),
        ("{% if target.name == 'prod' %}vacuum {{ this }}{% endif %}", "hook-removed"),
        ("alter table {{ this }} set tblproperties ('a' = 'b', 'c'='{{ var(\\'x\\', 1) }}')", "hook-removed"),
        ("grant select on table {{ this }} to `analysts`", "hook-removed"),
        ("", "unchanged"),
        ("delete from {{ this }} where a = 1", "hook"),
        ("optimize {{ this }}; delete from {{ this }}", "hook"),
        ("{{ wipe(this) }}", "hook"),
        ("{{ elsewhere.tidy(this) }}", "hook"),
        ("{{ unknown(this) }}", "hook"),
        ("{% do run_query('x') %}", "hook"),
        ("optimize {{ this }} {% if true %}; drop table x{% endif %}", "hook"),
        ("alter table {{ this }} add columns (a int)", "hook"),
        ("set spark.sql.ansi.enabled = true", "hook"),
        ("insert into x select 'optimize y'", "hook"),
    ],
)
def test_a_hook_that_changes_no_row_is_removed(tmp_path: Path, hook: str, code: str) -> None:
    macros = (
        "{% macro tidy(t) %}{# note #}{% if target.name == 'prod' %}OPTIMIZE {{ t }}; -- it's tidy\n{% else %}{% endif %}{% endmacro %}"
        "{% macro wipe(t) %}truncate table {{ t }}{% endmacro %}"
    )
    sql = f"{{{{ config(alias='t', post_hook=\"{hook}\") }}}}\nselect 1 as a"
    found = taken(tmp_path, {"models/m.sql": sql, "macros/tidy.sql": macros})
    said = codes(found, "m")
    assert (code in said) if code != "unchanged" else ("hook" not in said and "hook-removed" not in said)
    if code == "hook-removed":
        assert text(found, "models/m.sql") == "{{ config(alias='t') }}\nselect 1 as a"


def test_the_message_about_removed_hooks_has_all_of_them_as_written(tmp_path: Path) -> None:
    sql = "{{ config(post_hook=['optimize {{ this }}', 'analyze table {{ this }} compute statistics']) }}select 1 as a"
    reasons = item(taken(tmp_path, {"models/m.sql": sql}), "m").reasons
    expected = "'post_hook' is removed, which changes no row: optimize {{ this }}; analyze table {{ this }} compute statistics"
    assert [r.message for r in reasons] == [expected]


def test_a_hook_of_the_project_that_changes_no_row(tmp_path: Path) -> None:
    yml = 'name: shop\nmodels:\n  +materialized: table\n  +post-hook: {sql: "optimize {{ this }}", transaction: false}\n'
    found = taken(tmp_path, {"dbt_project.yml": yml, "models/m.sql": "select 1 as a"})
    assert codes(found, "m") == ["hook-removed"]
    assert "hook" not in text(found, "mvbuild.yml")


OWN = """{% macro is_incremental() %}
    {#-- forced #}
    {% if var('force-incremental', False) %}{{ return(True) }}{% endif %}
    {%- if not execute -%}
        {{ return(False) }}
    {% else %}
        {% set relation = adapter.get_relation(this.database, this.schema, this.table) %}
        {{ return(relation is not none
                  and relation.type == 'table'
                  and model.config.materialized == 'incremental'
                  and not should_full_refresh()) }}
    {% endif %}
{% endmacro %}
"""


@pytest.mark.parametrize(("macro", "code"), [(OWN, "same-as-dbt"), (OWN.replace("not should", "should"), "overrides-dbt")])
def test_a_copy_of_is_incremental(tmp_path: Path, macro: str, code: str) -> None:
    guarded = (
        "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}\nselect id, ts from {{ source('raw', 'events') }}"
        "\n{% if is_incremental() %}where ts > (select max(ts) from {{ this }}){% endif %}\n"
    )
    found = taken(tmp_path, {"macros/i.sql": macro, "models/m.sql": guarded})
    assert code in codes(found, "is_incremental", "macro")
    assert (item(found, "m").verdict == "refused") == (code == "overrides-dbt")
    assert "macros/i.sql" not in found.files


def test_columns_named_like_keywords_are_quoted(tmp_path: Path) -> None:
    sql = (
        "select explode( values ) as v, case when from = to then 1 end as c, '(values)' as s, count(Values) -- (values)\n"
        "from {{ source('raw', 'events') }} where id not in (values) and from <> 1 and id in (select a, from, b from t)"
    )
    found = taken(tmp_path, {"models/m.sql": sql})
    expected = (
        sql.replace("explode( values )", "explode( `values` )").replace("when from =", "when `from` =").replace("(Values)", "(`Values`)")
    )
    assert text(found, "models/m.sql") == expected.replace("in (values)", "in (`values`)").replace("and from <>", "and `from` <>").replace(
        "a, from,", "a, `from`,"
    )
    assert codes(found, "m") == ["keyword-quoted"] * 6
    hooked = "{{ config(meta={'a': '{{ [\\'x\\'] }}'}) }}select from as a, b as from, 'from as' as c from {{ source('raw', 'events') }}"
    found = taken(tmp_path, {"models/m.sql": hooked})
    assert text(found, "models/m.sql").endswith("}}select `from` as a, b as `from`, 'from as' as c from {{ source('raw', 'events') }}")
    same = "select 1 as a from (values (1)) union all select a from {{ source('raw', 'events') }} where 'when from =' = x"
    assert codes(taken(tmp_path, {"models/m.sql": same}), "m") == []


def test_a_column_that_is_described_twice(tmp_path: Path) -> None:
    columns = "[{name: a, description: old}, {name: b}, {name: A, description: new, tests: [unique]}, {name: a, description: third}]"
    found = taken(tmp_path, {"models/m.sql": "select 1 as a, 2 as b", "models/m.yml": f"models: [{{name: m, columns: {columns}}}]\n"})
    assert codes(found, "m") == ["duplicate-key", "duplicate-key"]
    described = yaml.safe_load(text(found, "models/m.yml"))["models"][0]["columns"]
    assert [(column["name"], column.get("description")) for column in described] == [("b", None), ("A", "new")]


def test_a_seed_that_does_not_fit_is_refused_alone(tmp_path: Path) -> None:
    yml = "name: shop\nmodels: {+materialized: table}\nseeds:\n  shop:\n    s: {+column_types: {gone: int}}\n"
    found = taken(tmp_path, {"dbt_project.yml": yml, "seeds/s.csv": "id\n1\n", "models/m.sql": "select 1 as a"})
    assert item(found, "s", "seed").verdict == "refused"
    assert "models/m.sql" in found.files


def test_settings_go_with_their_commas_and_the_rest_stays(tmp_path: Path) -> None:
    sql = "{{\n  config(\n    materialized = 'table',\n    file_format='delta',\n    tags=['a'],\n    location_root='/x'\n  )\n}}\n-- keep me\nselect 1 as a\n"
    found = taken(tmp_path, {"models/m.sql": sql})
    assert text(found, "models/m.sql") == (
        "{{\n  config(\n    materialized = 'materialized_view',\n    tags=['a']\n  )\n}}\n-- keep me\nselect 1 as a\n"
    )
    assert set(codes(found, "m")) == {"table-to-mv", "setting-removed"}


def test_a_dictionary_of_settings(tmp_path: Path) -> None:
    found = taken(tmp_path, {"models/m.sql": "{{ config({'materialized': 'table', 'file_format': 'delta'}) }}select 1 as a"})
    assert text(found, "models/m.sql") == "{{ config({'materialized': 'materialized_view'}) }}select 1 as a"


def test_models_that_say_nothing_are_views(tmp_path: Path) -> None:
    found = taken(tmp_path, {"dbt_project.yml": "name: shop\n", "models/m.sql": "select 1 as a"})
    assert "models:\n  +materialized: view\n" in text(found, "mvbuild.yml")
    assert codes(found, "shop", "project") == ["view-written"]


def test_the_project_file_keeps_its_text(tmp_path: Path) -> None:
    yml = (
        "# ours\nname: shop\nprofile: p\nconfig-version: 2\nsource-paths: [models]\nvars:\n  a: 1  # one\nmodels:\n  shop:\n"
        "    marts:\n      +materialized: table # mv\n      +file_format: iceberg\n    gone:\n      +tags: x\n  some_package:\n    +enabled: false\n"
    )
    found = taken(tmp_path, {"dbt_project.yml": yml, "models/marts/m.sql": "select {{ var('a') }} as a"})
    assert text(found, "mvbuild.yml") == (
        "# ours\nname: shop\nvars:\n  a: 1  # one\nmodels:\n  shop:\n    marts:\n      +materialized: materialized_view # mv\n"
        "model-paths:\n- models\ntargets:\n  dev:\n    namespace: main\n"
    )
    assert item(found, "m").verdict == "unchanged"
    assert {"unused-path", "key-removed", "setting-removed", "table-to-mv"} == set(codes(found, "shop", "project"))


def test_schemas_are_dbts(tmp_path: Path) -> None:
    files = {
        "dbt_project.yml": "name: shop\nprofile: p\nmodels:\n  shop:\n    a: {+schema: staging}\nseeds:\n  +schema: seeds\n",
        "profiles.yml": "p: {target: dev, outputs: {dev: {type: spark, schema: \"{{ env_var('S', 'me') }}\"}}}",
        "models/a/m.sql": "select 1 as a",
        "models/n.sql": "{{ config(schema='gold', alias='nn') }}select 1 as a",
        "models/y.sql": "select 1 as a",
        "models/y.yml": "models: [{name: y, config: {schema: silver}}]",
        "seeds/s.csv": "a\nx\n",
    }
    found = taken(tmp_path, files)
    assert "a: {+schema: me_staging}" in text(found, "mvbuild.yml")
    assert "+schema: me_seeds" in text(found, "mvbuild.yml")
    assert "namespace: me" in text(found, "mvbuild.yml")
    assert "schema=target.schema ~ '_gold'" in text(found, "models/n.sql")
    assert "schema: me_silver" in text(found, "models/y.yml")


def test_the_projects_own_names(tmp_path: Path) -> None:
    macro = (
        "{% macro generate_schema_name(custom_schema_name, node) -%}\n{%- if target.name == 'prod' -%}"
        "{{ custom_schema_name or target.schema }}{%- else -%}dev_{{ node.name }}{%- endif -%}{%- endmacro %}\n"
    )
    files = {"macros/n.sql": macro, "models/m.sql": "{{ config(schema='gold') }}select 1 as a", "models/n.sql": "select 1 as a"}
    found = taken(tmp_path, files, target="prod")
    assert [item(found, name).verdict for name in "mn"] == ["unchanged", "unchanged"]
    assert "macros/n.sql" not in found.files
    found = taken(tmp_path, files, target="dev")
    assert "schema='dev_m'" in text(found, "models/m.sql")
    assert text(found, "models/n.sql").startswith("{{ config(schema='dev_n') }}\n")
    assert codes(found, "n") == ["name-spelled-out"]


def test_a_name_macro_that_cannot_be_applied(tmp_path: Path) -> None:
    macro = "{% macro generate_schema_name(custom, node) %}{{ adapter.type(custom) }}{% endmacro %}"
    found = taken(tmp_path, {"macros/n.sql": macro, "models/m.sql": "{{ config(schema='gold') }}select 1 as a"})
    (reason,) = [r for r in item(found, "m").reasons if r.code == "schema-macro"]
    assert "'generate_schema_name': " in reason.message
    assert reason.message.partition("'generate_schema_name': ")[2]


def test_tests_and_descriptions(tmp_path: Path) -> None:
    yaml = """models:
  - name: m  # the one
    access: public
    description: '{{ doc("about") }}'
    latest_version: null
    columns:
      - name: a
        tests:
          - unique
          - not_null: {store_failures: true, severity: warn}
          - positive: {least: 3, config: {where: "a < 100"}}
          - dbt_utils.accepted_range: {min_value: 0}
          - relationships: {to: ref('snap'), field: a}
          - accepted_values: {values: [1], config: {error_if: '> 10'}}
          - mine_not: 3
        constraints: [{type: not_null}]
    tests:
      - unique: {column_name: "a || 'x'"}
      - dbt_utils.equality: {compare_model: ref('m')}
  - name: nobody
    columns: [{name: a}]
exposures:
  - {name: board, type: dashboard, owner: {name: me}}
unit_tests:
  - {name: u, model: m}
"""
    files = {
        "models/m.yml": yaml.replace("    latest_version: null\n", ""),
        "models/m.sql": "select 1 as a",
        "models/docs.md": "{% docs about %}\nFirst: line\n\n# Second\n{% enddocs %}\n",
        "snapshots/s.sql": "{% snapshot snap %}select 1 as a{% endsnapshot %}",
        "tests/generic/positive.sql": "{% test positive(model, column_name, least) %}select * from {{ model }} where {{ column_name }} < {{ least }}{% endtest %}",
        "tests/none.sql": "select * from {{ ref('m') }} where a is null",
        "tests/of_snapshot.sql": "select * from {{ ref('snap') }}",
    }
    found = taken(tmp_path, files)
    assert (
        text(found, "models/m.yml")
        == """models:
  - name: m  # the one
    access: public
    description: '{{ doc("about") }}'
    columns:
      - name: a
        tests:
          - unique
          - not_null: {store_failures: true, severity: warn}
          - positive: {least: 3, config: {where: "a < 100"}}
          - dbt_utils.accepted_range: {min_value: 0}
          - accepted_values: {values: [1], config: {error_if: '> 10'}}
exposures:
  - {name: board, type: dashboard, owner: {name: me}}
unit_tests:
  - {name: u, model: m}
"""
    )
    assert "a || 'x' as unique_field" in text(found, "tests/unique_m_a_x_.sql")
    assert text(found, "tests/generic/positive.sql") == files["tests/generic/positive.sql"]
    assert codes(found, "dbt_utils.equality_m", "test") == ["package-macro"]
    assert codes(found, "relationships_m_a", "test") == ["reads-refused"]
    for kept in ("not_null_m_a", "positive_m_a", "dbt_utils.accepted_range_m_a", "accepted_values_m_a"):
        assert item(found, kept, "test").verdict == "unchanged", kept
    assert codes(found, "mine_not_m_a", "test") == ["unknown-test"]
    assert codes(found, "of_snapshot", "test") == ["reads-refused"]
    assert codes(found, "none", "test") == []
    assert codes(found, "board", "exposure") == codes(found, "u", "unit test") == []
    assert codes(found, "snap", "snapshot") == ["snapshot"]
    assert codes(found, "m") == ["property-removed"]
    assert text(found, "models/docs.md") == files["models/docs.md"]
    assert codes(found, "model nobody", "resource") == ["unknown-name"]


def test_seeds_get_the_types_that_dbt_finds(tmp_path: Path) -> None:
    rows = 'id,n,d,t,b,s,e,x\n1,1.50,2020-01-31,2020-01-31 10:00:00,true,a,,007\n2,null,2020-02-01,"",FALSE,"b, c",NULL,8\n'
    found = taken(
        tmp_path, {"seeds/s.csv": rows, "seeds/s.yml": "seeds: [{name: s, config: {column_types: {x: string}, quote_columns: true}}]"}
    )
    types = dict(re.findall(r"^      (\w+): (\w+)$", text(found, "mvbuild.yml"), re.MULTILINE))
    assert types == {"id": "bigint", "n": "double", "d": "date", "t": "timestamp", "b": "boolean", "s": "string", "e": "bigint"}
    assert text(found, "seeds/s.csv").splitlines()[2] == '2,,2020-02-01,,FALSE,"b, c",,8'
    assert set(codes(found, "s", "seed")) == {"types-written", "null-written", "setting-removed"}


@pytest.mark.parametrize("value", ["$5", "1,5", "5%", "1e3", "nan", "1_000", "2020-01-01T10:00"])
def test_a_seed_whose_type_is_uncertain(tmp_path: Path, value: str) -> None:
    found = taken(tmp_path, {"seeds/s.csv": f'a,b\nx,"{value}"\n'})
    assert codes(found, "s", "seed") == ["seed-type-unsure"]
    assert "seeds/s.csv" not in found.files
    assert taken(tmp_path, {"seeds/s.csv": f'a,b\nx,"{value}"\ny,word\n'}).files["seeds/s.csv"]


def test_macros(tmp_path: Path) -> None:
    macros = (
        "{% macro cents(c) %}{{ c }} / 100{% endmacro %}\n"
        "{% macro shout() %}{{ log(run_query('select 1')) }}{% endmacro %}\n"
        "{% macro through() %}{{ shout() }}{% endmacro %}\n"
        "{% materialization mine, default %}{{ adapter.x() }}{% endmaterialization %}\n"
    )
    files = {
        "macros/m.sql": macros,
        "models/a.sql": "select {{ shop.cents('a') }} as a",
        "models/b.sql": "select {{ through() }} as a",
        "packages.yml": "packages: [{package: dbt-labs/dbt_utils, version: 1.0.0}, {package: x/unused, version: 1.0.0}]",
        "models/c.sql": "select {{ dbt_utils.star(ref('a')) }}",
    }
    found = taken(tmp_path, files)
    assert text(found, "macros/m.sql") == "{% macro cents(c) %}{{ c }} / 100{% endmacro %}\n"
    assert text(found, "models/a.sql") == "select {{ cents('a') }} as a"
    assert codes(found, "a") == ["project-prefix-removed"]
    assert codes(found, "b") == ["macro-refused"]
    assert "through" in item(found, "b").reasons[0].message
    assert codes(found, "dbt_utils", "package") == ["package"]
    assert codes(found, "unused", "package") == ["package-unused"]
    assert item(found, "c").reasons[0].advice == "It reads the columns of a table. Write the columns, or `* except (...)`."
    assert codes(found, "mine", "macro") == ["custom-materialization"]


def test_hooks_of_the_project(tmp_path: Path) -> None:
    yml = 'name: shop\non-run-end: ["grant x"]\nmodels:\n  +post-hook: "delete from {{ this }}"\ntests:\n  +severity: warn\n'
    found = taken(tmp_path, {"dbt_project.yml": yml, "models/m.sql": "select 1 as a"})
    assert {"run-hook", "folder-config"} <= set(codes(found, "shop", "project"))
    assert codes(found, "m") == ["hook"]
    assert str(item(found, "m").reasons[0].span) == "dbt_project.yml:4:3"


def test_another_dialect(tmp_path: Path) -> None:
    profile = "shop: {target: dev, outputs: {dev: {type: postgres, schema: x, password: secret}}}"
    found = taken(tmp_path, {"profiles.yml": profile, "models/m.sql": "select 1 / 2 as a"})
    assert codes(found, "m") == ["other-dialect"]
    assert "secret" not in str(found.card.as_json())


def test_other_kinds_of_models(tmp_path: Path) -> None:
    files = {
        "models/p.py": "def model(dbt, session): ...",
        "models/off.sql": "{{ config(enabled=false) }}select {{ adapter.x() }}",
        "models/v.sql": "select 1 as a",
        "models/v.yml": "models: [{name: v, latest_version: 2, versions: [{v: 1}, {v: 2}]}, {name: p, description: x}]",
        "models/broken.yml": "models: [",
        "analyses/a.sql": "select 1",
        "models/eph.sql": "{{ config(materialized='ephemeral') }}select 1 as a",
    }
    found = taken(tmp_path, files)
    assert codes(found, "p") == ["python-model"]
    assert item(found, "eph").verdict == "unchanged"
    assert item(found, "v.v2").verdict == "unchanged"
    assert codes(found, "a", "analysis") == ["analysis"]
    assert codes(found, "models/broken.yml", "resource") == ["unreadable"]
    assert found.card.refuses


def test_names_in_other_letters(tmp_path: Path) -> None:
    files = {"models/Größe.sql": "select 1 as `ä b`", "models/x.sql": "select `ä b` from {{ ref('größe') }}"}
    found = taken(tmp_path, files)
    assert [item(found, name).verdict for name in ("Größe", "x")] == ["unchanged", "unchanged"]


def test_every_reason_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "import-dbt.md").read_text(encoding="utf-8")
    assert [code for code in REASONS if f"`{code}`" not in page] == []


def test_tests_keep_their_settings_and_templates(tmp_path: Path) -> None:
    yml = """models:
  - name: m
    columns:
      - name: a
        tests:
          - unique: {where: "{% if var('all', false) %}true{% else %}a > 1{% endif %}", severity: "{{ 'warn' if target.name == 'dev' else 'error' }}"}
          - positive: {least: "{{ var('least', 3) }}", config: {where: "a < {{ var('most', 7) }}", warn_if: '> 1', fail_calc: sum(n), limit: 9}}
"""
    files = {
        "models/m.yml": yml,
        "models/m.sql": "select 1 as a",
        "macros/t.sql": "{% test positive(model, column_name, least) %}select 1 as n from {{ model }} where {{ column_name }} < {{ least }}{% endtest %}",
    }
    found = taken(tmp_path, files)
    assert {path: found.files[path].text for path in files} == files
    assert {i.verdict for i in found.card.items if i.kind in ("model", "test", "macro")} == {"unchanged"}


def test_only_the_test_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    tests = """
          - positive: {wrong: 1}
          - positive: {least: 1, name: other, to: ref('hooked')}
          - not_null: {where: "{{ some_macro() }}"}
          - positive: {least: 2, name: fits, config: {store_failures_as: view, schema: audits}}
"""
    files = {
        "models/m.yml": f"models:\n  - name: m\n    columns:\n      - name: a\n        tests:{tests}",
        "models/m.sql": "select 1 as a",
        "models/hooked.sql": "{{ config(pre_hook='insert into x select 1') }} select 1 as a",
        "macros/t.sql": "{% test positive(model, column_name, least, to=none) %}select 1 from {{ model }}{% endtest %}",
    }
    found = taken(tmp_path, files)
    assert item(found, "m").verdict == "unchanged"
    assert [[r.code for r in i.shown] for i in found.card.items if i.kind == "test"] == [
        ["does-not-compile", "does-not-compile"],
        ["reads-refused"],
        ["yaml-template"],
        ["test-option-removed", "test-option-removed"],
    ]
    assert text(found, "models/m.yml").endswith("        tests:\n          - positive: {least: 2, name: fits}\n")


def test_docs_blocks_of_every_path_are_kept(tmp_path: Path) -> None:
    files = {
        "dbt_project.yml": "name: shop\nprofile: shop\ndocs-paths: [docs]\n",
        "docs/columns.md": "{% docs id %}The key.{% enddocs %}\n",
        "analyses/more.md": "{% docs more %}More.{% enddocs %}\n",
        "docs/read.md": "Nothing to see.\n",
        "models/m.yml": "models: [{name: m, description: '{{ doc(\"more\") }}', columns: [{name: id, description: '{{ doc(\"id\") }}'}]}]\n",
        "models/m.sql": "select 1 as id",
    }
    found = taken(tmp_path, files)
    assert item(found, "m").verdict == "unchanged"
    assert {path for path in found.files if path.endswith(".md")} == {"docs/columns.md", "analyses/more.md"}
    assert 'docs-paths: ["docs", "analyses"]\n' in text(found, "mvbuild.yml")


def test_selectors_are_kept(tmp_path: Path) -> None:
    selectors = "selectors:\n  - {name: all, definition: 'tag:x'}  # as it is\n"
    found = taken(tmp_path, {"selectors.yml": selectors, "models/m.sql": "{{ config(tags=['x']) }} select 1 as id"})
    assert text(found, "selectors.yml") == selectors


def test_a_test_that_replaces_a_built_in_one(tmp_path: Path) -> None:
    files = {
        "models/m.yml": "models: [{name: m, columns: [{name: a, tests: [unique: {error_if: '> 10', severity: warn}]}]}]\n",
        "models/m.sql": "select 1 as a",
        "macros/t.sql": "{% test unique(model, column_name) %}select 1 from {{ model }} where false{% endtest %}",
    }
    found = taken(tmp_path, files)
    assert text(found, "macros/t.sql") == "{% macro test_unique(model, column_name) %}select 1 from {{ model }} where false{% endmacro %}"
    assert text(found, "tests/unique_m_a.sql") == (
        '{{ config(severity="warn", error_if="> 10") }}\n{{ test_unique(model=ref(\'m\'), column_name="a") }}\n'
    )


def test_variables_of_a_run_are_left_out_wherever_they_are(tmp_path: Path) -> None:
    """As snowplow's package has them: the project is imported without them."""
    project = "name: shop\nprofile: shop\nvars:\n  other: {events: \"{{ ref('m') }}\", days: 1}\n  list: [\"{{ ref('m') }}\"]\n"
    found = taken(tmp_path, {"dbt_project.yml": project, "models/m.sql": "select 1 as a"})
    assert item(found, "m").verdict == "unchanged"
    assert "vars:\n  other: {days: 1}\n" in text(found, "mvbuild.yml")
    assert codes(found, "shop", "project").count("yaml-template") == 2


def test_settings_of_other_adapters_are_removed(tmp_path: Path) -> None:
    model = "{{ config(materialized='view', copy_grants=true, cluster_by=['a'], labels={'team': 'x'}) }}\nselect 1 as a"
    found = taken(tmp_path, {"models/m.sql": model})
    assert codes(found, "m") == ["setting-removed"] * 3
    assert codes(taken(tmp_path / "ttl", {"models/m.sql": model.replace("copy_grants=true", "ttl='1 day'")}), "m") == ["unknown-config"]


def test_a_namespace_that_is_no_package_is_the_project_unless_the_project_file_says_another_order(tmp_path: Path) -> None:
    macro = "{% macro day(c) %}{{ adapter.dispatch('day', 'other')(c) }}{% endmacro %}{% macro default__day(c) %}{{ c }}{% endmacro %}"
    files = {"macros/day.sql": macro, "models/m.sql": f"select {{{{ day('ts') }}}} as d from ({EVENTS})"}
    assert item(taken(tmp_path / "plain", files), "m").verdict == "unchanged"
    project = (
        "name: shop\nprofile: shop\nmodels: {+materialized: view}\ndispatch: [{macro_namespace: other, search_order: [other, shop]}]\n"
    )
    assert codes(taken(tmp_path / "ordered", {**files, "dbt_project.yml": project}), "m") == ["macro-refused"]


@pytest.mark.parametrize("asked", ["adapter.type()", "adapter.type"])
def test_the_type_of_the_adapter(tmp_path: Path, asked: str) -> None:
    macro = f"{{% macro none_yet() %}}{{% if {asked} == 'fabric' %}}top 0{{% else %}}limit 0{{% endif %}}{{% endmacro %}}"
    files = {"macros/none_yet.sql": macro, "models/m.sql": "{{ config(materialized='view') }}select 1 as a {{ none_yet() }}"}
    found = taken(tmp_path / "spark", files)
    assert item(found, "m").verdict == "unchanged", item(found, "m").reasons
    assert text(found, "macros/none_yet.sql") == macro
    root = write_project(tmp_path / "out", {path: one.text for path, one in found.files.items()})
    assert compile(root).model("model.shop.m").query.sql.text.strip().endswith("limit 0")


def test_a_macro_that_asks_the_adapter_refuses_only_those_who_get_there(tmp_path: Path) -> None:
    macro = (
        "{% macro more(known=none) %}{% if known is none %}{% for c in adapter.get_columns_in_relation(ref('a')) %}, {{ c.name }}{% endfor %}"
        "{% else %}{% for c in known %}, {{ c }}{% endfor %}{% endif %}{% endmacro %}"
    )
    files = {
        "macros/more.sql": macro,
        "models/a.sql": "select 1 as x, 2 as y",
        "models/asks.sql": "select x {{ more() }} from {{ ref('a') }}",
        "models/knows.sql": "select x {{ more(['y']) }} from {{ ref('a') }}",
    }
    found = taken(tmp_path, files)
    assert codes(found, "more", "macro") == ["adapter-in-macro"]
    assert item(found, "knows").verdict == "unchanged"
    assert codes(found, "asks") == ["does-not-compile"]
    assert text(found, "macros/more.sql") == macro


def test_macros_of_dbt_and_dbt_utils_are_kept(tmp_path: Path) -> None:
    sql = "select cast(1 as {{ dbt.type_string() }}) as a, {{ type_int() }}(1) as b, {{ dbt_utils.generate_surrogate_key(['a']) }} as k"
    files = {"packages.yml": "packages: [{package: dbt-labs/dbt_utils, version: 1.0.0}]", "models/m.sql": sql}
    found = taken(tmp_path, files)
    assert item(found, "m").verdict == "unchanged", item(found, "m").reasons
    assert codes(found, "dbt_utils", "package") == ["package-built-in"]


@pytest.mark.parametrize("call", ["dbt.dateadd('day', 1, 'ts')", "dateadd('day', 1, 'ts')", "dbt_utils.dateadd('day', 1, 'ts')"])
def test_macros_that_dbt_databricks_writes_otherwise_are_refused(tmp_path: Path, call: str) -> None:
    profile = "shop: {target: dev, outputs: {dev: {type: databricks, schema: x}}}"
    found = taken(tmp_path, {"profiles.yml": profile, "models/a.sql": EVENTS, "models/m.sql": f"select {{{{ {call} }}}} as d from x.y"})
    assert codes(found, "m") == ["package-macro" if "utils" in call else "dbt-macro"]


def test_a_duplicate_key_has_its_last_value_as_in_dbt(tmp_path: Path) -> None:
    sources = "sources:\n  - name: raw\n    schema: wrong\n    schema: right\n    tables:\n      - name: events\n"
    project = "name: shop\nprofile: shop\nvars: {a: 1}\nmodels: {+materialized: view}\nmodels: {+materialized: table}\nvars: {a: 2}\n"
    files = {"models/sources.yml": sources, "models/m.sql": "select {{ var('a') }} as a from {{ source('raw', 'events') }}"}
    found = taken(tmp_path, {"dbt_project.yml": project, **files})
    assert item(found, "m").verdict == "unchanged"
    assert "right" in text(found, "models/sources.yml")
    assert "wrong" not in text(found, "models/sources.yml")
    assert text(found, "mvbuild.yml").count("vars:") == text(found, "mvbuild.yml").count("models:") == 1
    repeated = [str(r.span) for i in found.card.items for r in i.reasons if r.code == "duplicate-key"]
    assert sorted(repeated) == ["dbt_project.yml:5:1", "dbt_project.yml:6:1", "models/sources.yml:4:5"]


def test_dispatch_to_the_projects_own_macros_is_kept(tmp_path: Path) -> None:
    macros = (
        "{% macro day(c) %}{{ return(adapter.dispatch('day', 'shop')(c)) }}{% endmacro %}\n"
        "{% macro default__day(c) %}date({{ c }}){% endmacro %}\n"
        "{% macro postgres__day(c) %}{{ c }}::date{% endmacro %}\n"
    )
    found = taken(
        tmp_path,
        {"macros/day.sql": macros, "models/m.sql": f"select {{{{ day('ts') }}}} as d, '{{{{ target.type }}}}' as t from ({EVENTS})"},
    )
    assert item(found, "m").verdict == "unchanged", item(found, "m").reasons


@pytest.mark.parametrize(
    "macro",
    [
        "{% macro day(c) %}{{ adapter.dispatch('day')(c) }}{% endmacro %}",
        "{% macro day(c) %}{{ adapter.dispatch(c)(c) }}{% endmacro %}",
        "{% macro day(c) %}{{ adapter.dispatch('day')(c) }}{% endmacro %}{% macro default__day(c) %}{{ adapter.type(c) }}{% endmacro %}",
    ],
)
def test_dispatch_to_others_is_refused(tmp_path: Path, macro: str) -> None:
    found = taken(tmp_path, {"macros/day.sql": macro, "models/m.sql": f"select {{{{ day('ts') }}}} as d from ({EVENTS})"})
    assert codes(found, "m") == ["does-not-compile" if "adapter.type" in macro else "macro-refused"]


def test_target_in_yaml_is_rendered_as_dbt_does_and_kept(tmp_path: Path) -> None:
    sources = 'sources:\n  - name: raw\n    schema: "{{ target.schema }}_raw"\n    tables:\n      - name: events\n'
    yml = "models:\n  - name: m\n    config:\n      enabled: \"{{ target.name == 'prod' or target.type == 'spark' }}\"\n"
    profile = "shop: {target: dev, outputs: {dev: {type: spark, schema: me}}}"
    files = {"profiles.yml": profile, "models/sources.yml": sources, "models/m.yml": yml, "models/m.sql": EVENTS}
    found = taken(tmp_path, files)
    assert item(found, "m").verdict == "unchanged", item(found, "m").reasons
    assert "{{ target.schema }}_raw" in text(found, "models/sources.yml")


def test_ref_may_name_the_project_itself(tmp_path: Path) -> None:
    files = {
        "models/a.sql": EVENTS,
        "models/b.sql": "select * from {{ ref('shop', 'a') }}",
        "models/c.sql": "select * from {{ ref('other', 'a') }}",
    }
    found = taken(tmp_path, files)
    assert (item(found, "b").verdict, codes(found, "c")) == ("unchanged", ["does-not-compile"])


def test_a_value_of_the_run_is_kept_and_never_in_an_incremental_model(tmp_path: Path) -> None:
    """dbt's table keeps in each row the value of the run that wrote it."""
    guard = "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}"
    bound = "{% if is_incremental() %} where ts > (select max(ts) from {{ this }}) {% endif %}"
    files = {
        "macros/run.sql": "{% macro run() %}'{{ invocation_id }}' as run{% endmacro %}",
        "models/m.sql": f"select *, {{{{ run() }}}} from ({EVENTS})",
        "models/n.sql": "select 'at {{ run_started_at.strftime('%Y') }}' as year",
        "models/inc.sql": f"{guard}select id, ts, {{{{ run() }}}} from {{{{ source('raw', 'events') }}}} {bound}",
        "models/above.sql": f"{guard}select id, ts, run from {{{{ ref('m') }}}} {bound}",
    }
    found = taken(tmp_path, files)
    assert [codes(found, name) for name in ("m", "n")] == [["run-value"], ["run-value"]]
    assert str(item(found, "n").reasons[0].span) == "models/n.sql:1:15"
    assert [codes(found, name) for name in ("inc", "above")] == [["load-time"], ["load-time"]]
    assert text(found, "models/m.sql") == files["models/m.sql"]


def test_readers_of_a_refused_source_name_it(tmp_path: Path) -> None:
    sources = 'sources:\n  - {name: raw, schema: "{{ modules.datetime.now() }}", tables: [{name: events}]}\n'
    found = taken(tmp_path, {"models/sources.yml": sources, "models/m.sql": EVENTS})
    assert codes(found, "raw", "source") == ["yaml-template"]
    assert [(r.code, r.message, str(r.span)) for r in item(found, "m").shown] == [
        ("reads-refused", "It reads the source 'raw', which is refused", "models/m.sql:1:15")
    ]


def test_a_disabled_model_is_not_counted_as_imported(tmp_path: Path) -> None:
    found = taken(tmp_path, {"models/off.sql": "{{ config(enabled=false) }}select broken from", "models/m.sql": "select 1 as a"})
    assert (item(found, "off").verdict, found.card.count("disabled"), found.card.count("changed", ("model",))) == ("disabled", 1, 0)
    assert "models/off.sql" in found.files
    assert "Disabled, and not checked:" in to_text(found.card)


def test_groups_and_access_are_kept(tmp_path: Path) -> None:
    yml = (
        "groups:\n  - {name: finance, owner: {name: Ada}}\nmodels:\n"
        "  - {name: a, access: private, group: finance}\n  - {name: b, config: {group: finance, access: public}}\n"
    )
    files = {"models/m.yml": yml, "models/a.sql": EVENTS, "models/b.sql": "select * from {{ ref('a') }}"}
    found = taken(tmp_path, files)
    assert (item(found, "a").verdict, item(found, "b").verdict, item(found, "group finance", "resource").verdict) == ("unchanged",) * 3
    assert text(found, "models/m.yml") == yml


def test_the_sql_test_of_a_private_model_is_in_its_group(tmp_path: Path) -> None:
    yml = (
        "groups: [{name: finance, owner: {name: Ada}}]\n"
        "models: [{name: a, group: finance, access: private, columns: [{name: id, tests: [dbt_utils.not_constant]}]}]\n"
    )
    model = "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}\n" + EVENTS
    found = taken(tmp_path, {"models/m.yml": yml, "models/a.sql": model})
    assert item(found, "a").verdict == "changed"
    tests = {path: file.text for path, file in found.files.items() if path.startswith("tests/")}
    assert sorted(tests) == ["tests/a_unique_key.sql"]
    assert all(text.startswith("{{ config(group='finance') }}\n") for text in tests.values())


def test_exposures_and_unit_tests_are_kept_where_all_that_they_name_is_imported(tmp_path: Path) -> None:
    yml = """exposures:
  - {name: kept, type: ml, owner: {name: A}, depends_on: [ref('m'), "source('raw', 'events')"], description: "{{ doc('d') }}"}
  - {name: of_refused, type: ml, owner: {name: A}, depends_on: [ref('hooked')]}
  - {name: of_metric, type: ml, owner: {name: A}, depends_on: [metric('x')]}
  - {name: of_nothing, type: ml, owner: {name: A}, depends_on: [ref('nowhere')]}
  - {name: typed, type: robot, owner: {name: A}}
  - {name: odd, type: ml, owner: {name: A}, colour: red}
unit_tests:
  - {name: kept, model: m, given: [{input: "source('raw', 'events')", rows: [{id: 1}]}], expect: {rows: [{id: 1}]}}
  - {name: of_refused, model: hooked, given: [], expect: {rows: []}}
  - {name: of_nothing, model: nowhere, given: [], expect: {rows: []}}
  - {name: incremental, model: m, overrides: {macros: {is_incremental: true}}, given: [], expect: {rows: []}}
  - {name: full, model: m, overrides: {macros: {is_incremental: false}}, given: [], expect: {rows: []}}
  - {name: filed, model: m, given: [{input: "source('raw', 'events')", format: csv, fixture: rows}], expect: {rows: []}}
"""
    files = {
        "models/more.yml": yml,
        "models/d.md": "{% docs d %}text{% enddocs %}",
        "models/m.sql": "select id from {{ source('raw', 'events') }}",
        "models/hooked.sql": "{{ config(pre_hook='delete from x') }}select 1 as a",
    }
    found = taken(tmp_path, files)
    assert {(i.kind, i.name): codes(found, i.name, i.kind) for i in found.card.items if i.kind in ("exposure", "unit test")} == {
        ("exposure", "kept"): [],
        ("exposure", "of_refused"): ["reads-refused"],
        ("exposure", "of_metric"): ["exposure"],
        ("exposure", "of_nothing"): ["exposure"],
        ("exposure", "typed"): ["does-not-compile"],
        ("exposure", "odd"): ["exposure"],
        ("unit test", "kept"): [],
        ("unit test", "of_refused"): ["reads-refused"],
        ("unit test", "of_nothing"): ["unit-test"],
        ("unit test", "incremental"): ["unit-test"],
        ("unit test", "full"): [],
        ("unit test", "filed"): ["unit-test"],
    }
    left = yaml.safe_load(text(found, "models/more.yml"))
    assert [one["name"] for one in left["exposures"]] == ["kept"]
    assert [one["name"] for one in left["unit_tests"]] == ["kept", "full"]


def test_grants_are_removed(tmp_path: Path) -> None:
    project = "name: shop\nprofile: shop\nmodels:\n  +materialized: table\n  shop:\n    +grants: {select: [me]}\nseeds:\n  +grants: {select: [me]}\n"
    files = {
        "dbt_project.yml": project,
        "models/m.sql": "{{ config(alias='t', grants={'select': ['me']}) }}select 1 as a",
        "models/n.sql": "select 1 as a",
        "models/n.yml": "models: [{name: n, config: {grants: {'+select': [me]}, alias: u}}]",
        "models/o.sql": "select 1 as a",
        "seeds/s.csv": "a\n1\n",
    }
    found = taken(tmp_path, files)
    assert codes(found, "m") == codes(found, "n") == ["grants"]
    assert item(found, "o").verdict == "unchanged"
    assert "grants" in codes(found, "shop", "project")
    assert not any("grants" in file.text for file in found.files.values())


@pytest.mark.parametrize("place", ["source", "config", "table", "table config"])
def test_the_filter_of_a_freshness_is_removed(tmp_path: Path, place: str) -> None:
    freshness = {"freshness": {"warn_after": {"count": 1, "period": "day"}, "filter": "day > '2020-01-01'"}}
    of_source = {"source": freshness, "config": {"config": freshness}}.get(place, {})
    of_table = {"table": freshness, "table config": {"config": freshness}}.get(place, {})
    declared = {"sources": [{"name": "raw", **of_source, "tables": [{"name": "events", **of_table}]}]}
    found = taken(tmp_path, {"models/sources.yml": yaml.safe_dump(declared), "models/m.sql": EVENTS})
    assert codes(found, "raw", "source") == ["property-removed"]
    assert item(found, "m").verdict == "unchanged"
    assert "warn_after" in text(found, "models/sources.yml")
    assert "filter" not in text(found, "models/sources.yml")


def test_settings_of_all_tests_are_lost_and_named(tmp_path: Path) -> None:
    project = (
        "name: shop\nprofile: shop\nmodels: {+materialized: table}\n"
        "tests:\n  +severity: warn\n  +store_failures: true\n  shop:\n    marts: {+limit: 10}\n"
    )
    files = {
        "dbt_project.yml": project,
        "models/marts/m.sql": "select 1 as a",
        "models/marts/m.yml": "models: [{name: m, columns: [{name: a, tests: [unique, not_null: {severity: error, store_failures: false}]}]}]",
        "tests/t.sql": "select 1 as a where false",
        "tests/u.sql": "{{ config(severity='warn', store_failures=false) }}select 1 as a where false",
    }
    found = taken(tmp_path / "all", files)
    whole = item(found, "shop", "project")
    named = [r.message for r in whole.shown if r.code == "folder-config"]
    assert named == ["'+severity' below 'tests'", "'+store_failures' below 'tests'", "'+limit' below 'tests'"]
    lost = {
        name: [r.message.partition("'")[2].partition("'")[0] for r in item(found, name, "test").reasons] for name in ("unique_m_a", "t")
    }
    assert lost == {"unique_m_a": ["severity: warn", "store_failures: true", "limit: 10"], "t": ["severity: warn", "store_failures: true"]}
    assert codes(found, "t", "test") == ["test-setting-lost", "test-setting-lost"]
    assert codes(found, "u", "test") == []
    assert [r.message for r in item(found, "not_null_m_a", "test").reasons] == [
        "'limit: 10' in dbt_project.yml does not apply to it any more"
    ]
    stored = "name: shop\nprofile: shop\nmodels: {+materialized: table}\ntests: {+store_failures: true}\n"
    found = taken(tmp_path / "stored", {**files, "dbt_project.yml": stored})
    assert not found.card.refuses
    assert "'+store_failures' below 'tests' is removed" in [r.message for r in item(found, "shop", "project").shown]


def test_parts_of_the_semantic_layer_have_their_names(tmp_path: Path) -> None:
    found = taken(tmp_path, {"models/s.yml": "semantic_models: [{name: a}]\nmetrics: [{name: b}]\nsaved_queries: [{name: c}]\n"})
    assert {(i.kind, i.name) for i in found.card.items if i.verdict == "refused"} == {
        ("semantic model", "a"),
        ("metric", "b"),
        ("saved query", "c"),
    }
    assert "saved queries " in to_text(found.card)


def test_the_added_test_of_several_keys(tmp_path: Path) -> None:
    config = "{{ config(materialized='incremental', unique_key=['id', 'day'], incremental_strategy='merge') }}"
    found = taken(tmp_path, {"models/m.sql": f"{config}select id, day from {{{{ source('raw', 'events') }}}}"})
    messages = [r.message for r in item(found, "m").reasons if r.code == "unique-key-tested"]
    assert messages == ["mvbuild adds a test that the combination of id and day is unique"]


def test_a_sql_test_keeps_its_tags_and_meta(tmp_path: Path) -> None:
    sql = "{{ config(tags=['daily'], meta={'owner': 'ann'}) }}\nselect * from {{ ref('ok') }} where a < 0\n"
    found = taken(tmp_path, {"models/ok.sql": "select 1 as a", "tests/positive.sql": sql})
    assert (item(found, "positive", "test").verdict, text(found, "tests/positive.sql")) == ("unchanged", sql)
