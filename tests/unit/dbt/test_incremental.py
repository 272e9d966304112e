from __future__ import annotations

from pathlib import Path

import pytest

from unit.dbt.projects import codes, item, taken, text

MERGE = "materialized='incremental', incremental_strategy='merge', unique_key='id'"
OVERWRITE = "materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['day']"
NEWER = "ts > (select max(ts) from {{ this }})"


def model(config: str, body: str) -> dict[str, str]:
    return {"models/m.sql": f"{{{{ config({config}) }}}}\n{body}\n"}


def guarded(config: str, condition: str, columns: str = "id, ts, day", tail: str = "") -> dict[str, str]:
    body = (
        f"select {columns}\nfrom {{{{ source('raw', 'events') }}}} e\n{{% if is_incremental() %}}\nwhere {condition}\n{{% endif %}}\n{tail}"
    )
    return model(config, body)


@pytest.mark.parametrize(
    "condition",
    [
        NEWER,
        "e.TS >= (select max(ts) from {{ this }})",
        "(select max(ts) from {{ this }}) < ts",
        "ts >= (select coalesce(max(ts), timestamp '1900-01-01') - interval 3 days from {{ this }})",
        "ts > coalesce((select max(t.ts) from {{ this }} t), timestamp '1900-01-01')",
        "date(ts) >= date_sub((select max(date(ts)) from {{ this }}), 3)",
        "ts >= date '{{ var(\"since\") }}'",
        "ts >= current_date - 3",
    ],
)
def test_a_guard_that_only_leaves_out_rows_goes(tmp_path: Path, condition: str) -> None:
    found = taken(tmp_path, guarded(MERGE, condition))
    assert item(found, "m").verdict == "changed"
    assert set(codes(found, "m")) == {"guard-removed", "setting-removed", "table-to-mv", "unique-key-tested"}
    assert text(found, "models/m.sql").strip() == (
        "{{ config(materialized='materialized_view') }}\nselect id, ts, day\nfrom {{ source('raw', 'events') }} e"
    )
    guard = next(r for r in item(found, "m").reasons if r.code == "guard-removed")
    assert str(guard.span) == "models/m.sql:4:7"
    assert "having count(*) > 1" in text(found, "tests/m_unique_key.sql")


@pytest.mark.parametrize(
    ("files", "code"),
    [
        (guarded("materialized='incremental'", NEWER), "append-keeps-rows"),
        (guarded("materialized='incremental', unique_key='id'", NEWER), "append-keeps-rows"),
        (guarded("materialized='incremental', incremental_strategy='append', unique_key='id'", NEWER), "append-keeps-rows"),
        (guarded("materialized='incremental', incremental_strategy='merge'", NEWER), "merge-without-key"),
        (guarded("materialized='incremental', incremental_strategy='merge', unique_key='id || day'", NEWER), "merge-without-key"),
        (guarded("materialized='incremental', incremental_strategy='microbatch'", NEWER), "strategy"),
        (guarded(f"{MERGE}, merge_update_columns=['ts']", NEWER), "merge-partial"),
        (guarded(f"{MERGE}, full_refresh=false", NEWER), "never-full-refresh"),
        (guarded(f"{MERGE}, post_hook='optimize t'", NEWER), "hook"),
        (guarded(MERGE, "ts = (select max(ts) from {{ this }})"), "guard-not-lower-bound"),
        (guarded(MERGE, "ts < (select max(ts) from {{ this }})"), "guard-not-lower-bound"),
        (guarded(MERGE, "ts > (select min(ts) from {{ this }})"), "guard-not-lower-bound"),
        (guarded(MERGE, "ts > (select max(ts) from {{ this }} where id > 0)"), "guard-not-lower-bound"),
        (guarded(MERGE, "id not in (select id from {{ this }})"), "guard-not-lower-bound"),
        (guarded(MERGE, "ts > (select max(ts) from {{ this }}) or id = 1"), "guard-not-lower-bound"),
        (guarded(MERGE, "ts > (select max(ts) from {{ source('raw', 'users') }})"), "guard-not-lower-bound"),
        (guarded(MERGE, "ts > (select max(t.ts) from {{ this }} t where t.id = e.id)"), "guard-not-lower-bound"),
        (guarded(MERGE, "ts > (select max(loaded) from {{ this }})"), "guard-other-column"),
        (guarded(MERGE, NEWER, columns="id, day"), "guard-other-column"),
        (guarded(MERGE, f"{NEWER} and day >= '2020-01-01'"), "guard-several"),
        (guarded(MERGE, NEWER, columns="id, max(ts) ts, count(*) n", tail="group by id"), "guard-below-aggregate"),
        (guarded(MERGE, NEWER, columns="id, ts, row_number() over (order by id) n"), "guard-below-aggregate"),
        (guarded(MERGE, NEWER, columns="id, ts, lag(ts) over (partition by id order by ts) n"), "guard-below-aggregate"),
        (guarded(MERGE, NEWER, tail="limit 10"), "guard-below-aggregate"),
        (guarded(MERGE, NEWER, columns="id, ts, current_timestamp() as loaded_at"), "load-time"),
        (guarded("materialized='incremental', incremental_strategy='insert_overwrite'", NEWER), "overwrites-table"),
        (guarded(OVERWRITE, NEWER), "guard-not-partition"),
        (model(MERGE, "select id, ts from {{ source('raw', 'events') }} union all select id, ts from {{ this }}"), "reads-itself"),
        (model(MERGE, "{% if is_incremental() %}select 1 as id{% else %}select 2 as id{% endif %}"), "guard-changes-query"),
        (
            model(MERGE, "select id, {% if is_incremental() %}1{% else %}2{% endif %} as x from {{ source('raw', 'events') }}"),
            "guard-changes-query",
        ),
        (
            model(
                MERGE,
                "select u.id, e.ts from {{ source('raw', 'users') }} u left join (select * from {{ source('raw', 'events') }}"
                f"{{% if is_incremental() %}} where {NEWER}{{% endif %}}) e on e.id = u.id",
            ),
            "guard-below-join",
        ),
        (
            model(
                MERGE,
                f"with e as (select * from {{{{ source('raw', 'events') }}}} {{% if is_incremental() %}}where {NEWER}{{% endif %}})\n"
                "select a.id, b.ts from e a join e b on a.id = b.parent",
            ),
            "guard-below-join",
        ),
    ],
)
def test_what_is_more_than_leaving_out_rows_is_refused(tmp_path: Path, files: dict[str, str], code: str) -> None:
    found = taken(tmp_path, files)
    assert code in codes(found, "m")
    assert "models/m.sql" not in found.files


@pytest.mark.parametrize(
    ("columns", "condition", "tail"),
    [
        ("id, day", "day >= (select max(day) from {{ this }})", ""),
        ("day, count(*) n", "day >= (select max(day) from {{ this }})", "group by day"),
        ("date(ts) as day, count(*) n", "date(ts) >= (select max(day) from {{ this }})", "group by 1"),
        ("day, id, rank() over (partition by day order by id) r", "day >= date '{{ var('since') }}'", ""),
    ],
)
def test_insert_overwrite_of_whole_partitions(tmp_path: Path, columns: str, condition: str, tail: str) -> None:
    found = taken(tmp_path, guarded(OVERWRITE, condition, columns, tail))
    assert item(found, "m").verdict == "changed", item(found, "m").reasons
    assert "is_incremental" not in text(found, "models/m.sql")
    assert "partition_by=['day']" in text(found, "models/m.sql")


def test_the_newest_row_of_each_key_is_the_same_table(tmp_path: Path) -> None:
    body = (
        "select id, ts from (select id, ts, row_number() over (partition by id order by ts desc) as n\n"
        f"from {{{{ source('raw', 'events') }}}}{{% if is_incremental() %}} where {NEWER}{{% endif %}}) where n = 1"
    )
    assert item(taken(tmp_path, model(MERGE, body)), "m").verdict == "changed"


def test_a_guard_in_each_branch_of_union_all(tmp_path: Path) -> None:
    part = f"select id, ts from {{{{ source('raw', '%s') }}}} {{%% if is_incremental() %%}}where {NEWER}{{%% endif %%}}"
    found = taken(tmp_path, model(MERGE, f"{part % 'events'}\nunion all\n{part % 'users'}"))
    assert item(found, "m").verdict == "changed"


@pytest.mark.parametrize(
    ("template", "left"),
    [
        ("select 1 as a {% if is_incremental() %}, 2 as b{% endif %}", "select 1 as a "),
        ("{% if not is_incremental() %}select 1 as a{% else %}select 2 as a{% endif %}", "select 1 as a"),
        ("{% if is_incremental() %}select 1 as a{% elif true %}select 2 as a{% endif %}", "{% if true %}select 2 as a{% endif %}"),
        ("{%- if is_incremental() and var('x', 1) == 1 -%}select 1 as a{%- else -%}select 2 as a{%- endif -%}", "select 2 as a"),
        ("{% set inc = is_incremental() %}select {{ 1 if inc else 2 }} as a", "{% set inc = false %}select {{ 1 if inc else 2 }} as a"),
        ("{% if true or is_incremental() %}select 1 as a{% endif %}", "{% if true or false %}select 1 as a{% endif %}"),
    ],
)
def test_is_incremental_of_a_table_is_false(tmp_path: Path, template: str, left: str) -> None:
    found = taken(tmp_path, {"models/m.sql": template})
    assert codes(found, "m") == ["not-incremental"]
    assert text(found, "models/m.sql") == left


@pytest.mark.parametrize(
    ("config", "query", "code"),
    [
        (OVERWRITE, "%s union all select id, ts, day from {{ source('raw', 'users') }}", "guard-not-partition"),
        (
            MERGE,
            "select day, count(*) as id from (%s union all select id, ts, day from {{ source('raw', 'users') }}) group by day",
            "guard-below-aggregate",
        ),
        (MERGE, "%s except select id, ts, day from {{ source('raw', 'users') }}", "guard-below-join"),
    ],
)
def test_a_guard_in_one_branch_only(tmp_path: Path, config: str, query: str, code: str) -> None:
    body = "select id, ts, day from {{ source('raw', 'events') }} {% if is_incremental() %}where day >= (select max(day) from {{ this }}){% endif %}"
    assert code in codes(taken(tmp_path, model(config, query % f"({body})" if "%s union" in query[:9] else query.replace("%s", body))), "m")


def test_databricks_merges_by_default(tmp_path: Path) -> None:
    profile = "shop: {target: prod, outputs: {prod: {type: databricks, schema: main, token: abc}}}"
    files = {**guarded("materialized='incremental', unique_key=['id', 'day']", NEWER), "profiles.yml": profile}
    found = taken(tmp_path, files)
    assert item(found, "m").verdict == "changed"
    assert "group by `id`, `day`" in text(found, "tests/m_unique_key.sql")


def test_a_key_that_has_a_unique_test_gets_no_other(tmp_path: Path) -> None:
    yaml = "models:\n  - name: m\n    columns:\n      - {name: id, tests: [unique]}\n"
    found = taken(tmp_path, {**guarded(MERGE, NEWER), "models/m.yml": yaml})
    assert "tests/m_unique_key.sql" not in found.files
    assert codes(found, "unique_m_id", "test") == []


def test_a_guard_in_a_macro(tmp_path: Path) -> None:
    macro = f"{{% macro newer() %}}{{% if is_incremental() %}}where {NEWER}{{% endif %}}{{% endmacro %}}"
    files = model(MERGE, "select id, ts from {{ source('raw', 'events') }} {{ newer() }}")
    found = taken(tmp_path, {**files, "macros/newer.sql": macro})
    assert item(found, "m").verdict == "changed"
    assert text(found, "macros/newer.sql") == "{% macro newer() %}{% endmacro %}"
